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
    /// Counts changes of the list: whoever waits for one sleeps on it. A thread that enters is
    /// counted before that.
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
    /// How many of these were started in a life of the domain that is over.
    over: u64,
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
    /// It is inside, or about to enter.
    entered: bool,
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

/// Drops an end that nobody asks for; but a panic's payload may panic when it is dropped.
fn forget(end: Option<ProgramEnd>) {
    if let Some(ProgramEnd::Panic(panic)) = end {
        std::mem::forget(panic);
    }
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
            entered: false,
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
            if thread.tid != tid {
                self.changes.fetch_add(1, Ordering::SeqCst);
            }
            thread.tid = tid;
            thread.entered = !thread.told && !ended;
            thread.entered
        })
    }

    /// Whether the thread with this number may enter, when there is something to enter for.
    pub(crate) fn may_enter(&self, number: u64) -> bool {
        let list = fork::lock(&self.list);
        let found = list.threads.iter().find(|t| t.number == number);
        found.is_some_and(|thread| !thread.told)
    }

    /// The thread is not inside any more, or was not let in.
    pub(crate) fn left(&self, number: u64) {
        self.change(|list| {
            let found = list.threads.iter_mut().find(|t| t.number == number);
            if let Some(thread) = found {
                thread.entered = false;
            }
        });
    }

    /// Whether one is inside or about to enter.
    pub(crate) fn any_entered(&self) -> bool {
        if !self.any.load(Ordering::SeqCst) {
            return false;
        }
        let list = fork::lock(&self.list);
        list.threads.iter().any(|t| t.entered)
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

    /// None begins for as long as what is returned is there. `None` if there can be none.
    pub(crate) fn stop(&self) -> Option<Stopped<'_>> {
        if self.most == 0 {
            return None;
        }
        fork::lock(&self.list).stopping += 1;
        Some(Stopped(self))
    }

    /// Whether there are any.
    pub(crate) fn run(&self) -> bool {
        self.any.load(Ordering::SeqCst) && !fork::lock(&self.list).threads.is_empty()
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

    /// One of them, or somebody who is inside with them, ended the program; the first one counts.
    pub(crate) fn ended(&self, by: Option<u64>, end: ProgramEnd) {
        let late = self.change(|list| {
            let over = by.is_some_and(|number| number <= list.over);
            if over || list.end.is_some() {
                return Some(end);
            }
            list.end = Some(end);
            None
        });
        forget(late);
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

    /// Another life of the domain begins, and nobody is inside: what threads that are on their way
    /// out still tell is not this life's.
    pub(crate) fn begin_anew(&self) {
        if !self.any.load(Ordering::SeqCst) {
            return;
        }
        let former = self.change(|list| {
            list.over = list.started;
            list.end.take()
        });
        forget(former);
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

    /// In the child after fork, which has none of them but the calling one, if it is one, and that
    /// is not counted any more; it is in so many system calls that hold a reference. The forking
    /// thread has the locks.
    pub(crate) fn after_fork(&self, held: u32) {
        let mut list = self.list.lock().unwrap_or_else(|e| e.into_inner());
        // Nothing may be asked of libc about threads that are not here.
        let former = std::mem::take(&mut *list);
        std::mem::forget((former.threads, former.finished));
        list.started = former.started;
        list.over = former.over;
        list.end = former.end;
        self.holding.store(held.into(), Ordering::SeqCst);
    }
}

/// None of a domain's threads begins.
#[must_use = "threads begin again when it is dropped"]
pub(crate) struct Stopped<'a>(&'a OwnThreads);

impl Stopped<'_> {
    /// Those that have not entered will not.
    pub(crate) fn tell_all(&self) {
        let mut list = fork::lock(&self.0.list);
        list.threads.iter_mut().for_each(|t| t.told = true);
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        let mut list = fork::lock(&self.0.list);
        // In a child of a fork nobody waits any more.
        list.stopping = list.stopping.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_counts_the_system_calls_that_it_is_in() {
        let threads = OwnThreads::new(2);
        // Two threads are in one; the one that forks is there in the child.
        threads.holds(true);
        threads.holds(true);
        threads.after_fork(1);
        assert!(threads.hold_all(|| 1) && !threads.hold_all(|| 2));
        threads.holds(false);
        assert!(!threads.hold_all(|| 0));
        threads.holds(true);
        assert!(threads.hold_all(|| 1) && !threads.hold_all(|| 2));
    }

    #[test]
    fn none_begins_while_somebody_waits_for_their_ends() {
        let threads = OwnThreads::new(2);
        let stopped = [threads.stop(), threads.stop()];
        assert!(matches!(threads.reserve(), Err(Refused::Full)));
        let [first, second] = stopped;
        drop(first);
        assert!(matches!(threads.reserve(), Err(Refused::Full)));
        drop(second);
        let number = threads.reserve().ok().unwrap();
        assert!(threads.enters(number, 1));
        threads.left(number);
        threads.stop().unwrap().tell_all();
        assert!(!threads.enters(number, 1) && !threads.any_entered());
    }

    #[test]
    fn the_end_of_a_former_life_is_not_the_end_of_this_one() {
        let threads = OwnThreads::new(2);
        let former = threads.reserve().ok();
        threads.begin_anew();
        threads.ended(former, ProgramEnd::Exited(1));
        assert!(threads.take_end().is_none());
        let present = threads.reserve().ok();
        threads.ended(present, ProgramEnd::Exited(2));
        assert_eq!(threads.exit_status(), Some(2));
    }
}
