//! Capabilities (section 3.2): words that prove themselves. One is the keyed hash (SipHash-2-4) of
//! an owner's number and birth, a name that the owner gave, and one right; so the kernel keeps
//! none, and changing a page's name or owner makes all that were given out worthless.
//!
//! Invariant: the key leaves the kernel in no other way, and a word has 63 bits, since the results
//! of calls are not below zero.

use postern_aegis_abi::Error;

use crate::{Books, Hardware};

impl<H: Hardware> Books<'_, H> {
    /// The capability of a right to what has a name with an owner; to control: of an environment
    /// itself, by any fixed name.
    pub fn mint(&self, _owner: u16, _name: u32, _right: u64) -> u64 {
        todo!()
    }

    /// The call: the capability for the caller's pages of a name, or for control of an
    /// environment that the caller controls without one.
    pub fn capability(
        &self,
        _caller: u16,
        _name: u32,
        _right: u64,
        _environment: u16,
    ) -> Result<u64, Error> {
        todo!()
    }
}
