//! A file system in this process's memory, served to all.

use alloc::vec::Vec;

use postern_aegis::{Mapping, PAGE, memory};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_ram::{Memory, Pages};

use crate::files::server::{self, loans};
use crate::files::{self, trusted};
use crate::memory::room;

/// Where its pages stand.
const POOL: u64 = 0x7d40_0000_0000;

/// A page.
struct Place {
    number: u32,
    /// The capability to read it; 0: nobody else may.
    capability: u64,
}

/// Pages of this process, taken as they are needed.
struct Pool {
    all: Vec<Place>,
    free: Vec<u32>,
    limit: u32,
}

fn at(page: u32) -> u64 {
    POOL + u64::from(page) * PAGE as u64
}

impl Pages for Pool {
    fn take(&mut self) -> Result<u32, Errno> {
        if let Some(page) = self.free.pop() {
            trusted::page_mut(at(page)).fill(0);
            return Ok(page);
        }
        let page = self.all.len() as u32;
        if page >= self.limit {
            return Err(errno::NOSPC);
        }
        let taken = room::patiently(|| memory::map_fresh(at(page), Mapping::WRITE));
        self.all.push(Place {
            number: taken.map_err(|_| errno::NOSPC)?,
            capability: 0,
        });
        Ok(page)
    }

    fn bytes(&self, page: u32) -> &[u8] {
        match self.all.get(page as usize) {
            Some(_) => trusted::page(at(page)),
            None => &[],
        }
    }

    fn bytes_mut(&mut self, page: u32) -> &mut [u8] {
        match self.all.get(page as usize) {
            Some(_) => trusted::page_mut(at(page)),
            None => &mut [],
        }
    }

    fn lend(&mut self, page: u32) -> Result<(u32, u64), Errno> {
        let place = self.all.get_mut(page as usize).ok_or(errno::IO)?;
        if place.capability == 0 {
            place.capability = loans::lend(place.number)?;
        }
        Ok((place.number, place.capability))
    }

    fn is_lent(&self, page: u32) -> bool {
        let place = self.all.get(page as usize);
        place.is_some_and(|place| place.capability != 0)
    }

    fn give_back(&mut self, page: u32) {
        let Some(place) = self.all.get_mut(page as usize) else {
            return;
        };
        if place.capability == 0 || loans::take_back(place.number).is_ok() {
            place.capability = 0;
            self.free.push(page);
        }
    }

    fn space(&self) -> (u64, u64) {
        let used = self.all.len() - self.free.len();
        let limit = u64::from(self.limit);
        (limit, limit - used as u64)
    }

    fn now(&mut self) -> u64 {
        files::now()
    }
}

/// Serves an empty one under a name, of so many pages at most, until it is unmounted.
pub fn serve(name: &[u8], limit: u32) -> Result<(), Errno> {
    let pool = Pool {
        all: Vec::new(),
        free: Vec::new(),
        limit,
    };
    server::serve(name, &mut Memory::new(pool), false, |_| {})
}
