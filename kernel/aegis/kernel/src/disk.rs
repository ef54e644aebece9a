//! Requests to the disk.

use postern_aegis_abi::Error;

/// Looks for the disk, and starts it.
pub fn start() {}

/// The disk is done with something.
pub fn interrupt() {}

/// A tick of processor 0: an interrupt may have been lost.
pub fn tick() {}

/// The call: how many requests of an array were taken.
pub fn ask(_caller: u16, _requests: u64, _count: u64) -> Result<u64, Error> {
    Err(Error::NoDevice)
}
