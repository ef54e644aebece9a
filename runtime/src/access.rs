//! The host's access to a domain's memory: every range is checked against the domain's table of
//! mapped ranges, then copied. Nothing of a window is ever borrowed, because other threads may be
//! inside and write it. Nor is it moved meanwhile.

use crate::error::{AllocError, MemoryError};
use crate::value::Offset;
use crate::{CallError, Domain};

impl Domain {
    /// Copies from the domain.
    ///
    /// # Errors
    /// Not all of the range is mapped.
    pub fn read(&self, offset: Offset, to: &mut [u8]) -> Result<(), MemoryError> {
        let pin = self.0.instance.pin();
        self.check(offset, to.len(), false)?;
        pin.read(offset.0, to).map_err(|_| gone(offset, to.len()))
    }

    /// Copies into the domain.
    ///
    /// # Errors
    /// Not all of the range is mapped writable.
    pub fn write(&self, offset: Offset, from: &[u8]) -> Result<(), MemoryError> {
        let pin = self.0.instance.pin();
        self.check(offset, from.len(), true)?;
        pin.write(offset.0, from)
            .map_err(|_| gone(offset, from.len()))
    }

    /// Fills a range of the domain with zero.
    ///
    /// # Errors
    /// Not all of the range is mapped writable.
    pub fn clear(&self, offset: Offset, len: usize) -> Result<(), MemoryError> {
        let pin = self.0.instance.pin();
        self.check(offset, len, true)?;
        pin.zero(offset.0, len).map_err(|_| gone(offset, len))
    }

    /// Copies `len` bytes out.
    ///
    /// # Errors
    /// Not all of the range is mapped.
    pub fn read_vec(&self, offset: Offset, len: usize) -> Result<Vec<u8>, MemoryError> {
        let pin = self.0.instance.pin();
        self.check(offset, len, false)?;
        let mut bytes = vec![0; len];
        pin.read(offset.0, &mut bytes)
            .map_err(|_| gone(offset, len))?;
        Ok(bytes)
    }

    /// Copies a NUL-terminated string out, at most `limit` bytes. Bytes that are not UTF-8 become
    /// U+FFFD.
    ///
    /// # Errors
    /// The string leaves mapped memory, or no NUL comes in time.
    pub fn read_c_string(&self, offset: Offset, limit: usize) -> Result<String, MemoryError> {
        let bytes = self.read_c_bytes(offset, limit)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// As [`Domain::read_c_string`], whatever the bytes mean. The NUL is not among them.
    ///
    /// # Errors
    /// As there.
    pub fn read_c_bytes(&self, offset: Offset, limit: usize) -> Result<Vec<u8>, MemoryError> {
        let mut bytes = Vec::new();
        while bytes.len() < limit {
            let at = offset
                .checked_add(bytes.len() as u32)
                .ok_or(MemoryError::Outside {
                    offset: offset.0,
                    len: bytes.len() + 1,
                    access: "readable",
                })?;
            // Up to the end of the page, which is mapped or not as a whole.
            let step = (4096 - (at.0 as usize & 4095)).min(limit - bytes.len());
            let piece = self.read_vec(at, step)?;
            match piece.iter().position(|&b| b == 0) {
                Some(end) => {
                    bytes.extend_from_slice(&piece[..end]);
                    return Ok(bytes);
                }
                None => bytes.extend_from_slice(&piece),
            }
        }
        Err(MemoryError::Unterminated {
            offset: offset.0,
            limit,
        })
    }

    /// Allocates in the domain's heap by calling its `malloc`. The result is as untrusted as any
    /// other offset.
    ///
    /// # Errors
    /// [`MemoryError::NoRoom`]; a [`CallError`](crate::CallError), if the extension faulted there,
    /// or had no time left.
    pub fn alloc(&self, bytes: usize) -> Result<Offset, AllocError> {
        let malloc = self
            .func_unchecked::<fn(u64) -> Offset>("malloc")
            .map_err(|_| MemoryError::NoRoom(bytes))?;
        let offset = malloc.call(bytes as u64)?;
        if offset == Offset::NULL || self.check(offset, bytes, true).is_err() {
            return Err(MemoryError::NoRoom(bytes).into());
        }
        Ok(offset)
    }

    /// Allocates and fills.
    ///
    /// # Errors
    /// As [`Domain::alloc`].
    pub fn alloc_from(&self, bytes: &[u8]) -> Result<Offset, AllocError> {
        let offset = self.alloc(bytes.len().max(1))?;
        self.write(offset, bytes)?;
        Ok(offset)
    }

    /// Memory of a common domain ([`crate::DomainBuilder::common`]) that only this process has, for
    /// what the others shall not see: whole pages, zeroed, for as long as the domain lives, and
    /// zeroed again by a reset. It lies where no other process has anything, so the domain's
    /// functions fault there when others call them.
    ///
    /// # Errors
    /// [`MemoryError::NoRoom`]: so much is not left of this process's share of the window, or the
    /// domain is no common one.
    pub fn own_memory(&self, bytes: usize) -> Result<Offset, MemoryError> {
        let size = u32::try_from(bytes).map_err(|_| MemoryError::NoRoom(bytes))?;
        match self.0.instance.give_own(size) {
            Ok(Some(offset)) => Ok(Offset(offset)),
            _ => Err(MemoryError::NoRoom(bytes)),
        }
    }

    /// Gives memory back by calling the domain's `free`.
    ///
    /// # Errors
    /// The call failed: the extension's heap is corrupt, say.
    pub fn free(&self, offset: Offset) -> Result<(), CallError> {
        match self.func_unchecked::<fn(Offset)>("free") {
            Ok(free) => free.call(offset),
            Err(_) => Ok(()),
        }
    }

    pub(crate) fn check(&self, offset: Offset, len: usize, write: bool) -> Result<(), MemoryError> {
        if self.0.instance.accessible(offset.0, len, write) {
            return Ok(());
        }
        Err(MemoryError::Outside {
            offset: offset.0,
            len,
            access: if write { "writable" } else { "readable" },
        })
    }
}

/// The range was checked, and then a page of it went.
fn gone(offset: Offset, len: usize) -> MemoryError {
    MemoryError::Gone {
        offset: offset.0,
        len,
    }
}
