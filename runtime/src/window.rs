//! Windows: 4 GiB pieces of address space, pooled.
//!
//! Every window has 64 KiB reserved and unmapped above it: the null guard of the next one, or a reservation for itself. A
//! window is wiped (all pages gone, no access) before it returns to the pool, so the pool holds bare address space only.

use crate::trusted::machine;
use crate::trusted::map::{self, MapError, Protection};
use postern_verifier::window::{INFO, LIMIT, NULL_GUARD, WINDOW_SIZE};
use std::os::fd::BorrowedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

const SIZE: usize = WINDOW_SIZE as usize;

/// Why the low 4 GiB is not a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HotWindow {
    /// Nobody is in it.
    Free,
    /// A domain is in it.
    Taken,
    /// The configuration says `hot_window = off`.
    Off,
    /// Something else of the process lies in the low 4 GiB (a host that is not position-independent, a MAP_32BIT mapping).
    Occupied,
}

impl HotWindow {
    /// All states.
    pub const ALL: [HotWindow; 4] = [
        HotWindow::Free,
        HotWindow::Taken,
        HotWindow::Off,
        HotWindow::Occupied,
    ];

    /// The name, for logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            HotWindow::Free => "free",
            HotWindow::Taken => "taken",
            HotWindow::Off => "off",
            HotWindow::Occupied => "occupied",
        }
    }
}

pub(crate) struct Pool {
    free: Vec<usize>,
    hot: Option<HotWindow>,
}

static POOL: Mutex<Pool> = Mutex::new(Pool {
    free: Vec::new(),
    hot: None,
});

pub(crate) fn pool() -> std::sync::MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(|e| e.into_inner())
}

/// Reserves the low 4 GiB if it is free. Called once, at start.
pub(crate) fn reserve_hot(wanted: bool) -> HotWindow {
    let mut pool = pool();
    if let Some(state) = pool.hot {
        return state;
    }
    let state = if !wanted {
        HotWindow::Off
    } else {
        let lowest = machine::lowest_mappable().next_multiple_of(4096);
        let end = SIZE + NULL_GUARD as usize;
        match map::reserve_at(lowest, end - lowest) {
            Ok(()) => HotWindow::Free,
            Err(_) => HotWindow::Occupied,
        }
    };
    pool.hot = Some(state);
    state
}

/// The state of the low 4 GiB.
pub fn hot_window() -> HotWindow {
    pool().hot.unwrap_or(HotWindow::Off)
}

impl Pool {
    /// Reserves more windows: many at once, so that neighbours share one mapping, fewer if there is no room.
    fn grow(&mut self) -> Result<(), MapError> {
        map::room(2)?;
        let mut last = None;
        for count in [256, 16, 1] {
            let bytes = (count + 1) * SIZE + NULL_GUARD as usize;
            let start = match map::reserve(bytes) {
                Ok(start) => start as usize,
                Err(error) => {
                    last = Some(error);
                    continue;
                }
            };
            let first = start.next_multiple_of(SIZE);
            let end = first + count * SIZE + NULL_GUARD as usize;
            map::release(start as *mut u8, first - start);
            map::release(end as *mut u8, start + bytes - end);
            self.free.extend((0..count).rev().map(|i| first + i * SIZE));
            return Ok(());
        }
        Err(last.expect("at least one size was tried"))
    }
}

/// One window, owned. Who owns it may exchange it for another one while nobody uses either.
pub(crate) struct Window {
    base: AtomicUsize,
    /// End (exclusive) of what was ever mapped.
    high: AtomicU32,
}

impl Window {
    /// Takes the hot window if it is free.
    pub(crate) fn take_hot() -> Option<Window> {
        let mut pool = pool();
        if pool.hot != Some(HotWindow::Free) {
            return None;
        }
        pool.hot = Some(HotWindow::Taken);
        Some(Window::at(0))
    }

    /// Takes a window from the pool.
    pub(crate) fn take() -> Result<Window, MapError> {
        let mut pool = pool();
        if pool.free.is_empty() {
            pool.grow()?;
        }
        Ok(Window::at(pool.free.pop().expect("just grown")))
    }

    fn at(base: usize) -> Window {
        Window {
            base: AtomicUsize::new(base),
            high: AtomicU32::new(INFO),
        }
    }

    /// Address of offset 0.
    pub(crate) fn base(&self) -> u64 {
        self.start() as u64
    }

    fn start(&self) -> usize {
        self.base.load(Ordering::SeqCst)
    }

    /// Whether nothing of it is somebody else's by now ([`MapError::Lost`]).
    pub(crate) fn whole(&self) -> Result<(), MapError> {
        let bytes = self.high.load(Ordering::Relaxed) - INFO;
        map::whole(self.start() + INFO as usize, bytes as usize)
    }

