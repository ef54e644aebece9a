//! Sites: places in the program's text that make calls. What a call costs by the kernel's signal is
//! many times the call itself, so sites that are used again are rewritten: a jump to a stub near by
//! ([`crate::near`]) takes the place of the one instruction *before* the `syscall`.
//!
//! Invariants, in whatever order threads run:
//!
//! - **No instruction is lost to who jumps to it.** The jump begins where that instruction did, and
//!   is that instruction then. Where it is longer, the bytes behind are those that were there: the
//!   `syscall`, and the first one of what follows. They are a part of the jump's distance, for
//!   which a stub is sought to which that distance leads. Whoever jumps to the `syscall`, or stands
//!   between the two, finds it as it was, and comes the slow way.
//! - **No thread sees half a jump.** What changes lies in one aligned word of 8 bytes, which
//!   processors fetch as a whole; or the process has one thread. Other sites stay as they are.
//! - **Nothing is written that is not the program's text**: a private mapping of a file, which is
//!   executed and not written. What programs generate stays as it is.
//!
//! Nothing that is remembered here is needed for a call to be right. A site whose text is gone is a
//! number that is seen no more, or that keeps the slow way.

use crate::decode::{self, Instruction, WINDOW};
use crate::stubs::{self, Kind};
use crate::system::{self, number, protection};
use crate::{maps, near};
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// At which of a site's calls it is rewritten: one that is used a few times costs less as it is.
const WORTH: u64 = 3;
/// What stands for the number of calls of a site that is looked at no more.
const SETTLED: u64 = 1 << 32;

/// Sites that are counted at most.
const KNOWN: usize = 1 << 12;
static SITES: [[AtomicU64; 2]; KNOWN] = [const { [const { AtomicU64::new(0) }; 2] }; KNOWN];

static ON: AtomicBool = AtomicBool::new(false);
/// There is, or was, more than one thread.
static THREADS: AtomicBool = AtomicBool::new(false);
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Sites are rewritten from now on.
pub fn begin() {
    ON.store(true, SeqCst);
}

/// Another thread of this memory begins.
pub fn threads() {
    THREADS.store(true, SeqCst);
}

/// No site is being rewritten until [`release`]: a copy of this memory is whole.
pub fn hold() {
    while TAKEN.swap(true, SeqCst) {
        core::hint::spin_loop();
    }
}

/// The end of that.
pub fn release() {
    TAKEN.store(false, SeqCst);
}

/// A call came the slow way, with this number, from before `back`.
pub fn came(back: u64, number: u64) {
    if !ON.load(SeqCst) || !is_due(back) || TAKEN.swap(true, SeqCst) {
        // Whoever rewrites another one: at a later call.
        return;
    }
    if rewrite(back, number).is_some() {
        crate::agent::places::note(crate::agent::places::REWRITTEN);
    }
    release();
}

