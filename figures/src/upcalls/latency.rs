//! How long a timer's expiry takes to its handler, while a thread of this process computes on the
//! processor, and others want it, too: each way of a domain's events, beside a plain signal to the
//! thread and a plain thread that waits. The others are processes, or threads that are attached to
//! the domain as the computing one is, of this process or each of its own: whichever is current is
//! interrupted.
//!
//! Handlers write down when they run; a control thread on another processor, if there is one,
//! looks at the notes when the time is over. So who is starved holds up nobody.

use super::image::TOLD;
use super::log::{EVENTS, Log, PERIOD, note};
use crate::figure::{Figure, Goal};
use crate::plot::{Chart, Series};
use crate::trusted::notice::{FileTimer, SignalTimer, attach, now};
use crate::trusted::process::{self, Child, Pinned, processor};
use postern::{
    Caller, CommonMemory, Domain, DomainBuilder, Event, EventError, Image, Placement, Way, Ways,
};
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// What is handled later is starved.
const STARVED: Duration = Duration::from_millis(200);
/// Disturbing processes.
const DISTURBERS: [usize; 4] = [0, 1, 16, 64];
/// Attached threads that disturb: with the computing one as many as can be attached.
const ATTACHED: [usize; 3] = [1, 16, 63];
/// Processes of attached threads that disturb.
const ELSEWHERE: [usize; 3] = [1, 16, 48];
/// Priority of the real-time disturber: above that of the domains' threads.
const PRIORITY: i32 = 60;
/// Seconds after which the kernel ends it, or it ends itself.
const LONGEST: u64 = 1;
/// At most so many times the latency without a disturber have events while sixteen disturb.
const FLAT: f64 = 2.0;

/// Who else wants the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Processes(usize),
    /// One process of real-time priority.
    RealTime,
    /// Threads of this process, which are attached where the computing one is.
    Attached(usize),
    /// One of them, of real-time priority.
    AttachedRealTime,
    /// Threads of as many processes, which have the domain in common with this one.
    Elsewhere(usize),
}

impl Load {
    fn is_real_time(self) -> bool {
        matches!(self, Load::RealTime | Load::AttachedRealTime)
    }

    fn is_attached(self) -> bool {
        !matches!(self, Load::Processes(_) | Load::RealTime)
    }

    fn processes(self) -> usize {
        match self {
            Load::Processes(count) => count,
            Load::RealTime => 1,
            Load::Attached(_) | Load::AttachedRealTime | Load::Elsewhere(_) => 0,
        }
    }

    /// Others' processes have the domain.
    fn elsewhere(self) -> usize {
        match self {
            Load::Elsewhere(count) => count,
            _ => 0,
        }
    }

    fn threads(self) -> usize {
        match self {
            Load::Processes(_) | Load::RealTime | Load::Elsewhere(_) => 0,
            Load::Attached(count) => count,
            Load::AttachedRealTime => 1,
        }
    }

    /// In the names of figures.
    fn name(self) -> String {
        match self {
            Load::Processes(count) => count.to_string(),
            Load::RealTime => "fifo".to_owned(),
            Load::Attached(count) => format!("attached-{count}"),
            Load::AttachedRealTime => "attached-fifo".to_owned(),
            Load::Elsewhere(count) => format!("elsewhere-{count}"),
        }
    }

    fn meanwhile(self) -> String {
        match self {
            Load::Processes(count) => format!("{count} processes compute"),
            Load::RealTime => format!("one process of real-time priority {PRIORITY} computes"),
            Load::Attached(count) => {
                format!("{count} more threads compute, attached where there is a domain")
            }
            Load::Elsewhere(count) => {
                format!("threads of {count} processes compute, attached where there is a domain")
            }
            Load::AttachedRealTime => format!(
                "one more thread of real-time priority {PRIORITY} computes, attached where there is a domain"
            ),
        }
    }
}

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

/// Processes that compute on one processor until this is dropped.
struct Disturbers(Vec<Child>);

impl Disturbers {
    fn new(count: usize, processor: usize) -> Result<Disturbers, String> {
        Disturbers::with(count, processor, || Ok(()))
    }

    /// Each attached to the domain that has this memory.
    fn attached(
        count: usize,
        processor: usize,
        image: &Image,
        memory: Option<&CommonMemory>,
    ) -> Result<Disturbers, String> {
        let log = Log::get()?;
        let all = Disturbers::with(count, processor, || {
            let domain = domain(image, memory, Way::Current)?;
            let client = attach(&domain, TOLD).map_err(|error| error.to_string())?;
            log.attached().fetch_add(1, SeqCst);
            Ok((domain, client))
        })?;
        let begun = Instant::now();
        while log.attached().load(SeqCst) < count as u64 {
            if begun.elapsed() > Duration::from_secs(20) {
                return Err("processes that attach do not come to an end of it".into());
            }
            std::thread::sleep(PERIOD);
        }
        Ok(all)
    }

