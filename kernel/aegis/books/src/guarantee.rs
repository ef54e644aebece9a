//! Guaranteed mappings (section 5.1.2): what the kernel itself restores at a miss.

use crate::{Books, Hardware};

impl<H: Hardware> Books<'_, H> {
    /// At a miss of the environment that runs here: whether its context has a guaranteed mapping
    /// for the address, which is bound again now.
    pub fn guarantee(&self, _environment: u16, _address: u64) -> bool {
        todo!()
    }

    /// Whether an environment's context has a guaranteed mapping of a page now.
    pub fn is_guaranteed(&self, _environment: u16, _page: u32) -> bool {
        todo!()
    }
}
