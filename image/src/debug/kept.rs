//! What must be kept of a file so that names and lines can still be looked up in it, when what is
//! loaded of it is elsewhere anyway.
//!
//! Of a file without symbols that is its headers. Sections that nothing here reads
//! (`.debug_loclists`, macros, the loaded ones) are not kept; where they were, the file that comes
//! back has zeros.

use std::ops::Range;

use super::sections::{SHT_SYMTAB, Sections};
use crate::elf::{u16_at, u64_at};
use crate::file::Part;

/// The sections of debug information that are read.
const NAMED: [&str; 9] = [
    ".debug_info",
    ".debug_abbrev",
    ".debug_line",
    ".debug_str",
    ".debug_line_str",
    ".debug_ranges",
    ".debug_rnglists",
    ".debug_addr",
    ".debug_str_offsets",
];

/// Parts of a file, and where in a window the others are.
#[derive(Clone, Debug)]
pub struct Kept {
    length: usize,
    /// Apart from each other, each with the place where it begins.
    parts: Vec<(usize, Box<[u8]>)>,
    /// Where a loaded part begins in the file and in a window, and its size.
    loaded: Vec<(usize, u32, usize)>,
}

impl Kept {
    /// Copies what is needed of `bytes`, but for the parts that are loaded from there.
    pub fn new<'a>(bytes: &'a [u8], loaded: impl IntoIterator<Item = Part<'a>>) -> Kept {
        let loaded = loaded.into_iter().filter_map(|part| {
            let at = (part.bytes.as_ptr() as usize).checked_sub(bytes.as_ptr() as usize)?;
            Some((at, part.offset, part.bytes.len()))
        });
        Kept {
            length: bytes.len(),
            parts: ranges(bytes)
                .into_iter()
                .map(|range| (range.start, bytes[range].into()))
                .collect(),
            loaded: loaded.collect(),
        }
    }

    /// The file for lookups. `read` fills a buffer with what the image has at an offset of the
    /// window when it is loaded.
    pub fn file(&self, mut read: impl FnMut(u32, &mut [u8])) -> Vec<u8> {
        let mut bytes = vec![0; self.length];
        for &(at, offset, size) in &self.loaded {
            if let Some(to) = bytes.get_mut(at..at.saturating_add(size)) {
                read(offset, to);
            }
        }
        for (at, part) in &self.parts {
            if let Some(to) = bytes.get_mut(*at..*at + part.len()) {
                to.copy_from_slice(part);
            }
        }
        bytes
    }

    /// Bytes that are kept.
    pub fn size(&self) -> usize {
        self.parts.iter().map(|(_, part)| part.len()).sum()
    }
}

/// The ranges of the file that lookups read besides the loaded ones, in ascending order and apart.
fn ranges(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut wanted = vec![(0, 64)];
    let mut table = |at, entry, count| {
        if let (Some(at), Some(entry), Some(count)) = (
            u64_at(bytes, at),
            u16_at(bytes, entry),
            u16_at(bytes, count),
        ) {
            wanted.push((at, u64::from(entry) * u64::from(count)));
        }
    };
    // Program headers.
    table(32, 54, 56);
    if let Some(sections) = Sections::parse(bytes) {
        let symbols = sections.iter().find(|s| s.kind == SHT_SYMTAB);
        let names = symbols.and_then(|s| sections.get(s.link));
        let named = NAMED.iter().filter_map(|name| sections.named(name));
        let read: Vec<_> = symbols.into_iter().chain(names).chain(named).collect();
        // Section headers and their names are read for the others' sake.
        if !read.is_empty() {
            table(40, 58, 60);
            let names = u16_at(bytes, 62).and_then(|index| sections.get(index.into()));
            // Those without bytes in the file are not read, whatever they claim.
            let read = read.into_iter().chain(names);
            let read = read.filter(|s| sections.data(s).is_some());
            wanted.extend(read.map(|s| (s.offset, s.size)));
        }
    }
    wanted.sort_unstable();
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (start, size) in wanted {
        let length = bytes.len() as u64;
        let end = start.saturating_add(size).min(length);
        let (start, end) = (start.min(length) as usize, end as usize);
        match ranges.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ if start < end => ranges.push(start..end),
            _ => {}
        }
    }
    ranges
}
