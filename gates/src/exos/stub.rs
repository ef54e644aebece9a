//! Plain C function pointers: stubs that load the address of an entry and jump to its gate.
//!
//! All spaces of stubs are equal, because each stub finds its data at a fixed distance, so no code
//! is written once it may run. A stub and its entry stay for good: a pointer that outlives its
//! domain is refused by the gates, for generations never come again.

use super::below::{Access, below};
use super::entry::Entry;
use super::map::MapError;
use super::memory;
use super::sync::Mutex;
use alloc::boxed::Box;
use alloc::vec::Vec;

const STUB: usize = 16;
const PAGE: u64 = 4096;
/// Stubs of a space: a page of text, and data behind it.
const STUBS: usize = PAGE as usize / STUB;

struct Stubs {
    /// The space that is being filled, and how many of its stubs are used.
    space: u64,
    used: usize,
    /// Pointers by what they lead to: block, expected word and offset.
    known: Vec<((usize, u64, u32), usize)>,
}

static ALL: Mutex<Stubs> = Mutex::new(Stubs {
    space: 0,
    used: STUBS,
    known: Vec::new(),
});

/// A C function pointer that calls `entry`. The same entry has the same pointer.
pub(super) fn pointer(entry: Entry) -> Result<usize, MapError> {
    let mut all = ALL.lock().unwrap_or_else(|e| e.into_inner());
    let key = (
        core::ptr::from_ref(entry.control()) as usize,
        entry.expected(),
        entry.offset(),
    );
    if let Some((_, pointer)) = all.known.iter().find(|(known, _)| *known == key) {
        return Ok(*pointer);
    }
    if all.used == STUBS {
        all.space = space()?;
        all.used = 0;
    }
    let stub = all.space as usize + all.used * STUB;
    let data = all.space as usize + PAGE as usize + all.used * 8;
    let address = (Box::leak(Box::new(entry)) as *const Entry as usize).to_ne_bytes();
    // SAFETY: a word of the space's own data, which nobody else has yet.
    let _ = unsafe { memory::copy(address.as_ptr() as usize, data, address.len()) };
    all.used += 1;
    all.known.push((key, stub));
    Ok(stub)
}

/// A page of stubs, and one of data behind it.
fn space() -> Result<u64, MapError> {
    let space = (below().reserve)(2 * PAGE, PAGE).ok_or(MapError::Refused)?;
    (below().open)(space..space + 2 * PAGE)?;
    for number in 0..STUBS {
        let distance = (PAGE as usize + number * 8) - (number * STUB + 11);
        // endbr64; mov rax, [rip + distance]; jmp [rax]
        let mut stub = [0xcc; STUB];
        stub[..7].copy_from_slice(&[0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8b, 0x05]);
        stub[7..11].copy_from_slice(&(distance as u32).to_le_bytes());
        stub[11..13].copy_from_slice(&[0xff, 0x20]);
        let to = space as usize + number * STUB;
        // SAFETY: pages that were just opened.
        let _ = unsafe { memory::copy(stub.as_ptr() as usize, to, STUB) };
    }
    (below().protect)(space..space + PAGE, Access::ReadExecute)?;
    Ok(space)
}
