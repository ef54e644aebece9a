//! Page tables, which environments make of their own pages.

use postern_aegis_abi::Error;

use crate::{Books, Hardware};

impl<H: Hardware> Books<'_, H> {
    /// For [`Call::Create`](postern_aegis_abi::Call::Create), and at the start with the root as
    /// caller and environment: two of the caller's pages become the environment's context, with
    /// its contents, and its root table. Sets [`Environment::root_table`] and
    /// [`Environment::context`]; the environment's number must be claimed, its birth set, and its
    /// counts zero. Its limit of pages is not asked.
    ///
    /// [`Environment::root_table`]: postern_aegis_abi::records::Environment::root_table
    /// [`Environment::context`]: postern_aegis_abi::records::Environment::context
    pub fn found(
        &self,
        _caller: u16,
        _environment: u16,
        _context: u32,
        _table: u32,
    ) -> Result<(), Error> {
        todo!()
    }

    /// The call, for an environment that the caller is or controls and claims. Pages of the caller
    /// become the environment's.
    pub fn table(
        &self,
        _caller: u16,
        _environment: u16,
        _address: u64,
        _level: u32,
        _page: u32,
        _links: u32,
    ) -> Result<(), Error> {
        todo!()
    }

    /// The call, for an environment that runs here or is claimed.
    pub fn untable(&self, _environment: u16, _address: u64, _level: u32) -> Result<(), Error> {
        todo!()
    }
}
