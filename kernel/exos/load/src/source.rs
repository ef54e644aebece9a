//! Where a program's bytes come from.

use postern_aegis::{Error, PAGE};

use crate::trusted;

/// A file that is read while a program is loaded. It may change meanwhile, if it is anybody's: then the
/// program is nonsense, and nobody else is harmed.
pub trait Source {
    /// Bytes.
    fn length(&self) -> u64;

    /// Reads bytes; how many there were.
    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<usize, Error>;

    /// The page that has a byte of the file, and those behind it, if it begins with that byte and is
    /// everybody's to read.
    fn page(&self, at: u64) -> Option<u32> {
        let _ = at;
        None
    }

    /// Copies at most a page's bytes into a window. [`Error::Kind`]: there were fewer.
    fn copy(&self, at: u64, window: u64, length: u64) -> Result<(), Error> {
        let mut bytes = [0; PAGE];
        let bytes = bytes.get_mut(..length as usize).ok_or(Error::Argument)?;
        if self.read(at, bytes)? < bytes.len() {
            return Err(Error::Kind);
        }
        trusted::copy_in(window, bytes);
        Ok(())
    }
}
