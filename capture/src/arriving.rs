//! A capture that arrives by a pipe: its bytes are put into an area as they come, and those that
//! were read make room for others.

use crate::error::SourceError;
use postern::{Domain, Offset, Prot, ShareError, Shared};
use postern_filter::capture::Bytes;
use std::io::Read;
use std::ops::Range;

/// Room for the largest block that is believed, and for as much behind it.
const ROOM: usize = 32 << 20;
/// Bytes that are asked for at once.
const CHUNK: usize = 256 << 10;

/// What has arrived.
pub(crate) struct Arriving {
    from: Box<dyn Read + Send>,
    area: Shared,
    /// Position in the stream of the area's first byte.
    start: usize,
    /// Bytes in the area.
    filled: usize,
    ended: bool,
    chunk: Vec<u8>,
    failure: Option<SourceError>,
}

impl Arriving {
    pub fn new(from: Box<dyn Read + Send>) -> Result<Arriving, SourceError> {
        Ok(Arriving {
            from,
            area: Shared::builder().name("capture").zeroed(ROOM)?,
            start: 0,
            filled: 0,
            ended: false,
            chunk: vec![0; CHUNK],
            failure: None,
        })
    }

    pub fn watch(&mut self, domain: &Domain) -> Result<(), ShareError> {
        domain.share(&self.area, Prot::Read).map(|_| ())
    }

    pub fn failure(&mut self) -> Option<SourceError> {
        self.failure.take()
    }

    /// Where viewers find a byte that is in the area.
    pub fn offset(&self, at: usize) -> Option<Offset> {
        let within = at.checked_sub(self.start).filter(|at| *at <= self.filled)?;
        Some(Offset(self.area.offset().0 + within as u32))
    }

    /// Copies from the area.
    pub fn read(&self, at: Offset, to: &mut [u8]) -> Result<(), SourceError> {
        let at = at.0.wrapping_sub(self.area.offset().0) as usize;
        Ok(self.area.read(at, to)?)
    }

    /// Reads once; false at the end.
    fn more(&mut self) -> Result<bool, SourceError> {
        let room = (ROOM - self.filled).min(CHUNK);
        let place = self.chunk.get_mut(..room).unwrap_or_default();
        let read = match self.from.read(place) {
            Ok(read) => read,
            // A signal that asks to end ends the stream here.
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(SourceError::Read(error)),
        };
        let read = place.get(..read).unwrap_or_default();
        self.area.write(self.filled, read)?;
        self.filled += read.len();
        Ok(!read.is_empty())
    }

    /// Moves what begins at `at` to the front.
    fn discard(&mut self, at: usize) -> Result<(), SourceError> {
        let gone = (at - self.start).min(self.filled);
        let mut rest = vec![0; self.filled - gone];
        self.area.read(gone, &mut rest)?;
        self.area.write(0, &rest)?;
        self.start += gone;
        self.filled = rest.len();
        Ok(())
    }

    fn arrive(&mut self, range: &Range<usize>) -> Result<bool, SourceError> {
        while range.end > self.start + self.filled {
            if self.ended {
                return Ok(false);
            }
            if range.end - self.start > ROOM || self.filled == ROOM {
                self.discard(range.start)?;
                if range.end - self.start > ROOM {
                    return Ok(false);
                }
            }
            self.ended = !self.more()?;
        }
        Ok(true)
    }
}

impl Bytes for Arriving {
    fn holds(&mut self, range: Range<usize>) -> bool {
        // What made room for others is gone; nobody reads backwards.
        if range.start < self.start || range.start > range.end {
            return false;
        }
        self.arrive(&range).unwrap_or_else(|error| {
            self.failure = Some(error);
            self.ended = true;
            false
        })
    }

    fn copy(&mut self, at: usize, to: &mut [u8]) -> bool {
        self.holds(at..at.saturating_add(to.len())) && self.area.read(at - self.start, to).is_ok()
    }
}
