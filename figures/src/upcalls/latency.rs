//! How long a timer's expiry takes to its handler, while a thread of this process computes on the
//! processor, and other processes want it, too: each way of a domain's events, beside a plain
//! signal to the thread and a plain thread that waits.
//!
//! Handlers write down when they run; a control thread on another processor, if there is one,
//! looks at the notes when the time is over. So who is starved holds up nobody.

use super::image::TOLD;
use crate::figure::Figure;
use crate::plot::{Chart, Series};
use crate::trusted::notice::{FileTimer, SignalTimer, attach, now};
use crate::trusted::process::{Child, Pinned, processor};
use postern::{Caller, Domain, Event, EventError, Image, Placement, Way, Ways};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// Events of which shares are taken.
const EVENTS: u64 = 100;
const PERIOD: Duration = Duration::from_millis(3);
/// What is handled later is starved.
const STARVED: Duration = Duration::from_millis(200);
/// Disturbing processes.
const DISTURBERS: [usize; 4] = [0, 1, 16, 64];
/// Priority of the real-time disturber: above that of the domains' threads.
const PRIORITY: i32 = 60;
/// Seconds after which the kernel ends it.
const LONGEST: u64 = 1;

/// Who handles the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Signal,
    Thread,
    Domain(Way),
}

/// With the first part of a figure's name, and what is measured. The first is the baseline.
const ALL: [(&str, By, &str); 5] = [
    (
        "signal",
        By::Signal,
        "a plain signal to the computing thread",
    ),
    (
        "thread",
        By::Thread,
        "a plain thread that waits for the timer",
    ),
    ("plain", By::Domain(Way::Plain), "a domain's plain thread"),
    (
        "real-time",
        By::Domain(Way::RealTime),
        "a domain's real-time thread",
    ),
    (
        "current",
        By::Domain(Way::Current),
        "the computing thread, interrupted for a domain",
    ),
];

/// When handlers ran, and how many expiries each was told.
struct Log {
    noted: AtomicUsize,
    notes: [(AtomicU64, AtomicU64); 512],
}

static LOG: Log = Log {
    noted: AtomicUsize::new(0),
    notes: [const { (AtomicU64::new(0), AtomicU64::new(0)) }; 512],
};

impl Log {
    /// In a signal handler, too.
    fn note(&self, count: u64) {
        let time = now();
        let at = self.noted.fetch_add(1, SeqCst);
        if let Some(note) = self.notes.get(at) {
            note.1.store(count, Relaxed);
            note.0.store(time, SeqCst);
        }
    }

    fn clear(&self) {
        for note in &self.notes {
            note.0.store(0, SeqCst);
        }
        self.noted.store(0, SeqCst);
    }

    /// Latencies in seconds of the [`EVENTS`] expiries after `from` of a timer that began at
    /// `begun`, in order; of those that are not handled, infinite.
    fn latencies(&self, begun: u64, from: u64) -> Vec<f64> {
        let period = PERIOD.as_nanos() as u64;
        let first = from.saturating_sub(begun) / period + 1;
        let mut times = vec![f64::INFINITY; EVENTS as usize];
        let notes = self.notes.iter();
        let mut notes: Vec<_> = notes
            .map(|(time, count)| (time.load(SeqCst), count.load(Relaxed)))
            .filter(|note| note.0 != 0)
            .collect();
        notes.sort_unstable();
        let mut expiry = 0;
        for (time, count) in notes {
            for _ in 0..count.min(EVENTS * 10) {
                expiry += 1;
                let late = time.saturating_sub(begun + expiry * period) as f64 / 1e9;
                if let Some(at) = u64::checked_sub(expiry, first)
                    && let Some(one) = times.get_mut(at as usize)
                {
                    *one = late;
                }
            }
        }
        times.sort_by(f64::total_cmp);
        times
    }
}

/// Processes that compute on one processor until this is dropped.
struct Disturbers(Vec<Child>);

