//! Frames: from the device to whom they are for, and to it.

use postern_aegis_abi::Error;

/// Looks for the network's device, and starts it.
pub fn start() {}

/// The device has something.
pub fn interrupt() {}

/// A tick of processor 0: an interrupt may have been lost.
pub fn tick() {}

/// The call: sends a frame that is gathered from pages.
pub fn send(_caller: u16, _pieces: u64, _count: u64) -> Result<u64, Error> {
    Err(Error::NoDevice)
}
