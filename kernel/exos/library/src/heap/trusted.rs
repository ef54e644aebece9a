//! The allocator: C's.

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;

unsafe extern "C" {
    fn memalign(alignment: usize, bytes: usize) -> *mut c_void;
    fn malloc(bytes: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
}

struct Heap;

/// What C's `malloc` aligns to.
const ALIGNED: usize = 16;

// SAFETY: C's functions give each piece to one only, as large and aligned as asked.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: no size is wrong for either, and alignments are powers of two.
        let memory = unsafe {
            match layout.align() <= ALIGNED {
                true => malloc(layout.size()),
                false => memalign(layout.align(), layout.size()),
            }
        };
        memory.cast()
    }

    unsafe fn dealloc(&self, memory: *mut u8, _: Layout) {
        // SAFETY: the caller has it of `alloc`.
        unsafe { free(memory.cast()) }
    }
}

#[global_allocator]
static HEAP: Heap = Heap;

/// The compiled `alloc` names it for cleaning up after panics; nothing unwinds here.
// SAFETY: no other symbol of this name is linked.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    postern_aegis::start::exit()
}
