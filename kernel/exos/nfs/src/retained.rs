//! Bytes that were written, and that the server may lose until they are committed (RFC 1813,
//! sections 3.3.7 and 3.3.21): they are kept here, to be sent again to a server that was started
//! anew.

use alloc::vec::Vec;
use core::mem;

use crate::procedures::Verifier;

/// Of one file.
#[derive(Clone, Debug, Default)]
pub struct Retained {
    writes: Vec<(u64, Vec<u8>)>,
    bytes: usize,
    /// Of the server that has them.
    verifier: Verifier,
}

/// Bytes that a small write takes here besides its own.
const AROUND: usize = 64;

impl Retained {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Memory that they take.
    pub fn size(&self) -> usize {
        self.bytes
    }

    /// One more write. False: the server is not the one that had those before.
    pub fn add(&mut self, offset: u64, bytes: &[u8], verifier: Verifier) -> bool {
        let is_same = self.is_empty() || self.verifier == verifier;
        // Most are written in order: then there is one long write.
        match self.writes.last_mut() {
            Some((from, last)) if from.checked_add(last.len() as u64) == Some(offset) => {
                last.extend(bytes);
                self.bytes += bytes.len();
            }
            _ => {
                self.writes.push((offset, bytes.to_vec()));
                self.bytes += bytes.len() + AROUND;
            }
        }
        self.verifier = verifier;
        is_same
    }

    /// Whether the server that commits is the one that has them.
    pub fn is_of(&self, verifier: Verifier) -> bool {
        self.verifier == verifier
    }

    /// All of them, in the order in which they were written.
    pub fn take(&mut self) -> Vec<(u64, Vec<u8>)> {
        self.bytes = 0;
        mem::take(&mut self.writes)
    }

    /// What [`Retained::take`] has given is still not safe.
    pub fn put_back(&mut self, writes: Vec<(u64, Vec<u8>)>) {
        self.bytes = writes.iter().map(|(_, bytes)| bytes.len() + AROUND).sum();
        self.writes = writes;
    }
}
