//! The loader's own memory: sizes by powers of two, from pages that stay.

use crate::system;
use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicBool, Ordering};

/// Sizes from 16 bytes to 64 KiB; what is larger has pages of its own.
const CLASSES: usize = 13;
const LARGEST: usize = 16 << (CLASSES - 1);
/// Bytes that are asked of the kernel at once.
const PIECE: usize = 256 << 10;

struct State {
    free: [*mut u8; CLASSES],
    next: usize,
    end: usize,
}

struct Memory {
    taken: AtomicBool,
    state: core::cell::UnsafeCell<State>,
}

// SAFETY: the state is touched by whoever has the lock.
unsafe impl Sync for Memory {}

#[global_allocator]
static MEMORY: Memory = Memory {
    taken: AtomicBool::new(false),
    state: core::cell::UnsafeCell::new(State {
        free: [core::ptr::null_mut(); CLASSES],
        next: 0,
        end: 0,
    }),
};

/// Waits for the lock. Signals are blocked wherever memory is asked for, so nobody waits for the
/// thread that it interrupted.
pub fn hold() {
    while MEMORY.taken.swap(true, Ordering::Acquire) {
        core::hint::spin_loop();
    }
}

/// Gives it back.
pub fn release() {
    MEMORY.taken.store(false, Ordering::Release);
}

fn class(layout: Layout) -> usize {
    let size = layout
        .size()
        .max(layout.align())
        .max(16)
        .next_power_of_two();
    size.trailing_zeros() as usize - 4
}

// SAFETY: blocks of a class are as large and as aligned as the class, and in one list or with one
// owner.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let class = class(layout);
        if class >= CLASSES {
            let at = system::fresh(layout.size() as u64).unwrap_or(0);
            return match layout.align() <= 4096 {
                true => at as *mut u8,
                false => core::ptr::null_mut(),
            };
        }
        hold();
        // SAFETY: the lock is held.
        let state = unsafe { &mut *self.state.get() };
        let size = 16 << class;
        let mut block = state.free[class];
        if !block.is_null() {
            // SAFETY: a free block begins with the next one's address.
            state.free[class] = unsafe { block.cast::<*mut u8>().read() };
        } else {
            let mut at = state.next.next_multiple_of(size);
            if at + size > state.end {
                at = system::fresh(PIECE as u64).unwrap_or(0) as usize;
                state.end = at + if at == 0 { 0 } else { PIECE };
            }
            if at != 0 {
                state.next = at + size;
                block = at as *mut u8;
            }
        }
        release();
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let class = class(layout);
        if class >= CLASSES {
            // SAFETY: pages of its own.
            unsafe {
                let bytes = layout.size() as u64;
                system::call(system::number::MUNMAP, [block as u64, bytes, 0, 0, 0, 0]);
            }
            return;
        }
        hold();
        // SAFETY: the lock is held; the block is free from now on.
        unsafe {
            let state = &mut *self.state.get();
            block.cast::<*mut u8>().write(state.free[class]);
            state.free[class] = block;
        }
        release();
    }
}

const _: () = assert!(LARGEST < PIECE);
