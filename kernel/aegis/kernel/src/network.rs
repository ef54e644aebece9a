//! Frames: from the device to whom they are for, and to it.

use postern_aegis_abi::Error;

/// The call: sends a frame that is gathered from pages.
pub fn send(_caller: u16, _pieces: u64, _count: u64) -> Result<u64, Error> {
    Err(Error::NoDevice)
}
