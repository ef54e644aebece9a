//! Events of this process for threads of others that have the same common domain, and theirs for
//! threads of this one.
//!
//! The [waiter](super::waiter) is woken by an event while a thread of another process is current.
//! It takes the event, puts it into the queue that all processes have ([`crate::common::relay`]),
//! sends that thread the signal for upcalls, and lends it its priority if it would run on the same
//! processor. The thread, in its own process, takes the event and calls the handler, with what its
//! own host allows handlers. What nobody has taken in time the dispatcher takes back.
//!
//! **Whom it signals.** A signal that nobody expects ends a process. So a thread is only told if
//! its process has the domain's memory mapped and catches the signal that it says, both by the
//! kernel's word (`/proc`), and still has its seat, by a lock. Which of its threads the number is,
//! the process says itself; one that is not attached takes the signal for a stray.

use super::trusted::kernel;
use crate::common::memory::Memory;
use crate::common::relay::{Attached, EVENTS, Outcome, QUEUE, Relay, SEATS, Taken};
use crate::fork;
use crate::signature;
use postern_gates::upcall::Handled;
use postern_gates::{machine, signal};
use postern_image::{ImageTables, Signature};
use rustix::fs::{fstat, major, minor};
use std::fs::read_to_string;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

/// The place of one process in what they have in common.
pub(crate) struct Elsewhere {
    memory: Arc<Memory>,
    pub(crate) relay: Relay,
    seat: u32,
    /// Whose seat it is: [`fork::process`]
    process: u64,
    /// By export: its offset, if it has the type of a handler.
    handlers: Box<[Option<u32>]>,
    /// By seat: the process that can be told (upper half), and its signal.
    expecting: [AtomicU64; SEATS as usize],
}

