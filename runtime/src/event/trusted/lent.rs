//! Priority that is lent: a thread waits for another one, which has its priority meanwhile.
//!
//! That is a lock whose waiters the kernel has its owner inherit from (`FUTEX_LOCK_PI`). It is not
//! taken by who has it, but given to it: the lender writes the other thread's number, and the
//! kernel takes that for the owner. One thread lends, one borrows.
//!
//! The word is the host's own, so nobody forges it; or, between processes of a common domain, one
//! that each of them can write: a forged one lends the priority to another thread, for as long. A
//! borrower that ends, or does not give back in time, is the owner no more.

use postern_gates::machine;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Whose priority is lent to whom.
pub(crate) struct Lent<'a> {
    word: &'a AtomicU32,
    /// Processes have it in common.
    shared: bool,
}

impl<'a> Lent<'a> {
    /// By a word of this process's.
    pub(crate) fn here(word: &'a AtomicU32) -> Lent<'a> {
        Lent {
            word,
            shared: false,
        }
    }

    /// By a word of a common domain's.
    pub(crate) fn anywhere(word: &'a AtomicU32) -> Lent<'a> {
        Lent { word, shared: true }
    }

    /// Lends the calling thread's priority to another thread and waits until that
    /// gives it back, or for so long; not at all if it is not `wanted` once it could be given back.
    pub(crate) fn lend(&self, thread: u32, longest: Duration, wanted: impl FnOnce() -> bool) {
        let mine = machine::thread_id();
        if thread == mine {
            return;
        }
        self.word.store(thread, SeqCst);
        if wanted() {
            // This futex's time is that of the clock that can be set.
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let until = now.unwrap_or_default() + longest;
            let until = libc::timespec {
                tv_sec: until.as_secs() as i64,
                tv_nsec: i64::from(until.subsec_nanos()),
            };
            // SAFETY: the kernel reads and writes the word, and reads the time.
            let locked = unsafe { self.futex(libc::FUTEX_LOCK_PI, &raw const until) };
            if locked && self.word.compare_exchange(mine, 0, SeqCst, SeqCst).is_err() {
                // SAFETY: as above, without a time.
                unsafe { self.futex(libc::FUTEX_UNLOCK_PI, std::ptr::null()) };
            }
        }
        // A borrower that gives back behind this gives back nothing.
        self.word.store(0, SeqCst);
    }

    /// What the calling thread was lent, if it was. Signal handlers may call it.
    pub(crate) fn give_back(&self) {
        let word = self.word.load(SeqCst);
        if word == 0 {
            return;
        }
        let mine = machine::thread_id();
        let is_mine = word & libc::FUTEX_TID_MASK == mine;
        if is_mine && self.word.compare_exchange(mine, 0, SeqCst, SeqCst).is_err() {
            // SAFETY: errno comes back as it was; the kernel writes the word, if this is its owner.
            unsafe {
                let errno = libc::__errno_location();
                let before = *errno;
                self.futex(libc::FUTEX_UNLOCK_PI, std::ptr::null());
                *errno = before;
            }
        }
    }

    /// # Safety
    /// The time is one, or null.
    unsafe fn futex(&self, operation: i32, until: *const libc::timespec) -> bool {
        let operation = match self.shared {
            true => operation,
            false => operation | libc::FUTEX_PRIVATE_FLAG,
        };
        let word = self.word.as_ptr();
        // SAFETY: the word is there as long as this; and the caller's promise.
        let done = unsafe { libc::syscall(libc::SYS_futex, word, operation, 0, until) };
        done == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn it_is_given_back_or_its_time_ends() {
        let word = AtomicU32::new(0);
        let lent = Lent::here(&word);
        let (tell, told) = channel();
        std::thread::scope(|scope| {
            let (lent, says) = (&lent, tell.clone());
            scope.spawn(move || {
                says.send(machine::thread_id()).unwrap();
                while lent.word.load(SeqCst) == 0 {
                    std::hint::spin_loop();
                }
                lent.give_back();
            });
            let borrower = told.recv().unwrap();
            lent.lend(borrower, Duration::from_secs(60), || true);
            assert_eq!(lent.word.load(SeqCst), 0);
            // Of one that does not know of it, of one that has ended, of oneself, and unwanted.
            let (end, ends) = channel::<()>();
            let other = scope.spawn(move || {
                tell.send(machine::thread_id()).unwrap();
                ends.recv().unwrap_err();
            });
            let other_number = told.recv().unwrap();
            lent.lend(other_number, Duration::from_millis(1), || true);
            drop(end);
            other.join().unwrap();
            lent.lend(other_number, Duration::from_millis(1), || true);
            lent.lend(machine::thread_id(), Duration::from_secs(60), || true);
            lent.lend(other_number, Duration::from_secs(60), || false);
            lent.give_back();
            assert_eq!(lent.word.load(SeqCst), 0);
        });
    }
}
