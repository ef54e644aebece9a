//! An environment's memory, reached through its tables and the map of physical memory.

use core::sync::atomic::AtomicU64;

use postern_aegis_abi::Error;

use crate::{Books, Hardware};

impl<'a, H: Hardware> Books<'a, H> {
    /// Words at an address that is a multiple of eight, of the environment that runs here.
    /// [`Error::Unmapped`] if not all can be read; some may have been then.
    pub fn read_words(
        &self,
        _environment: u16,
        _address: u64,
        _to: &mut [u64],
    ) -> Result<(), Error> {
        todo!()
    }

    /// Stores words at an address that is a multiple of eight, of the environment that runs here.
    /// [`Error::Unmapped`] if not all can be written; some may have been then.
    pub fn write_words(
        &self,
        _environment: u16,
        _address: u64,
        _from: &[u64],
    ) -> Result<(), Error> {
        todo!()
    }

    /// Bytes of the environment that runs here; otherwise as [`Books::read_words`].
    pub fn read_bytes(
        &self,
        _environment: u16,
        _address: u64,
        _to: &mut [u8],
    ) -> Result<(), Error> {
        todo!()
    }

    /// The words of an environment's [`Context`](postern_aegis_abi::Context). Of one that does not
    /// run here they stay the environment's as long as its lock is held and its claim is neither
    /// ENDING nor FREE.
    pub fn context(&self, _environment: u16) -> &'a [AtomicU64; 512] {
        todo!()
    }
}
