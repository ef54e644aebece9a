//! What is left of an environment that has ended: its pages, given back in pieces.

use crate::{Books, Hardware};

impl<H: Hardware> Books<'_, H> {
    /// Frees some pages of an environment whose claim is ENDING; bindings to them are broken.
    /// Whether all are gone: whoever makes its number FREE then does so with its lock held and
    /// [`Environment::first`](postern_aegis_abi::records::Environment::first) NONE. Any processor
    /// may do this at any time.
    pub fn free_some_pages(&self, _environment: u16) -> bool {
        todo!()
    }
}
