//! Address space of the runtime's own outside of windows: stacks, tables, stubs, views of files.
//!
//! Invariant: a range belongs to one [`Mapping`], which gives it back when it is dropped. No
//! reference to what lies there comes from here. Whoever makes one keeps its mapping to itself, and
//! does nothing to it that the reference does not expect.

use super::{
    MapError, Prot, Protection, hide, place, protect, release, reserve, reserve_at, share,
};
use crate::machine;
use crate::memory::{self, Gone};
use std::ops::Range;
use std::os::fd::BorrowedFd;

/// A range of addresses, owned.
#[derive(Debug)]
pub struct Mapping {
    start: usize,
    bytes: usize,
}

impl Mapping {
    /// Address space without access.
    pub fn reserve(bytes: usize) -> Result<Mapping, MapError> {
        reserve(bytes).map(|start| Mapping { start, bytes })
    }

    /// Address space without access, parts of which will be touched here and there: a touch costs a
    /// page, and not 2 MiB.
    pub(crate) fn sparse(bytes: usize) -> Result<Mapping, MapError> {
        let mapping = Mapping::reserve(bytes)?;
        // SAFETY: advice about memory that was just mapped.
        unsafe { libc::madvise(mapping.start as *mut _, bytes, libc::MADV_NOHUGEPAGE) };
        Ok(mapping)
    }

    /// Address space at a place that nobody can guess.
    pub(crate) fn hidden(bytes: usize) -> Result<Mapping, MapError> {
        /// Below the end of user space on every processor.
        const SPACE: u64 = 1 << 46;
        for _ in 0..8 {
            let Ok(random) = machine::random() else { break };
            let start = ((u64::from_le_bytes(random) % SPACE) & !0xfff) | (1 << 40);
            let start = start as usize;
            if reserve_at(start, bytes).is_ok() {
                return Ok(Mapping { start, bytes });
            }
        }
        Mapping::reserve(bytes)
    }

    /// The first bytes of a file, readable.
    pub(crate) fn of_file(file: BorrowedFd<'_>, bytes: usize) -> Result<Mapping, MapError> {
        let mapping = Mapping::reserve(bytes)?;
        // SAFETY: the range was just reserved and nobody refers to it.
        unsafe { place(mapping.start, bytes, Protection::Read, Some((file, 0)))? };
        Ok(mapping)
    }

    /// The first bytes of a file, executable as well. Whether anybody runs them is for whoever has
    /// a pointer there.
    pub fn of_code(file: BorrowedFd<'_>, bytes: usize) -> Result<Mapping, MapError> {
        let mapping = Mapping::reserve(bytes)?;
        mapping.place_code(file, bytes)?;
        Ok(mapping)
    }

    /// Maps the first bytes of a file executable over the first of the range.
    pub(crate) fn place_code(&self, file: BorrowedFd<'_>, bytes: usize) -> Result<(), MapError> {
        let start = self.part(0..bytes);
        // SAFETY: the range is this mapping's, to which its owner has no reference that expects
        // anything else.
        unsafe { place(start, bytes, Protection::ReadExecute, Some((file, 0))) }
    }

    /// Allows a part that was only reserved to be read and written.
    pub(crate) fn open(&self, part: Range<usize>) -> Result<(), MapError> {
        let bytes = part.len();
        let start = self.part(part);
        // SAFETY: as in `place_code`.
        unsafe { protect(start, bytes, Protection::ReadWrite) }
    }

    /// Maps a file from its first byte on, for reading or writing; others see what is written.
    pub fn share(&self, file: BorrowedFd<'_>, prot: Prot) -> Result<(), MapError> {
        // SAFETY: as in `place_code`.
        unsafe { share(self.start, self.bytes, prot.into(), file, 0) }
    }

    /// Leaves it out of core dumps, unless they are to have it.
    pub(crate) fn hide(&self) {
        // SAFETY: the range is this mapping's.
        unsafe { hide(self.start, self.bytes) };
    }

    /// Copies to byte `at` of it.
    pub fn write(&self, at: usize, from: &[u8]) -> Result<(), Gone> {
        if at > self.bytes || from.len() > self.bytes - at {
            return Err(Gone);
        }
        // SAFETY: the range is this mapping's, to which its owner has no reference that expects
        // anything else.
        unsafe { memory::copy(from.as_ptr() as usize, self.start + at, from.len()) }
    }

    /// Its first address.
    pub(crate) fn address(&self) -> usize {
        self.start
    }

    /// Its length.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps the range for good.
    pub fn leak(self) -> usize {
        std::mem::ManuallyDrop::new(self).start
    }

    /// Address of a part.
    fn part(&self, part: Range<usize>) -> usize {
        assert!(
            part.start <= part.end && part.end <= self.bytes && part.start.is_multiple_of(4096)
        );
        self.start + part.start
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: reserved when this was made; whoever made references has kept the mapping until
        // they were gone.
        unsafe { release(self.start, self.bytes) };
    }
}
