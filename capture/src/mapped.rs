//! A capture file that is mapped, a piece at a time, into the windows of those who look at its packets.
//!
//! Invariant: the piece that is mapped is an area over the file's pages, and every viewer sees it, read-only.

use crate::source::SourceError;
use postern::{Domain, Offset, Prot, ShareError, Shared};
use postern_filter::capture::Bytes;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

const PAGE: usize = 4096;
/// Bytes of a piece. A window has room for it and for much else.
const PIECE: usize = 1 << 30;

/// A file, and the piece of it that is mapped.
pub(crate) struct Mapped {
    file: File,
    size: usize,
    most: usize,
    piece: Option<(usize, Shared)>,
    viewers: Vec<Domain>,
    failure: Option<SourceError>,
}

impl Mapped {
    pub fn open(path: &Path) -> Result<Mapped, SourceError> {
        let open = || {
            let file = File::open(path)?;
            let size = file.metadata()?.len() as usize;
            Ok((file, size))
        };
        let (file, size) = open().map_err(|error| SourceError::opening(path, error))?;
        Ok(Mapped {
            file,
            size,
            most: PIECE,
            piece: None,
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

    fn covers(&self, range: &Range<usize>) -> bool {
        let piece = self.piece.as_ref();
        piece.is_some_and(|(start, area)| *start <= range.start && range.end <= start + area.len())
    }

    fn map(&mut self, range: &Range<usize>) -> Result<(), SourceError> {
        if let Some((_, area)) = self.piece.take() {
            for domain in &self.viewers {
                domain.unshare(&area)?;
            }
        }
        let start = range.start - range.start % PAGE;
        let len = self.most.max(range.end - start).min(self.size - start);
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
        let Some((start, area)) = &self.piece else {
            return false;
        };
        match area.read(at - start, to) {
            Ok(()) => true,
            Err(error) => {
                self.failure = Some(SourceError::Gone(error));
                false
            }
        }
    }
}