impl Disturbers {
    fn new(count: usize, processor: usize) -> Result<Disturbers, String> {
        let one = |_| {
            Child::new(|| {
                let _pinned = Pinned::to(processor);
                loop {
                    std::hint::spin_loop();
                }
            })
        };
        let mut all = Disturbers(Vec::new());
        for number in 0..count {
            all.0.push(one(number)?);
        }
        Ok(all)
    }
}

impl Drop for Disturbers {
    fn drop(&mut self) {
        for child in &self.0 {
            child.kill();
        }
    }
}

/// Computes until `over`, attached for the timer's signal or a domain's events; tells when the
/// timer began, or nothing if the machine does not allow the way. The share of handlers that
/// returned in this thread.
fn compute(
    image: &Image,
    by: By,
    over: &AtomicBool,
    ready: &Sender<Option<u64>>,
) -> Result<f64, String> {
    let computing = |begun: u64| {
        let _ = ready.send(Some(begun));
        while !over.load(Relaxed) {
            std::hint::spin_loop();
        }
    };
    match by {
        By::Signal => {
            let begun = now();
            let _timer = SignalTimer::new(PERIOD, |count| LOG.note(count))?;
            computing(begun);
            Ok(1.0)
        }
        By::Thread => std::thread::scope(|scope| {
            let begun = now();
            let mut timer = FileTimer::new(PERIOD)?;
            scope.spawn(move || {
                while !over.load(Relaxed) {
                    LOG.note(timer.wait());
                }
            });
            computing(begun);
            Ok(0.0)
        }),
        By::Domain(way) => {
            let builder = Domain::builder(image).placement(Placement::Cold);
            let builder = builder.service(TOLD, |_: &Caller<'_>, _: u32, count: u64| {
                LOG.note(count);
            });
            let domain = builder.ways(Ways::only(way)).build();
            let domain = domain.map_err(|error| error.to_string())?;
            let client = match attach(&domain, TOLD) {
                Err(EventError::Way(_)) => {
                    let _ = ready.send(None);
                    return Ok(0.0);
                }
                client => client.map_err(|error| error.to_string())?,
            };
            let begun = now();
            let timer = domain.on(Event::every(PERIOD), "tells");
            let timer = timer.map_err(|error| error.to_string())?;
            computing(begun);
            drop(client);
            let counters = timer.counters();
            let all = counters.by_current + counters.by_dispatcher;
            Ok(counters.by_current as f64 / all as f64)
        }
    }
}

/// Latencies and the share that the computing thread handled, while `disturbers` processes compute,
/// or one at real-time priority; none where the machine does not allow it.
fn measure(
    image: &Image,
    by: By,
    disturbers: usize,
    real_time: bool,
) -> Result<Option<(Vec<f64>, f64)>, String> {
    LOG.clear();
    let place = processor();
    let _off = Pinned::off(place);
    let over = AtomicBool::new(false);
    let (ready, begins) = channel();
    std::thread::scope(|scope| {
        let over = &over;
        let computing = scope.spawn(move || {
            let _pinned = Pinned::to(place);
            compute(image, by, over, &ready)
        });
        let disturbed = |begun: u64| {
            let disturbers = Disturbers::new(disturbers, place)?;
            if real_time
                && !disturbers
                    .0
                    .iter()
                    .all(|one| one.make_real_time(PRIORITY, LONGEST))
            {
                return Ok(None);
            }
            std::thread::sleep(10 * PERIOD);
            let from = now();
            std::thread::sleep(PERIOD * EVENTS as u32 + STARVED);
            Ok(Some(LOG.latencies(begun, from)))
        };
        // An error before the timer is there hangs up.
        let measured: Result<_, String> = match begins.recv() {
            Ok(Some(begun)) => disturbed(begun),
            Ok(None) | Err(_) => Ok(None),
        };
        over.store(true, SeqCst);
        let computed = computing.join();
        let own = computed.unwrap_or_else(|_| Err("the computing thread ended".into()))?;
        Ok(measured?.map(|times| (times, own)))
    })
}

