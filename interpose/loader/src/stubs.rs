//! Places from which calls are made that an agent lets pass: a `syscall` of their own for each
//! place in the program, and the way back.
//!
//! They lie behind the loader, from where the kernel lets calls pass, and are never changed once
//! they are known to others.

use crate::system::{self, map, protection};
use crate::{deferred, trap};
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Where the kernel lets calls pass: the loader and its stubs.
pub const OWN: u64 = 0x7e00_0000_0000;
/// Bytes of that.
pub const OWN_BYTES: u64 = 64 << 20;
/// Where they begin.
pub const START: u64 = OWN + (32 << 20);
const END: u64 = OWN + OWN_BYTES;

/// Behind that, two instructions `syscall` that the kernel stops ([`crate::after`]): calls come
/// back there, and those whose child has the caller's memory.
pub const BEHIND: u64 = END;
pub const BEHIND_SHARED: u64 = END + 16;
const BEHIND_BYTES: u64 = 4096;

/// Places that are known, at most: the others get a stub at each call, until there is no room.
const KNOWN: usize = 1 << 14;

static NEXT: AtomicU64 = AtomicU64::new(START);
static SITES: [[AtomicU64; 2]; KNOWN] = [const { [const { AtomicU64::new(0) }; 2] }; KNOWN];

/// What a stub is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Kind {
    /// The call, and back.
    Plain = 0,
    /// The call makes a process whose maker waits, and whose calls are to be stopped: what the
    /// loader has of the maker's thread is used by both.
    Guest = 1,
    /// A handler of the program's for faults, in front of which it is seen whose fault it is.
    Fault = 2,
    /// As `Guest`, but the maker comes back to [`BEHIND_SHARED`].
    GuestBehind = 3,
    /// A handler for other signals, in front of which it is seen whether they are put off.
    Signal = 4,
}

/// Makes room for them. False if there is none.
pub fn prepare() -> bool {
    let rights = protection::READ | protection::WRITE | protection::EXECUTE;
    let flags = map::PRIVATE | map::ANONYMOUS | map::NORESERVE | map::FIXED_NOREPLACE;
    let bytes = END - START + BEHIND_BYTES;
    // SAFETY: where something is, nothing is replaced.
    if unsafe { system::mmap(START, bytes, rights, flags, -1, 0) } != START as i64 {
        return false;
    }
    for at in [BEHIND, BEHIND_SHARED] {
        // SAFETY: pages that were just made.
        unsafe { (at as *mut [u8; 2]).write([0x0f, 0x05]) };
    }
    true
}

/// The stub for the place behind whose `syscall` the program goes on at `back`.
pub fn stub(back: u64, kind: Kind) -> Option<u64> {
    // Addresses of programs have the upper bits free.
    let key = back << 3 | kind as u64;
    let hash = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
    for step in 0..16 {
        let [site, place] = &SITES[(hash + step) % KNOWN];
        let known = site.load(SeqCst);
        let claimed = known == 0 && site.compare_exchange(0, key, SeqCst, SeqCst).is_ok();
        if !claimed && site.load(SeqCst) != key {
            continue;
        }
        // Two threads may both make one: either is right.
        return match place.load(SeqCst) {
            0 => {
                let made = make(back, kind)?;
                place.store(made, SeqCst);
                Some(made)
            }
            made => Some(made),
        };
    }
    make(back, kind)
}

/// Where a stub has the handler of the program's.
const HANDLER: usize = 2;

/// The handler behind a stub, or what is no stub as it is.
pub fn handler(stub: u64) -> u64 {
    match (START..END).contains(&stub) {
        // SAFETY: stubs for handlers are the only ones that the kernel knows as such.
        true => unsafe { ((stub as usize + HANDLER) as *const u64).read_unaligned() },
        false => stub,
    }
}

fn make(back: u64, kind: Kind) -> Option<u64> {
    const SIZE: u64 = 48;
    let at = NEXT.fetch_add(SIZE, SeqCst);
    if at + SIZE > END {
        return None;
    }
    let mut code = [0xcc_u8; SIZE as usize];
    match kind {
        Kind::Plain => {
            // syscall; jmp [rip]; back
            code[..8].copy_from_slice(&[0x0f, 0x05, 0xff, 0x25, 0, 0, 0, 0]);
            code[8..16].copy_from_slice(&back.to_le_bytes());
        }
        Kind::Fault | Kind::Signal => {}
        Kind::Guest | Kind::GuestBehind => {
            // syscall; test rax, rax; je 1f; jmp [rip + 19]; 1: mov r11, [rip + 12];
            // jmp [rip + 14]; back; child
            code[..7].copy_from_slice(&[0x0f, 0x05, 0x48, 0x85, 0xc0, 0x74, 0x06]);
            code[7..13].copy_from_slice(&[0xff, 0x25, 19, 0, 0, 0]);
            code[13..20].copy_from_slice(&[0x4c, 0x8b, 0x1d, 12, 0, 0, 0]);
            code[20..26].copy_from_slice(&[0xff, 0x25, 14, 0, 0, 0]);
            code[32..40].copy_from_slice(&back.to_le_bytes());
            code[40..48].copy_from_slice(&trap::guest().to_le_bytes());
            if kind == Kind::GuestBehind {
                // Instead of the first jmp, one to there.
                let distance = (BEHIND_SHARED - (at + 12)) as u32;
                code[7] = 0xe9;
                code[8..12].copy_from_slice(&distance.to_le_bytes());
            }
        }
    }
    if let Kind::Fault | Kind::Signal = kind {
        // mov r11, handler; jmp [rip]; entry
        code[..2].copy_from_slice(&[0x49, 0xbb]);
        code[HANDLER..HANDLER + 8].copy_from_slice(&back.to_le_bytes());
        code[10..16].copy_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
        code[16..24].copy_from_slice(&deferred::entry(kind).to_le_bytes());
    }
    // SAFETY: room that was just taken, and that nobody else knows.
    unsafe { core::ptr::copy_nonoverlapping(code.as_ptr(), at as *mut u8, SIZE as usize) };
    Some(at)
}
