//! Requests to the disk.

use postern_aegis_abi::Error;

/// The call: how many requests of an array were taken.
pub fn ask(_caller: u16, _requests: u64, _count: u64) -> Result<u64, Error> {
    Err(Error::NoDevice)
}
