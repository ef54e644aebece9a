//! Files of the archive. Their pages are everybody's to read: who wants bytes binds the page that
//! has them.

use postern_aegis::calls::{self, Target};
use postern_aegis::{Error, Mapping, PAGE, memory};
use postern_exos_abi::address::WINDOWS;
use postern_exos_abi::directory::Entry;

use crate::source::Source;
use crate::trusted;

/// The window through which files are read.
pub(crate) const SOURCE: u64 = WINDOWS;

/// A file.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Where it begins in the archive.
    pub offset: u64,
    /// Its length.
    pub length: u64,
}

/// All files.
pub fn files() -> &'static [Entry] {
    trusted::directory().get(1..).unwrap_or_default()
}

/// Pages that they take.
pub fn pages() -> usize {
    trusted::numbers().len()
}

/// The file of an index.
pub fn nth(index: usize) -> Option<File> {
    files().get(index).map(|entry| File {
        offset: entry.offset,
        length: entry.length,
    })
}

/// The file of a name; one slash before it is nothing, and so is `./`.
pub fn index_of(name: &[u8]) -> Option<usize> {
    let name = name.strip_prefix(b"./").unwrap_or(name);
    let name = name.strip_prefix(b"/").unwrap_or(name);
    files().iter().position(|entry| entry.is(name))
}

impl File {
    /// The page that has a byte of the file, if it begins with that byte.
    pub fn page(&self, at: u64) -> Option<u32> {
        let from = self.offset.checked_add(at)?;
        if !from.is_multiple_of(PAGE as u64) || at >= self.length {
            return None;
        }
        trusted::numbers()
            .get((from / PAGE as u64) as usize)
            .copied()
    }

    /// Calls with each piece of a range: the address in a window, how far it is in the range, and
    /// its length. What lies beyond the file is no piece.
    fn pieces(
        &self,
        at: u64,
        length: u64,
        mut each: impl FnMut(u64, u64, usize),
    ) -> Result<(), Error> {
        let end = at.saturating_add(length).min(self.length);
        let mut now = at;
        while now < end {
            let from = self.offset + now;
            let within = from % PAGE as u64;
            let size = (PAGE as u64 - within).min(end - now);
            let page = trusted::numbers().get((from / PAGE as u64) as usize);
            let page = *page.ok_or(Error::Argument)?;
            memory::map(SOURCE, Mapping::new(page, 0), 0, Target::SELF)?;
            each(SOURCE + within, now - at, size as usize);
            now += size;
        }
        Ok(())
    }

    /// Reads bytes; how many there were.
    pub fn read(&self, at: u64, bytes: &mut [u8]) -> Result<usize, Error> {
        let mut done = 0;
        self.pieces(at, bytes.len() as u64, |from, offset, size| {
            let to = &mut bytes[offset as usize..][..size];
            trusted::copy_out(to, from);
            done += size;
        })?;
        Ok(done)
    }
}

impl Source for File {
    fn length(&self) -> u64 {
        self.length
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<usize, Error> {
        File::read(self, at, bytes)
    }

    fn page(&self, at: u64) -> Option<u32> {
        File::page(self, at)
    }

    fn copy(&self, at: u64, window: u64, length: u64) -> Result<(), Error> {
        self.pieces(at, length, |from, offset, size| {
            trusted::copy(window + offset, from, size);
        })
    }
}

/// Takes the window away, which fork would copy otherwise.
pub fn close_window() {
    let _ = calls::unmap(SOURCE, Target::SELF);
}
