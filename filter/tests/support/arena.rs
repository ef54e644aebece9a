//! How much an arena must have for what a thread does: pieces are of powers of two bytes, one that
//! was given back is used again for its size only, and nothing is ever joined. As Aegis's kernel
//! allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// By size: pieces that are free; and bytes of all that were ever taken.
#[derive(Clone, Copy)]
struct Arena {
    free: [u32; 64],
    bytes: usize,
}

thread_local! {
    static ARENA: Cell<Option<Arena>> = const { Cell::new(None) };
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

/// Bytes that an arena needs for this, and its result.
pub fn room<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let none = Arena {
        free: [0; 64],
        bytes: 0,
    };
    ARENA.set(Some(none));
    let result = work();
    (ARENA.take().map_or(0, |arena| arena.bytes), result)
}

fn size(layout: Layout) -> usize {
    layout
        .size()
        .max(layout.align())
        .max(16)
        .next_power_of_two()
}

fn count(work: impl FnOnce(&mut Arena)) {
    if let Some(mut arena) = ARENA.get() {
        work(&mut arena);
        ARENA.set(Some(arena));
    }
}

// SAFETY: the system's allocator, and a count that allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let size = size(layout);
        count(|arena| match &mut arena.free[size.ilog2() as usize] {
            0 => arena.bytes += size,
            free => *free -= 1,
        });
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        count(|arena| arena.free[size(layout).ilog2() as usize] += 1);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(piece, layout) }
    }
}
