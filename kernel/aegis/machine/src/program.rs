//! A program's ELF file as the bytes that stand in memory when it starts. The root environment's
//! program is loaded so by the kernel, which reads no ELF; all others are loaded by programs.

use object::{Object, ObjectSegment};
use thiserror::Error;

/// Bytes that a flat program has at most: more is a linker's mistake.
pub const GREATEST: u64 = 16 << 20;

/// Why a file cannot be the root environment's program.
#[derive(Debug, Error)]
pub enum ProgramError {
    /// It is no ELF file.
    #[error("it is no program: {0}")]
    Form(#[from] object::Error),
    /// It has nothing to load.
    #[error("it has no segments")]
    Empty,
    /// Part of it lies elsewhere than where the kernel maps it.
    #[error(
        "a segment is at {at:#x}, outside the {GREATEST:#x} bytes from {base:#x}: its linker script is at fault"
    )]
    Place {
        /// Where it lies.
        at: u64,
        /// Where the kernel maps root programs.
        base: u64,
    },
    /// It does not start with its first byte.
    #[error(
        "it starts at {entry:#x}, and must at {base:#x}: the linker script puts its entry first"
    )]
    Entry {
        /// Where it starts.
        entry: u64,
        /// Where the kernel enters root programs.
        base: u64,
    },
}

/// The bytes of an ELF program from address `base` on, zeros between its parts and behind them, to
/// a whole page.
pub fn flat(elf: &[u8], base: u64) -> Result<Vec<u8>, ProgramError> {
    let file = object::File::parse(elf)?;
    let mut bytes = Vec::new();
    for segment in file.segments() {
        let at = segment.address();
        let end = at.saturating_add(segment.size());
        if at < base || end > base + GREATEST {
            return Err(ProgramError::Place { at, base });
        }
        let (start, end) = ((at - base) as usize, (end - base) as usize);
        let content = segment.data()?;
        bytes.resize(bytes.len().max(end), 0);
        bytes[start..start + content.len()].copy_from_slice(content);
    }
    if bytes.is_empty() {
        return Err(ProgramError::Empty);
    }
    if file.entry() != base {
        let entry = file.entry();
        return Err(ProgramError::Entry { entry, base });
    }
    bytes.resize(bytes.len().next_multiple_of(postern_aegis_abi::PAGE), 0);
    Ok(bytes)
}

/// The part of an ELF file that loaders read: names and lines for debuggers stand behind it, and
/// are many times as long.
pub fn loadable(elf: &[u8]) -> Result<Vec<u8>, ProgramError> {
    let file = object::File::parse(elf)?;
    let ends = file.segments().map(|segment| {
        let (offset, size) = segment.file_range();
        offset.saturating_add(size)
    });
    let end = ends.max().ok_or(ProgramError::Empty)? as usize;
    let mut bytes = elf[..end.max(64).min(elf.len())].to_vec();
    // Of the header: where the table of sections is, how many they are, and which one has names.
    bytes[40..48].fill(0);
    bytes[60..64].fill(0);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x40_0000;

    /// An ELF file of one segment, whose file part is `content`.
    fn elf(entry: u64, at: u64, size: u64, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0];
        bytes.resize(16, 0);
        bytes.extend(2u16.to_le_bytes().into_iter().chain(62u16.to_le_bytes()));
        bytes.extend(1u32.to_le_bytes());
        for word in [entry, 64, 0] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(0u32.to_le_bytes());
        for half in [64u16, 56, 1, 64, 0, 0] {
            bytes.extend(half.to_le_bytes());
        }
        bytes.extend(1u32.to_le_bytes().into_iter().chain(7u32.to_le_bytes()));
        for word in [120, at, at, content.len() as u64, size, 8] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(content);
        bytes
    }

    #[test]
    fn a_program_is_its_memory_up_to_a_page() {
        let flat = flat(&elf(BASE, BASE, 5000, b"code"), BASE).unwrap();
        assert_eq!(flat.len(), 8192);
        assert_eq!(&flat[..5], b"code\0");
    }

    #[test]
    fn what_is_loaded_stays_of_a_file() {
        let mut long = elf(BASE, BASE, 64, b"code");
        let whole = long.len();
        long.extend([b'd'; 1000]);
        let short = loadable(&long).unwrap();
        assert_eq!(short, long[..whole]);
        assert_eq!(flat(&short, BASE).unwrap(), flat(&long, BASE).unwrap());
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let short = loadable(&own).unwrap();
        assert!(short.len() < own.len());
        let segments = |elf: &[u8]| object::File::parse(elf).unwrap().segments().count();
        assert_eq!(segments(&short), segments(&own));
    }

    #[test]
    fn programs_elsewhere_are_refused() {
        let refused = |elf: &[u8]| flat(elf, BASE).unwrap_err().to_string();
        assert!(refused(&elf(BASE, BASE - 4096, 10, b"x")).contains("0x3ff000"));
        assert!(refused(&elf(BASE, BASE, GREATEST + 1, b"x")).contains("outside"));
        assert!(refused(&elf(BASE, BASE, u64::MAX, b"x")).contains("outside"));
        assert!(refused(&elf(BASE + 16, BASE, 64, b"x")).contains("starts at 0x400010"));
        assert!(refused(b"#!/bin/sh").contains("no program"));
    }
}
