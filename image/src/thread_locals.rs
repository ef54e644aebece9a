//! Thread-local variables: what lies at the top of each data stack (extension ABI, section 2).
//!
//! From the top down: the thread block, whose first byte is the thread pointer, the variables,
//! which end at the thread pointer, and the first stack pointer. Invariant of [`ThreadLocals`]: all
//! of it fits into the share of the data stack that the ABI gives it.

use alloc::vec;
use alloc::vec::Vec;

use postern_verifier::window::{CANARY, THREAD_BLOCK, TLS_ALIGNMENT, TLS_SHARE};

use crate::elf::ProgramHeader;
use crate::error::Problem;

/// The thread-local variables of an image: a view over the file's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadLocals<'a> {
    /// The initial values of the first variables.
    pub bytes: &'a [u8],
    /// Size of all variables in bytes; what exceeds `bytes` is zero at first.
    pub memory_size: u32,
    /// Alignment of the first variable: a power of two of at most [`TLS_ALIGNMENT`].
    pub alignment: u32,
}

impl<'a> ThreadLocals<'a> {
    /// Checks a `PT_TLS` header, whose bytes must lie in the read-only segment, if it has any.
    pub(crate) fn check(
        file: &'a [u8],
        header: &ProgramHeader,
        readonly: Option<&ProgramHeader>,
        stack_size: u32,
    ) -> Result<ThreadLocals<'a>, Problem> {
        let (in_file, memory) = (header.file_size, header.memory_size);
        if in_file > memory {
            return Err(Problem::FileLargerThanMemory {
                file: in_file,
                memory,
            });
        }
        // 0 and 1 both say that nothing is asked.
        let alignment = header.alignment.max(1);
        if !alignment.is_power_of_two() || alignment > u64::from(TLS_ALIGNMENT) {
            return Err(Problem::ThreadLocalAlignment(alignment));
        }
        if !header.address.is_multiple_of(alignment) {
            return Err(Problem::ThreadLocalsMisaligned {
                address: header.address,
                alignment,
            });
        }
        let most = u64::from(stack_size / TLS_SHARE);
        if memory
            .checked_next_multiple_of(alignment)
            .is_none_or(|size| size >= most)
        {
            return Err(Problem::ThreadLocalsTooLarge { size: memory, most });
        }
        let bytes = match in_file {
            0 => &[],
            _ => {
                let inside = readonly.is_some_and(|readonly| {
                    let at = header.offset.checked_sub(readonly.offset);
                    let end = at.and_then(|at| at.checked_add(in_file));
                    end.is_some_and(|end| end <= readonly.file_size)
                        && at == header.address.checked_sub(readonly.address)
                });
                if !inside {
                    return Err(Problem::ThreadLocalsOutsideReadOnly);
                }
                header.file_bytes(file)?
            }
        };
        // Both are below the stack's size.
        Ok(ThreadLocals {
            bytes,
            memory_size: memory as u32,
            alignment: alignment as u32,
        })
    }

    /// Bytes from the first variable to the thread pointer.
    pub fn size(&self) -> u32 {
        self.memory_size.next_multiple_of(self.alignment)
    }

    /// Bytes at the top of a data stack that are not for frames: a multiple of 16.
    pub fn reserved(&self) -> u32 {
        (self.size() + THREAD_BLOCK).next_multiple_of(16)
    }

    /// What these bytes are before a thread enters, with the stack protector's word `canary`.
    pub fn initial(&self, canary: u64) -> Vec<u8> {
        let mut area = vec![0; self.reserved() as usize];
        let thread_block = area.len() - THREAD_BLOCK as usize;
        let first = thread_block - self.size() as usize;
        area[first..][..self.bytes.len()].copy_from_slice(self.bytes);
        area[thread_block + CANARY as usize..][..8].copy_from_slice(&canary.to_le_bytes());
        area
    }
}
