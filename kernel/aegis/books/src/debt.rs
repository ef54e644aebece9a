//! Slices that an environment owes for what its handlers took.

use core::sync::atomic::Ordering::Relaxed;

use crate::{Books, Hardware};

impl<H: Hardware> Books<'_, H> {
    /// An environment's handlers took time: it forfeits a slice for each that all its handlers ever
    /// took together, and some more. So it gains nothing by another handler for each run.
    pub(crate) fn charge_runs(&self, owner: u16, time: u64, more: u32) {
        let record = self.environment(owner);
        let slice = self.machine.slice.load(Relaxed).max(1);
        let before = record.spent.fetch_add(time, Relaxed);
        let whole = (before.saturating_add(time) / slice).saturating_sub(before / slice);
        let owes = more.saturating_add(u32::try_from(whole).unwrap_or(u32::MAX));
        if owes > 0 {
            let more = |now: u32| Some(now.saturating_add(owes));
            let _ = record.forfeits.fetch_update(Relaxed, Relaxed, more);
        }
    }
}
