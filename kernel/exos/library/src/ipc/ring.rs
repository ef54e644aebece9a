//! What stands at the beginning of a pipe's pages.

use core::sync::atomic::AtomicU64;

use postern_aegis::PAGE;

use crate::ipc::slots::DATA;

/// Bytes that a pipe holds.
pub const SIZE: usize = DATA * PAGE;

/// What stands at the beginning of a pipe's pages: `struct exos_ring` of <exos/pipe.h>.
#[repr(C)]
#[derive(Debug)]
pub struct Ring {
    /// See <exos/pipe.h>.
    pub head: AtomicU64,
    /// See <exos/pipe.h>.
    pub reader: AtomicU64,
    /// See <exos/pipe.h>.
    pub reading: AtomicU64,
    others: [u64; 5],
    /// See <exos/pipe.h>.
    pub tail: AtomicU64,
    /// See <exos/pipe.h>.
    pub writer: AtomicU64,
    /// See <exos/pipe.h>.
    pub writing: AtomicU64,
}