impl Elsewhere {
    /// Of the process with this seat; handlers have this type.
    pub(crate) fn new(
        memory: &Arc<Memory>,
        seat: u32,
        tables: &ImageTables,
        wanted: &Signature,
    ) -> Elsewhere {
        let handler = |export: &postern_image::ExportOwned| {
            let found = export.signature.filter(|found| {
                let agrees = signature::agrees(&export.name, Some(*found), wanted);
                agrees.is_ok()
            });
            found.map(|_| export.offset)
        };
        Elsewhere {
            memory: Arc::clone(memory),
            relay: memory.header.relay(),
            seat,
            process: fork::process(),
            handlers: tables.exports.iter().map(handler).collect(),
            expecting: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// The seat, if it is this process's.
    pub(crate) fn seat(&self) -> Option<u32> {
        (self.process == fork::process()).then_some(self.seat)
    }

    /// The number among those of all processes of this one's first event, and first client.
    pub(crate) fn first(&self) -> u32 {
        self.seat * EVENTS as u32
    }

    /// Which export has this offset.
    pub(crate) fn export(&self, offset: u32) -> Option<usize> {
        let mut handlers = self.handlers.iter();
        handlers.position(|handler| *handler == Some(offset))
    }

    /// Where the handler of an event of any process is in this one's image, if it has one.
    pub(crate) fn handler(&self, event: u32) -> Option<u32> {
        let (export, _) = self.relay.handler(event)?;
        self.handlers.get(export).copied().flatten()
    }

    /// Looks which processes can be told of events. False: none.
    pub(crate) fn look(&self) -> bool {
        let Some(own) = self.seat() else {
            return false;
        };
        let header = &self.memory.header;
        let namespace = machine::process_namespace();
        let mut any = false;
        for seat in (0..SEATS).filter(|&seat| seat != own) {
            let here = namespace != 0 && header.namespace(seat) == namespace;
            let (process, signal) = (header.pid(seat), self.relay.signal(seat));
            let key = u64::from(process) << 32 | u64::from(signal);
            let expecting = &self.expecting[seat as usize];
            let is_there = here && self.relay.is_attached(seat) && self.memory.is_taken(seat);
            let is_known = || expecting.load(SeqCst) == key;
            let expects = is_there && (is_known() || self.expects(process, signal));
            expecting.store(if expects { key } else { 0 }, SeqCst);
            any |= expects;
        }
        any
    }

    /// Whether a process has the memory, and catches the signal.
    fn expects(&self, process: u32, signal: u32) -> bool {
        let of = |file: &str| read_to_string(format!("/proc/{process}/{file}")).ok();
        let catches = of("status").is_some_and(|status| {
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let caught = caught.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
            (1..=64).contains(&signal) && caught.is_some_and(|set| set >> (signal - 1) & 1 != 0)
        });
        let Ok(about) = fstat(self.memory.descriptor()) else {
            return false;
        };
        let device = format!("{:02x}:{:02x}", major(about.st_dev), minor(about.st_dev));
        let file = [device, about.st_ino.to_string()];
        catches
            && of("maps").is_some_and(|maps| {
                let mut lines = maps.lines();
                lines.any(|line| line.split_ascii_whitespace().skip(3).take(2).eq(&file))
            })
    }

    /// The thread that the kernel numbers so, if it is attached in another process, and that one
    /// expects to be told.
    pub(crate) fn find(&self, numbers: u64) -> Option<Attached> {
        let own = self.seat()?;
        let found = self.relay.find(own, numbers)?;
        let header = &self.memory.header;
        let key = self.expecting[found.seat as usize].load(SeqCst);
        let is_it = key != 0
            && key >> 32 == u64::from(header.pid(found.seat))
            && self.memory.is_taken(found.seat);
        is_it.then_some(found)
    }

    /// Interrupts it. False: the kernel refuses that.
    pub(crate) fn interrupt(&self, found: Attached) -> bool {
        let key = self.expecting[found.seat as usize].load(SeqCst);
        key != 0 && kernel::signal_thread((key >> 32) as u32, found.thread, key as u32)
    }

    /// Takes an event of any process, or of this one's alone, whose handler this image has.
    pub(crate) fn take(&self, of_all: bool) -> Option<(Taken, u32)> {
        let own = self.seat()?;
        // As many as can wait: whoever forges more in the meantime is not waited for.
        for _ in 0..QUEUE {
            let taken = self.relay.take(own, (!of_all).then_some(own))?;
            match self.handler(taken.event) {
                Some(offset) => return Some((taken, offset)),
                None => self.relay.settle(taken.slot, own, Outcome::Skipped),
            }
        }
        None
    }

    /// Room for an event of this process's, to be [filled](Elsewhere::fill) or
    /// [left](Elsewhere::leave).
    pub(crate) fn reserve(&self) -> Option<usize> {
        self.relay.reserve(self.seat()?)
    }

    /// The event waits there from now on.
    pub(crate) fn fill(&self, room: usize, event: u32, data: u64) {
        self.relay.fill(room, event, data);
    }

    /// Nothing came of it.
    pub(crate) fn leave(&self, room: usize) {
        self.relay.leave(room, self.seat);
    }

    /// One of this process's own that was taken here, of which nobody else is to hear.
    pub(crate) fn forget(&self, slot: usize) {
        self.relay.forget(slot, self.seat);
    }

    /// What became of one.
    pub(crate) fn settle(&self, slot: usize, how: Handled) {
        let how = match how {
            Handled::Returned | Handled::Promoted => Outcome::Returned,
            Handled::Skipped => Outcome::Skipped,
            Handled::Ended => Outcome::Ended,
        };
        self.relay.settle(slot, self.seat, how);
    }
}

/// The calling thread is known to other processes as a client, until this is dropped.
pub(crate) struct AttachedElsewhere(Arc<Elsewhere>, usize);

impl AttachedElsewhere {
    /// With the kernel's numbers of process and thread; 0: nobody can tell that it is current.
    pub(crate) fn begin(
        elsewhere: &Arc<Elsewhere>,
        client: usize,
        numbers: u64,
    ) -> Option<AttachedElsewhere> {
        let seat = elsewhere.seat()?;
        let signal = u32::try_from(signal::upcall_signal()).unwrap_or(0);
        elsewhere.relay.set_signal(seat, signal);
        let thread = machine::thread_id();
        elsewhere.relay.attach(seat, client, numbers, thread);
        elsewhere.memory.header.tell();
        Some(AttachedElsewhere(Arc::clone(elsewhere), client))
    }
}

impl Drop for AttachedElsewhere {
    fn drop(&mut self) {
        // In a forked child it is the parent's.
        if let Some(seat) = self.0.seat() {
            self.0.relay.detach(seat, self.1);
            self.0.memory.header.tell();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::CommonMemory;
    use crate::sample;
    use std::process::{Command, Stdio};

    /// Whatever stands in the memory, only a process is signalled that has it and expects the
    /// signal.
    #[test]
    fn a_process_that_expects_no_signal_gets_none() {
        const NUMBERS: u64 = 77 << 32 | 78;
        let image = sample::image("void on(unsigned event, unsigned long data) {} int n;");
        let memory = CommonMemory::new(&image).unwrap().0;
        let sit = || memory.turn().unwrap().sit().unwrap().0;
        let (own, other) = (sit(), sit());
        let wanted = <fn(u32, u64) as crate::FuncType>::signature();
        let elsewhere = Elsewhere::new(&memory, own.number(), &image.0.tables, &wanted);
        let exports = &image.0.tables.exports;
        let handler = exports.iter().find(|export| &*export.name == "on").unwrap();
        assert!(elsewhere.export(handler.offset).is_some());
        // Whose threads are attached catches it.
        let domain = sample::domain("int n;").build().unwrap();
        let _client = domain.attach().unwrap();
        let caught = signal::upcall_signal();
        assert!(caught > 0);
        let says = |process: u32, signal: i32| {
            let namespace = machine::process_namespace();
            memory.header.set_pid(other.number(), process, namespace);
            elsewhere.relay.set_signal(other.number(), signal as u32);
            elsewhere.relay.attach(other.number(), 0, NUMBERS, process);
            (elsewhere.look(), elsewhere.find(NUMBERS).is_some())
        };
        let own_process = std::process::id();
        assert_eq!(says(own_process, caught), (true, true));
        for signal in [0, -1, 65, libc::SIGRTMAX() - 1, i32::MAX] {
            assert_eq!(says(own_process, signal), (false, false), "{signal}");
        }
        // One that catches it and has no such memory, and numbers of none.
        let script = format!("trap : {caught}; echo; read line");
        let mut shell = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut ready).unwrap();
        for process in [shell.id(), 0, u32::MAX] {
            assert_eq!(says(process, caught), (false, false));
        }
        shell.kill().unwrap();
        shell.wait().unwrap();
        // One that has left its seat, whatever is still written there.
        assert_eq!(says(own_process, caught), (true, true));
        drop(other);
        let found = elsewhere.find(NUMBERS);
        assert_eq!(found, None);
    }
}