/// Counts. Whether it is now to be rewritten, which is tried once.
fn is_due(back: u64) -> bool {
    let hash = (back.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
    for step in 0..8 {
        let [site, count] = &SITES[(hash + step) % KNOWN];
        let _ = site.compare_exchange(0, back, SeqCst, SeqCst);
        if site.load(SeqCst) == back {
            return count.load(SeqCst) < SETTLED && count.fetch_add(1, SeqCst) + 1 == WORTH;
        }
    }
    false
}

const SYSCALL: [u8; 2] = [0x0f, 0x05];
const JUMP: u8 = 0xe9;
/// Bytes of a jump.
const FIVE: usize = 5;

fn rewrite(back: u64, number: u64) -> Option<()> {
    // What is before the `syscall`, that, and the byte behind it.
    let mut bytes = [0; WINDOW + 3];
    let end = back.checked_sub(SYSCALL.len() as u64)?;
    let start = end.checked_sub(WINDOW as u64)?;
    if !system::read_program(start, &mut bytes) || bytes[WINDOW..WINDOW + 2] != SYSCALL {
        return None;
    }
    let (place, instruction) = decode::before(bytes.first_chunk()?)?;
    let text = &bytes[place..];
    if !may_move(&instruction, text, number) {
        return None;
    }
    // Behind another `syscall`: a jump's distance may end with this byte.
    if bytes[place.checked_sub(2)?..place] == SYSCALL {
        return None;
    }
    let at = start + place as u64;
    let changed = instruction.length.min(FIVE);
    let whole = at / 8 == (at + changed as u64 - 1) / 8;
    if !whole && THREADS.load(SeqCst) {
        return None;
    }
    if !maps::is_text(at, back + 1) {
        return None;
    }
    let passes = stubs::stub(back, Kind::Plain)?;
    let stub = near::take(reach(at, text.first_chunk()?, changed)?, at)?;
    let written = near::write(stub, &text[..instruction.length], passes, back);
    let distance = stub.wrapping_sub(at + FIVE as u64) as u32;
    let mut jump = [JUMP; FIVE];
    jump[1..].copy_from_slice(&distance.to_le_bytes());
    let fits = written && jump[changed..] == text[changed..FIVE];
    if !fits || !put(at, &jump[..changed], &text[..changed]) {
        near::give_back(stub);
        return None;
    }
    Some(())
}

/// Whether an instruction does elsewhere what it does here, and is one that stands before calls.
fn may_move(instruction: &Instruction, text: &[u8], number: u64) -> bool {
    const MOV_EAX: u8 = 0xb8;
    let Some(opcode) = instruction.simple else {
        return false;
    };
    if instruction.relative || !(2..=near::LONGEST).contains(&instruction.length) {
        return false;
    }
    match opcode {
        // It says which call it is.
        MOV_EAX if instruction.length == FIVE => text[1..FIVE] == (number as u32).to_le_bytes(),
        // add, or, and, sub, xor, cmp; movsxd; operations with constants; test, mov, lea; mov
        0x01 | 0x03 | 0x09 | 0x0b | 0x21 | 0x23 | 0x29 | 0x2b | 0x31 | 0x33 | 0x39 | 0x3b => true,
        0x63 | 0x81 | 0x83 | 0x85 | 0x89 | 0x8b | 0x8d | 0xb8..=0xbf | 0xc7 => true,
        _ => false,
    }
}

/// Where a jump can lead of whose five bytes only some change: the others are the upper ones of its
/// distance.
fn reach(at: u64, text: &[u8; FIVE], changed: usize) -> Option<RangeInclusive<u64>> {
    /// Less than 2 GiB by what a stub may be longer.
    const FURTHEST: i64 = (1 << 31) - 4096;
    let bound = |fill: u8| {
        let mut distance = [fill; 4];
        distance[changed - 1..].copy_from_slice(&text[changed..]);
        i64::from(i32::from_le_bytes(distance))
    };
    let (low, high) = match changed {
        FIVE => (-FURTHEST, FURTHEST),
        _ => (bound(0), bound(0xff)),
    };
    let from = at.checked_add(FIVE as u64)? as i64;
    let (low, high) = (from.checked_add(low)?.max(0), from.checked_add(high)?);
    (low <= high).then_some(low as u64..=high as u64)
}

/// Puts bytes in place of others. False if they are not there any more, or may not be changed.
fn put(at: u64, new: &[u8], old: &[u8]) -> bool {
    const PAGE: u64 = 4096;
    let start = at & !(PAGE - 1);
    let bytes = (at + new.len() as u64).next_multiple_of(PAGE) - start;
    let protect = |rights| {
        // SAFETY: text of the program's. Others execute it meanwhile, so it stays executable.
        unsafe { system::call(number::MPROTECT, [start, bytes, rights, 0, 0, 0]) }
    };
    let rights = protection::READ | protection::EXECUTE;
    if protect(rights | protection::WRITE) != 0 {
        return false;
    }
    let is_there = |(index, old): (usize, &u8)| {
        // SAFETY: in pages that are mapped.
        unsafe { ((at as usize + index) as *const u8).read_volatile() == *old }
    };
    let done = old.iter().enumerate().all(is_there);
    let last = (at + new.len() as u64 - 1) & !7;
    for place in (at & !7..=last).step_by(8).filter(|_| done) {
        // SAFETY: aligned, and in pages that are mapped and may be written.
        let word = unsafe { &*(place as *const AtomicU64) };
        let mut bytes = word.load(SeqCst).to_le_bytes();
        for (to, new) in (at..).zip(new) {
            if let Some(byte) = bytes.get_mut(to.wrapping_sub(place) as usize) {
                *byte = *new;
            }
        }
        word.store(u64::from_le_bytes(bytes), SeqCst);
    }
    protect(rights);
    done
}
