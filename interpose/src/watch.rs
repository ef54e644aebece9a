//! Agents in programs that do not return. Each thread counts in the tree's file how often it has
//! entered the agent and left it, which costs two stores a call; here is looked from time to time
//! whether one is in the same call still.
//!
//! What counts is the processor's time of its thread, so neither a loaded machine nor a process
//! that is stopped makes an agent late. While it waits for the kernel, in a call of its own, it
//! does not count as inside.

use crate::files::{ENTRIES, PROCESSES, SEATS, THREADS};
use rustix::io::{pread, write};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs::{read_link, read_to_string};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// A thread that has a place in the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seat {
    thread: u32,
    process: u32,
    /// Odd while it is inside.
    entries: u32,
}

impl Seat {
    fn is_inside(&self) -> bool {
        self.thread != 0 && self.entries % 2 == 1
    }

    /// The processor's time that its thread has had.
    fn time(&self) -> Option<Duration> {
        let (process, thread) = (self.process, self.thread);
        let text = read_to_string(format!("/proc/{process}/task/{thread}/schedstat")).ok()?;
        let first = text.split_whitespace().next()?;
        first.parse().ok().map(Duration::from_nanos)
    }

    /// Whether its process has the loader as its program: its numbers are this namespace's.
    fn is_of_a_tree(&self) -> bool {
        let link = read_link(format!("/proc/{}/exe", self.process));
        link.is_ok_and(|link| link.as_os_str().as_encoded_bytes().starts_with(LOADER))
    }
}

const LOADER: &[u8] = b"/memfd:postern-loader";

/// Looks at the threads of a tree.
#[derive(Debug)]
pub struct Watch {
    file: OwnedFd,
    output: OwnedFd,
}

impl Watch {
    /// With the tree's file; what there is to say goes to `output`.
    pub fn new(file: OwnedFd, output: OwnedFd) -> Watch {
        Watch { file, output }
    }

    fn seats(&self) -> Vec<Seat> {
        let words = |at: u64| {
            let mut bytes = [0; 4 * SEATS];
            let got = pread(&self.file, &mut bytes, at).unwrap_or(0);
            let words = bytes[..got].as_chunks().0.iter();
            words
                .map(|word| u32::from_le_bytes(*word))
                .collect::<Vec<_>>()
        };
        let [threads, processes, entries] = [THREADS, PROCESSES, ENTRIES].map(words);
        let all = threads.into_iter().zip(processes).zip(entries);
        let seat = |((thread, process), entries)| Seat {
            thread,
            process,
            entries,
        };
        all.map(seat).collect()
    }

    fn say(&self, words: &str) {
        let _ = write(&self.output, format!("postern: {words}\n").as_bytes());
    }

    /// Looks until `what` is over: what it came to, and the processes that were killed.
    pub fn during<T>(&self, deadline: Duration, what: impl FnOnce() -> T) -> (T, Vec<u32>) {
        const OFTEN: Duration = Duration::from_millis(10);
        const SELDOM: Duration = Duration::from_secs(1);
        let (over, is_over) = channel::<()>();
        std::thread::scope(|scope| {
            let looks = scope.spawn(move || {
                let (mut late, mut inside) = (Vec::new(), Vec::new());
                let tick = (deadline / 4).clamp(OFTEN, SELDOM);
                while is_over.recv_timeout(tick) == Err(RecvTimeoutError::Timeout) {
                    self.look(deadline, &mut inside, &mut late);
                }
                late
            });
            let result = what();
            drop(over);
            (result, looks.join().unwrap_or_default())
        })
    }

    /// Who was inside at the last look, with the time it had then, and still is.
    fn look(&self, deadline: Duration, inside: &mut Vec<(Seat, Duration)>, late: &mut Vec<u32>) {
        let seats = self.seats();
        inside.retain(|(seat, _)| seats.contains(seat));
        for seat in seats.into_iter().filter(Seat::is_inside) {
            let Some(time) = seat.time() else {
                continue;
            };
            match inside.iter().find(|(known, _)| *known == seat) {
                None => inside.push((seat, time)),
                Some((_, first)) if time.saturating_sub(*first) >= deadline => {
                    if self.end(seat) {
                        let (process, bound) = (seat.process, deadline.as_secs_f64());
                        self.say(&format!(
                            "the agent did not answer process {process} within {bound} s of the \
                             processor's time (--deadline): the process is killed"
                        ));
                        late.push(process);
                    }
                }
                Some(_) => {}
            }
        }
    }

    /// Kills a process whose thread still is where it was. Whether it did.
    fn end(&self, seat: Seat) -> bool {
        let process = Pid::from_raw(seat.process as i32);
        let Some(process) = process.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
        else {
            return false;
        };
        // It is the one that is meant: its number was not another's before it was opened.
        seat.is_of_a_tree()
            && self.seats().contains(&seat)
            && pidfd_send_signal(process, Signal::KILL).is_ok()
    }

    /// Whether a process that has ended so did by a fault of the agent's, for which there was no
    /// room: its control stack was used up.
    pub fn why_in_agent(&self, process: u32, status: ExitStatus) -> bool {
        let by_fault = status.signal() == Some(libc::SIGSEGV);
        let inside = |seat: &Seat| seat.process == process && seat.is_inside();
        let in_agent = by_fault && self.seats().iter().any(inside);
        if in_agent {
            self.say("the agent failed: its control stack is used up (too deep a recursion)");
        }
        in_agent
    }
}
