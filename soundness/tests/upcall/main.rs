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

use postern::testing;
use postern::{Attachment, Caller, Domain, Placement};
use postern_soundness::debugger::{Debugger, Stop};
use postern_soundness::host;
use reader::Words;
use report::{AS_USUAL, Report};
use scenario::{SCENARIOS, Scenario};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

/// Instructions outside of gates and windows that are tried per scenario.
const OTHERS: usize = 16;
/// The same in the memory gate's, whose loops are long.
const IN_MEMORY_GATE: usize = 24;

/// Bytes of a record.
const RECORD: usize = 128;
/// The stack pointer's place among the registers.
const RSP: usize = 19;
/// That of the number of a system call.
const RAX: usize = 10;

const HOUR: std::time::Duration = std::time::Duration::from_secs(3600);

/// The event on which the handler faults.
const FAULT: u64 = 2;

/// Here the gate finds a peer closed behind the mark that the thread is inside. Until it has
/// looked, the watchdog sees a thread in a closed domain and asks for the end; a step takes so long
/// that it did in one call of five, which then ended by an abort and not by the gate's own look.
const CLOSED_PEER: &str = "peer that is closed";

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
    let mut place = Place(0, 0);
    for (m, &(pc, _)) in upcall.iter().enumerate() {
        place.pass(&session, pc);
        if place.1 != 0 && m % 9 != 0 {
            continue;
        }
        for innermost in [true, false] {
            let before = session.before();
            let steps = session.upcall(path, place, Some(innermost));
            let here = steps.last().map_or(0, |step| step.0);
            assert!(place.1 != 0 || here == pc, "{m}: {}", session.place(here));
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
                session.place(here)
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

/// The label whose range holds `pc`.
fn label(labels: &[(&'static str, usize)], pc: u64) -> Option<&'static str> {
    let after = labels.partition_point(|l| l.1 as u64 <= pc);
    let name = (0 < after && after < labels.len()).then(|| labels[after - 1].0);
    name.filter(|name| !is_end(name))
}

/// Whether what is behind the label is not the gates' any more.
fn is_end(label: &str) -> bool {
    label.ends_with("_end")
}

/// All that must be as it was.
#[derive(PartialEq)]
struct Everything {
    registers: [u64; 27],
    vectors: Vec<u8>,
    state: Vec<u8>,
    records: Vec<u8>,
}

/// Where an upcall is: after how many instructions of gates and text, and how many others behind
/// them. Of those in between, which read the clock, one upcall takes some more than another.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Place(usize, usize);

/// That of no upcall.
const END: Place = Place(usize::MAX, 0);

impl Place {
    fn pass(&mut self, session: &Session, pc: u64) {
        *self = match session.is_gate(pc) {
            true => Place(self.0 + 1, 0),
            false => Place(self.0, self.1 + 1),
        };
    }
}

struct Session {
    child: Debugger,
    report: &'static Report,
    labels: Vec<(&'static str, usize)>,
    name: &'static str,
}

impl Session {
    /// Whether the watchdog's signals do not reach single steps. They come again.
    fn without_watchdog(&self) -> bool {
        self.name == CLOSED_PEER
    }

    /// Runs the child to a trap of its own, with whatever signals come on the way.
    /// Whether the watchdog's was one of them: it asks for the end of calls in closed domains.
    fn to_trap(&self, what: &str) -> bool {
        self.child.go(0);
        self.await_trap(what)
    }

    fn await_trap(&self, what: &str) -> bool {
        let mut asked = false;
        loop {
            match self.child.wait() {
                Stop::Signal(libc::SIGTRAP) => return asked,
                Stop::Signal(other) => {
                    asked |= other == self.report.signal();
                    self.child.go(other);
                }
                Stop::Gone(status) => {
                    panic!("{}: {what}: the child is gone with {status:#x}", self.name)
                }
            }
        }
    }

    fn to_begin(&self) {
        if self.child.pc() != host::stops().0 {
            let _ = match self.report.started() {
                true => self.to_trap("before a call"),
                // The child runs already, and may take faults while it prepares.
                false => self.await_trap("before the first call"),
            };
        }
        assert_eq!(self.child.pc(), host::stops().0, "{}", self.name);
    }

    fn to_report(&self) {
        if self.child.pc() != host::stops().1 {
            self.to_trap("in a call");
        }
        assert_eq!(self.child.pc(), host::stops().1, "{}", self.name);
        self.to_trap("after a call");
    }

    /// The instructions of a whole call.
    fn path(&self) -> Vec<u64> {
        let mut path = Vec::new();
        while self.child.pc() != host::stops().1 {
            path.push(self.child.pc());
            self.step();
        }
        path
    }

    /// One instruction; if a signal comes instead, and is not the watchdog's where that is kept
    /// away, everything up to the end of its handler or of the call.
    fn step(&self) {
        let mut stop = self.child.step();
        while let Stop::Signal(signal) = stop {
            if signal == libc::SIGTRAP {
                return;
            }
            if signal == self.report.signal() && self.without_watchdog() {
                stop = self.child.step();
                continue;
            }
            self.child.go(signal);
            stop = self.child.wait();
        }
        panic!("{}: {stop:?}", self.name);
    }

    fn in_window(&self, pc: u64) -> bool {
        let texts = self.report.texts();
        texts.iter().any(|&(start, end)| (start..end).contains(&pc))
    }

    /// Lets a call go this path, up to before its last instruction.
    fn follow(&self, path: &[u64]) {
        let delivered = |signal| match self.without_watchdog() && signal == self.report.signal() {
            true => 0,
            false => signal,
        };
        let near = self.child.follow(path, host::stops().1, delivered);
        let near = near.unwrap_or_else(|stop| panic!("{}: {stop:?} on the way", self.name));
        for _ in near..path.len() - 1 {
            if self.child.pc() == host::stops().1 {
                break; // A shorter path than the first one.
            }
            self.step();
        }
    }

    fn interrupt_at(&self, path: &[u64], event: u64) {
        self.follow(path);
        let pc = self.child.pc();
        let before = self.report.upcalls();
        let was = self.everything(&before);
        // Back at this very instruction the child stops.
        self.child.break_at(Some(pc));
        self.child.go_with(before.signal, event);
        let mut asked = self.await_trap("in an upcall");
        // The upcall itself may come by, on its own stack: to the service gate.
        while self.child.pc() == pc && self.child.registers()[RSP] != was.registers[RSP] {
            asked |= self.to_trap("in an upcall");
        }
        let back = self.child.pc();
        self.child.break_at(None);
        if back == pc {
            self.compare(&was, &self.everything(&before), pc);
        } else {
            // The signal was blocked there, and came later; or the call was asked to end.
            let known = asked || !self.is_gate(pc);
            assert!(known, "{}: not at {}", self.name, self.place(pc));
        }
        self.to_report();
        self.check(Some(pc));
        // What the child counts is there before the next call.
        self.to_begin();
        let after = self.report.upcalls().counts;
        let mut expected = before.counts;
        expected[usize::from(event == FAULT)] += 1;
        expected[3] += 1;
        assert_eq!(after, expected, "{} at {}", self.name, self.place(pc));
    }

    /// Interrupts a call that goes this way at its last instruction, and that upcall at a place:
    /// then the end of the innermost call is wished for, or else of the interrupted one, or
    /// nothing. Returns the upcall's instructions up to that before which it came, each with
    /// whether the upcall's call is the innermost there.
    fn upcall(&self, path: &[u64], end: Place, innermost: Option<bool>) -> Vec<(u64, bool)> {
        self.to_begin();
        let last = *path.last().expect("a path");
        self.follow(path);
        while self.child.pc() != last {
            // This call went by the slow path.
            self.to_report();
            self.to_begin();
            self.follow(path);
        }
        let at = self.report.thread();
        let interrupted = self.child.read(at.sequence);
        let mut path = Vec::new();
        let told = self.report.upcalls();
        let upcalls = told.extents[0].0 + told.except[3];
        let mut states = Vec::new();
        let mut place = Place(0, 0);
        self.child.step_with(told.signal, 1);
        loop {
            let pc = self.child.pc();
            let now = Words::read(&self.child, &at).with_upcalls(self.child.read(upcalls));
            if states.last() != Some(&now) {
                states.push(now);
            }
            path.push((pc, self.child.read(at.sequence) != interrupted));
            place.pass(self, pc);
            let syscall = self.child.read(pc as usize) & 0xffff == 0x050f;
            let back = syscall && self.child.registers()[RAX] == libc::SYS_rt_sigreturn as u64;
            if back || place >= end {
                break;
            }
            self.step();
        }
        match innermost {
            None => reader::check(self.name, &states),
            Some(_) => drop(states),
        }
        if let Some(innermost) = innermost {
            let wanted = match innermost {
                true => self.child.read(at.sequence),
                false => interrupted,
            };
            self.child.write(at.request, wanted);
            let word = self.child.read(at.request_kind) & !0xffff_ffff;
            let kind = u64::from(testing::INTERRUPT);
            self.child.write(at.request_kind, word | kind);
            self.child.go_from_itself(self.report.signal());
            self.await_trap("in an upcall");
        }
        self.to_report();
        path
    }

    fn before(&self) -> [u64; 4] {
        self.to_begin();
        self.report.upcalls().counts
    }

    /// Upcalls that returned, and that were ended, since then.
    fn after(&self, before: [u64; 4]) -> [u64; 2] {
        let (report, after) = (self.report.read(), self.before());
        // What the call was, not the next one's begin.
        assert_eq!(report.0, self.report.read().0);
        [after[0] - before[0], after[1] - before[1]]
    }

    fn is_gate(&self, pc: u64) -> bool {
        let upcall = testing::upcall_gate();
        (upcall.0 as u64..upcall.1 as u64).contains(&pc)
            || label(&self.labels, pc).is_some()
            || self.in_window(pc)
    }

    fn everything(&self, at: &report::Upcalls) -> Everything {
        let mut registers = self.child.registers();
        // orig_rax is the kernel's; of the flags, TF and RF are the debugger's.
        registers[15] = 0;
        registers[18] &= !0x1_0100;
        let all = self.child.vectors();
        // x87 but for what the kernel notes there, MXCSR, xmm; and the upper halves of ymm.
        let vectors = [&all[..416], &all[576..832]].concat();
        let [state, records] = at
            .extents
            .map(|(start, len)| self.child.read_range(start, len));
        let (mut state, mut records) = (state, records);
        for record in records.chunks_mut(RECORD) {
            // Wishes, which other threads write.
            record[16..28].fill(0);
        }
        for offset in at.except {
            state[offset..offset + 4].fill(0);
        }
        Everything {
            registers,
            vectors,
            state,
            records,
        }
    }

    fn compare(&self, was: &Everything, is: &Everything, pc: u64) {
        if was == is {
            return;
        }
        let place = format!("{} at {}", self.name, self.place(pc));
        assert_eq!(was.registers, is.registers, "{place}: registers");
        for (what, was, is) in [
            ("state", &was.state, &is.state),
            ("records", &was.records, &is.records),
            ("vectors", &was.vectors, &is.vectors),
        ] {
            let differ = (0..was.len()).find(|&i| was[i] != is[i]);
            assert!(differ.is_none(), "{place}: {what} differ at {differ:?}");
        }
    }

    fn place(&self, pc: u64) -> String {
        let labels = testing::labels();
        let Some(name) = label(&labels, pc) else {
            return format!("{pc:#x}");
        };
        let start = labels.iter().find(|l| l.0 == name).map_or(0, |l| l.1);
        format!("{name}+{:#x}", pc - start as u64)
    }

    fn check(&self, interrupted: Option<u64>) {
        let (kind, message) = self.report.read();
        let place = interrupted.map_or_else(|| "nowhere".into(), |pc| self.place(pc));
        assert_eq!(
            kind, AS_USUAL,
            "{}, interrupted at {place}: {message}",
            self.name
        );
    }
}
