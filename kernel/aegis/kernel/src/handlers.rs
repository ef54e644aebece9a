//! Code that runs when a message arrives.

use postern_aegis_abi::Error;

/// The call: a handler of an image.
pub fn make(_caller: u16, _arguments: [u64; 6]) -> Result<u64, Error> {
    Err(Error::NoDevice)
}

/// The call: binds a page in a handler's window.
pub fn window(_caller: u16, _arguments: [u64; 6]) -> Result<u64, Error> {
    Err(Error::NoDevice)
}
