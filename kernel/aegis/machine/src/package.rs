//! What the kernel is booted with, as one file that the emulator puts into memory:
//!
//! ```text
//! 0      magic, bytes of the root program, offset and bytes of the archive, of the symbols: words
//! 4096   the root program, as it stands in memory
//! …      the archive (cpio), from a page on
//! …      the symbols of the kernel (text), from a page on; the end is filled to a page
//! ```
//!
//! The kernel maps a copy of all of it for the root environment, at `ROOT_PROGRAM`, and starts at
//! the root program's first byte.

use postern_aegis_abi::PAGE;
use postern_aegis_abi::address::ROOT_PROGRAM;
use thiserror::Error;

use crate::archive::Archive;
use crate::program::{self, ProgramError};
use crate::symbols;

/// What a package begins with.
pub const MAGIC: [u8; 8] = *b"AEGISPKG";

/// Why a package cannot be made.
#[derive(Debug, Error)]
pub enum PackageError {
    /// The root environment's program does not serve.
    #[error("the root program: {0}")]
    Program(#[from] ProgramError),
    /// The kernel's names cannot be read.
    #[error("the kernel's symbols: {0}")]
    Symbols(#[from] object::Error),
}

/// The package of a root program (ELF), an archive for it and a kernel (ELF).
pub fn pack(root: &[u8], archive: Archive, kernel: &[u8]) -> Result<Vec<u8>, PackageError> {
    let program = program::flat(root, ROOT_PROGRAM + PAGE as u64)?;
    pack_flat(&program, archive, kernel)
}

/// The same of a root program as it stands in memory.
pub fn pack_flat(program: &[u8], archive: Archive, kernel: &[u8]) -> Result<Vec<u8>, PackageError> {
    let symbols = symbols::lines(kernel)?;
    Ok(join(program, &archive.finish(), symbols.as_bytes()))
}

fn join(program: &[u8], archive: &[u8], symbols: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; PAGE];
    let mut header = vec![u64::from_le_bytes(MAGIC), program.len() as u64];
    bytes.extend(program);
    for part in [archive, symbols] {
        bytes.resize(bytes.len().next_multiple_of(PAGE), 0);
        header.extend([bytes.len() as u64, part.len() as u64]);
        bytes.extend(part);
    }
    bytes.resize(bytes.len().next_multiple_of(PAGE), 0);
    for (place, word) in bytes.chunks_exact_mut(8).zip(header) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_begin_where_the_header_says() {
        let bytes = join(&[1; 8192], &[2; 100], &[3; 4097]);
        let word = |index: usize| {
            let word = bytes[8 * index..][..8].try_into().unwrap();
            u64::from_le_bytes(word) as usize
        };
        assert_eq!(bytes[..8], MAGIC);
        assert_eq!(word(1), 8192);
        assert_eq!((word(2), word(3)), (12288, 100));
        assert_eq!((word(4), word(5)), (16384, 4097));
        assert!(bytes[4096..12288].iter().all(|byte| *byte == 1));
        assert!(bytes[12288..12388].iter().all(|byte| *byte == 2));
        assert_eq!(bytes[12388], 0);
        assert!(bytes[16384..][..4097].iter().all(|byte| *byte == 3));
        assert_eq!(bytes.len(), 16384 + 8192);
    }
}
