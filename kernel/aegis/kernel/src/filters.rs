//! Endpoints' filters, compiled together.

use postern_aegis_abi::Error;

/// The call: an endpoint for what a filter accepts.
pub fn bind(_caller: u16, _arguments: [u64; 6]) -> Result<u64, Error> {
    Err(Error::NoDevice)
}

/// The call: where an endpoint's frames go.
pub fn direct(_caller: u16, _arguments: [u64; 6]) -> Result<u64, Error> {
    Err(Error::NoDevice)
}

/// The call: which endpoints' filters accept a frame.
pub fn matches(_caller: u16, _arguments: [u64; 6]) -> Result<u64, Error> {
    Err(Error::NoDevice)
}

/// The endpoint that gets a frame, which lies at an offset in one of [`window::buffers`]. Processor
/// 0 alone asks.
///
/// [`window::buffers`]: crate::hardware::window::buffers
#[allow(dead_code)] // Until frames arrive.
pub fn find(_page: u32, _offset: usize, _length: usize) -> Option<usize> {
    None
}
