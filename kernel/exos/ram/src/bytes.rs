//! The pages of a file: those that were never written are not there, and read as zeros.

use alloc::collections::BTreeMap;

use postern_exos_abi::errno::{self, Errno};

use crate::pages::{PAGE, Pages};

/// Bytes of a file at most.
const LONGEST: u64 = 1 << 46;

/// A file's bytes. Behind its size a page has zeros.
#[derive(Debug, Default)]
pub struct Bytes {
    size: u64,
    pages: BTreeMap<u64, u32>,
}

/// The pieces of a range: the page, where it begins in the page, bytes.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset.saturating_add(length as u64);
    let mut at = offset;
    core::iter::from_fn(move || {
        (at < end).then(|| {
            let within = (at % PAGE as u64) as usize;
            let size = (PAGE - within).min((end - at) as usize);
            let piece = (at / PAGE as u64, within, size);
            at += size as u64;
            piece
        })
    })
}

impl Bytes {
    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Pages that it takes.
    pub fn blocks(&self) -> u64 {
        self.pages.len() as u64
    }

    /// The page of an index that is there.
    pub fn page(&self, index: u64) -> Option<u32> {
        self.pages.get(&index).copied()
    }

    /// Reads; how many there were.
    pub fn read(&self, pages: &impl Pages, offset: u64, to: &mut [u8]) -> usize {
        let length = self.size.saturating_sub(offset).min(to.len() as u64) as usize;
        let mut rest = &mut to[..length];
        for (index, within, size) in pieces(offset, length) {
            let (piece, behind) = rest.split_at_mut(size);
            rest = behind;
            match self.pages.get(&index) {
                Some(page) => piece.copy_from_slice(&pages.bytes(*page)[within..within + size]),
                None => piece.fill(0),
            }
        }
        length
    }

    /// A page that may be written, which others have not been lent.
    pub fn own(&mut self, pages: &mut impl Pages, index: u64) -> Result<u32, Errno> {
        let Some(former) = self.page(index) else {
            let page = pages.take()?;
            self.pages.insert(index, page);
            return Ok(page);
        };
        if !pages.is_lent(former) {
            return Ok(former);
        }
        let page = pages.take()?;
        let mut copy = [0; PAGE];
        copy.copy_from_slice(pages.bytes(former));
        pages.bytes_mut(page).copy_from_slice(&copy);
        pages.give_back(former);
        self.pages.insert(index, page);
        Ok(page)
    }

    /// Writes; how many there was room for, or an error if for none.
    pub fn write(
        &mut self,
        pages: &mut impl Pages,
        offset: u64,
        from: &[u8],
    ) -> Result<usize, Errno> {
        let end = offset.checked_add(from.len() as u64);
        if end.is_none_or(|end| end > LONGEST) {
            return Err(errno::FBIG);
        }
        let mut done = 0;
        for (index, within, size) in pieces(offset, from.len()) {
            let page = match self.own(pages, index) {
                Ok(page) => page,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            };
            let to = &mut pages.bytes_mut(page)[within..within + size];
            to.copy_from_slice(&from[done..done + size]);
            done += size;
            self.size = self.size.max(offset + done as u64);
        }
        Ok(done)
    }

    /// Cuts, or lengthens by zeros.
    pub fn set_size(&mut self, pages: &mut impl Pages, size: u64) -> Result<(), Errno> {
        if size > LONGEST {
            return Err(errno::FBIG);
        }
        let within = (size % PAGE as u64) as usize;
        if size < self.size && within != 0 && self.page(size / PAGE as u64).is_some() {
            let page = self.own(pages, size / PAGE as u64)?;
            pages.bytes_mut(page)[within..].fill(0);
        }
        for page in self.pages.split_off(&size.div_ceil(PAGE as u64)).values() {
            pages.give_back(*page);
        }
        self.size = size;
        Ok(())
    }

    /// Gives all pages back.
    pub fn clear(&mut self, pages: &mut impl Pages) {
        for page in core::mem::take(&mut self.pages).values() {
            pages.give_back(*page);
        }
        self.size = 0;
    }
}
