//! Words that other processes read and write, too.
//!
//! Invariant: the file behind them is sealed against shrinking, and has pages for them; so to touch
//! one is no signal. What is read there is an allegation: whoever has the file can write anything
//! into it at any time.

use super::{MapError, Mapping, Prot, failed};
use crate::machine;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU32;

/// The first bytes of a memory file as words.
#[derive(Debug)]
pub struct SharedWords(Mapping);

impl SharedWords {
    /// Maps the first `bytes` bytes of a file, whole pages.
    ///
    /// # Errors
    /// [`MapError::Unsealed`], or the system's own.
    pub fn of(file: BorrowedFd<'_>, bytes: usize) -> Result<SharedWords, MapError> {
        // In this order: once the size is sealed it stays what it is.
        let sealed = machine::is_size_sealed(file);
        let length = machine::length(file).unwrap_or(0);
        if !sealed || length < bytes as u64 || !bytes.is_multiple_of(4096) {
            return Err(MapError::Unsealed);
        }
        machine::allocate(file, 0, bytes as u64).map_err(|e| failed("share memory", bytes, e))?;
        let mapping = Mapping::reserve(bytes)?;
        mapping.share(file, Prot::ReadWrite)?;
        mapping.hide();
        Ok(SharedWords(mapping))
    }

    /// The word with this number; `None` if there is no such.
    pub fn word(&self, number: usize) -> Option<&AtomicU32> {
        let words = self.0.bytes() / size_of::<AtomicU32>();
        if number >= words {
            return None;
        }
        let word = (self.0.address() + number * size_of::<AtomicU32>()) as *const AtomicU32;
        // SAFETY: the word lies in the mapping, which is readable and writable for as long as
        // `self`, of a file that cannot shrink; any bits are an AtomicU32, and nothing but atomic
        // words is ever made of what lies there.
        Some(unsafe { &*word })
    }

    /// How many there are.
    pub fn words(&self) -> usize {
        self.0.bytes() / size_of::<AtomicU32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::sync::atomic::Ordering::SeqCst;

    #[test]
    fn only_of_files_that_cannot_shrink() {
        let file = machine::memory_file(c"postern-test", false).unwrap();
        machine::size(&file, 8192).unwrap();
        let of = |bytes| SharedWords::of(file.as_fd(), bytes);
        assert!(matches!(of(4096), Err(MapError::Unsealed)));
        machine::seal_shrink(&file).unwrap();
        assert!(matches!(of(4096), Err(MapError::Unsealed)));
        machine::seal_size(&file).unwrap();
        assert!(matches!(of(4095), Err(MapError::Unsealed)));
        assert!(matches!(of(3 * 4096), Err(MapError::Unsealed)));
        let (one, other) = (of(4096).unwrap(), of(8192).unwrap());
        one.word(1023).unwrap().store(7, SeqCst);
        assert_eq!(other.word(1023).unwrap().load(SeqCst), 7);
        assert!(one.word(1024).is_none() && other.word(1024).is_some());
        assert_eq!((one.words(), other.words()), (1024, 2048));
        let ordinary = std::fs::File::open("/proc/self/exe").unwrap();
        let refused = SharedWords::of(ordinary.as_fd(), 4096);
        assert!(matches!(refused, Err(MapError::Unsealed)));
    }
}
