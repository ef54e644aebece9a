//! The file that all processes of a tree share: what agents write, and whose each data stack is.
//!
//! ```text
//!   0      who has which data stack: numbers of threads
//!   4 KiB  whether the agent has begun, and whether programs have no vDSO
//!   8 KiB  the agent's arguments: bytes, then each with a zero
//!   64 KiB the window from the image's data stack on
//! ```

use crate::system::{self, map, number, protection};
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::SeqCst};

/// Threads that can have a data stack at once, in all processes.
pub const STACKS: usize = 1024;
/// Bytes before the window's.
const BEFORE: u64 = 64 << 10;

static FILE: AtomicI32 = AtomicI32::new(-1);
static WORDS: AtomicU64 = AtomicU64::new(0);
/// Where the window's part begins in memory.
static START: AtomicU64 = AtomicU64::new(0);

/// Takes the file, for a window with so many bytes that are written. Whether nobody has had it
/// before; `None`: there is no memory.
pub fn begin(file: i32, bytes: u64) -> Option<bool> {
    const FTRUNCATE: u64 = 77;
    let rights = protection::READ | protection::WRITE;
    // SAFETY: a file of the tree's own; its words are atomics.
    unsafe {
        let words = system::mmap(0, BEFORE, rights, map::SHARED, file, 0);
        if words < 0 {
            return None;
        }
        FILE.store(file, SeqCst);
        WORDS.store(words as u64, SeqCst);
        let fresh = word(BEGUN).swap(1, SeqCst) == 0;
        if fresh && system::call(FTRUNCATE, [file as u64, BEFORE + bytes, 0, 0, 0, 0]) < 0 {
            return None;
        }
        Some(fresh)
    }
}

/// The word that says whether the agent has begun.
const BEGUN: usize = 1024;
/// The word that says whether programs are not told of the kernel's vDSO.
const NO_VDSO: usize = 1025;
/// The arguments' length.
const ARGUMENTS: usize = 2048;

/// Whether programs are not told of the kernel's vDSO, so that they ask by calls.
pub fn no_vdso() -> bool {
    word(NO_VDSO).load(SeqCst) != 0
}

/// The agent's arguments, each with a zero.
pub fn arguments() -> &'static [u8] {
    let bytes = word(ARGUMENTS)
        .load(SeqCst)
        .min(BEFORE as u32 - 4 * ARGUMENTS as u32 - 4);
    let start = WORDS.load(SeqCst) as *const u8;
    // SAFETY: nobody writes them any more.
    unsafe { core::slice::from_raw_parts(start.add(4 * ARGUMENTS + 4), bytes as usize) }
}

/// Maps the window's part at an address.
pub fn map(start: u64, end: u64) -> bool {
    let rights = protection::READ | protection::WRITE;
    let file = FILE.load(SeqCst);
    // SAFETY: in a window that was reserved.
    let at = unsafe {
        system::mmap(
            start,
            end - start,
            rights,
            map::SHARED | map::FIXED,
            file,
            BEFORE,
        )
    };
    START.store(start, SeqCst);
    at as u64 == start
}

fn word(place: usize) -> &'static AtomicU32 {
    let words = WORDS.load(SeqCst) as *const AtomicU32;
    // SAFETY: the file's first pages, mapped for good; places are in them.
    unsafe { &*words.add(place) }
}

/// Takes a data stack for a thread: its number.
pub fn take(thread: u32) -> Option<usize> {
    let free = |place: &usize| {
        let word = word(*place);
        let before = word.load(SeqCst);
        (before == 0 || has_ended(before))
            && word
                .compare_exchange(before, thread, SeqCst, SeqCst)
                .is_ok()
    };
    (0..STACKS).find(free)
}

/// Gives one back.
pub fn give_back(place: usize) {
    if place < STACKS {
        word(place).store(0, SeqCst);
    }
}

/// Whether no thread has this number.
fn has_ended(thread: u32) -> bool {
    const KILL: u64 = 62;
    const NO_SUCH: i64 = -3;
    // SAFETY: no signal is sent.
    unsafe { system::call(KILL, [thread.into(), 0, 0, 0, 0, 0]) == NO_SUCH }
}

/// Addresses for windows, from a multiple on.
pub fn reserve(bytes: u64, alignment: u64) -> Option<u64> {
    let flags = map::PRIVATE | map::ANONYMOUS | map::NORESERVE;
    // SAFETY: nothing is replaced.
    let at = unsafe { system::mmap(0, bytes + alignment, 0, flags, -1, 0) };
    if at < 0 {
        return None;
    }
    let (at, end) = (at as u64, at as u64 + bytes + alignment);
    let start = at.next_multiple_of(alignment);
    // SAFETY: what is not used of it.
    unsafe {
        if start > at {
            system::call(number::MUNMAP, [at, start - at, 0, 0, 0, 0]);
        }
        if end > start + bytes {
            system::call(
                number::MUNMAP,
                [start + bytes, end - start - bytes, 0, 0, 0, 0],
            );
        }
    }
    Some(start)
}
