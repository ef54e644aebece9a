//! Memory of the window, by the C library's functions. Whoever calls is in the stack's lock.

use core::alloc::{GlobalAlloc, Layout};

unsafe extern "C" {
    fn malloc(bytes: usize) -> *mut u8;
    fn memalign(alignment: usize, bytes: usize) -> *mut u8;
    fn free(at: *mut u8);
    fn realloc(at: *mut u8, bytes: usize) -> *mut u8;
}

/// What the C library's `malloc` is aligned to.
const ALIGNMENT: usize = 16;

struct Library;

// SAFETY: the C library keeps what its functions promise, which is what is wanted here.
unsafe impl GlobalAlloc for Library {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any sizes are taken.
        unsafe {
            match layout.align() {
                ..=ALIGNMENT => malloc(layout.size()),
                alignment => memalign(alignment, layout.size()),
            }
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, _: Layout) {
        // SAFETY: the caller's promise: it is from above.
        unsafe { free(at) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if layout.align() <= ALIGNMENT {
            // SAFETY: the caller's promise: it is from above.
            return unsafe { realloc(at, bytes) };
        }
        // SAFETY: as for any allocator.
        unsafe {
            let new = memalign(layout.align(), bytes);
            if !new.is_null() {
                core::ptr::copy_nonoverlapping(at, new, layout.size().min(bytes));
                free(at);
            }
            new
        }
    }
}

#[global_allocator]
static HEAP: Library = Library;
