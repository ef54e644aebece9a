//! Bindings: which entries of page tables name a page.

use postern_aegis_abi::Error;

use crate::{Books, Hardware};

impl<H: Hardware> Books<'_, H> {
    /// The call Break: the bindings of others to an own page, 64 at a time ([`Error::Again`]).
    pub fn break_others(&self, _caller: u16, _page: u32) -> Result<(), Error> {
        todo!()
    }
}
