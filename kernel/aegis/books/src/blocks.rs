//! Ranges of the disk's blocks.
//!
//! Invariant: under the holdings' lock, the ranges are the disk, each block once.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::Error;
use postern_aegis_abi::records::HoldingKind;

use crate::{Books, Hardware};

impl<H: Hardware> Books<'_, H> {
    /// The call: a range of so many blocks, and the rest with a number of its own.
    pub fn split(&self, caller: u16, number: usize, blocks: u64) -> Result<usize, Error> {
        let _holdings = self.lock_holdings();
        let number = self.own(caller, number as u64, HoldingKind::Blocks)?;
        let range = self.holding(number);
        let (first, count) = (range.first.load(Relaxed), range.count.load(Relaxed));
        if !(1..count).contains(&blocks) {
            return Err(Error::Argument);
        }
        let new = self.take_holding(caller, HoldingKind::Blocks)?;
        let rest = self.holding(new);
        rest.first.store(first + blocks, Relaxed);
        rest.count.store(count - blocks, Relaxed);
        range.count.store(blocks, Relaxed);
        Ok(new)
    }

    /// The call: one range of two, of which the second follows the first.
    pub fn join(&self, caller: u16, number: usize, behind: usize) -> Result<(), Error> {
        let _holdings = self.lock_holdings();
        let number = self.own(caller, number as u64, HoldingKind::Blocks)?;
        let behind = self.own(caller, behind as u64, HoldingKind::Blocks)?;
        let (range, rest) = (self.holding(number), self.holding(behind));
        let (first, count) = (range.first.load(Relaxed), range.count.load(Relaxed));
        // A range is never empty, so it does not follow itself.
        if first.checked_add(count) != Some(rest.first.load(Relaxed)) {
            return Err(Error::Argument);
        }
        let count = count + rest.count.load(Relaxed);
        self.free_holding(behind);
        range.count.store(count, Relaxed);
        Ok(())
    }
}
