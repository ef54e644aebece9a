//! The disk: requests for blocks, and what became of them. One ring tells this program of all of
//! its requests ([`Disk`]); who asks knows its own by their tags.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::device::{ENTRIES, Request};
use postern_aegis_abi::records::{Holding, HoldingKind};
use postern_aegis_abi::{Error, HOLDINGS};

use crate::context::context;
use crate::ring::Ring;
use crate::{books, calls, entry, pages};

/// A block of a range goes to a page.
pub const fn read(range: usize, block: u64, page: u32) -> Request {
    Request {
        operation: Request::READ,
        holding: range as u64,
        block,
        page: page as u64,
        capability: 0,
        authority: 0,
        tag: 0,
    }
}

/// A page goes to a block of a range.
pub const fn write(range: usize, block: u64, page: u32) -> Request {
    Request {
        operation: Request::WRITE,
        ..read(range, block, page)
    }
}

/// All that was written, and told to be done, is on the disk for good.
pub const fn flush(range: usize) -> Request {
    Request {
        operation: Request::FLUSH,
        ..read(range, 0, 0)
    }
}

/// Blocks of the whole disk; 0: there is none.
pub fn blocks() -> u64 {
    books::machine().disk.blocks.load(Relaxed)
}

/// A holding's record, if it is a range of blocks.
pub fn range(number: usize) -> Option<&'static Holding> {
    let holding = &books::machine().holdings[number % HOLDINGS];
    (holding.kind.load(Relaxed) == HoldingKind::Blocks as u32).then_some(holding)
}

/// This program's requests.
#[derive(Debug)]
pub struct Disk {
    ring: Ring,
}

/// A request that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Its tag.
    pub tag: u64,
    /// What became of it.
    pub result: Result<(), Error>,
}

impl Disk {
    /// Has requests told in a fresh ring, and no more in one that there was before.
    pub fn new() -> Result<Disk, Error> {
        let mut ring = Ring::new()?;
        while ring.offer(0, 0) {}
        context().completions.store(ring.page().into(), Relaxed);
        const { assert!(ENTRIES >= postern_aegis_abi::device::REQUESTS) };
        Ok(Disk { ring })
    }

    /// The next request that is done.
    pub fn take(&mut self) -> Option<Done> {
        let told = self.ring.next()?;
        self.ring.offer(0, 0);
        let result = Error::of(told.result as i64).map_or(Ok(()), Err);
        Some(Done {
            tag: told.what,
            result,
        })
    }

    /// Waits for the next request that is done.
    pub fn wait(&mut self) -> Done {
        loop {
            if let Some(done) = self.take() {
                return done;
            }
            entry::yield_slice();
        }
    }

    /// Makes one request and waits for it: nothing else of this program's is under way.
    pub fn make(&mut self, request: &Request) -> Result<(), Error> {
        pages::patiently(|| calls::blocks(core::slice::from_ref(request)))?;
        self.wait().result
    }

    /// Gives the ring back.
    pub fn free(self) -> Result<(), Error> {
        context().completions.store(0, Relaxed);
        self.ring.free()
    }
}
