//! The file that all processes of a tree share: what agents write, and whose each data stack is.
//!
//! ```text
//!   0      who has which data stack: numbers of threads
//!   4 KiB  whether the agent has begun; what is wanted; counts of calls and sites
//!   8 KiB  the agent's arguments: bytes, then each with a zero
//!   56 KiB the process of each data stack's thread
//!   60 KiB how often each thread has entered or left the agent: odd while it is inside
//!   64 KiB the window from the image's data stack on
//! ```

use crate::system::{self, map, number, protection};
use crate::thread::Block;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

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
/// What is wanted, by bits.
const WANTED: usize = 1025;
/// No site is rewritten.
pub const SLOW: u32 = 1;
/// The counts are printed at the end.
pub const STATS: u32 = 2;
/// Programs are not told of the kernel's vDSO, so that they ask by calls.
pub const NO_VDSO: u32 = 4;
/// Counts: sites that were rewritten, and calls that the kernel stopped.
pub const REWRITTEN: usize = 1026;
pub const STOPPED: usize = 1027;
/// Threads that ended in the agent.
pub const ENDED: usize = 1028;

/// Descriptors that are the agent's in all processes: their numbers and one more.
const KEPT: core::ops::Range<usize> = 1028..1036;

/// A descriptor is the agent's from now on: no program of the tree closes it. False if it has too
/// many.
pub fn keep(file: u32) -> bool {
    let mut free = KEPT.filter(|place| {
        let taken = word(*place).compare_exchange(0, file + 1, SeqCst, SeqCst);
        taken.is_ok()
    });
    free.next().is_some()
}

/// Those that are.
pub fn kept() -> impl Iterator<Item = i32> {
    KEPT.map(|place| word(place).load(SeqCst) as i32 - 1)
}

/// Whether something is wanted.
pub fn is_wanted(bit: u32) -> bool {
    word(WANTED).load(SeqCst) & bit != 0
}

/// One more.
pub fn note(count: usize) {
    word(count).fetch_add(1, SeqCst);
}

/// How many.
pub fn noted(count: usize) -> u32 {
    word(count).load(SeqCst)
}

/// The arguments' length.
const ARGUMENTS: usize = 2048;

/// The agent's arguments, each with a zero.
pub fn arguments() -> &'static [u8] {
    let bytes = word(ARGUMENTS)
        .load(SeqCst)
        .min(4 * (PROCESSES - ARGUMENTS) as u32 - 4);
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

const PROCESSES: usize = 14 << 10;
const ENTRIES: usize = 15 << 10;

/// A thread enters the agent, or leaves it. Whoever started the tree looks from time to time who
/// has been inside for long.
pub fn passes(place: usize) {
    if place < STACKS {
        let entries = word(ENTRIES + place);
        // No other thread writes it.
        entries.store(entries.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

/// What an agent has the kernel do on the calling thread: it may wait there.
pub fn outside<T>(what: impl FnOnce() -> T) -> T {
    let place = Block::mine().place();
    passes(place);
    let result = what();
    passes(place);
    result
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
    let place = (0..STACKS).find(free)?;
    word(PROCESSES + place).store(system::process() as u32, Relaxed);
    let entries = word(ENTRIES + place);
    if entries.load(Relaxed) % 2 == 1 {
        // Whoever had it was killed inside.
        note(ENDED);
        entries.fetch_add(1, Relaxed);
    }
    Some(place)
}

/// Gives one back.
pub fn give_back(place: usize) {
    if place < STACKS {
        word(place).store(0, SeqCst);
    }
}

/// Whether no thread has this number.
pub fn has_ended(thread: u32) -> bool {
    const KILL: u64 = 62;
    const NO_SUCH: i64 = -3;
    // SAFETY: no signal is sent.
    unsafe { system::call(KILL, [thread.into(), 0, 0, 0, 0, 0]) == NO_SUCH }
}

/// Where addresses are asked for: far above the loader, so that around programs and libraries there
/// is room for the stubs of their sites.
static FAR: AtomicU64 = AtomicU64::new(0x7e10_0000_0000);

/// Addresses for windows, from a multiple on.
pub fn reserve(bytes: u64, alignment: u64) -> Option<u64> {
    let flags = map::PRIVATE | map::ANONYMOUS | map::NORESERVE;
    let wish = FAR.fetch_add((bytes + alignment).next_multiple_of(4096), SeqCst);
    // SAFETY: nothing is replaced.
    let at = unsafe { system::mmap(wish, bytes + alignment, 0, flags, -1, 0) };
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
