//! The stack that the program has for handlers which do not run on its own (`sigaltstack`).

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use postern_exos_abi::errno::{self, Errno};

use crate::process::trusted;

static BASE: AtomicU64 = AtomicU64::new(0);
static SIZE: AtomicU64 = AtomicU64::new(0);

/// Bytes at the least: all registers of what was interrupted, vector registers among them, and a
/// handler.
pub const LEAST: u64 = 4096;

/// The stack, if there is one: where it begins, and its bytes.
pub fn now() -> Option<[u64; 2]> {
    let size = SIZE.load(Relaxed);
    (size != 0).then(|| [BASE.load(Relaxed), size])
}

/// Whether an address is on it.
pub fn has(address: u64) -> bool {
    now().is_some_and(|[base, size]| address.wrapping_sub(base) < size)
}

/// Where it ends, and handlers begin.
pub fn end() -> Option<u64> {
    now().map(|[base, size]| base.wrapping_add(size) & !15)
}

/// Whether the caller runs on it.
pub fn is_used() -> bool {
    has(trusted::stack_here())
}

/// Another one, or none.
pub fn set(next: Option<[u64; 2]>) -> Result<(), Errno> {
    if is_used() {
        return Err(errno::PERM);
    }
    let [base, size] = next.unwrap_or_default();
    if next.is_some() && size < LEAST {
        return Err(errno::NOMEM);
    }
    BASE.store(base, Relaxed);
    SIZE.store(size, Relaxed);
    Ok(())
}
