//! Pages of a domain, counted when somebody asks: the kernel knows them, so calls cost nothing for
//! it.

use crate::Domain;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Pages of 4096 bytes of a domain: those that it has for itself (written data, heap and stacks),
/// and those that it sees together with the host. Text, constants and data that was never written
/// belong to the image and are in memory once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pages {
    /// In memory, and nobody else's.
    pub private: u64,
    /// On swap.
    pub swapped: u64,
    /// In memory, touched by the domain, and the host's as well: of shared areas, and of a
    /// namespace's code and variables.
    pub shared: u64,
}

/// An entry of `/proc/self/pagemap` (Documentation/admin-guide/mm/pagemap.rst of Linux): the page
/// is there, …
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
/// … it is of a file, …
const FILE: u64 = 1 << 61;
/// … it is mapped nowhere else. (The page of zeros that untouched memory reads is.)
const EXCLUSIVE: u64 = 1 << 56;
/// Entries that are read at once.
const ENTRIES: usize = 8192;

impl Domain {
    /// Counts the domain's pages. Takes time in proportion to the size of its heap and areas: about
    /// a millisecond for a gigabyte.
    ///
    /// # Errors
    /// `/proc/self/pagemap` cannot be read.
    pub fn pages(&self) -> io::Result<Pages> {
        let map = File::open("/proc/self/pagemap")?;
        let mut pages = Pages::default();
        for range in self.0.instance.writable() {
            self.entries(&map, range, |word| {
                let own = word & FILE == 0;
                pages.private += u64::from(own && word & PRESENT != 0 && word & EXCLUSIVE != 0);
                pages.swapped += u64::from(own && word & SWAPPED != 0);
            })?;
        }
        for range in self.0.instance.shared() {
            self.entries(&map, range, |word| {
                pages.shared += u64::from(word & FILE != 0 && word & PRESENT != 0);
            })?;
        }
        Ok(pages)
    }

    /// Looks at each entry of a range of the window.
    fn entries(
        &self,
        map: &File,
        (start, end): (u32, u32),
        mut look: impl FnMut(u64),
    ) -> io::Result<()> {
        let (mut page, last) = (u64::from(start) / 4096, u64::from(end) / 4096);
        let mut buffer = vec![0u8; 8 * ENTRIES.min(last.saturating_sub(page) as usize)];
        while page < last {
            let count = ENTRIES.min((last - page) as usize);
            let entries = &mut buffer[..8 * count];
            {
                let _pin = self.0.instance.pin();
                let first = self.base() / 4096 + page;
                map.read_exact_at(entries, 8 * first)?;
            }
            for entry in entries.chunks_exact(8) {
                let mut word = [0; 8];
                word.copy_from_slice(entry);
                look(u64::from_ne_bytes(word));
            }
            page += count as u64;
        }
        Ok(())
    }
}
