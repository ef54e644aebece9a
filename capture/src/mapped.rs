//! A capture file that is mapped, a piece at a time, into the windows of those who look at its
//! packets.
//!
//! Invariant: the piece that is mapped is an area over the file's pages, and every viewer sees it,
//! read-only.

use crate::error::SourceError;
use crate::trusted::ahead::{LINE, prefetch};
use postern::{Domain, Offset, Prot, ShareError, Shared, input};
use postern_filter::capture::Bytes;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

const PAGE: usize = 4096;
/// Bytes of a piece. A window has room for it and for much else.
const PIECE: usize = 1 << 30;

/// Bytes behind what is read that the processor is asked for: a few packets, far more than it takes
/// to judge one.
const AHEAD: usize = 4096;

/// A file, and the piece of it that is mapped.
pub(crate) struct Mapped {
    file: File,
    size: usize,
    most: usize,
    piece: Option<(usize, Shared)>,
    /// Up to where the processor was asked for the file's bytes.
    asked: usize,
    viewers: Vec<Domain>,
    failure: Option<SourceError>,
}

impl Mapped {
    pub fn open(path: &Path) -> Result<Mapped, SourceError> {
        let open = || {
            let file = input::open(path, u64::MAX)?;
            let size = file.metadata()?.len() as usize;
            Ok((file, size))
        };
        let (file, size) = open().map_err(|error| SourceError::opening(path, error))?;
        Ok(Mapped {
            file,
            size,
            most: PIECE,
            piece: None,
            asked: 0,
            viewers: Vec::new(),
            failure: None,
        })
    }

    /// Whether it is a file that can be mapped.
    pub fn suits(path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|found| found.is_file())
    }

    /// Smaller pieces, for tests.
    pub fn pieces(&mut self, bytes: usize) {
        self.most = bytes.next_multiple_of(PAGE).max(PAGE);
    }

    pub fn size(&self) -> usize {
        self.size
    }

    pub fn watch(&mut self, domain: &Domain) -> Result<(), ShareError> {
        if let Some((_, area)) = &self.piece {
            domain.share(area, Prot::Read)?;
        }
        self.viewers.push(domain.clone());
        Ok(())
    }

    /// Why something that exists could not be had.
    pub fn failure(&mut self) -> Option<SourceError> {
        self.failure.take()
    }

    /// Where viewers find a byte of the piece that is mapped.
    pub fn offset(&self, at: usize) -> Option<Offset> {
        let (start, area) = self.piece.as_ref()?;
        let within = at.checked_sub(*start).filter(|at| *at <= area.len())?;
        Some(Offset(area.offset().0 + within as u32))
    }

    /// Copies from the piece that is mapped.
    pub fn read(&self, at: Offset, to: &mut [u8]) -> Result<(), SourceError> {
        let Some((_, area)) = &self.piece else {
            return Err(SourceError::Ring("nothing is mapped"));
        };
        Ok(area.read(at.0.wrapping_sub(area.offset().0) as usize, to)?)
    }

    /// Asks for what comes behind `at`, which is being read: packets are of any length, so the
    /// processor does not foresee where the next one begins, and would wait for each.
    fn ask_ahead(&mut self, at: usize) {
        let Some((start, area)) = &self.piece else {
            return;
        };
        let end = (at + AHEAD).min(start + area.len());
        let mut next = self.asked.max(at);
        while next < end {
            prefetch(area.as_ptr().wrapping_add(next - start));
            next += LINE;
        }
        self.asked = next;
    }

    fn covers(&self, range: &Range<usize>) -> bool {
        let piece = self.piece.as_ref();
        piece.is_some_and(|(start, area)| *start <= range.start && range.end <= start + area.len())
    }

    fn size_now(&self) -> usize {
        self.file.metadata().map_or(0, |found| found.len() as usize)
    }

    fn map(&mut self, range: &Range<usize>) -> Result<(), SourceError> {
        self.viewers.retain(|domain| !domain.is_closed());
        if let Some((_, area)) = self.piece.take() {
            for domain in &self.viewers {
                domain.unshare(&area)?;
            }
        }
        let size = self.size_now().min(self.size);
        if size < range.end {
            return Err(SourceError::Shrunk);
        }
        let start = range.start - range.start % PAGE;
        let len = self.most.max(range.end - start).min(size - start);
        let file = self.file.try_clone().map_err(SourceError::Read)?;
        let builder = Shared::builder().name("capture file");
        let area = builder.file(file.into(), start as u64, len)?;
        for domain in &self.viewers {
            domain.share(&area, Prot::Read)?;
        }
        self.piece = Some((start, area));
        Ok(())
    }
}

impl Bytes for Mapped {
    fn holds(&mut self, range: Range<usize>) -> bool {
        if range.end > self.size || range.start > range.end {
            return false;
        }
        if self.covers(&range) {
            return true;
        }
        if let Err(error) = self.map(&range) {
            self.failure = Some(error);
            return false;
        }
        true
    }

    fn copy(&mut self, at: usize, to: &mut [u8]) -> bool {
        let end = at.saturating_add(to.len());
        if !self.holds(at..end) {
            return false;
        }
        self.ask_ahead(at);
        let Some((start, area)) = &self.piece else {
            return false;
        };
        let copied = area.read(at - start, to);
        // Where a file ends inside of a page, zeros follow, and no error.
        let cut = to.iter().all(|byte| *byte == 0) && self.size_now() < end;
        if copied.is_err() || cut {
            self.failure = Some(SourceError::Shrunk);
            return false;
        }
        true
    }
}
