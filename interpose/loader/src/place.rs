//! Programs put into memory, as the kernel would.

use crate::elf::Elf;
use crate::system::{self, map, number, protection};

/// A program in memory.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// Its first instruction.
    pub entry: u64,
    /// The lowest of its pages.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// Where its table of segments is, or 0.
    pub table: u64,
}

/// Why it could not be.
#[derive(Clone, Copy, Debug)]
pub enum Failed {
    /// Something lies where it has to.
    Taken,
    /// The kernel refuses.
    System,
}

/// Maps a program. One that may lie anywhere begins at `wish` if nothing is there; 0 is no wish.
pub fn place(elf: &Elf, file: i32, wish: u64) -> Result<Placed, Failed> {
    let (low, high) = elf.span();
    let bytes = high - low;
    let flags = map::PRIVATE | map::ANONYMOUS | map::NORESERVE;
    let reserve = |at, flags| {
        // SAFETY: without `FIXED`, so nothing is replaced.
        unsafe { system::mmap(at, bytes, 0, flags, -1, 0) }
    };
    let start = if elf.movable {
        match reserve(wish, flags) {
            at if at < 0 => return Err(Failed::System),
            at => at as u64,
        }
    } else {
        match reserve(low, flags | map::FIXED_NOREPLACE) {
            at if at as u64 == low => low,
            _ => return Err(Failed::Taken),
        }
    };
    let shift = start.wrapping_sub(low);
    for segment in elf.segments() {
        let at = (segment.at & !4095).wrapping_add(shift);
        let begin = segment.at.wrapping_add(shift);
        let filled = begin + segment.filled;
        let end = (begin + segment.bytes).next_multiple_of(4096);
        let file_end = filled.next_multiple_of(4096);
        let mut rights = 0;
        for (bit, right) in [
            (4, protection::READ),
            (2, protection::WRITE),
            (1, protection::EXECUTE),
        ] {
            rights |= if segment.flags & bit != 0 { right } else { 0 };
        }
        let check = |result: i64| {
            if result < 0 {
                Err(Failed::System)
            } else {
                Ok(())
            }
        };
        let exact = map::PRIVATE | map::FIXED;
        if segment.filled > 0 {
            let bytes = file_end - at;
            // SAFETY: in the range that was reserved.
            check(unsafe { system::mmap(at, bytes, rights, exact, file, segment.offset & !4095) })?;
        }
        if segment.bytes > segment.filled {
            if segment.filled > 0 && filled < file_end && rights & protection::WRITE != 0 {
                // SAFETY: the rest of the segment's last page of the file, which nobody else has.
                unsafe {
                    core::ptr::write_bytes(filled as *mut u8, 0, (file_end - filled) as usize)
                };
            }
            let from = if segment.filled > 0 { file_end } else { at };
            if from < end {
                let exact = exact | map::ANONYMOUS;
                // SAFETY: in the range that was reserved.
                check(unsafe { system::mmap(from, end - from, rights, exact, -1, 0) })?;
            }
        }
    }
    let with_table = elf.segments().iter().find(|segment| {
        let end = segment.offset + segment.filled;
        (segment.offset..end).contains(&elf.table.0)
    });
    let table = with_table.map_or(0, |segment| {
        elf.table.0 - segment.offset + segment.at.wrapping_add(shift)
    });
    Ok(Placed {
        entry: elf.entry.wrapping_add(shift),
        start,
        end: start + bytes,
        table,
    })
}

/// The program's break: its heap, which grows from behind its data, and is not the kernel's, whose
/// is behind the loader's.
pub mod heap {
    use super::{map, number, protection, system};
    use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

    static START: AtomicU64 = AtomicU64::new(0);
    static END: AtomicU64 = AtomicU64::new(0);

    /// It begins there.
    pub fn begin(at: u64) {
        START.store(at, SeqCst);
        END.store(at, SeqCst);
    }

    /// The call `brk`: the end as it is then.
    pub fn brk(wanted: u64) -> u64 {
        let (start, now) = (START.load(SeqCst), END.load(SeqCst));
        if wanted < start {
            return now;
        }
        let (old, new) = (now.next_multiple_of(4096), wanted.next_multiple_of(4096));
        if new > old {
            let rights = protection::READ | protection::WRITE;
            let flags = map::PRIVATE | map::ANONYMOUS | map::FIXED_NOREPLACE;
            // SAFETY: where something is, nothing is replaced.
            let at = unsafe { system::mmap(old, new - old, rights, flags, -1, 0) };
            if at as u64 != old {
                return now;
            }
        } else if new < old {
            // SAFETY: pages of the program's heap, which gives them back.
            unsafe { system::call(number::MUNMAP, [new, old - new, 0, 0, 0, 0]) };
        }
        END.store(wanted, SeqCst);
        wanted
    }
}
