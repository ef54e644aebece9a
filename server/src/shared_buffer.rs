//! The memory that server and program share for one request at a time: `struct libcgi_exchange` of
//! `libcgi.h`, the variables, a piece of the body, and two halves for the answer.
//!
//! Invariant: the program can write the answer's halves only, and of these none that is being sent.
//! The request's area is written by the server alone.

use crate::lease::WriteHold;
use crate::trusted::view;
use bytes::Bytes;
use postern::{Domain, MemoryError, Prot, ShareError, Shared};
use std::sync::{Mutex, PoisonError};

/// Version of the structure.
const VERSION: u64 = 1;
/// Bytes of the structure.
const HEADER: usize = 12 * 8;
/// Where the body's pieces lie.
const BODY: usize = 64 << 10;
/// The longest piece of a body.
pub const PIECE: usize = 64 << 10;
/// Most bytes of variables.
pub const VARIABLES: usize = BODY - HEADER;

/// Where the words of the structure are that change during a call.
const BODY_SIZE: usize = 4 * 8;
const ANSWER: usize = 6 * 8;

/// What a shared object gets besides: its call, and the functions that an extension imports.
pub type Functions = [u64; 4];

/// The memory of one instance of a program.
#[derive(Debug)]
pub struct SharedBuffer {
    request: Shared,
    answer: Shared,
    /// Bytes of each half.
    half: usize,
    /// Whether pointers are those of an extension.
    confined: bool,
    /// Halves that the program must not write now.
    shut: Mutex<[bool; 2]>,
}

impl SharedBuffer {
    /// New areas, with `half` bytes for each half of the answer, a multiple of 4096.
    ///
    /// # Errors
    /// No room for them.
    pub fn new(name: &str, half: usize, confined: bool) -> Result<SharedBuffer, ShareError> {
        Ok(SharedBuffer {
            request: Shared::builder()
                .name(format!("{name} request"))
                .zeroed(BODY + PIECE)?,
            answer: Shared::builder()
                .name(format!("{name} answer"))
                .zeroed(2 * half)?,
            half,
            confined,
            shut: Mutex::default(),
        })
    }

    /// Shows both to a domain.
    ///
    /// # Errors
    /// No room in its window.
    pub fn share(&self, domain: &Domain) -> Result<(), ShareError> {
        domain.share(&self.request, Prot::Read)?;
        domain.share(&self.answer, Prot::ReadWrite)?;
        Ok(())
    }

    /// What the program is called with.
    pub fn address(&self) -> u64 {
        self.pointer(&self.request, 0)
    }

    fn pointer(&self, area: &Shared, at: usize) -> u64 {
        match self.confined {
            true => u64::from(area.offset().0) + at as u64,
            false => area.as_ptr() as u64 + at as u64,
        }
    }

    /// Writes a request: variables, the first piece of the body, and whether there is more.
    ///
    /// # Errors
    /// It does not fit.
    pub fn begin(
        &self,
        variables: &[u8],
        body: &[Bytes],
        more: bool,
        functions: Functions,
        domain: Option<&Domain>,
    ) -> Result<(), MemoryError> {
        for half in [0, 1] {
            self.open(half, domain);
        }
        let size = self.put_body(body)?;
        let words = [
            VERSION,
            self.pointer(&self.request, HEADER),
            variables.len() as u64,
            self.pointer(&self.request, BODY),
            size as u64,
            u64::from(more),
            self.pointer(&self.answer, 0),
            self.half as u64,
            functions[0],
            functions[1],
            functions[2],
            functions[3],
        ];
        let mut header = [0; HEADER];
        for (place, word) in header.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        if variables.len() > VARIABLES {
            return Err(MemoryError::BeyondArea {
                at: HEADER,
                len: variables.len(),
                size: BODY,
            });
        }
        self.request.write(0, &header)?;
        self.request.write(HEADER, variables)
    }

    fn put_body(&self, pieces: &[Bytes]) -> Result<usize, MemoryError> {
        let mut size = 0;
        for piece in pieces {
            self.request.write(BODY + size, piece)?;
            size += piece.len();
        }
        Ok(size)
    }

    /// The next piece of the body, and whether there is more after it.
    ///
    /// # Errors
    /// It does not fit.
    pub fn next_body(&self, piece: &[u8], more: bool) -> Result<(), MemoryError> {
        self.request.write(BODY, piece)?;
        let mut words = [0; 16];
        words[..8].copy_from_slice(&(piece.len() as u64).to_le_bytes());
        words[8] = u8::from(more);
        self.request.write(BODY_SIZE, &words)
    }

    /// Bytes of each half.
    pub fn half(&self) -> usize {
        self.half
    }

    /// From now on output goes to this half.
    ///
    /// # Errors
    /// The area is gone.
    pub fn use_half(&self, half: usize) -> Result<(), MemoryError> {
        let at = self.pointer(&self.answer, half * self.half);
        self.request.write(ANSWER, &at.to_le_bytes())
    }

    /// Takes the right to write a half. False if the kernel refuses, or if there is no such right
    /// to take.
    pub fn shut(&self, half: usize, domain: Option<&Domain>) -> bool {
        let shut = domain.is_some_and(|domain| self.protect(half, domain, Prot::Read));
        self.shut.lock().unwrap_or_else(PoisonError::into_inner)[half] |= shut;
        shut
    }

    /// Gives it back.
    pub fn open(&self, half: usize, domain: Option<&Domain>) {
        let shut = &mut self.shut.lock().unwrap_or_else(PoisonError::into_inner)[half];
        if *shut && domain.is_some_and(|domain| self.protect(half, domain, Prot::ReadWrite)) {
            *shut = false;
        }
    }

    fn protect(&self, half: usize, domain: &Domain, protection: Prot) -> bool {
        let range = half * self.half..(half + 1) * self.half;
        self.answer.protect(domain, range, protection).is_ok()
    }

    /// Bytes of a half, where they lie.
    pub fn view(&self, half: usize, from: usize, to: usize, kept: WriteHold) -> Bytes {
        let (from, to) = (from.min(to), to.min(self.half));
        view::bytes(
            &self.answer,
            half * self.half + from,
            to.saturating_sub(from),
            kept,
        )
    }

    /// A copy of the beginning of a half.
    pub fn copy(&self, half: usize, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size.min(self.half)];
        match self.answer.read(half * self.half, &mut bytes) {
            Ok(()) => bytes,
            Err(_) => Vec::new(),
        }
    }
}
