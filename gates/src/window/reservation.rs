//! The pool of windows, and who owns one.

use super::pins::Pins;
use crate::control::Control;
use crate::machine;
use crate::map::{self, MapError, Protection};
use crate::text::Text;
use postern_verifier::window::{INFO, NULL_GUARD, WINDOW_SIZE};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

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
    /// Something else of the process lies in the low 4 GiB (a host that is not
    /// position-independent, a MAP_32BIT mapping).
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

/// Its [`HotWindow::name`].
impl std::fmt::Display for HotWindow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

struct Pool {
    free: Vec<usize>,
    hot: Option<HotWindow>,
}

static POOL: Mutex<Pool> = Mutex::new(Pool {
    free: Vec::new(),
    hot: None,
});

fn lock() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(|e| e.into_inner())
}

/// Holds the pool, for a thread that forks. Of what is held nothing can be touched.
pub fn pool() -> impl Sized + 'static {
    lock()
}

/// Reserves the low 4 GiB if it is free. Called once, at start.
pub fn reserve_hot(wanted: bool) -> HotWindow {
    let mut pool = lock();
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
    lock().hot.unwrap_or(HotWindow::Off)
}

impl Pool {
    /// Reserves more windows: many at once, so that neighbours share one mapping, fewer if there is
    /// no room.
    fn grow(&mut self) -> Result<(), MapError> {
        map::room(2)?;
        let mut last = None;
        for count in [256, 16, 1] {
            let bytes = (count + 1) * SIZE + NULL_GUARD as usize;
            let start = match map::reserve(bytes) {
                Ok(start) => start,
                Err(error) => {
                    last = Some(error);
                    continue;
                }
            };
            let first = start.next_multiple_of(SIZE);
            let end = first + count * SIZE + NULL_GUARD as usize;
            // SAFETY: both ends are of the reservation that was just made and that nobody knows of.
            unsafe {
                map::release(start, first - start);
                map::release(end, start + bytes - end);
            }
            self.free.extend((0..count).rev().map(|i| first + i * SIZE));
            return Ok(());
        }
        Err(last.expect("at least one size was tried"))
    }
}

/// One window, owned. Who owns it may exchange it for another one while nobody uses either.
///
/// It goes back to the pool with its last owner: of the window itself, or of an owned part
/// ([`super::OwnedPart`]).
pub struct Window(pub(super) Arc<Reservation>);

/// What an owner owns. Everything that touches the range does so through a [`super::Pin`], under
/// [`super::Unpinned`], or through an owned part; so the base stays what it is meanwhile.
pub(crate) struct Reservation {
    pub(super) base: AtomicUsize,
    /// End (exclusive) of what was ever mapped.
    pub(super) high: AtomicU32,
    /// The image whose text is mapped.
    pub(super) image: OnceLock<Arc<Text>>,
    /// Number of the domain whose window this is, whose block is an owner then; 0 is none.
    pub(super) domain: AtomicU32,
    /// First and last (exclusive) offset of a code area's pages, set once; 0 is none.
    pub(super) code: AtomicU64,
    pub(super) pins: Pins,
}

impl Window {
    /// Takes the hot window if it is free.
    pub fn take_hot() -> Option<Window> {
        let mut pool = lock();
        if pool.hot != Some(HotWindow::Free) {
            return None;
        }
        pool.hot = Some(HotWindow::Taken);
        Some(Window::at(0))
    }

    /// Takes a window from the pool.
    pub fn take() -> Result<Window, MapError> {
        let mut pool = lock();
        if pool.free.is_empty() {
            pool.grow()?;
        }
        Ok(Window::at(pool.free.pop().expect("just grown")))
    }

    fn at(base: usize) -> Window {
        Window(Arc::new(Reservation {
            base: AtomicUsize::new(base),
            high: AtomicU32::new(INFO),
            image: OnceLock::new(),
            domain: AtomicU32::new(0),
            code: AtomicU64::new(0),
            pins: Pins::default(),
        }))
    }

    /// Address of offset 0, for those who show it. What is done to a window needs no address.
    pub fn base(&self) -> u64 {
        self.0.start() as u64
    }

    /// Whether the base is zero.
    pub fn is_hot(&self) -> bool {
        self.0.start() == 0
    }

    /// Whether nothing of it is somebody else's by now ([`MapError::Lost`]).
    pub fn whole(&self) -> Result<(), MapError> {
        let bytes = self.0.high.load(Ordering::Relaxed) - INFO;
        map::whole(self.0.start() + INFO as usize, bytes as usize)
    }
}

impl Reservation {
    pub(super) fn start(&self) -> usize {
        self.base.load(Ordering::SeqCst)
    }

    /// Whether it is the window of the domain with this block, and nobody but that and its
    /// [`Window`] owns it: nobody has a part then that is not pinned.
    pub(super) fn is_only_of(self: &Arc<Self>, control: &Control) -> bool {
        let domain = self.domain.load(Ordering::SeqCst);
        domain != 0 && domain == control.generation() && Arc::strong_count(self) == 2
    }

    /// Whether an image's slots or text are mapped to any of it.
    pub(super) fn is_text(&self, start: u32, end: u32) -> bool {
        let layout = self.image.get().map(|image| image.layout());
        layout.is_some_and(|layout| layout.gates < end && start < layout.text_end)
    }

    /// Whether a code area has any of it.
    pub(super) fn is_code(&self, start: u32, end: u32) -> bool {
        let code = self.code.load(Ordering::SeqCst);
        ((code >> 32) as u32) < end && start < code as u32
    }

    /// The domain with this number, whose block owned the window, is gone.
    pub(crate) fn is_free_of(&self, generation: u32) {
        let order = Ordering::SeqCst;
        let _ = self.domain.compare_exchange(generation, 0, order, order);
    }

    /// Notes that what is below `end` is about to be mapped.
    pub(super) fn reach(&self, end: u32) {
        self.high.fetch_max(end, Ordering::Relaxed);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let (base, high) = (*self.base.get_mut(), *self.high.get_mut());
        let (start, bytes) = (base + INFO as usize, (high - INFO) as usize);
        // SAFETY: the reservation has no owner any more, so nobody refers to the range.
        if unsafe { map::place(start, bytes, Protection::None, None) }.is_err() {
            // It cannot be wiped, or something else may lie in it, so it is never used again.
            return;
        }
        let mut pool = lock();
        if base == 0 {
            pool.hot = Some(HotWindow::Free);
        } else {
            pool.free.push(base);
        }
    }
}
