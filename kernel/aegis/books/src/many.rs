//! Map, unmap and protect for arrays of requests in the caller's memory.
//!
//! Invariant: a request is done as if it had been called alone, and after the ones before it.

use postern_aegis_abi::address::END;
use postern_aegis_abi::call::MANY;
use postern_aegis_abi::mapping::Request;
use postern_aegis_abi::{Error, Mapping};

use crate::{Books, Hardware};

/// Requests that are read from the caller's memory at a time.
const READ: usize = 16;

impl<H: Hardware> Books<'_, H> {
    /// The call: how many were done.
    pub fn map_many(&self, caller: u16, requests: u64, count: u64) -> Result<u64, Error> {
        const WORDS: usize = size_of::<Request>() / 8;
        self.many::<{ READ * WORDS }, WORDS>(caller, requests, count, |request| {
            let [address, mapping, capability] = *request;
            if mapping == Request::UNMAP.0 {
                return self.unmap_page(caller, address);
            }
            self.map_page(caller, caller, address, Mapping(mapping), capability)
        })
    }

    /// The call: how many were done.
    pub fn protect_many(
        &self,
        caller: u16,
        addresses: u64,
        count: u64,
        flags: u64,
    ) -> Result<u64, Error> {
        if flags & !Mapping::FLAGS != 0 {
            return Err(Error::Argument);
        }
        self.many::<READ, 1>(caller, addresses, count, |&[address]| {
            self.protect_page(caller, address, flags)
        })
    }

    /// Does something for each of an array of requests in the caller's memory, until one fails.
    /// They are read some at a time: between reading and the last use of a page nothing may be
    /// waited for, and what is done may do so.
    fn many<const ALL: usize, const WORDS: usize>(
        &self,
        caller: u16,
        address: u64,
        count: u64,
        mut act: impl FnMut(&[u64; WORDS]) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        if count > MANY || address >= END || !address.is_multiple_of(8) {
            return Err(Error::Argument);
        }
        let mut buffer = [0; ALL];
        let mut done = 0;
        while done < count {
            let some = ((count - done) as usize).min(READ);
            let words = &mut buffer[..some * WORDS];
            match self.read_words(caller, address + done * WORDS as u64 * 8, words) {
                Err(error) if done == 0 => return Err(error),
                Err(_) => return Ok(done),
                Ok(()) => {}
            }
            for request in words.as_chunks::<WORDS>().0 {
                if act(request).is_err() {
                    return Ok(done);
                }
                done += 1;
            }
        }
        Ok(done)
    }
}
