//! The locks. Whoever waits for one serves what other processors ask meanwhile, so that a
//! processor that holds a lock can wait for others to forget translations.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU8, AtomicU32};

use crate::{Books, Hardware};

/// A page's lock, held.
#[must_use = "it is held as long as this lives"]
pub(crate) struct PageLock<'a>(&'a AtomicU8);

/// The lock of an environment or of the free list, held.
#[must_use = "it is held as long as this lives"]
pub struct Lock<'a>(&'a AtomicU32);

impl Drop for PageLock<'_> {
    fn drop(&mut self) {
        self.0.store(0, Release);
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        self.0.store(0, Release);
    }
}

impl<'a, H: Hardware> Books<'a, H> {
    /// Locks a page. Of two pages the one of the lower number is locked first.
    #[inline(always)]
    pub(crate) fn lock_page(&self, page: u32) -> PageLock<'a> {
        let lock = &self.pages[page as usize].lock;
        let holder = (self.hardware.processor() as u8).wrapping_add(1);
        while lock.compare_exchange(0, holder, Acquire, Relaxed).is_err() {
            self.hardware.poll();
        }
        PageLock(lock)
    }

    /// Locks an environment's list of pages, its counts and quotas. Of two environments the one of
    /// the lower number is locked first.
    pub(crate) fn lock_environment(&self, environment: u16) -> Lock<'a> {
        self.lock(&self.environment(environment).lock)
    }

    /// The same, if nobody holds it.
    pub(crate) fn try_lock_environment(&self, environment: u16) -> Option<Lock<'a>> {
        let lock = &self.environment(environment).lock;
        let holder = self.hardware.processor() as u32 + 1;
        lock.compare_exchange(0, holder, Acquire, Relaxed)
            .is_ok()
            .then_some(Lock(lock))
    }

    /// Locks two environments, which may be the same.
    pub(crate) fn lock_both(&self, one: u16, other: u16) -> (Lock<'a>, Option<Lock<'a>>) {
        let first = self.lock_environment(one.min(other));
        (
            first,
            (one != other).then(|| self.lock_environment(one.max(other))),
        )
    }

    /// Locks the free list.
    pub(crate) fn lock_free(&self) -> Lock<'a> {
        self.lock(&self.machine.free_lock)
    }

    pub(crate) fn lock(&self, lock: &'a AtomicU32) -> Lock<'a> {
        let holder = self.hardware.processor() as u32 + 1;
        while lock.compare_exchange(0, holder, Acquire, Relaxed).is_err() {
            self.hardware.poll();
        }
        Lock(lock)
    }
}
