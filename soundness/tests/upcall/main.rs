//! Interrupts a thread by an upcall at every instruction of every gate, and everywhere the thread
//! must go on as if nothing had been.
//!
//! The scenarios are those of the test `step`: for each, a child makes the same call again and
//! again under a debugger. Call k is stopped after its k-th instruction, and the signal for upcalls
//! is delivered. When the thread is back at that instruction, its registers, its vector state, its
//! state for the gates and its records must be what they were, bit by bit; and the call must end as
//! ever. Handlers write all registers and call a service; every third one faults.
//!
//! And an upcall is single-stepped itself, from the signal to the way back. What another thread
//! reads meanwhile must be of one call; and the end of a call is asked for at every instruction of
//! its gate: that of the upcall, or that of the call which waits.
//!
//! This test has no harness: the children are forked, so the process must have one thread.

#[allow(dead_code)]
#[path = "../step/fixture.rs"]
mod fixture;
#[allow(dead_code)]
#[path = "../step/labels.rs"]
mod labels;
#[allow(dead_code)]
#[path = "../step/memory.rs"]
mod memory;
#[allow(dead_code)]
#[path = "../step/peers.rs"]
mod peers;
#[allow(dead_code)]
#[path = "../step/reader.rs"]
mod reader;
#[allow(dead_code)]
#[path = "../step/report.rs"]
mod report;
#[allow(dead_code)]
#[path = "../step/scenario.rs"]
mod scenario;
mod session;

use labels::{is_end, label, place};
use postern::testing;
use postern::{Attachment, Caller, Domain, Placement};
use postern_soundness::debugger::Debugger;
use report::{AS_USUAL, Report};
use scenario::{SCENARIOS, Scenario};
use session::{END, Place, Session};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

/// Instructions outside of gates and windows that are tried per scenario.
const OTHERS: usize = 16;
/// The same in the memory gate's, whose loops are long.
const IN_MEMORY_GATE: usize = 24;

const HOUR: std::time::Duration = std::time::Duration::from_secs(3600);

/// The event on which the handler faults.
const FAULT: u64 = 2;

fn main() {
    let only = std::env::args().skip(1).find(|a| !a.starts_with('-'));
    let wanted = |s: &&Scenario| only.as_ref().is_none_or(|name| s.name.contains(name));
    let mut visited: BTreeMap<&'static str, BTreeSet<u64>> = BTreeMap::new();
    let mut upcalls = 0;
    for scenario in SCENARIOS.iter().filter(wanted) {
        upcalls += run(scenario, &mut visited);
    }
    for (label, pcs) in &visited {
        println!("  {label}: {} instructions", pcs.len());
    }
    println!("{upcalls} upcalls, and everything as it was");
    if only.as_ref().is_none_or(|name| "ends" == name) {
        for suspended in [false, true] {
            ends(suspended);
        }
    }
    if only.is_some() {
        return;
    }
    let labels = testing::labels();
    for pair in labels.windows(2) {
        let empty = pair[0].1 == pair[1].1 || is_end(pair[0].0);
        assert!(
            empty || visited.contains_key(pair[0].0),
            "{} was never interrupted",
            pair[0].0
        );
    }
}

/// Calls of the handlers' service.
static SERVED: AtomicU64 = AtomicU64::new(0);

/// The handler: calls the service with the event, which comes back; faults, or fills all registers.
fn handler(threads: u32) -> Domain {
    let mut text = fixture::CALL_SLOT.to_vec();
    // cmp $FAULT, %eax; jne over the next; ud2
    text.extend([0x83, 0xf8, FAULT as u8, 0x75, 2, 0x0f, 0x0b]);
    for n in 0..8u8 {
        // vpcmpeqd %ymm, %ymm, %ymm
        text.extend([0xc5, 0x85 | (!n & 15) << 3, 0x76, 0xc0 | n << 3 | n]);
    }
    // cvtsi2sd %rax, %xmm0; divsd %xmm1, %xmm0; fld1
    text.extend([
        0xf2, 0x48, 0x0f, 0x2a, 0xc0, 0xf2, 0x0f, 0x5e, 0xc1, 0xd9, 0xe8,
    ]);
    for register in [0xc0, 0xc1, 0xc2, 0xc3, 0xc5, 0xc6, 0xc7] {
        text.extend([0x48, 0xc7, register, 0xff, 0xff, 0xff, 0xff]);
    }
    for register in [0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6] {
        text.extend([0x49, 0xc7, register, 0xff, 0xff, 0xff, 0xff]);
    }
    text.push(0xc3);
    let mut builder = postern_image::ImageBuilder::new(text);
    builder.import("s", Some("i(i)".parse().unwrap()));
    builder.export("f", 0, Some("v(IL)".parse().unwrap()));
    builder.x87(true);
    let image = postern::Image::from_bytes(&builder.build().unwrap()).unwrap();
    Domain::builder(&image)
        .limits(fixture::limits())
        .placement(Placement::Cold)
        .service("s", |_: &Caller<'_>, event: i32| {
            SERVED.fetch_add(1, Ordering::Relaxed);
            event
        })
        .sandbox_threads(threads)
        .build()
        .unwrap()
}

