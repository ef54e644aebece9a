//! The time of day, and the alarm.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::Error;

use crate::{books, calls, entry, slices};

/// Cycles of the processors' counter in a second.
pub fn frequency() -> u64 {
    books::machine().clock.frequency.load(Relaxed).max(1)
}

/// Seconds since 1970.
pub fn now() -> u64 {
    let epoch = books::machine().clock.epoch.load(Relaxed);
    epoch.saturating_add(slices::clock() / frequency())
}

/// Microseconds as cycles of the counter.
pub fn cycles(microseconds: u64) -> u64 {
    let cycles = u128::from(microseconds) * u128::from(frequency()) / 1_000_000;
    u64::try_from(cycles).unwrap_or(u64::MAX)
}

/// Has the event of the alarm raised when so many microseconds have passed, at a tick of
/// processor 0. What was asked before is forgotten.
pub fn alarm(microseconds: u64) -> Result<(), Error> {
    entry::alarm_set();
    let due = slices::clock().saturating_add(cycles(microseconds));
    calls::alarm(due.max(1)).map(drop)
}
