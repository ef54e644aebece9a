//! Address space of the gates' own.

use super::below::{NoPages, below};
use core::ops::Range;
use thiserror::Error;

/// Memory could not be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MapError {
    /// There are no pages, or no addresses.
    #[error("there are no pages")]
    Refused,
    /// All control blocks are in use.
    #[error("{0} domains are alive, which is the limit; drop some first")]
    TooManyDomains(usize),
    /// The place is taken, or was never given.
    #[error("the address range is already in use")]
    Taken,
}

impl From<NoPages> for MapError {
    fn from(_: NoPages) -> MapError {
        MapError::Refused
    }
}

/// Whether there is room for so many mappings: nobody counts them.
pub(crate) fn room(_mappings: i64) -> Result<(), MapError> {
    Ok(())
}

/// Addresses that are the gates' own, for good.
pub(crate) struct Mapping {
    start: u64,
    bytes: usize,
}

impl Mapping {
    /// So many bytes of addresses, of which parts are opened.
    pub(crate) fn sparse(bytes: usize) -> Result<Mapping, MapError> {
        let start = (below().reserve)(bytes as u64, 4096).ok_or(MapError::Refused)?;
        Ok(Mapping { start, bytes })
    }

    /// Where they begin.
    pub(crate) fn address(&self) -> usize {
        self.start as usize
    }

    /// How many bytes they are.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Lets a part be read and written: what is not open yet is zero.
    pub(crate) fn open(&self, part: Range<usize>) -> Result<(), MapError> {
        if part.end > self.bytes || part.start > part.end {
            return Err(MapError::Taken);
        }
        let at = |offset: usize| self.start + offset as u64;
        Ok((below().open)(at(part.start)..at(part.end))?)
    }
}
