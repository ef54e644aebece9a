//! Memory for the bytes of files.

use alloc::boxed::Box;
use alloc::vec::Vec;

use postern_exos_abi::errno::{self, Errno};

/// Bytes of a page.
pub const PAGE: usize = 4096;

/// Pages by numbers of the owner's own.
pub trait Pages {
    /// A page of zeros. [`errno::NOSPC`]: there is none.
    fn take(&mut self) -> Result<u32, Errno>;

    /// Its bytes: [`PAGE`] of them.
    fn bytes(&self, page: u32) -> &[u8];

    /// The same, to be written. Not asked for while it is lent.
    fn bytes_mut(&mut self, page: u32) -> &mut [u8];

    /// Shows it to others: its number in the machine, and the capability to read it.
    fn lend(&mut self, page: u32) -> Result<(u32, u64), Errno> {
        let _ = page;
        Err(errno::NOTSUP)
    }

    /// Whether others may have it.
    fn is_lent(&self, page: u32) -> bool {
        let _ = page;
        false
    }

    /// It is needed no more. Who had it lent never sees what it is used for next.
    fn give_back(&mut self, page: u32);

    /// Pages that there are, and those of them that are free.
    fn space(&self) -> (u64, u64);

    /// Nanoseconds since 1970.
    fn now(&mut self) -> u64;
}

/// Pages of the heap, so many at most; time is a count.
#[derive(Debug)]
pub struct Owned {
    all: Vec<Option<Box<[u8; PAGE]>>>,
    free: Vec<u32>,
    limit: usize,
    now: u64,
}

impl Owned {
    /// So many at most.
    pub fn new(limit: usize) -> Owned {
        Owned {
            all: Vec::new(),
            free: Vec::new(),
            limit,
            now: 0,
        }
    }
}

impl Pages for Owned {
    fn take(&mut self) -> Result<u32, Errno> {
        let page = match self.free.pop() {
            Some(page) => page,
            None if self.all.len() < self.limit => {
                self.all.push(None);
                self.all.len() as u32 - 1
            }
            None => return Err(errno::NOSPC),
        };
        self.all[page as usize] = Some(Box::new([0; PAGE]));
        Ok(page)
    }

    fn bytes(&self, page: u32) -> &[u8] {
        let page = self.all.get(page as usize).and_then(Option::as_ref);
        page.map_or(&[], |page| &page[..])
    }

    fn bytes_mut(&mut self, page: u32) -> &mut [u8] {
        let page = self.all.get_mut(page as usize).and_then(Option::as_mut);
        page.map_or(&mut [], |page| &mut page[..])
    }

    fn give_back(&mut self, page: u32) {
        if let Some(place) = self.all.get_mut(page as usize)
            && place.take().is_some()
        {
            self.free.push(page);
        }
    }

    fn space(&self) -> (u64, u64) {
        let used = self.all.len() - self.free.len();
        (self.limit as u64, (self.limit - used) as u64)
    }

    fn now(&mut self) -> u64 {
        self.now += 1;
        self.now
    }
}
