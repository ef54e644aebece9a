//! Requests for blocks of a range. The device reads and writes pages by itself, up to sixteen at a
//! time; nothing is copied but what stands in pages of others.
//!
//! What the file system relies on ([`Disk`]) is Aegis' promise: a flush is taken only when nothing
//! of this process's is under way, and done when all that was told to be done is there for good.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::device::{REQUESTS, Request};
use postern_aegis::{Error, Mapping, PAGE, books, calls, disk, entry, memory, slices, time};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_fs::disk::{Block, Disk, DiskError};

use crate::disk::trusted;
use crate::memory::room;
use crate::process::signals;

/// Seconds in which nothing is taken or done, before the disk is as if it had failed. The kernel
/// gives it up before that.
const PATIENCE: u64 = 60;

/// A range of blocks, and what it may be used by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The holding.
    pub number: usize,
    /// The capability to read; 0: it is this process's own.
    pub read: u64,
    /// The capability to write.
    pub write: u64,
}

impl Range {
    /// Its blocks; `None`: there is no such range.
    pub fn blocks(&self) -> Option<u64> {
        let range = disk::range(self.number).filter(|_| self.number != 0);
        range.map(|range| range.count.load(Relaxed))
    }
}

/// What the disk is asked of this process, one after the other.
#[derive(Debug)]
pub struct Driver {
    range: Range,
    blocks: u64,
    ring: disk::Disk,
    /// A page for bytes that stand in pages of others.
    spare: u64,
    spare_page: u32,
    /// Something was asked that was never done: the device may use its page still.
    is_dead: bool,
}

/// A block, and where its bytes are: an address of a page.
type Place = (u64, u64);

impl Driver {
    /// A driver for a range; one at a time.
    pub fn new(range: Range) -> Result<Driver, Errno> {
        let blocks = range.blocks().ok_or(errno::NODEV)?;
        let spare = memory::reserve(1);
        let spare_page = room::patiently(|| memory::map_fresh(spare, Mapping::WRITE));
        let ring = room::patiently(disk::Disk::new).map_err(|_| errno::NOMEM)?;
        Ok(Driver {
            range,
            blocks,
            ring,
            spare,
            spare_page: spare_page.map_err(|_| errno::NOMEM)?,
            is_dead: false,
        })
    }

    /// Goes on with another range.
    pub fn of(&mut self, range: Range) -> Result<(), Errno> {
        self.blocks = range.blocks().ok_or(errno::NODEV)?;
        self.range = range;
        Ok(())
    }

    fn request(&self, operation: u64, block: u64, page: u32) -> Request {
        let authority = match operation {
            Request::READ => self.range.read,
            _ => self.range.write,
        };
        Request {
            operation,
            authority,
            ..disk::read(self.range.number, block, page)
        }
    }

    /// Has blocks read or written, all that may be side by side, and waits for them.
    fn make(
        &mut self,
        operation: u64,
        count: usize,
        of: impl Fn(usize) -> (u64, u32),
    ) -> Result<(), DiskError> {
        if self.is_dead {
            return Err(DiskError::Device);
        }
        let _busy = signals::hold();
        let (mut asked, mut done, mut failed) = (0, 0, None);
        let mut since = slices::clock();
        while done < asked || asked < count && failed.is_none() {
            if asked < count && failed.is_none() {
                let some = (count - asked).min(REQUESTS - (asked - done));
                let mut requests = [Request::default(); REQUESTS];
                for (index, request) in requests.iter_mut().enumerate().take(some) {
                    let (block, page) = of(asked + index);
                    *request = self.request(operation, block, page);
                }
                match calls::blocks(&requests[..some]) {
                    Ok(taken) => {
                        asked += (taken as usize).min(some);
                        since = slices::clock();
                    }
                    // Others ask for the same block, or for many.
                    Err(Error::Again) => {}
                    Err(Error::Argument) => failed = Some(DiskError::Beyond),
                    Err(_) => failed = Some(DiskError::Device),
                }
            }
            while let Some(told) = self.ring.take() {
                done += 1;
                since = slices::clock();
                if told.result.is_err() {
                    failed = Some(DiskError::Device);
                }
            }
            if done < asked || asked < count && failed.is_none() {
                if slices::clock().saturating_sub(since) > PATIENCE * time::frequency() {
                    self.is_dead = true;
                    return Err(DiskError::Device);
                }
                entry::yield_slice();
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// The page at an address, if the device may use it as it is.
    fn page(at: u64, is_written: bool) -> Option<u32> {
        trusted::touch(at, is_written);
        let page = memory::page_at(at)?;
        let own = books::page(page)?.owner.load(Relaxed) == books::own_number();
        (own && (!is_written || memory::flags_at(at) & Mapping::WRITE != 0)).then_some(page)
    }

    /// Blocks that go to places, which are this process's own.
    pub(super) fn read_to(&mut self, places: &[Place]) -> Result<(), DiskError> {
        self.transfer(Request::READ, places)
    }

    /// Places that go to blocks.
    pub(super) fn write_from(&mut self, places: &[Place]) -> Result<(), DiskError> {
        self.transfer(Request::WRITE, places)
    }

    fn transfer(&mut self, operation: u64, places: &[Place]) -> Result<(), DiskError> {
        if places.iter().any(|(block, _)| *block >= self.blocks) {
            return Err(DiskError::Beyond);
        }
        let is_read = operation == Request::READ;
        for some in places.chunks(REQUESTS * 4) {
            let mut pages = [0; REQUESTS * 4];
            let mut strange = false;
            for (page, (_, at)) in pages.iter_mut().zip(some) {
                *page = Driver::page(*at, is_read).unwrap_or(0);
                strange |= *page == 0;
            }
            if !strange {
                self.make(operation, some.len(), |index| (some[index].0, pages[index]))?;
                continue;
            }
            for (page, (block, at)) in pages.iter().zip(some) {
                let (page, is_own) = match page {
                    0 => (self.spare_page, false),
                    page => (*page, true),
                };
                if !is_own && !is_read {
                    trusted::copy(self.spare, *at);
                }
                self.make(operation, 1, |_| (*block, page))?;
                if !is_own && is_read {
                    trusted::copy(*at, self.spare);
                }
            }
        }
        Ok(())
    }

    /// What was written is there for good.
    pub fn flush_all(&mut self) -> Result<(), DiskError> {
        self.make(Request::FLUSH, 1, |_| (0, 0))
    }
}

impl Disk for Driver {
    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn read(&mut self, blocks: &mut [(u64, &mut Block)]) -> Result<(), DiskError> {
        let mut places = [(0, 0); REQUESTS * 4];
        for some in blocks.chunks_mut(REQUESTS * 4) {
            for (place, (block, to)) in places.iter_mut().zip(some.iter_mut()) {
                *place = (*block, core::ptr::from_mut::<Block>(to) as u64);
            }
            self.read_to(&places[..some.len()])?;
        }
        Ok(())
    }

    fn write(&mut self, blocks: &[(u64, &Block)]) -> Result<(), DiskError> {
        let mut places = [(0, 0); REQUESTS * 4];
        for some in blocks.chunks(REQUESTS * 4) {
            for (place, (block, from)) in places.iter_mut().zip(some) {
                *place = (*block, core::ptr::from_ref::<Block>(from) as u64);
            }
            self.write_from(&places[..some.len()])?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DiskError> {
        self.flush_all()
    }
}

const _: () = assert!(PAGE == postern_exos_fs::disk::BLOCK);
