//! A codec that is not trusted: a C library in a domain of its own, from bytes to bytes.
//!
//! The extension sees copies of the input and of nothing else. Whatever it is fed, the host gets
//! bytes or an error.
#![forbid(unsafe_code)]

use postern::{AllocError, CallError, Domain, Func, MemoryError, Offset, SymbolError};

/// Why there are no bytes.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// The input is not what this codec makes, or is damaged.
    #[error("the input is damaged, or not of this format")]
    Corrupt,
    /// The output would be longer than the caller allows.
    #[error("the output would be longer than {0} bytes")]
    TooLong(usize),
    /// Buffers and library want more than the domain's heap has.
    #[error("the codec needs more memory than its domain has")]
    Memory,
    /// The codec has no such level.
    #[error("the codec has no level {0}")]
    Level(i32),
    /// The library claims to have written more than it was given room for.
    #[error("the extension lies about its result ({0})")]
    Lie(i64),
    /// The call faulted or took too long.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A copy into or out of the window failed.
    #[error(transparent)]
    Window(MemoryError),
}

impl From<MemoryError> for CodecError {
    fn from(error: MemoryError) -> CodecError {
        match error {
            MemoryError::NoRoom(_) => CodecError::Memory,
            other => CodecError::Window(other),
        }
    }
}

impl From<AllocError> for CodecError {
    fn from(error: AllocError) -> CodecError {
        match error {
            AllocError::Call(error) => CodecError::Call(error),
            AllocError::Memory(error) => error.into(),
        }
    }
}

type Compress = fn(Offset, u64, Offset, u64, i32) -> i64;
type Decompress = fn(Offset, u64, Offset, u64) -> i64;
type Bound = fn(u64) -> u64;

/// A codec, ready to be called.
pub struct Codec {
    domain: Domain,
    compress: Func<Compress>,
    decompress: Func<Decompress>,
    bound: Func<Bound>,
}

impl Codec {
    /// Takes a domain of an extension that exports what codec.h declares, with the limits that its
    /// maker gave it.
    ///
    /// # Errors
    /// It is no such extension.
    pub fn new(domain: Domain) -> Result<Codec, SymbolError> {
        Ok(Codec {
            compress: domain.func("compress_buffer")?,
            decompress: domain.func("decompress_buffer")?,
            bound: domain.func("compress_bound")?,
            domain,
        })
    }

    /// Compresses `input`.
    ///
    /// # Errors
    /// See [`CodecError`].
    pub fn compress(&self, input: &[u8], level: i32) -> Result<Vec<u8>, CodecError> {
        let room = self.bound.call(input.len() as u64)?;
        let result = self.through(input, room as usize, |from, size, to, room| {
            self.compress.call(from, size, to, room, level)
        });
        match result {
            Err(CodecError::Level(_)) => Err(CodecError::Level(level)),
            other => other,
        }
    }

    /// Decompresses `input` to at most `limit` bytes.
    ///
    /// # Errors
    /// See [`CodecError`].
    pub fn decompress(&self, input: &[u8], limit: usize) -> Result<Vec<u8>, CodecError> {
        self.through(input, limit, |from, size, to, room| {
            self.decompress.call(from, size, to, room)
        })
    }

    /// The domain, to look at.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Copies in, calls, copies out. Whatever the call left behind is thrown away with the domain's
    /// memory.
    fn through(
        &self,
        input: &[u8],
        room: usize,
        call: impl Fn(Offset, u64, Offset, u64) -> Result<i64, CallError>,
    ) -> Result<Vec<u8>, CodecError> {
        let outcome = (|| {
            let from = self.domain.alloc_from(input)?;
            let to = self.domain.alloc(room)?;
            let written = call(from, input.len() as u64, to, room as u64)?;
            match written {
                -1 => Err(CodecError::TooLong(room)),
                -2 => Err(CodecError::Corrupt),
                -3 => Err(CodecError::Memory),
                -4 => Err(CodecError::Level(0)),
                0.. if written as u64 <= room as u64 => {
                    Ok(self.domain.read_vec(to, written as usize)?)
                }
                lie => Err(CodecError::Lie(lie)),
            }
        })();
        // The next input finds nothing of this one; after a fault this is what makes the domain
        // usable again.
        if self.domain.reset().is_err() {
            self.domain.close();
        }
        outcome
    }
}
