//! How long a ring takes to its handler in the ringing thread or beside it, while threads of the
//! same process want the processor.

use super::image::TOLD;
use crate::clock::median_and_90;
use crate::figure::Figure;
use crate::trusted::notice::NoUpcalls;
use crate::trusted::process;
use postern::{Caller, Domain, Event, EventError, Image, Placement, Way, Ways};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Events in a row of each kind.
const EVENTS: usize = 100;
/// Threads that compute on the same processor meanwhile.
const DISTURBERS: [usize; 3] = [0, 1, 16];

/// The figures.
pub fn figures(image: &Image) -> Result<Vec<Figure>, String> {
    // With all threads that it starts.
    let _pinned = process::Pinned::new();
    let mut figures = Vec::new();
    for disturbers in DISTURBERS {
        figures.extend(while_disturbed(image, disturbers)?);
    }
    figures.extend(parts(image)?);
    Ok(figures)
}

/// What the way of the current thread is made of: rings without the handler's part, whose
/// differences the parts are.
fn parts(image: &Image) -> Result<Vec<Figure>, String> {
    let rows = [
        (
            "real-time",
            Way::RealTime,
            false,
            "whose handler the real-time thread calls",
        ),
        (
            "program",
            Way::Current,
            false,
            "the same, where the program of the kernel finds nobody attached",
        ),
        (
            "signal",
            Way::Current,
            true,
            "where it signals the ringing thread, which blocks that",
        ),
    ];
    let mut figures: Vec<Figure> = Vec::new();
    for (name, way, attached, what) in rows {
        let domain = domain(image, way)?;
        let bell = match domain.on(Event::doorbell(), "on") {
            Err(EventError::Way(_)) => continue,
            bell => bell.map_err(|error| error.to_string())?,
        };
        let client = attached.then(|| domain.attach()).transpose();
        let client = client.map_err(|error| error.to_string())?;
        let doorbell = bell.doorbell().map_err(|error| error.to_string())?;
        let mut times = Vec::new();
        for _ in 0..EVENTS {
            let _blocked = attached.then(NoUpcalls::new);
            let begun = Instant::now();
            doorbell.ring(1).map_err(|error| error.to_string())?;
            times.push(begun.elapsed().as_secs_f64() * 1e6);
        }
        drop(client);
        let how = format!("median of {EVENTS}: until a ring returns, {what}");
        let name = format!("upcalls.ring.parts.{name}");
        let figure = Figure::plain(name, median_and_90(times).0, "us", how);
        figures.push(match figures.first() {
            Some(first) => {
                let base = first.value;
                figure.against(base)
            }
            None => figure,
        });
    }
    Ok(figures)
}

fn domain(image: &Image, way: Way) -> Result<Domain, String> {
    let builder = Domain::builder(image).placement(Placement::Cold);
    let builder = builder.service(TOLD, |_: &Caller<'_>, _: u32, _: u64| ());
    let domain = builder.ways(Ways::only(way)).build();
    domain.map_err(|error| error.to_string())
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
                let name = format!("upcalls.ring.{name}.{disturbers}.{share}");
                let how = format!(
                    "{share} of {EVENTS}: from a ring to the handler in {what}, \
                     {disturbers} disturbers, over a plain thread"
                );
                figures.push(Figure::plain(name, time, "us", how).against(base));
            }
        }
        Ok(figures)
    })
}

fn latencies(image: &Image, way: Way) -> Result<Option<(f64, f64)>, String> {
    let domain = domain(image, way)?;
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
    Ok(Some(median_and_90(times)))
}
