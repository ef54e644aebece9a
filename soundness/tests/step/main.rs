//! Single-steps every instruction of every gate, and at each one asks for the end of the call, as
//! the watchdog would.
//!
//! For each scenario a child makes the same call again and again under a debugger. Call k is
//! stopped after its k-th instruction; the debugger writes a request and delivers the abort signal.
//! The call must then return as usual or end with the fault asked for (always the latter where
//! verified text or a service was interrupted), the host's registers must be as they were, and the
//! domain must work again.
//!
//! This test has no harness: the children are forked, so the process must have one thread.

mod fixture;
mod labels;
mod memory;
mod peers;
mod reader;
#[allow(dead_code)]
mod report;
mod scenario;

use labels::{is_end, label, place};
use postern::testing;
use postern_soundness::debugger::{Debugger, Stop};
use postern_soundness::host;
use reader::Words;
use report::Report;
use scenario::{SCENARIOS, Scenario};
use std::collections::{BTreeMap, BTreeSet};

/// Instructions outside of gates and windows (the slow path's Rust, services, handlers) that are
/// tried per scenario.
const OTHERS: usize = 40;

/// How often a scenario is tried whose first call is asked to end.
const ATTEMPTS: usize = 4;

/// What the scenarios visited, over all of them.
#[derive(Default)]
struct Visited {
    labels: BTreeMap<&'static str, BTreeSet<u64>>,
    calls: u64,
    ended: u64,
}

fn main() {
    let mut visited = Visited::default();
    let only = std::env::args().skip(1).find(|a| !a.starts_with('-'));
    for scenario in SCENARIOS {
        if only
            .as_ref()
            .is_none_or(|name| scenario.name.contains(name))
        {
            run(scenario, &mut visited);
        }
    }
    for (label, pcs) in &visited.labels {
        println!("  {label}: {} instructions", pcs.len());
    }
    println!(
        "{} calls interrupted, {} of them ended by it",
        visited.calls, visited.ended
    );
    if only.is_some() {
        return;
    }
    let labels = testing::labels();
    for pair in labels.windows(2) {
        let empty = pair[0].1 == pair[1].1 || is_end(pair[0].0);
        assert!(
            empty || visited.labels.contains_key(pair[0].0),
            "{} was never stepped",
            pair[0].0
        );
    }
}

fn run(scenario: &'static Scenario, visited: &mut Visited) {
    let report = Report::map();
    // SAFETY: this process has one thread; the parent never starts Postern.
    let child = unsafe { Debugger::fork(|| scenario.child(report)) }.expect("fork");
    let session = Session {
        child,
        report,
        name: scenario.name,
        host_signal: scenario.host_signal,
    };
    // The first call tells the path, unless it was asked to end: the watchdog may see a call in a
    // closed domain before the gate has looked at the domain's state. If that is so each time, the
    // wish is the scenario's own.
    let mut path = Vec::new();
    for _ in 0..ATTEMPTS {
        session.to_begin();
        let asked;
        (path, asked) = session.path();
        session.to_report();
        session.check(None, false);
        if !asked {
            break;
        }
    }
    let labels = testing::labels();
    let others: Vec<usize> = (0..path.len())
        .filter(|&k| label(&labels, path[k]).is_none() && !session.in_window(path[k]))
        .collect();
    let stride = others.len().div_ceil(OTHERS).max(1);
    let skipped: BTreeSet<usize> = others
        .into_iter()
        .enumerate()
        .filter(|(i, _)| i % stride != 0)
        .map(|(_, k)| k)
        .collect();
    let mut tried = 0;
    for (k, &pc) in path.iter().enumerate() {
        if let Some(label) = label(&labels, pc) {
            visited.labels.entry(label).or_default().insert(pc);
        }
        if skipped.contains(&k) {
            continue;
        }
        session.to_begin();
        let ended = session.interrupt_at(
            &path[..=k],
            if k % 2 == 0 {
                testing::DEADLINE
            } else {
                testing::INTERRUPT
            },
        );
        visited.calls += 1;
        visited.ended += u64::from(ended);
        tried += 1;
    }
    println!(
        "{}: {} instructions, interrupted at {tried}",
        scenario.name,
        path.len()
    );
}

struct Session {
    child: Debugger,
    report: &'static Report,
    name: &'static str,
    host_signal: bool,
}

impl Session {
    /// Runs the child to a trap of its own.
    fn to_trap(&self, what: &str) {
        let mut signal = 0;
        loop {
            self.child.go(signal);
            match self.child.wait() {
                Stop::Signal(libc::SIGTRAP) => return,
                // A fault that the scenario is about, or the abort.
                Stop::Signal(other) => signal = other,
                Stop::Gone(status) => {
                    panic!("{}: {what}: the child is gone with {status:#x}", self.name)
                }
            }
        }
    }

