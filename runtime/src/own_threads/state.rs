//! What a domain has of threads that its extension started: how many there may be, which there are,
//! and how one of them ended the program.
//!
//! Invariant: a thread of the process that enters the domain by itself is in the list from before
//! it is made until it has left the domain for good; and the list never has more than the grant.

use crate::fault::Fault;
use crate::fork;
use postern_gates::machine;
use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The threads of one domain.
pub(crate) struct OwnThreads {
    /// How many there may be at once.
    most: u32,
    list: Mutex<List>,
    /// Counts changes of the list: whoever waits for one sleeps on it.
    changes: AtomicU32,
    /// Whether there was ever one.
    any: AtomicBool,
    /// System calls in which one is, each with a reference to the domain in hand; in the high half,
    /// how often that number has changed.
    holding: AtomicU64,
}

#[derive(Default)]
struct List {
    threads: Vec<OwnThread>,
    /// Those that are about to end, or have ended, and that nobody has joined.
    finished: Vec<JoinHandle<()>>,
    /// How many wait for all to be gone: none begins meanwhile.
    stopping: u32,
    started: u64,
    end: Option<ProgramEnd>,
}

struct OwnThread {
    number: u64,
    /// The kernel's number; 0 until it begins.
    tid: u32,
    /// It has called for its own end, and ends when that service returns.
    leaving: bool,
    /// It may not enter any more.
    told: bool,
    /// It is gone, before whoever started it has noted its handle.
    gone: bool,
    handle: Option<JoinHandle<()>>,
}

/// How a thread ended the program of which it is a part.
pub(crate) enum ProgramEnd {
    /// It called `exit` with this status.
    Exited(i32),
    /// Its fault closed the domain.
    Fault(Arc<Fault>),
    /// A service that it called panicked.
    Panic(Box<dyn Any + Send>),
}

/// Why a thread cannot begin now.
pub(crate) enum Refused {
    /// There are as many as may be, or none may begin.
    Full,
    /// The same, but one is about to end: [`OwnThreads::await_change`] since this count of changes.
    Soon(u32),
}

impl OwnThreads {
    pub(crate) fn new(most: u32) -> OwnThreads {
        OwnThreads {
            most,
            list: Mutex::default(),
            changes: AtomicU32::new(0),
            any: AtomicBool::new(false),
            holding: AtomicU64::new(0),
        }
    }

    /// How many there may be at once.
    pub(crate) fn most(&self) -> u32 {
        self.most
    }

    /// Changes the list, and lets those know who wait for that.
    fn change<R>(&self, change: impl FnOnce(&mut List) -> R) -> R {
        let done = change(&mut fork::lock(&self.list));
        self.changes.fetch_add(1, Ordering::SeqCst);
        machine::wake_all(&self.changes);
        done
    }

    /// Notes that a thread is being made: its number.
    pub(crate) fn reserve(&self) -> Result<u64, Refused> {
        let seen = self.changes();
        let mut list = fork::lock(&self.list);
        if list.stopping > 0 || list.end.is_some() || self.most == 0 {
            return Err(Refused::Full);
        }
        if list.threads.len() >= self.most as usize {
            let soon = list.threads.iter().any(|t| t.leaving);
            return Err(if soon {
                Refused::Soon(seen)
            } else {
                Refused::Full
            });
        }
        self.any.store(true, Ordering::SeqCst);
        list.started += 1;
        let number = list.started;
        list.threads.push(OwnThread {
            number,
            tid: 0,
            leaving: false,
            told: false,
            gone: false,
            handle: None,
        });
        Ok(number)
    }

    /// Notes what was made for a number.
    pub(crate) fn made(&self, number: u64, handle: JoinHandle<()>) {
        self.change(|list| {
            let Some(at) = list.threads.iter().position(|t| t.number == number) else {
                return;
            };
            if list.threads[at].gone {
                list.threads.swap_remove(at);
                list.finished.push(handle);
            } else {
                list.threads[at].handle = Some(handle);
            }
        });
    }

    /// The calling thread, which has this number, enters now, unless it is not to any more.
    pub(crate) fn enters(&self, number: u64, tid: u32) -> bool {
        let mut list = fork::lock(&self.list);
        let ended = list.end.is_some();
        let found = list.threads.iter_mut().find(|t| t.number == number);
        found.is_some_and(|thread| {
            thread.tid = tid;
            !thread.told && !ended
        })
    }

    /// The thread ends when the service in which it is returns.
    pub(crate) fn leaves(&self, number: u64) {
        self.change(|list| {
            let found = list.threads.iter_mut().find(|t| t.number == number);
            if let Some(thread) = found {
                thread.leaving = true;
            }
        });
    }

