//! Calls that are left: the supervisor may wait in a call for a pipe or a connection whose caller
//! is killed meanwhile, and would for good. So each thread that makes calls has a place that says
//! for which it does, and another looks from time to time whether these still wait.

use crate::trusted::{foreign, seccomp::Listener};
use rustix::io::Errno;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often is looked.
const OFTEN: Duration = Duration::from_millis(200);

/// And at the end.
const SOON: Duration = Duration::from_millis(1);

/// What one thread does.
#[derive(Debug)]
pub struct Place {
    /// The call's own number, or none.
    call: AtomicU64,
    thread: AtomicU32,
}

/// No call has it.
const NONE: u64 = u64::MAX;

impl Place {
    /// Runs something that may wait for good, for this call.
    pub fn within<T>(&self, call: u64, what: impl FnOnce() -> T) -> T {
        self.call.store(call, SeqCst);
        let result = what();
        self.call.store(NONE, SeqCst);
        result
    }
}

/// The places of all threads.
#[derive(Debug, Default)]
pub struct Places(Mutex<Vec<Arc<Place>>>);

impl Places {
    /// One for the calling thread.
    pub fn take(&self) -> Arc<Place> {
        let place = Arc::new(Place {
            call: AtomicU64::new(NONE),
            thread: AtomicU32::new(foreign::thread()),
        });
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(place.clone());
        place
    }

    /// Looks until no process has the filter any more, and no thread is left that serves: one whose
    /// caller is gone is interrupted until it notices, for the first signal may come before it
    /// waits.
    pub fn look(&self, listener: &Listener, threads: &AtomicUsize) {
        loop {
            let ended = listener.has_ended_within(OFTEN);
            if ended && threads.load(SeqCst) == 0 {
                return;
            }
            let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            for place in &*all {
                let call = place.call.load(SeqCst);
                if call != NONE && !listener.waits(call) {
                    foreign::interrupt(place.thread.load(SeqCst));
                }
            }
            drop(all);
            if ended {
                std::thread::sleep(SOON);
            }
        }
    }
}

/// Interruptions are heard from now on.
///
/// # Errors
/// Another has that signal.
pub fn begin() -> Result<(), Errno> {
    foreign::hear_interruptions()
}