/// The figures.
pub fn figures(image: &Image) -> Result<Vec<Figure>, String> {
    let mut figures = Vec::new();
    let loads = DISTURBERS.map(|count| (count, false));
    for (count, real_time) in loads.into_iter().chain([(1, true)]) {
        let load = match real_time {
            true => "fifo".to_owned(),
            false => count.to_string(),
        };
        let meanwhile = match real_time {
            true => format!("one process of real-time priority {PRIORITY} computes"),
            false => format!("{count} processes compute"),
        };
        let mut base = None;
        for (name, by, what) in ALL {
            let Some((times, own)) = measure(image, by, count, real_time)? else {
                if real_time {
                    eprintln!(
                        "upcalls.{name}.fifo is left out: it needs CAP_SYS_NICE, and its way"
                    );
                } else if count == 0 {
                    eprintln!("upcalls.{name} is left out: the machine does not allow this way");
                }
                continue;
            };
            let handled = times.iter().filter(|&&time| time <= STARVED.as_secs_f64());
            let starved = 1.0 - handled.count() as f64 / EVENTS as f64;
            let row = |share: &str, value, unit| {
                let name = format!("upcalls.{name}.{load}.{share}");
                let how = match share {
                    "own" => format!(
                        "share of handlers that returned in the interrupted thread, while {meanwhile}; all others in the real-time thread behind it"
                    ),
                    "starved" => {
                        format!("share not handled within {STARVED:?} by {what}, while {meanwhile}")
                    }
                    _ => format!(
                        "{share} of {EVENTS}: from a timer's expiry to the handler in {what}, while {meanwhile}, over a plain signal"
                    ),
                };
                Figure::plain(name, value, unit, how)
            };
            let shares = [EVENTS / 2, EVENTS * 9 / 10].map(|at| times[at as usize] * 1e6);
            let base = base.get_or_insert(shares);
            for (share, (time, base)) in ["median", "90"]
                .into_iter()
                .zip(shares.into_iter().zip(*base))
            {
                let figure = row(share, time, "us");
                // Of what is starved there is no time.
                match (time <= STARVED.as_secs_f64() * 1e6, base.is_finite()) {
                    (false, _) => (),
                    (true, false) => figures.push(figure),
                    (true, true) => figures.push(figure.against(base)),
                }
            }
            figures.push(row("starved", starved, "share"));
            if by == By::Domain(Way::Current) {
                figures.push(row("own", own, "share"));
            }
        }
    }
    Ok(figures)
}

/// Pictures of medians and of what nine of ten are within, over processes that compute.
pub fn charts(figures: &[Figure]) -> Vec<Chart> {
    let titles = [
        ("median", "From a timer's expiry to its handler, median"),
        ("90", "From a timer's expiry to its handler, 90 %"),
    ];
    titles
        .into_iter()
        .map(|(share, title)| {
            let lines = ALL.map(|(name, _, what)| {
                let mut line = Series::new(what);
                line.points.extend(DISTURBERS.iter().filter_map(|&count| {
                    let name = format!("upcalls.{name}.{count}.{share}");
                    let figure = figures.iter().find(|figure| figure.name == name)?;
                    Some((count as f64, figure.value))
                }));
                line
            });
            Chart {
                name: format!("upcalls-{share}"),
                title: title.into(),
                x: "processes that compute on the same processor",
                y: "us",
                series: lines.into(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_expiry_has_its_own_latency() {
        let log = Log {
            noted: AtomicUsize::new(0),
            notes: [const { (AtomicU64::new(0), AtomicU64::new(0)) }; 512],
        };
        let (begun, period) = (1_000, PERIOD.as_nanos() as u64);
        // Two on time, one before the time that counts; then two at once, the later one on time.
        for (at, (expiry, count)) in [(1, 1), (2, 1), (4, 2)].into_iter().enumerate() {
            log.notes[at].1.store(count, Relaxed);
            log.notes[at].0.store(begun + expiry * period, SeqCst);
        }
        let times = log.latencies(begun, begun + period);
        assert_eq!(times.len(), EVENTS as usize);
        assert_eq!(times[..3], [0.0, 0.0, PERIOD.as_secs_f64()]);
        assert!(times[3..].iter().all(|time| time.is_infinite()));
        log.clear();
        assert!(log.latencies(begun, begun)[0].is_infinite());
    }
}
