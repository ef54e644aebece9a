//! How long an event of another process takes to its handler in this one: an eventfd that a thread
//! waits for, and a doorbell of a domain, whichever way its events go. The other process is on the
//! same processor, where a thread of this one computes meanwhile.

use super::image::TOLD;
use crate::clock::median_and_90;
use crate::figure::Figure;
use crate::trusted::notice::{attach, counter, now};
use crate::trusted::process::{self, Child, Pinned};
use postern::{Caller, Domain, Doorbell, Event, EventError, Image, Placement, Way, Ways};
use std::fs::File;
use std::io::{Read, Write};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::{Duration, Instant};

const EVENTS: usize = 100;
/// Between two rings.
const PERIOD: Duration = Duration::from_millis(1);
/// Longer than anything waits here.
const PATIENCE: Duration = Duration::from_secs(5);

/// Nanoseconds from each ring to its handler.
struct Log {
    noted: AtomicUsize,
    times: [AtomicU64; EVENTS],
}

static LOG: Log = Log {
    noted: AtomicUsize::new(0),
    times: [const { AtomicU64::new(0) }; EVENTS],
};

impl Log {
    /// What was rung is the time at which it was. In a signal handler, too.
    fn note(&self, rung: u64) {
        let time = now().saturating_sub(rung);
        if let Some(note) = self.times.get(self.noted.load(SeqCst)) {
            note.store(time, Relaxed);
        }
        self.noted.fetch_add(1, SeqCst);
    }
}

/// Median and 90 % in µs of rings by another process, each of which is handled before the next.
fn measure(bell: &Doorbell) -> Result<(f64, f64), String> {
    LOG.noted.store(0, SeqCst);
    let (mut asked, mut ask) = process::pipe()?;
    let child = Child::new(|| {
        let mut byte = [0];
        while asked.read_exact(&mut byte).is_ok() {
            std::thread::sleep(PERIOD);
            let _ = bell.ring(now());
        }
    })?;
    let one = |n: usize| {
        ask.write_all(&[1]).map_err(|error| error.to_string())?;
        let begun = Instant::now();
        while LOG.noted.load(SeqCst) < n {
            if begun.elapsed() > PATIENCE {
                return Err(format!("a ring is not told within {PATIENCE:?}"));
            }
        }
        Ok(())
    };
    let all = (1..=EVENTS).try_for_each(one);
    child.kill();
    all?;
    let times = LOG.times.iter();
    let times = times.map(|time| time.load(Relaxed) as f64 / 1e3);
    Ok(median_and_90(times.collect()))
}

/// By a plain thread that waits for an eventfd.
fn by_thread() -> Result<(f64, f64), String> {
    let waited = counter()?;
    let bell = waited.try_clone().map_err(|error| error.to_string())?;
    let (mut waited, bell) = (File::from(waited), Doorbell::from(bell));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut count = [0; 8];
            while waited.read_exact(&mut count).is_ok() && !over.load(SeqCst) {
                LOG.note(u64::from_ne_bytes(count));
            }
        });
        let times = measure(&bell);
        over.store(true, SeqCst);
        bell.ring(1).map_err(|error| error.to_string())?;
        times
    })
}

/// By a domain's handler; nothing if the machine does not allow the way.
fn by_domain(image: &Image, way: Way) -> Result<Option<(f64, f64)>, String> {
    let builder = Domain::builder(image).placement(Placement::Cold);
    let builder = builder.service(TOLD, |_: &Caller<'_>, _: u32, rung: u64| LOG.note(rung));
    let domain = builder.ways(Ways::only(way)).build();
    let domain = domain.map_err(|error| error.to_string())?;
    let bell = match domain.on(Event::doorbell(), "tells") {
        Err(EventError::Way(_)) => return Ok(None),
        bell => bell.map_err(|error| error.to_string())?,
    };
    let client = attach(&domain, TOLD).map_err(|error| error.to_string())?;
    let doorbell = bell.doorbell().map_err(|error| error.to_string())?;
    let times = measure(&doorbell)?;
    drop(client);
    Ok(Some(times))
}

/// The figures.
pub fn figures(image: &Image) -> Result<Vec<Figure>, String> {
    let _pinned = Pinned::new();
    let base = by_thread()?;
    let ways = [
        ("thread", Some(base), "a plain thread that waits for it"),
        (
            "plain",
            by_domain(image, Way::Plain)?,
            "a domain's plain thread",
        ),
        (
            "real-time",
            by_domain(image, Way::RealTime)?,
            "a domain's real-time thread",
        ),
        (
            "current",
            by_domain(image, Way::Current)?,
            "the same, told by the thread whose waking interrupts attached ones",
        ),
    ];
    let mut figures = Vec::new();
    for (name, times, what) in ways {
        // What this machine does not allow has no figure.
        let Some(times) = times else { continue };
        for (share, time, base) in [("median", times.0, base.0), ("90", times.1, base.1)] {
            let how = format!(
                "{share} of {EVENTS}: from a ring by another process on the same core to the \
                 handler in {what}, over a plain thread"
            );
            let name = format!("upcalls.doorbell.{name}.{share}");
            figures.push(Figure::plain(name, time, "us", how).against(base));
        }
    }
    Ok(figures)
}
