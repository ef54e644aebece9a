//! Plain C function pointers: Palladium's *Prepare* stubs (section 4.5.1 of that paper, there generated code).
//!
//! A stub is sixteen bytes: load the address of its data, jump to the gate that the data names. All pages of stubs are equal,
//! because each finds its data at a fixed distance, so no code is ever written: a page of stubs is mapped from a sealed file.
//! Stubs and their entries live for good: a function pointer that outlives its domain is refused, not dangling.

use super::control::Entry;
use super::map::{self, MapError};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard};

const PAGE: usize = 4096;
const STUB: usize = 16;
const STUBS: usize = PAGE / STUB;

pub(crate) struct Stubs {
    template: File,
    page: usize,
    used: usize,
}

static STUBS_IN_USE: Mutex<Option<Stubs>> = Mutex::new(None);

/// The page of stubs that is being filled, locked.
pub(crate) fn stubs() -> MutexGuard<'static, Option<Stubs>> {
    STUBS_IN_USE.lock().unwrap_or_else(|e| e.into_inner())
}

/// `mov rax, [rip + d]; jmp [rax]`, where d leads to the pointer in the page behind.
fn template() -> std::io::Result<File> {
    let mut file = super::machine::memory_file(c"postern-stubs", true)?;
    let mut code = [0xccu8; PAGE];
    for i in 0..STUBS {
        // The pointer of stub i lies at page + PAGE + 8*i; rip is that of the next instruction.
        let distance = (PAGE + 8 * i) - (STUB * i + 11);
        let stub = &mut code[STUB * i..STUB * i + STUB];
        stub[..4].copy_from_slice(&[0xf3, 0x0f, 0x1e, 0xfa]);
        stub[4..7].copy_from_slice(&[0x48, 0x8b, 0x05]);
        stub[7..11].copy_from_slice(&(distance as u32).to_le_bytes());
        stub[11..13].copy_from_slice(&[0xff, 0x20]);
    }
    file.write_all(&code)?;
    super::machine::seal(&file)?;
    Ok(file)
}

/// A C function pointer that calls `entry`, whose first word must name a masked gate.
pub(crate) fn make(entry: &'static Entry) -> Result<usize, MapError> {
    let refused = |e: std::io::Error| MapError::Refused {
        what: "make a stub page",
        bytes: PAGE,
        reason: e.to_string(),
    };
    let mut guard = stubs();
    let stubs = match guard.as_mut() {
        Some(stubs) => stubs,
        None => guard.insert(Stubs {
            template: template().map_err(refused)?,
            page: 0,
            used: STUBS,
        }),
    };
    if stubs.used == STUBS {
        debug_assert!(stubs.template.as_raw_fd() >= 0);
        let page = map::reserve(2 * PAGE)? as usize;
        map::place(
            page,
            PAGE,
            map::Protection::ReadExecute,
            Some((stubs.template.as_fd(), 0)),
        )?;
        map::place(page + PAGE, PAGE, map::Protection::ReadWrite, None)?;
        stubs.page = page;
        stubs.used = 0;
    }
    let i = stubs.used;
    stubs.used += 1;
    let stub = stubs.page + STUB * i;
    point(stub, std::ptr::from_ref(entry).cast_mut());
    Ok(stub)
}

/// Lets a stub that [`make`] gave call another entry, which lives for good, too.
pub(crate) fn point(stub: usize, entry: *mut Entry) {
    let page = stub & !(PAGE - 1);
    let i = stub % PAGE / STUB;
    // SAFETY: `make` mapped the data page behind the stub's for good; it holds STUBS words, which are written here only, and which
    // the stub's code reads in one go.
    let word = unsafe { &*((page + PAGE) as *const AtomicPtr<Entry>).add(i) };
    word.store(entry, Ordering::SeqCst);
}