    /// The thread enters no more. `made` is false if there was none to be made.
    pub(crate) fn gone(&self, number: u64, made: bool) {
        self.change(|list| {
            let Some(at) = list.threads.iter().position(|t| t.number == number) else {
                return;
            };
            match list.threads[at].handle.take() {
                None if made => list.threads[at].gone = true,
                handle => {
                    list.threads.swap_remove(at);
                    list.finished.extend(handle);
                }
            }
        });
    }

    /// Waits until those have ended that were about to.
    pub(crate) fn join_finished(&self) {
        if !self.any.load(Ordering::SeqCst) {
            return;
        }
        let me = std::thread::current().id();
        let finished = std::mem::take(&mut fork::lock(&self.list).finished);
        for thread in finished.into_iter().filter(|t| t.thread().id() != me) {
            // Its panics were caught.
            let _ = thread.join();
        }
    }

    /// None begins from now on, until as many [`OwnThreads::go_on`] follow; those that have not
    /// entered will not. False if there was never one, and nothing is to be undone.
    pub(crate) fn stop(&self) -> bool {
        if !self.any.load(Ordering::SeqCst) {
            return false;
        }
        self.change(|list| {
            list.stopping += 1;
            list.threads.iter_mut().for_each(|t| t.told = true);
        });
        true
    }

    /// Undoes [`OwnThreads::stop`].
    pub(crate) fn go_on(&self) {
        self.change(|list| list.stopping = list.stopping.saturating_sub(1));
    }

    /// Whether there is one besides that with this number.
    pub(crate) fn others(&self, than: Option<u64>) -> bool {
        let list = fork::lock(&self.list);
        list.threads.iter().any(|t| Some(t.number) != than)
    }

    /// Whether there are any.
    pub(crate) fn run(&self) -> bool {
        self.any.load(Ordering::SeqCst) && self.others(None)
    }

    /// The kernel's numbers of all that have begun.
    pub(crate) fn tids(&self) -> Vec<u32> {
        if !self.any.load(Ordering::SeqCst) {
            return Vec::new();
        }
        let list = fork::lock(&self.list);
        let begun = list.threads.iter().filter(|t| t.tid != 0);
        begun.map(|t| t.tid).collect()
    }

    /// How often the list has changed.
    pub(crate) fn changes(&self) -> u32 {
        self.changes.load(Ordering::SeqCst)
    }

    /// Sleeps until the list has changed since, but not longer.
    pub(crate) fn await_change(&self, since: u32, longest: Duration) {
        machine::wait_at_most(&self.changes, since, longest);
    }

    /// One of them ended the program; the first one counts.
    pub(crate) fn ended(&self, end: ProgramEnd) {
        let late = self.change(|list| match list.end {
            None => {
                list.end = Some(end);
                None
            }
            Some(_) => Some(end),
        });
        // A panic's payload may panic when it is dropped.
        std::mem::forget(late);
    }

    /// The status with which one of them ended the program.
    pub(crate) fn exit_status(&self) -> Option<i32> {
        match fork::lock(&self.list).end {
            Some(ProgramEnd::Exited(status)) => Some(status),
            _ => None,
        }
    }

    /// How one of them ended the program; what comes next is another one.
    pub(crate) fn take_end(&self) -> Option<ProgramEnd> {
        if !self.any.load(Ordering::SeqCst) {
            return None;
        }
        self.change(|list| list.end.take())
    }

    /// A system call of one of them begins or ends to hold a reference to the domain.
    pub(crate) fn holds(&self, begins: bool) {
        const CHANGE: u64 = 1 << 32;
        let more = if begins { CHANGE + 1 } else { CHANGE - 1 };
        self.holding.fetch_add(more, Ordering::SeqCst);
    }

    /// Whether there are such system calls, and as many as `references` counts. Each begins after
    /// it has got its reference, and ends before it gives that back: so references that are counted
    /// while none begins or ends are theirs if there are no more.
    pub(crate) fn hold_all(&self, references: impl FnOnce() -> usize) -> bool {
        let before = self.holding.load(Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let references = references();
        fence(Ordering::SeqCst);
        let calls = before as u32 as usize;
        calls > 0 && references <= calls && self.holding.load(Ordering::SeqCst) == before
    }

    /// In the child after fork, which has none of them; the forking thread has the locks.
    pub(crate) fn after_fork(&self) {
        let mut list = self.list.lock().unwrap_or_else(|e| e.into_inner());
        // Nothing may be asked of libc about threads that are not here.
        std::mem::forget(std::mem::take(&mut *list));
        self.holding.store(0, Ordering::SeqCst);
    }
}
