//! Near stubs: where the program's text jumps to instead of making a call. Each has the instruction
//! in whose place the jump is, and a record by which the dispatcher ([`crate::fast`]) finds what
//! else there is to know.
//!
//! ```text
//!   0   the instruction; lea r11, [record]; jmp [dispatcher]
//!   24  syscall: the slow way, since the kernel stops it; jmp [back]
//!   32  record: where the call is made that passes
//!   40          back: behind the program's own `syscall`
//!   48          0
//!   56          the dispatcher
//! ```
//!
//! They lie in pages near the text, which stay, and are never writable: the kernel writes there
//! for the loader, by `/proc/self/mem`. Where that is not there, no site is rewritten. A stub that
//! nobody jumps to any more is not used again, for somebody may have just jumped.

use crate::system::{self, map, protection};
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

const PAGE: u64 = 4096;
/// Bytes of a stub.
pub const SIZE: u64 = 64;
/// From the record to the slow way, and within the record to the way back.
pub const SLOW: i64 = -8;
pub const BACK: i64 = 8;

/// Where in a stub the slow way ends, as the kernel says where a call comes from.
const STOPPED: u64 = 26;
/// Bytes of the longest instruction that fits.
pub const LONGEST: usize = 11;

/// Pages at most.
const PAGES: usize = 512;

/// Addresses of pages, and which stubs of each are taken, by bits.
static ALL: [[AtomicU64; 2]; PAGES] = [const { [const { AtomicU64::new(0) }; 2] }; PAGES];
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn pages() -> &'static [[AtomicU64; 2]] {
    &ALL[..COUNT.load(SeqCst).min(PAGES)]
}

/// Takes a free stub of a page that begins in a range.
fn free(page: &[AtomicU64; 2], range: &RangeInclusive<u64>) -> Option<u64> {
    let [start, taken] = page;
    let (start, bits) = (start.load(SeqCst), taken.load(SeqCst));
    let fits = |index: &u64| bits & 1 << index == 0 && range.contains(&(start + SIZE * index));
    let index = (0..PAGE / SIZE).find(fits)?;
    taken.fetch_or(1 << index, SeqCst);
    Some(start + SIZE * index)
}

/// Takes a stub that begins in a range, as near to a place as may be. Its caller has the lock of
/// [`crate::sites`].
pub fn take(range: RangeInclusive<u64>, near: u64) -> Option<u64> {
    if let Some(at) = pages().iter().find_map(|page| free(page, &range)) {
        return Some(at);
    }
    let page = ALL.get(COUNT.load(SeqCst))?;
    let start = candidates(&range, near).find(|at| fresh(*at))?;
    page[0].store(start, SeqCst);
    page[1].store(0, SeqCst);
    COUNT.fetch_add(1, SeqCst);
    free(page, &range)
}

/// Pages that are tried, for all of a range: below the place first, where heaps do not grow to.
fn candidates(range: &RangeInclusive<u64>, near: u64) -> impl Iterator<Item = u64> + use<> {
    const TRIED: u64 = 16;
    /// As far as the heap of a program that lies at the bottom is to grow.
    const FAR: u64 = 64 << 20;
    let (low, high) = (*range.start(), *range.end());
    let inside = low <= near && near <= high;
    let spread = (high - low) / TRIED;
    let anywhere = (0..TRIED).map(move |step| low + step * spread);
    let below = (1..TRIED).map(move |step| near.saturating_sub(step * FAR));
    let above = (1..TRIED)
        .rev()
        .map(move |step| near.saturating_add(step * FAR));
    let around = below.chain(above).filter(move |_| inside);
    around
        .chain(anywhere)
        .chain([high])
        .filter(move |at| (low..=high).contains(at))
        .map(|at| at & !(PAGE - 1))
}

/// Maps a page there, if nothing is.
fn fresh(at: u64) -> bool {
    /// Below lies what nobody may map, above what is not the program's.
    const LOWEST: u64 = 64 << 10;
    let rights = protection::READ | protection::EXECUTE;
    let flags = map::PRIVATE | map::ANONYMOUS | map::FIXED_NOREPLACE;
    // SAFETY: where something is, nothing is replaced.
    at >= LOWEST && unsafe { system::mmap(at, PAGE, rights, flags, -1, 0) } == at as i64
}

/// Gives back a stub that nobody has heard of.
pub fn give_back(at: u64) {
    let start = at & !(PAGE - 1);
    for [page, taken] in pages() {
        if page.load(SeqCst) == start {
            taken.fetch_and(!(1 << ((at - start) / SIZE)), SeqCst);
        }
    }
}

/// Writes a stub that was just taken: the instruction, where the call passes, and the way back.
/// False: it cannot be written.
pub fn write(at: u64, instruction: &[u8], passes: u64, back: u64) -> bool {
    let mut code = [0xcc; SIZE as usize];
    let length = instruction.len().min(LONGEST);
    code[..length].copy_from_slice(&instruction[..length]);
    let jump = length + 7;
    // lea r11, [rip + to the record]; jmp [rip + to the dispatcher]
    code[length..length + 3].copy_from_slice(&[0x4c, 0x8d, 0x1d]);
    code[length + 3..jump].copy_from_slice(&(32 - jump as i32).to_le_bytes());
    code[jump..jump + 2].copy_from_slice(&[0xff, 0x25]);
    code[jump + 2..jump + 6].copy_from_slice(&(56 - (jump as i32 + 6)).to_le_bytes());
    // syscall; jmp [rip + to the way back]
    code[24..28].copy_from_slice(&[0x0f, 0x05, 0xff, 0x25]);
    code[28..32].copy_from_slice(&(40_i32 - 32).to_le_bytes());
    for (place, word) in [
        (32, passes),
        (40, back),
        (48, 0),
        (56, crate::fast::entry()),
    ] {
        code[place..place + 8].copy_from_slice(&word.to_le_bytes());
    }
    system::write_text(at, &code)
}

/// Where the program's own `syscall` ends, for a call that comes from there; of one that comes from
/// a stub's slow way, the stub's.
pub fn origin(from: u64) -> u64 {
    let start = from & !(PAGE - 1);
    let of_ours = |[page, taken]: &[AtomicU64; 2]| {
        page.load(SeqCst) == start && taken.load(SeqCst) & 1 << ((from - start) / SIZE) != 0
    };
    if from % SIZE != STOPPED || !pages().iter().any(of_ours) {
        return from;
    }
    let word = (from - STOPPED + 32 + BACK as u64) as *const u64;
    // SAFETY: in a stub that is written, and stays, unless the program unmaps what is not its own.
    unsafe { word.read() }
}