    fn with<K>(
        count: usize,
        processor: usize,
        begin: impl Fn() -> Result<K, String>,
    ) -> Result<Disturbers, String> {
        let one = || {
            Child::new(|| {
                let Ok(_kept) = begin() else {
                    return;
                };
                let _pinned = Pinned::to(processor);
                loop {
                    std::hint::spin_loop();
                }
            })
        };
        let mut all = Disturbers(Vec::new());
        for _ in 0..count {
            all.0.push(one()?);
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

/// What is measured: its events go one way, and its handler notes them.
fn domain(image: &Image, memory: Option<&CommonMemory>, way: Way) -> Result<Domain, String> {
    let builder: DomainBuilder = Domain::builder(image).placement(Placement::Cold);
    let builder = builder.service(TOLD, |_: &Caller<'_>, _: u32, count: u64| note(count));
    let builder = builder.ways(Ways::only(way));
    let domain = match memory {
        Some(memory) => builder.common(memory).grant_to_all(TOLD).build(),
        None => builder.build(),
    };
    domain.map_err(|error| error.to_string())
}

/// Computes until `over`, attached for the timer's signal or a domain's events; tells when the
/// timer began, or nothing if the machine does not allow the way. The share of handlers that
/// returned in this thread.
fn compute(
    image: &Image,
    by: By,
    (load, memory): (Load, Option<&CommonMemory>),
    over: &AtomicBool,
    ready: &Sender<Option<u64>>,
) -> Result<f64, String> {
    // With the disturbing threads, once all are attached.
    let computing = |begun: u64, domain: Option<&Domain>| {
        let all = Barrier::new(load.threads() + 1);
        std::thread::scope(|scope| {
            for _ in 0..load.threads() {
                scope.spawn(|| disturb(domain, load.is_real_time(), &all, over));
            }
            all.wait();
            let _ = ready.send(Some(begun));
            while !over.load(Relaxed) {
                std::hint::spin_loop();
            }
        });
    };
    match by {
        By::Signal => {
            let begun = now();
            let _timer = SignalTimer::new(PERIOD, note)?;
            computing(begun, None);
            Ok(1.0)
        }
        By::Thread => std::thread::scope(|scope| {
            let begun = now();
            let mut timer = FileTimer::new(PERIOD)?;
            scope.spawn(move || {
                while !over.load(Relaxed) {
                    note(timer.wait());
                }
            });
            computing(begun, None);
            Ok(0.0)
        }),
        By::Domain(way) => {
            let domain = domain(image, memory, way)?;
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
            computing(begun, Some(&domain));
            drop(client);
            let counters = timer.counters();
            let all = counters.by_current + counters.by_dispatcher;
            Ok(counters.by_current as f64 / all as f64)
        }
    }
}

/// Computes until `over`, attached to the domain if there is one. At real-time priority, if that is
/// allowed, for [`LONGEST`] at most.
fn disturb(domain: Option<&Domain>, real_time: bool, all: &Barrier, over: &AtomicBool) {
    let client = domain.map(|domain| attach(domain, TOLD));
    all.wait();
    let begun = Instant::now();
    let longest = match real_time && process::make_real_time(PRIORITY) {
        true => Duration::from_secs(LONGEST),
        false => Duration::MAX,
    };
    while !over.load(Relaxed) && begun.elapsed() < longest {
        for _ in 0..1000 {
            std::hint::spin_loop();
        }
    }
    drop(client);
}

/// Latencies and the share that interrupted threads handled, while others compute; none where the
/// machine does not allow it.
fn measure(image: &Image, by: By, load: Load) -> Result<Option<(Vec<f64>, f64)>, String> {
    let log = Log::get()?;
    log.clear();
    let memory = (load.elsewhere() != 0).then(|| CommonMemory::new(image));
    let memory = memory.transpose().map_err(|error| error.to_string())?;
    let memory = memory.as_ref();
    let place = processor();
    let _off = Pinned::off(place);
    let over = AtomicBool::new(false);
    let (ready, begins) = channel();
    std::thread::scope(|scope| {
        let over = &over;
        let computing = scope.spawn(move || {
            let _pinned = Pinned::to(place);
            compute(image, by, (load, memory), over, &ready)
        });
        let disturbed = |begun: u64| {
            let disturbers = Disturbers::new(load.processes(), place)?;
            let _attached = Disturbers::attached(load.elsewhere(), place, image, memory)?;
            if load.is_real_time()
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
            Ok(Some(log.latencies(begun, from)))
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
    let loads = DISTURBERS.map(Load::Processes).into_iter();
    let loads = loads.chain([Load::RealTime]);
    let loads = loads.chain(ATTACHED.map(Load::Attached));
    let loads = loads.chain(ELSEWHERE.map(Load::Elsewhere));
    for load in loads.chain([Load::AttachedRealTime]) {
        let mut base = None;
        // Whoever computes elsewhere computes for the others' sake only.
        let measured =
            |by| load.elsewhere() == 0 || matches!(by, By::Signal | By::Domain(Way::Current));
        for (name, by, what) in ALL.into_iter().filter(|&(_, by, _)| measured(by)) {
            if let Some((times, own)) = measure(image, by, load)? {
                figures.extend(rows((name, by, what), load, &times, own, &mut base));
            } else if load.is_real_time() {
                let load = load.name();
                eprintln!("upcalls.{name}.{load} is left out: it needs CAP_SYS_NICE, and its way");
            } else if load == Load::Processes(0) {
                eprintln!("upcalls.{name} is left out: the machine does not allow this way");
            }
        }
    }
    figures.extend(flat(&figures));
    Ok(figures)
}

/// Those of one way: shares of the sorted latencies, over those of the first way, `base`.
fn rows(
    (name, by, what): (&str, By, &str),
    load: Load,
    times: &[f64],
    own: f64,
    base: &mut Option<[f64; 2]>,
) -> Vec<Figure> {
    let handled = times.iter().filter(|&&time| time <= STARVED.as_secs_f64());
    let starved = 1.0 - handled.count() as f64 / EVENTS as f64;
    let meanwhile = load.meanwhile();
    let row = |share: &str, value, unit, how| {
        let name = format!("upcalls.{name}.{}.{share}", load.name());
        Figure::plain(name, value, unit, how)
    };
    let mut figures = Vec::new();
    let shares = [EVENTS / 2, EVENTS * 9 / 10].map(|at| times[at as usize] * 1e6);
    let base = base.get_or_insert(shares);
    let shares = ["median", "90"].into_iter().zip(shares);
    for ((share, time), base) in shares.zip(*base) {
        let how = format!(
            "{share} of {EVENTS}: from a timer's expiry to the handler in {what}, \
             while {meanwhile}, over a plain signal"
        );
        let figure = row(share, time, "us", how);
        // Of what is starved there is no time.
        match (time <= STARVED.as_secs_f64() * 1e6, base.is_finite()) {
            (false, _) => (),
            (true, false) => figures.push(figure),
            (true, true) => figures.push(figure.against(base)),
        }
    }
    let how = format!("share not handled within {STARVED:?} by {what}, while {meanwhile}");
    let is_current = by == By::Domain(Way::Current);
    let figure = row("starved", starved, "share", how);
    figures.push(match is_current && load.is_attached() {
        true => figure.goal(Goal::AtMost(0.0)),
        false => figure,
    });
    if is_current {
        let how = format!(
            "share of handlers that returned in an interrupted thread, while {meanwhile}; \
             all others in the real-time thread behind it"
        );
        figures.push(row("own", own, "share", how));
    }
    figures
}

/// What sixteen attached threads that disturb do to the latency of the current way.
fn flat(figures: &[Figure]) -> Vec<Figure> {
    let value = |load: Load, share: &str| {
        let name = format!("upcalls.current.{}.{share}", load.name());
        let found = figures.iter().find(|figure| figure.name == name);
        found.map(|figure| figure.value)
    };
    let mut flat = Vec::new();
    let loads = [
        (Load::Attached(16), "flat", "16 more compute"),
        (
            Load::Elsewhere(16),
            "flat-elsewhere",
            "16 more compute, each in a process of its own",
        ),
    ];
    let loads = loads.into_iter();
    for (load, name, while_what, share) in
        loads.flat_map(|(load, name, what)| ["median", "90"].map(|share| (load, name, what, share)))
    {
        let alone = value(Load::Processes(0), share);
        if let Some((alone, disturbed)) = alone.zip(value(load, share)) {
            let how = format!(
                "{share} of {EVENTS}: from a timer's expiry to the handler in whichever attached \
                 thread runs, while {while_what}, over one alone"
            );
            let figure = Figure::plain(format!("upcalls.{name}.{share}"), disturbed, "us", how);
            let figure = figure.against(alone);
            flat.push(match share {
                "median" => figure.goal(Goal::RatioAtMost(FLAT)),
                _ => figure,
            });
        }
    }
    flat
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
            let value = |name: &str, load: Load| {
                let name = format!("upcalls.{name}.{}.{share}", load.name());
                let found = figures.iter().find(|figure| figure.name == name);
                found.map(|figure| figure.value)
            };
            let line = |name: &str, what: &str, loads: &[(usize, Load)]| {
                let mut line = Series::new(what);
                let points = loads.iter();
                let points =
                    points.filter_map(|&(count, load)| Some((count as f64, value(name, load)?)));
                line.points.extend(points);
                line
            };
            let processes = DISTURBERS.map(|count| (count, Load::Processes(count)));
            let mut lines: Vec<_> = ALL
                .map(|(name, _, what)| line(name, what, &processes))
                .into();
            let attached = ATTACHED.map(|count| (count, Load::Attached(count)));
            let elsewhere = ELSEWHERE.map(|count| (count, Load::Elsewhere(count)));
            let what = "whichever thread runs, where those that disturb are attached";
            let of_processes = "the same, each in a process of its own";
            for (what, loads) in [(what, attached), (of_processes, elsewhere)] {
                let loads = [&[(0, Load::Processes(0))], &loads[..]].concat();
                lines.push(line("current", what, &loads));
            }
            Chart {
                name: format!("upcalls-{share}"),
                title: title.into(),
                x: "others that compute on the same processor",
                y: "us",
                series: lines,
            }
        })
        .collect()
}
