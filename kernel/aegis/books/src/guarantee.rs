//! Guaranteed mappings (section 5.1.2): what the kernel itself restores at a miss, so that an
//! environment's handlers are always there.
//!
//! Invariant: what stands in a context is a wish. It is bound only through [`Books::map_page`], as
//! if the environment had called it, and only for its own pages in the second segment.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use postern_aegis_abi::address::{END, GUARANTEED, index};
use postern_aegis_abi::{Mapping, PAGE};

use crate::{Books, Hardware, entry};

impl<H: Hardware> Books<'_, H> {
    /// At a miss of the environment that runs here: whether its context has a guaranteed mapping
    /// for the address, which is bound again now. Not if it is bound already: what was missing is
    /// a right then.
    pub fn guarantee(&self, environment: u16, address: u64) -> bool {
        let address = address & !(PAGE as u64 - 1);
        if !(GUARANTEED..END).contains(&address) {
            return false;
        }
        let Some((_, mapping)) = self.guaranteed(environment).find(|(at, _)| *at == address) else {
            return false;
        };
        let Some(table) = self.walk(environment, address) else {
            return false;
        };
        let entry = self.hardware.words(table)[index(address, 1)].load(Acquire);
        entry & !entry::USED != entry::leaf(mapping.0)
            && self.owns(environment, mapping)
            && self
                .map_page(environment, environment, address, mapping, 0)
                .is_ok()
    }

    fn owns(&self, environment: u16, mapping: Mapping) -> bool {
        let record = mapping
            .page()
            .and_then(|page| self.pages.get(page as usize));
        record.is_some_and(|record| record.owner.load(Relaxed) == environment)
    }
}