/// What the child does between calls. Handlers may call their service, or are suspended there, and
/// go on here.
fn between(report: &Report, attached: &mut Option<(Domain, Attachment)>, suspended: bool) {
    let (domain, attachment) = attached.get_or_insert_with(|| {
        let domain = handler(suspended.into());
        // Nothing but the debugger interferes.
        let mut upcall = domain.upcall("f").unwrap().longest(HOUR);
        if !suspended {
            // SAFETY: the service adds to a number.
            upcall = unsafe { upcall.allow("s") };
        }
        let attachment = upcall.attach().unwrap();
        testing::end_sandbox_threads(&domain);
        (domain, attachment)
    });
    if domain.is_poisoned() {
        attachment.take_fault().expect("why it is poisoned");
        domain.reset().expect("nobody is inside");
        testing::end_sandbox_threads(domain);
    }
    while let Some(ended) = testing::go_on(domain) {
        ended.expect("it goes on as ever");
    }
    let counters = attachment.counters();
    let (extents, except) = testing::thread_extents();
    report.update(|r| {
        r.upcalls.signal = testing::upcall_signal();
        r.upcalls.extents = extents;
        r.upcalls.except = except;
        r.upcalls.counts = [
            counters.delivered + counters.promoted,
            counters.ended,
            counters.skipped,
            SERVED.load(Ordering::Relaxed),
        ];
    });
}

fn run(scenario: &'static Scenario, visited: &mut BTreeMap<&'static str, BTreeSet<u64>>) -> u64 {
    let report = Report::map();
    let life = || {
        let mut attached = None;
        scenario.child_with(report, |report| between(report, &mut attached, false));
    };
    // SAFETY: this process has one thread; the parent never starts Postern.
    let child = unsafe { Debugger::fork(life) }.expect("fork");
    let session = Session {
        child,
        report,
        labels: testing::labels(),
        name: scenario.name,
    };
    session.to_begin();
    let path = session.path();
    session.to_report();
    session.check(None);
    let labels = testing::labels();
    let in_window = |pc| session.in_window(pc);
    let kind = |pc: u64| match label(&labels, pc) {
        Some(_) if testing::in_memory_gate(pc) => Some(IN_MEMORY_GATE),
        Some(_) => None,
        None if in_window(pc) => None,
        None => Some(OTHERS),
    };
    let mut skipped = BTreeSet::new();
    for most in [OTHERS, IN_MEMORY_GATE] {
        let some: Vec<usize> = (0..path.len())
            .filter(|&k| kind(path[k]) == Some(most))
            .collect();
        let stride = some.len().div_ceil(most).max(1);
        let left_out = some
            .into_iter()
            .enumerate()
            .filter(|(i, _)| i % stride != 0);
        skipped.extend(left_out.map(|(_, k)| k));
    }
    let mut tried = 0;
    for (k, &pc) in path.iter().enumerate() {
        let new = label(&labels, pc).is_some_and(|label| !visited.contains_key(label));
        if skipped.contains(&k) && !new {
            continue;
        }
        if let Some(label) = label(&labels, pc) {
            visited.entry(label).or_default().insert(pc);
        }
        session.to_begin();
        session.interrupt_at(&path[..=k], if k % 3 == 2 { FAULT } else { 1 });
        tried += 1;
    }
    println!(
        "{}: {} instructions, upcalls at {tried}",
        scenario.name,
        path.len()
    );
    tried
}

/// Asks for the end of a call at every instruction of an upcall, whose handler returns or is
/// suspended.
fn ends(suspended: bool) {
    let wanted = |s: &&Scenario| s.name == "service";
    let scenario = SCENARIOS.iter().find(wanted).expect("the scenario");
    let report = Report::map();
    let life = || {
        let mut attached = None;
        scenario.child_with(report, |report| between(report, &mut attached, suspended));
    };
    // SAFETY: as in `run`.
    let child = unsafe { Debugger::fork(life) }.expect("fork");
    let session = Session {
        child,
        report,
        labels: testing::labels(),
        name: "ends",
    };
    session.to_begin();
    // In text of the call that is interrupted: behind the service.
    let path = session.path();
    session.to_report();
    session.check(None);
    let k = path.iter().rposition(|&pc| session.in_window(pc));
    let k = k.expect("the call runs text");
    let path = &path[..=k];
    // The shortest of some: the first one sets a timer, and any reads the clock again, or not.
    let some = (0..8).map(|_| session.upcall(path, END, None));
    let upcall = some.min_by_key(Vec::len).expect("some");
    assert!(upcall.iter().any(|&(_, innermost)| innermost), "a call");
    let mut ended = [0; 3];
    let mut reached = Place(0, 0);
    for (m, &(pc, _)) in upcall.iter().enumerate() {
        reached.pass(&session, pc);
        if reached.1 != 0 && m % 9 != 0 {
            continue;
        }
        for innermost in [true, false] {
            let before = session.before();
            let steps = session.upcall(path, reached, Some(innermost));
            let here = steps.last().map_or(0, |step| step.0);
            assert!(reached.1 != 0 || here == pc, "{m}: {}", place(here));
            // A wish that comes between the last look for one and the way back is the watchdog's to
            // repeat. No two upcalls take the same steps (the clock is read again where the kernel
            // has just written it), so what counts is where this one was.
            let was = |step: Option<&(u64, bool)>| step.is_some_and(|&(_, innermost)| innermost);
            let is_over = !was(steps.last()) && steps.iter().any(|step| was(Some(step)));
            let [returned, stopped] = session.after(before);
            assert_eq!(returned + stopped, 1, "at {m}");
            let (kind, message) = report.read();
            assert!(
                [AS_USUAL, testing::INTERRUPT].contains(&kind)
                    && (innermost || kind != AS_USUAL || is_over),
                "{m} of {}, {innermost}, at {}: {kind}, {message}",
                upcall.len(),
                place(here)
            );
            ended[0] += 1;
            ended[1] += stopped;
            ended[2] += u64::from(kind != AS_USUAL);
        }
    }
    assert!(ended[1] > 30 && ended[2] > 50, "{ended:?}");
    let how = if suspended { "suspended" } else { "ends" };
    println!(
        "{how}: {} instructions, {} wishes, which ended {} upcalls and {} calls",
        upcall.len(),
        ended[0],
        ended[1],
        ended[2]
    );
}
