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

/// A message has come for an endpoint: its handler runs, if it has one. The message lies at an
/// offset in a page of the kernel's own. Whether that is all: otherwise it goes on to the ring.
#[allow(dead_code)] // Until messages arrive.
pub fn run(_endpoint: usize, _page: u32, _offset: usize, _length: usize) -> bool {
    false
}
