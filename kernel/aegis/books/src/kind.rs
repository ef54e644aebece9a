//! What a page is used for, and whether a device uses it.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use postern_aegis_abi::records::{Kind, Page};

use crate::{Books, Hardware};

/// Whether a page is of a kind.
pub(crate) fn is(record: &Page, kind: Kind) -> bool {
    record.kind.load(Relaxed) == kind as u8
}

impl<H: Hardware> Books<'_, H> {
    /// Whether a device uses a page, which is locked.
    pub(crate) fn is_lent(&self, page: u32) -> bool {
        let lent = self.lent.get(page as usize);
        lent.is_some_and(|lent| lent.load(Acquire) != 0)
    }
}