    /// Whether the base is zero.
    pub(crate) fn is_hot(&self) -> bool {
        self.start() == 0
    }

    /// Moves the mapping of `[start, end)`, with its pages, to the same offsets of `to`. What stays here has no private pages.
    pub(crate) fn carry(&self, start: u32, end: u32, to: &Window) -> Result<(), MapError> {
        assert!(INFO <= start && start <= end && end <= LIMIT && (start | end) % 4096 == 0);
        to.high.fetch_max(end, Ordering::Relaxed);
        let (from, to) = (self.start() + start as usize, to.start() + start as usize);
        map::carry(from, (end - start) as usize, to)
    }

    /// Leaves what is mapped to `[start, end)` out of core dumps, unless they are to have it.
    pub(crate) fn hide(&self, start: u32, end: u32) {
        assert!(INFO <= start && start <= end && end <= LIMIT && (start | end) % 4096 == 0);
        map::hide(self.start() + start as usize, (end - start) as usize);
    }

    /// Exchanges the places of two windows.
    pub(crate) fn exchange(&self, other: &Window) {
        let base = self.base.swap(other.start(), Ordering::SeqCst);
        other.base.store(base, Ordering::SeqCst);
        let high = self
            .high
            .swap(other.high.load(Ordering::SeqCst), Ordering::SeqCst);
        other.high.store(high, Ordering::SeqCst);
    }

    /// Maps `[start, end)`, zero or from a file (descriptor, file offset).
    pub(crate) fn map(
        &self,
        start: u32,
        end: u32,
        protection: Protection,
        file: Option<(BorrowedFd<'_>, u64)>,
    ) -> Result<(), MapError> {
        assert!(INFO <= start && start <= end && end <= LIMIT && (start | end) % 4096 == 0);
        self.high.fetch_max(end, Ordering::Relaxed);
        map::place(
            self.start() + start as usize,
            (end - start) as usize,
            protection,
            file,
        )
    }

    /// Maps `[start, end)` from a file so that writes are seen by everybody who maps it.
    pub(crate) fn share(
        &self,
        start: u32,
        end: u32,
        protection: Protection,
        file: BorrowedFd<'_>,
        at: u64,
    ) -> Result<(), MapError> {
        assert!(INFO <= start && start <= end && end <= LIMIT && (start | end) % 4096 == 0);
        assert!(protection != Protection::ReadExecute);
        self.high.fetch_max(end, Ordering::Relaxed);
        map::share(
            self.start() + start as usize,
            (end - start) as usize,
            protection,
            file,
            at,
        )
    }

    /// Maps the pages of the shared mapping at `from` to `[start, end)`, too.
    pub(crate) fn share_again(
        &self,
        start: u32,
        end: u32,
        protection: Protection,
        from: usize,
    ) -> Result<(), MapError> {
        assert!(INFO <= start && start <= end && end <= LIMIT && (start | end) % 4096 == 0);
        assert!(protection != Protection::ReadExecute);
        self.high.fetch_max(end, Ordering::Relaxed);
        map::share_again(
            from,
            (end - start) as usize,
            self.start() + start as usize,
            protection,
        )
    }

    /// Notes that `[start, end)` is about to be mapped by its owner.
    pub(crate) fn reach(&self, start: u32, end: u32) {
        assert!(INFO <= start && start <= end && end <= LIMIT && (start | end) % 4096 == 0);
        self.high.fetch_max(end, Ordering::Relaxed);
    }

    /// Takes away what is mapped in `[start, end)`.
    pub(crate) fn unmap(&self, start: u32, end: u32) -> Result<(), MapError> {
        self.map(start, end, Protection::None, None)
    }

    /// Changes the protection of `[start, end)`.
    pub(crate) fn protect(
        &self,
        start: u32,
        end: u32,
        protection: Protection,
    ) -> Result<(), MapError> {
        assert!(INFO <= start && start <= end && end <= LIMIT && (start | end) % 4096 == 0);
        map::protect(
            self.start() + start as usize,
            (end - start) as usize,
            protection,
        )
    }

    /// Drops the private pages of `[start, end)`; false if they are still there.
    #[must_use]
    pub(crate) fn discard(&self, start: u32, end: u32) -> bool {
        assert!(INFO <= start && start <= end && end <= LIMIT);
        map::discard(
            (self.start() + start as usize) as *mut u8,
            (end - start) as usize,
        )
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        let high = *self.high.get_mut();
        if map::place(
            self.start() + INFO as usize,
            (high - INFO) as usize,
            Protection::None,
            None,
        )
        .is_err()
        {
            // It cannot be wiped, or something else may lie in it, so it is never used again.
            return;
        }
        let mut pool = pool();
        if self.is_hot() {
            pool.hot = Some(HotWindow::Free);
        } else {
            pool.free.push(self.start());
        }
    }
}
