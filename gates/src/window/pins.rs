//! How many use a window where it is, and whether somebody takes it elsewhere.
//!
//! The mover waits for pins that are held, and those that come later wait for the mover.

use crate::pause::Pause;
use std::sync::atomic::{AtomicU32, Ordering};

/// Set while the window is moved.
const MOVING: u32 = 1 << 31;
/// Looks at the pins before a mover gives up: about a tenth of a second.
const PATIENCE: u32 = 2000;

/// How many uses are under way.
#[derive(Default)]
pub(super) struct Pins(AtomicU32);

impl Pins {
    #[inline]
    pub(super) fn add(&self) {
        let mut pause = Pause::default();
        while self.0.fetch_add(1, Ordering::SeqCst) & MOVING != 0 {
            self.0.fetch_sub(1, Ordering::SeqCst);
            while self.0.load(Ordering::SeqCst) & MOVING != 0 {
                pause.again();
            }
        }
    }

    /// Runs `work` while there are no pins; `None` if there are some for long, or another thread is
    /// at it.
    pub(super) fn without<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        if self.0.fetch_or(MOVING, Ordering::SeqCst) & MOVING != 0 {
            return None;
        }
        let moving = Moving(self);
        let mut pause = Pause::default();
        while self.0.load(Ordering::SeqCst) != MOVING && pause.count() < PATIENCE {
            pause.again();
        }
        let free = self.0.load(Ordering::SeqCst) == MOVING;
        let done = free.then(work);
        drop(moving);
        done
    }

    /// One less.
    #[inline]
    pub(super) fn remove(&self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }

    pub(super) fn forget(&self) {
        self.0.store(0, Ordering::SeqCst);
    }
}

/// The mark of a mover, which goes also when it panics.
struct Moving<'a>(&'a Pins);

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_and(!MOVING, Ordering::SeqCst);
    }
}
