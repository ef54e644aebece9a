//! Pages of this process that others may read for a while, by capability.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use postern_aegis::abi::call::{NAME_EVERYBODY, NAME_NOBODY, RIGHT_READ};
use postern_aegis::{calls, pages};
use postern_exos_abi::errno::{self, Errno};

/// Each loan has a name of its own, so that the capability for one is none for the next.
static NAME: AtomicU32 = AtomicU32::new(NAME_EVERYBODY);

/// Shows a page of this process's own to whoever has what comes back: the capability to read it.
pub fn lend(page: u32) -> Result<u64, Errno> {
    let next = |name: u32| name.checked_add(1);
    let name = NAME.fetch_update(Relaxed, Relaxed, next);
    let name = name.map_err(|_| errno::NOTSUP)? + 1;
    calls::rename(page, name, NAME_NOBODY).map_err(|_| errno::IO)?;
    calls::capability(name, RIGHT_READ, 0).map_err(|_| errno::IO)
}

/// Takes it back: who has it bound has it no more, and the capability is worth nothing.
pub fn take_back(page: u32) -> Result<(), Errno> {
    let taken = calls::rename(page, NAME_NOBODY, NAME_NOBODY);
    let taken = taken.and_then(|_| pages::patiently(|| calls::break_page(page)));
    taken.map(drop).map_err(|_| errno::IO)
}
