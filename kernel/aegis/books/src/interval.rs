//! The clock of slices: how long one is, whatever else the same clock is needed for meanwhile.
//!
//! A clock ticks at the end of each period and begins anew. A tick that comes while interrupts are
//! off waits, and is one however many there were. Invariant: a tick ends a slice only if it is that
//! slice's: not one that waited when it began, nor one of a handler's.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

/// A processor's clock.
pub trait Clock {
    /// Begins a period.
    fn start(&self, period: u32);
    /// Cycles until it is over.
    fn left(&self) -> u32;
    /// Whether a tick waits.
    fn waits(&self) -> bool;
}

/// What is known of a processor's clock.
#[derive(Debug, Default)]
pub struct Interval {
    /// [`REST`] and [`STALE`].
    state: AtomicU32,
    /// Ticks that the handler which runs may still see, the last of which ends it.
    ticks: AtomicU32,
}

/// The period is not a slice: the clock is set when it is over.
const REST: u32 = 1;
/// The tick that waits is nobody's.
const STALE: u32 = 2;

/// Ticks in a slice's length while a handler with loops runs. Each is set when the one before has
/// come: an emulator that was kept from running makes up for none.
const TICKS: u32 = 4;
/// Ticks that such a handler may see; the last one ends it. The clock of an emulator goes on while
/// its host does something else, and while it translates what runs for the first time: what takes
/// microseconds on a processor has seen four ticks there.
const LAST: u32 = 16 * TICKS;

/// A slice that was stopped for a handler.
#[derive(Debug)]
pub struct Stopped {
    left: u32,
}

impl Interval {
    /// At the start.
    pub const fn new() -> Interval {
        Interval {
            state: AtomicU32::new(0),
            ticks: AtomicU32::new(0),
        }
    }

    /// A slice begins. What ran on in the kernel when the last one was over has its tick waiting.
    pub fn begin(&self, clock: &impl Clock, slice: u32) {
        clock.start(slice);
        let stale = if clock.waits() { STALE } else { 0 };
        self.state.store(stale, Relaxed);
    }

    /// The clock ticked, and no handler runs: whether a slice is over.
    pub fn is_over(&self, clock: &impl Clock, slice: u32) -> bool {
        let state = self.state.load(Relaxed);
        if state & STALE != 0 {
            self.state.store(state & !STALE, Relaxed);
            return false;
        }
        if state & REST != 0 {
            self.state.store(0, Relaxed);
            clock.start(slice);
        }
        true
    }

    /// A handler is about to run with interrupts on: the clock is its. A slice has at least a
    /// hundredth left afterwards: the clock ticks again and again until it is set, and a processor
    /// with a tick at each instruction comes to none.
    pub fn stop(&self, clock: &impl Clock, slice: u32) -> Stopped {
        let left = clock.left();
        clock.start(slice / TICKS);
        // Behind both: a tick between them waits, too.
        let waits = clock.waits();
        let stale = self.state.load(Relaxed) & STALE != 0;
        // A tick that waits comes to the handler first. If it was the slice's, that is over, and
        // is told so soon.
        let least = slice / 100;
        let left = if waits && !stale {
            least
        } else {
            left.max(least)
        };
        self.ticks.store(LAST + u32::from(waits), Relaxed);
        Stopped { left }
    }

    /// The clock ticked while a handler runs: whether that was its last one.
    pub fn ends_handler(&self, clock: &impl Clock, slice: u32) -> bool {
        clock.start(slice / TICKS);
        self.ticks.fetch_sub(1, Relaxed) <= 1
    }

    /// The slice goes on. How many cycles the handler took.
    pub fn resume(&self, clock: &impl Clock, slice: u32, stopped: Stopped) -> u64 {
        let tick = slice / TICKS;
        let now = tick.saturating_sub(clock.left());
        clock.start(stopped.left);
        let late = clock.waits();
        self.state
            .store(REST | if late { STALE } else { 0 }, Relaxed);
        // A tick that waited was before that moment, or just behind it.
        let now = if late && now > tick / 2 { 0 } else { now };
        let seen = LAST.saturating_sub(self.ticks.load(Relaxed)) + u32::from(late);
        u64::from(seen) * u64::from(tick) + u64::from(now)
    }
}
