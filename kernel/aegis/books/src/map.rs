//! Entries of last-level tables: map, unmap, protect.

use postern_aegis_abi::{Error, Mapping};

use crate::{Books, Hardware};

impl<H: Hardware> Books<'_, H> {
    /// The call, for an environment that the caller is or controls and claims. What the caller or
    /// the environment owns needs no capability.
    pub fn map(
        &self,
        _caller: u16,
        _environment: u16,
        _address: u64,
        _mapping: Mapping,
        _capability: u64,
    ) -> Result<(), Error> {
        todo!()
    }

    /// The call, for an environment that runs here or is claimed.
    pub fn unmap(&self, _environment: u16, _address: u64) -> Result<(), Error> {
        todo!()
    }

    /// The call.
    pub fn protect(&self, _caller: u16, _address: u64, _flags: u64) -> Result<(), Error> {
        todo!()
    }

    /// The call: how many were done.
    pub fn map_many(&self, _caller: u16, _requests: u64, _count: u64) -> Result<u64, Error> {
        todo!()
    }

    /// The call: how many were done.
    pub fn protect_many(
        &self,
        _caller: u16,
        _addresses: u64,
        _count: u64,
        _flags: u64,
    ) -> Result<u64, Error> {
        todo!()
    }
}
