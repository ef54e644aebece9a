//! The clock of slices, against one that is told when time passes.

use std::cell::Cell;

use super::machine::Chance;
use crate::interval::{Clock, Interval};

const SLICE: u32 = 1_000_000;
const LEAST: u64 = 10_000;

/// A clock that each access costs some cycles.
#[derive(Default)]
struct Simulated {
    now: Cell<u64>,
    began: Cell<u64>,
    period: Cell<u64>,
    waits: Cell<bool>,
}

impl Simulated {
    fn pass(&self, cycles: u64) {
        self.now.set(self.now.get() + cycles);
        let gone = self.now.get() - self.began.get();
        if self.period.get() != 0 && gone >= self.period.get() {
            self.waits.set(true);
            self.began.set(self.now.get() - gone % self.period.get());
        }
    }

    /// Until the tick comes, or so many cycles have passed, with interrupts on. Whether it came.
    fn open(&self, cycles: u64) -> (u64, bool) {
        let left = self.period.get() - (self.now.get() - self.began.get());
        let wait = match self.waits.get() {
            true => 0,
            false => left.min(cycles),
        };
        self.pass(wait);
        (wait, self.waits.replace(false))
    }
}

impl Clock for Simulated {
    fn start(&self, period: u32) {
        self.pass(3);
        self.began.set(self.now.get());
        self.period.set(period.into());
    }

    fn left(&self) -> u32 {
        self.pass(3);
        (self.period.get() - (self.now.get() - self.began.get())) as u32
    }

    fn waits(&self) -> bool {
        self.pass(3);
        self.waits.get()
    }
}

/// Runs a handler that wants so many cycles, the last of them with interrupts off: cycles that it
/// had, and that were counted.
fn handler(interval: &Interval, clock: &Simulated, wants: u64, closed: u64) -> (u64, u64) {
    let stopped = interval.stop(clock, SLICE);
    let mut had = 0;
    while had < wants {
        let (passed, ticked) = clock.open(wants - had);
        had += passed;
        if ticked && interval.ends_handler(clock, SLICE) {
            break;
        }
    }
    clock.pass(closed);
    (had + closed, interval.resume(clock, SLICE, stopped))
}

/// The environment runs until its slice is over: for so many cycles.
fn rest(interval: &Interval, clock: &Simulated) -> u64 {
    let mut had = 0;
    loop {
        let (passed, ticked) = clock.open(u64::MAX);
        had += passed;
        if ticked && interval.is_over(clock, SLICE) {
            return had;
        }
    }
}

#[test]
fn a_tick_that_waited_ends_no_other_slice() {
    let (interval, clock) = (Interval::new(), Simulated::default());
    interval.begin(&clock, SLICE);
    // Work in the kernel that takes long, at whose end somebody else begins.
    clock.pass(2_400_000);
    interval.begin(&clock, SLICE);
    assert!(rest(&interval, &clock) > 990_000);
    assert!(rest(&interval, &clock) > 990_000);
}

#[test]
fn a_handlers_tick_ends_no_slice_and_costs_no_other_handler() {
    let (interval, clock) = (Interval::new(), Simulated::default());
    interval.begin(&clock, SLICE);
    clock.pass(400_000);
    // The tick comes behind the last instruction that it could interrupt.
    let (had, counted) = handler(&interval, &clock, 249_000, 2_000);
    assert!(counted.abs_diff(had) < 100, "{had} {counted}");
    let (had, counted) = handler(&interval, &clock, 5_000, 0);
    assert!(counted.abs_diff(had) < 100, "{had} {counted}");
    let (had, _) = handler(&interval, &clock, u64::MAX, 0);
    assert!(had.abs_diff(16 * u64::from(SLICE)) < 1000, "{had}");
    assert!(rest(&interval, &clock).abs_diff(600_000) < 1000);
}

#[test]
fn a_slice_that_is_over_is_told_so_soon() {
    let (interval, clock) = (Interval::new(), Simulated::default());
    interval.begin(&clock, SLICE);
    clock.pass(1_000_100);
    let (had, counted) = handler(&interval, &clock, 5_000, 0);
    assert!(counted.abs_diff(had) < 100, "{had} {counted}");
    assert!(rest(&interval, &clock) <= LEAST);
}

/// Whatever happens meanwhile, a slice is as long as it is, but for a hundredth for each handler.
#[test]
fn no_flood_changes_a_slice() {
    let mut random = Chance(5);
    let (interval, clock) = (Interval::new(), Simulated::default());
    for _ in 0..20_000 {
        // Something before it: another's long call.
        clock.pass(random.below(3) * random.below(1_500_000));
        interval.begin(&clock, SLICE);
        let (mut had, mut extra, mut over) = (0, 0, false);
        for _ in 0..random.below(6) {
            let (passed, ticked) = clock.open(random.below(400_000));
            had += passed;
            if ticked && interval.is_over(&clock, SLICE) {
                over = true;
                break;
            }
            for _ in 0..random.below(4) {
                let closed = random.below(2) * random.below(20_000);
                let wants = random.below(2) * random.below(1_200_000);
                let near = (1 + random.below(4)) * 250_000 - random.below(40);
                let wants = if random.one_in(2) { near } else { 1 + wants };
                let (had, counted) = handler(&interval, &clock, wants, closed);
                assert!(counted.abs_diff(had) < 200, "{had} {counted}");
                extra += LEAST;
            }
        }
        if !over {
            had += rest(&interval, &clock);
        }
        let slice = u64::from(SLICE);
        assert!(
            had + 1000 > slice && had < slice + extra + 1000,
            "{had} {extra}"
        );
    }
}
