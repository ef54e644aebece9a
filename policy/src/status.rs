//! Flags of what is open: which way it may be used, and what `F_SETFL` changes of it.

use std::sync::atomic::{AtomicI32, Ordering};

/// Flags of an open file, as `F_GETFL` shows them.
pub(super) struct Status(AtomicI32);

/// Flags that `F_SETFL` can change.
const CHANGEABLE: i32 = libc::O_APPEND | libc::O_NONBLOCK;

impl Status {
    pub(super) fn new(flags: i32) -> Status {
        Status(AtomicI32::new(flags))
    }

    pub(super) fn get(&self) -> i32 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, flags: i32) {
        let change = |old: i32| Some(old & !CHANGEABLE | flags & CHANGEABLE);
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }

    pub(super) fn readable(&self) -> bool {
        matches!(self.get() & libc::O_ACCMODE, libc::O_RDONLY | libc::O_RDWR)
    }

    pub(super) fn writable(&self) -> bool {
        matches!(self.get() & libc::O_ACCMODE, libc::O_WRONLY | libc::O_RDWR)
    }
}
