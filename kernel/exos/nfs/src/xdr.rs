//! External data representation (RFC 4506): big-endian words, and bytes filled up to whole
//! words.

use alloc::vec::Vec;

use postern_exos_abi::errno::{self, Errno};

/// Something that a message has is not as it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl From<Malformed> for Errno {
    fn from(_: Malformed) -> Errno {
        errno::PROTO
    }
}

/// Bytes that fill up `length` to whole words.
fn filler(length: usize) -> usize {
    length.wrapping_neg() % 4
}

/// A message being made.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    /// What there is of it.
    pub bytes: Vec<u8>,
}

impl Writer {
    /// 32 bits.
    pub fn word(&mut self, word: u32) {
        self.bytes.extend(word.to_be_bytes());
    }

    /// 64 bits.
    pub fn double(&mut self, double: u64) {
        self.bytes.extend(double.to_be_bytes());
    }

    /// Bytes whose number both sides know.
    pub fn fixed(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let length = self.bytes.len() + filler(bytes.len());
        self.bytes.resize(length, 0);
    }

    /// Bytes behind their number.
    pub fn opaque(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u32);
        self.fixed(bytes);
    }
}

/// A message being read.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// From its first byte on.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*array)
    }

    /// 32 bits.
    pub fn word(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    /// 64 bits.
    pub fn double(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// Zero or one.
    pub fn boolean(&mut self) -> Result<bool, Malformed> {
        match self.word()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }

    /// Eight bytes: verifiers.
    pub fn verifier(&mut self) -> Result<[u8; 8], Malformed> {
        self.array()
    }

    /// Bytes behind their number, of which there may be `most`.
    pub fn opaque(&mut self, most: usize) -> Result<&'a [u8], Malformed> {
        let length = self.word()? as usize;
        if length > most {
            return Err(Malformed);
        }
        let whole = length + filler(length);
        let (bytes, rest) = self.rest.split_at_checked(whole).ok_or(Malformed)?;
        self.rest = rest;
        bytes.get(..length).ok_or(Malformed)
    }

    /// What a boolean says is there, or is not.
    pub fn optional<R>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<R, Malformed>,
    ) -> Result<Option<R>, Malformed> {
        if self.boolean()? {
            read(self).map(Some)
        } else {
            Ok(None)
        }
    }
}
