//! Handlers that interrupt threads, beside a bare signal; and how long an event takes to its
//! handler, by the way that it goes, while other threads want the same processor.

use crate::clock::best_of;
use crate::figure::Figure;
use crate::trusted::cycle;
use crate::trusted::process;
use crate::trusted::signal::BareHandler;
use postern::{Domain, Event, EventError, Image, Placement, Way, Ways};
use postern_image::ImageBuilder;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

const SIGNALS: u64 = 500;
const ROUNDS: usize = 20;
/// Events in a row of each kind.
const EVENTS: usize = 100;
/// Threads that compute on the same processor meanwhile.
const DISTURBERS: [usize; 3] = [0, 1, 16];

/// `on`, a handler that counts its calls, and `calls`, how many there were.
fn image() -> Result<Image, String> {
    const CALLS: usize = 64;
    let text = |data: u32| {
        let mut text = vec![0x65, 0x67, 0x48, 0xff, 0x04, 0x25]; // incq %gs:data
        text.extend(data.to_le_bytes());
        text.push(0xc3);
        text.resize(CALLS, postern_verifier::window::FILL);
        text.extend([0x65, 0x67, 0x48, 0x8b, 0x04, 0x25]); // mov %gs:data, %rax
        text.extend(data.to_le_bytes());
        text.push(0xc3);
        text
    };
    let signature = |text: &str| text.parse().map_err(|error| format!("{error}"));
    let mut builder = ImageBuilder::new(text(0));
    builder.data(vec![0; 64], 0);
    builder.export("on", 0, Some(signature("v(IL)")?));
    builder.export("calls", CALLS as u32, Some(signature("L()")?));
    let layout = builder.layout().map_err(|error| error.to_string())?;
    builder.text(text(layout.data));
    let file = builder.build().map_err(|error| error.to_string())?;
    Image::from_bytes(&file).map_err(|error| error.to_string())
}

/// The figures of the group.
pub fn figures() -> Result<Vec<Figure>, String> {
    let image = image()?;
    let mut figures = vec![against_a_signal(&image)?];
    // With all threads that it starts.
    let _pinned = process::Pinned::new();
    for disturbers in DISTURBERS {
        figures.extend(while_disturbed(&image, disturbers)?);
    }
    Ok(figures)
}

fn against_a_signal(image: &Image) -> Result<Figure, String> {
    let domain = Domain::builder(image).placement(Placement::Cold).build();
    let domain = domain.map_err(|error| error.to_string())?;
    let upcall = domain.upcall("on").map_err(|error| error.to_string())?;
    let attachment = upcall.attach().map_err(|error| error.to_string())?;
    let bare = || {
        let handler = BareHandler::install();
        for _ in 0..SIGNALS {
            handler.fault();
        }
    };
    let times = best_of(
        ROUNDS,
        [
            &mut || cycle::chain(10 * SIGNALS),
            &mut || {
                for event in 0..SIGNALS {
                    attachment.send(1, event);
                }
            },
            &mut || bare(),
        ],
    );
    let cycle = times[0] / 10.0;
    let how = "an event that a thread sends itself, until its handler has returned, over a bare signal of a fault";
    let figure = Figure::plain("upcalls.send", times[1] / cycle, "cycles", how);
    Ok(figure.against(times[2] / cycle))
}

/// Median and 90 % of the time from a ring to its handler, for each way, over those of the plain
/// one.
fn while_disturbed(image: &Image, disturbers: usize) -> Result<Vec<Figure>, String> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..disturbers {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let ways = [
            ("plain", Way::Plain, "a thread that waits"),
            ("real-time", Way::RealTime, "a real-time thread that waits"),
            ("current", Way::Current, "the current thread, interrupted"),
        ];
        let measured = ways.map(|(name, way, what)| (name, what, latencies(image, way)));
        over.store(true, Relaxed);
        let mut figures = Vec::new();
        let mut plain = None;
        for (name, what, times) in measured {
            // What this machine does not allow has no figure.
            let Some(times) = times? else { continue };
            let base = *plain.get_or_insert(times);
            let rows = [("median", times.0, base.0), ("90", times.1, base.1)];
            for (share, time, base) in rows {
                let name = format!("upcalls.{name}.{disturbers}.{share}");
                let how = format!(
                    "{share} of {EVENTS}: from a ring to the handler in {what}, {disturbers} disturbers, over a plain thread"
                );
                figures.push(Figure::plain(name, time, "us", how).against(base));
            }
        }
        Ok(figures)
    })
}

fn latencies(image: &Image, way: Way) -> Result<Option<(f64, f64)>, String> {
    let builder = Domain::builder(image).placement(Placement::Cold);
    let domain = builder.ways(Ways::only(way)).build();
    let domain = domain.map_err(|error| error.to_string())?;
    let bell = match domain.on(Event::doorbell(), "on") {
        Err(EventError::Way(_)) => return Ok(None),
        bell => bell.map_err(|error| error.to_string())?,
    };
    let client = domain.attach().map_err(|error| error.to_string())?;
    let doorbell = bell.doorbell().map_err(|error| error.to_string())?;
    let calls = domain.func::<fn() -> u64>("calls");
    let calls = calls.map_err(|error| error.to_string())?;
    let mut times = Vec::new();
    for n in 1..=EVENTS as u64 {
        let begun = Instant::now();
        doorbell.ring(1).map_err(|error| error.to_string())?;
        while calls.call().map_err(|error| error.to_string())? < n {
            std::hint::spin_loop();
        }
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    drop(client);
    times.sort_by(f64::total_cmp);
    Ok(Some((times[EVENTS / 2], times[EVENTS * 9 / 10])))
}
