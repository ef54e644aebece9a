//! An extension that a process has opened: its shared area, and the ring of what it tells.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::trusted::{self, Area};

/// Bytes that are read of the ring at a time: more than the longest entry has.
const READ: usize = 128 << 10;

/// An extension that is open. It may be unloaded meanwhile: the area stays then, and no more
/// entries come.
#[derive(Debug)]
pub struct Opened {
    file: File,
    area: Option<Area>,
    entries: VecDeque<Vec<u8>>,
    /// The extension is unloaded: no more entries come.
    over: bool,
}

impl Opened {
    pub(crate) fn new(descriptor: OwnedFd, shared_size: usize) -> io::Result<Opened> {
        let area = match shared_size {
            0 => None,
            size => Some(Area::map(descriptor.as_fd(), size)?),
        };
        // Another reader may take what was announced.
        trusted::never_wait(descriptor.as_fd())?;
        Ok(Opened {
            file: descriptor.into(),
            area,
            entries: VecDeque::new(),
            over: false,
        })
    }

    /// The shared area, if the extension has one.
    pub fn area(&self) -> Option<&Area> {
        self.area.as_ref()
    }

    /// Waits until there is an entry, at most so long; `None` waits for ever. Whether there is one,
    /// or the extension was unloaded.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&self, longest: Option<Duration>) -> io::Result<bool> {
        let known = !self.entries.is_empty() || self.over;
        Ok(known || trusted::wait(self.file.as_fd(), longest)?)
    }

    /// Whether the extension was unloaded: no more entries come.
    pub fn is_over(&self) -> bool {
        self.over && self.entries.is_empty()
    }

    /// The next entry of the ring, without waiting for one.
    ///
    /// # Errors
    /// The kernel's; [`io::ErrorKind::InvalidData`] if what comes are no entries.
    pub fn next_entry(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.entries.is_empty() && !self.over {
            let mut bytes = vec![0; READ];
            match self.file.read(&mut bytes) {
                Ok(0) => self.over = true,
                Ok(got) => self.entries = parse(&bytes[..got])?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.entries.pop_front())
    }

    /// Entries, one after the other; it ends when none comes for so long (`None`: never), and
    /// when the extension is unloaded.
    pub fn events(&mut self, longest: Option<Duration>) -> Events<'_> {
        Events {
            opened: self,
            longest,
        }
    }
}

impl AsFd for Opened {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The entries of a ring.
#[derive(Debug)]
pub struct Events<'a> {
    opened: &'a mut Opened,
    longest: Option<Duration>,
}

impl Iterator for Events<'_> {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<io::Result<Vec<u8>>> {
        loop {
            match self.opened.next_entry() {
                Ok(None) if self.opened.is_over() => return None,
                Ok(None) => {}
                other => return other.transpose(),
            }
            match self.opened.wait(self.longest) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// The entries that were read, whole ones: each its length, its bytes, and fill up to eight.
fn parse(mut bytes: &[u8]) -> io::Result<VecDeque<Vec<u8>>> {
    let mut entries = VecDeque::new();
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, "the ring has no entries there");
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let length = u32::from_ne_bytes(*length) as usize;
        entries.push_back(rest.get(..length).ok_or_else(wrong)?.to_vec());
        let whole = (4 + length).next_multiple_of(8);
        bytes = bytes.get(whole..).unwrap_or_default();
    }
    match bytes.is_empty() {
        true => Ok(entries),
        false => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_taken_apart() {
        let mut bytes = Vec::new();
        for entry in [&b"one"[..], b"", b"four", b"twelve bytes"] {
            bytes.extend((entry.len() as u32).to_ne_bytes());
            bytes.extend(entry);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        let entries = parse(&bytes).expect("entries");
        assert_eq!(entries, [&b"one"[..], b"", b"four", b"twelve bytes"]);
        // Cut off anywhere, it is whole entries or an error.
        for end in 0..bytes.len() {
            if let Ok(found) = parse(&bytes[..end]) {
                assert!(found.iter().zip(&entries).all(|(a, b)| a == b), "{end}");
            }
        }
    }
}