    fn to_begin(&self) {
        match self.child.pc() {
            // The very first stop is this one already.
            pc if pc == host::stops().0 => {}
            _ => self.first_or_next(),
        }
        assert_eq!(self.child.pc(), host::stops().0, "{}", self.name);
    }

    fn first_or_next(&self) {
        if self.report.started() {
            return self.to_trap("before a call");
        }
        // The child runs already, and may take faults while it prepares.
        loop {
            match self.child.wait() {
                Stop::Signal(libc::SIGTRAP) => return,
                Stop::Signal(signal) => self.child.go(signal),
                stop => panic!("{}: {stop:?} before the first call", self.name),
            }
        }
    }

    fn to_report(&self) {
        if self.child.pc() != host::stops().1 {
            self.to_trap("in a call");
        }
        assert_eq!(self.child.pc(), host::stops().1, "{}", self.name);
        self.to_trap("after a call");
    }

    /// Steps through a whole call, or to where it is asked to end: the instructions, and whether it
    /// was. What another thread reads meanwhile must be of one call.
    fn path(&self) -> (Vec<u64>, bool) {
        let mut path = Vec::new();
        let mut asked = false;
        let mut states: Vec<Words> = Vec::new();
        loop {
            let pc = self.child.pc();
            if pc == host::stops().1 {
                reader::check(self.name, &states);
                return (path, asked);
            }
            path.push(pc);
            let now = Words::read(&self.child, &self.report.thread());
            if states.last() != Some(&now) {
                states.push(now);
            }
            if now.call_state == reader::ENTERING {
                // The call's number may be new while its domain is still the last one, which may be
                // closed. The watchdog has time enough to draw the wrong conclusion, and must not.
                std::thread::sleep(std::time::Duration::from_millis(15));
            }
            asked |= self.step(pc);
        }
    }

    /// One instruction; if a signal comes instead, everything up to the end of the call. True if
    /// that signal was a wish that the call end.
    fn step(&self, pc: u64) -> bool {
        let mut stop = self.child.step();
        let mut asked = false;
        // The scenario's own fault, or the watchdog's wish, which may come again: handlers run at
        // full speed.
        while let Stop::Signal(signal) = stop {
            if signal == libc::SIGTRAP {
                return asked;
            }
            asked |= signal == self.report.signal();
            self.child.go(signal);
            stop = self.child.wait();
        }
        panic!("{}: {stop:?} after {pc:#x}", self.name);
    }

    fn in_window(&self, pc: u64) -> bool {
        self.report
            .texts()
            .iter()
            .any(|&(start, end)| (start..end).contains(&pc))
    }

    /// Interrupts a call that goes this path at its last instruction. True if it was ended by the
    /// request.
    fn interrupt_at(&self, path: &[u64], kind: u32) -> bool {
        let near = self.child.follow(path, host::stops().1, |signal| signal);
        let near = near.unwrap_or_else(|stop| panic!("{}: {stop:?} on the way", self.name));
        for _ in near..path.len() - 1 {
            let pc = self.child.pc();
            if pc == host::stops().1 {
                break; // A shorter path than the first one: allocation and hashing are not the same each time.
            }
            self.step(pc);
        }
        let pc = self.child.pc();
        if pc == host::stops().1 {
            self.to_report();
            self.check(None, false);
            return false;
        }
        let at = self.report.thread();
        let call_state = self.child.read(at.call_state) as u32;
        let sequence = self.child.read(at.sequence);
        let signal = match self.host_signal {
            true => libc::SIGUSR1,
            false => self.report.signal(),
        };
        if !self.host_signal {
            self.child.write(at.request, sequence);
            let word = self.child.read(at.request_kind) & !0xffff_ffff;
            self.child.write(at.request_kind, word | u64::from(kind));
        }
        match self.host_signal {
            true => self.child.go(signal),
            false => self.child.go_from_itself(signal),
        }
        loop {
            match self.child.wait() {
                Stop::Signal(libc::SIGTRAP) => break,
                Stop::Signal(signal) => self.child.go(signal),
                stop => panic!("{}: {stop:?} when interrupted at {}", self.name, place(pc)),
            }
        }
        self.to_report();
        // The memory gate does for an extension what its own text could do.
        let text = self.in_window(pc) || testing::in_memory_gate(pc);
        let must = !self.host_signal && (text || call_state == testing::IN_SERVICE);
        self.check(Some((pc, kind)), must)
    }

    /// Reads the report; true if the call was ended by the request.
    fn check(&self, interrupted: Option<(u64, u32)>, must_end: bool) -> bool {
        let (kind, message) = self.report.read();
        let place = interrupted.map_or_else(|| "nowhere".into(), |(pc, _)| place(pc));
        let context = format!("{}, interrupted at {place}: {message}", self.name);
        match (kind, interrupted) {
            (report::AS_USUAL, _) => {
                assert!(!must_end, "{context}: the request was ignored");
                false
            }
            (kind, Some((_, wanted))) if kind == wanted => true,
            _ => panic!("{context}: ended with {kind}"),
        }
    }
}
