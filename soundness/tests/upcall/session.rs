//! A child that makes the same call again and again, and what is done to it from the first
//! instruction of the call to its report.

use crate::FAULT;
use crate::labels::{label, place};
use crate::reader::{self, Words};
use crate::report::{self, AS_USUAL, Report};
use postern::testing;
use postern_soundness::debugger::{Debugger, Stop};
use postern_soundness::host;

/// Bytes of a record.
const RECORD: usize = 128;
/// The stack pointer's place among the registers.
const RSP: usize = 19;
/// That of the number of a system call.
const RAX: usize = 10;

/// Here the gate finds a peer closed behind the mark that the thread is inside. Until it has
/// looked, the watchdog sees a thread in a closed domain and asks for the end; a step takes so long
/// that it did in one call of five, which then ended by an abort and not by the gate's own look.
const CLOSED_PEER: &str = "peer that is closed";

/// All that must be as it was.
#[derive(PartialEq)]
pub struct Everything {
    registers: [u64; 27],
    vectors: Vec<u8>,
    state: Vec<u8>,
    records: Vec<u8>,
}

/// Where an upcall is: after how many instructions of gates and text, and how many others behind
/// them. Of those in between, which read the clock, one upcall takes some more than another.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub struct Place(pub usize, pub usize);

/// That of no upcall.
pub const END: Place = Place(usize::MAX, 0);

impl Place {
    pub fn pass(&mut self, session: &Session, pc: u64) {
        *self = match session.is_gate(pc) {
            true => Place(self.0 + 1, 0),
            false => Place(self.0, self.1 + 1),
        };
    }
}

pub struct Session {
    pub child: Debugger,
    pub report: &'static Report,
    pub labels: Vec<(&'static str, usize)>,
    pub name: &'static str,
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

    pub fn to_begin(&self) {
        if self.child.pc() != host::stops().0 {
            let _ = match self.report.started() {
                true => self.to_trap("before a call"),
                // The child runs already, and may take faults while it prepares.
                false => self.await_trap("before the first call"),
            };
        }
        assert_eq!(self.child.pc(), host::stops().0, "{}", self.name);
    }

    pub fn to_report(&self) {
        if self.child.pc() != host::stops().1 {
            self.to_trap("in a call");
        }
        assert_eq!(self.child.pc(), host::stops().1, "{}", self.name);
        self.to_trap("after a call");
    }

    /// The instructions of a whole call.
    pub fn path(&self) -> Vec<u64> {
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

    pub fn in_window(&self, pc: u64) -> bool {
        let texts = self.report.texts();
        texts.iter().any(|&(start, end)| (start..end).contains(&pc))
    }

    /// Lets a call go this path, up to before its last instruction.
    pub fn follow(&self, path: &[u64]) {
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

    pub fn interrupt_at(&self, path: &[u64], event: u64) {
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
            assert!(known, "{}: not at {}", self.name, place(pc));
        }
        self.to_report();
        self.check(Some(pc));
        // What the child counts is there before the next call.
        self.to_begin();
        let after = self.report.upcalls().counts;
        let mut expected = before.counts;
        expected[usize::from(event == FAULT)] += 1;
        expected[3] += 1;
        assert_eq!(after, expected, "{} at {}", self.name, place(pc));
    }

    /// Interrupts a call that goes this way at its last instruction, and that upcall at a place:
    /// then the end of the innermost call is wished for, or else of the interrupted one, or
    /// nothing. Returns the upcall's instructions up to that before which it came, each with
    /// whether the upcall's call is the innermost there.
    pub fn upcall(&self, path: &[u64], end: Place, innermost: Option<bool>) -> Vec<(u64, bool)> {
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

    pub fn before(&self) -> [u64; 4] {
        self.to_begin();
        self.report.upcalls().counts
    }

    /// Upcalls that returned, and that were ended, since then.
    pub fn after(&self, before: [u64; 4]) -> [u64; 2] {
        let (report, after) = (self.report.read(), self.before());
        // What the call was, not the next one's begin.
        assert_eq!(report.0, self.report.read().0);
        [after[0] - before[0], after[1] - before[1]]
    }

    pub fn is_gate(&self, pc: u64) -> bool {
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
        let place = format!("{} at {}", self.name, place(pc));
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

    pub fn check(&self, interrupted: Option<u64>) {
        let (kind, message) = self.report.read();
        let place = interrupted.map_or_else(|| "nowhere".into(), place);
        assert_eq!(
            kind, AS_USUAL,
            "{}, interrupted at {place}: {message}",
            self.name
        );
    }
}
