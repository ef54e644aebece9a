//! Slices that an environment owes for what the kernel did on its behalf.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::ROOT;

use crate::{Books, Hardware};

/// Slices that one call can cost: whatever a loaded host makes of cycles.
const MOST: u64 = 64;

impl<H: Hardware> Books<'_, H> {
    /// An environment's handlers took time: it forfeits a slice for each that all its handlers ever
    /// took together, and some more. So it gains nothing by another handler for each run.
    pub(crate) fn charge_runs(&self, owner: u16, time: u64, more: u32) {
        let record = self.environment(owner);
        let slice = self.machine.slice.load(Relaxed).max(1);
        let before = record.spent.fetch_add(time, Relaxed);
        let whole = (before.saturating_add(time) / slice).saturating_sub(before / slice);
        let owes = more.saturating_add(u32::try_from(whole).unwrap_or(u32::MAX));
        self.forfeit(owner, owes);
    }

    /// A call of an environment took so many cycles that others of its processor waited for, since
    /// interrupts are off: it forfeits a slice for each that it took. The root, whose all slices
    /// are, owes nobody.
    pub fn pays_for(&self, environment: u16, cycles: u64) {
        let machine = self.machine;
        let frequency = machine.clock.frequency.load(Relaxed);
        let slice = machine.slice.load(Relaxed).saturating_mul(frequency) / 1_000_000_000;
        if environment != ROOT
            && let Some(slices) = cycles.checked_div(slice)
        {
            self.forfeit(environment, slices.min(MOST) as u32);
        }
    }

    /// An environment owes so many slices more.
    fn forfeit(&self, environment: u16, slices: u32) {
        if slices > 0 {
            let forfeits = &self.environment(environment).forfeits;
            let more = |now: u32| Some(now.saturating_add(slices));
            let _ = forfeits.fetch_update(Relaxed, Relaxed, more);
        }
    }
}
