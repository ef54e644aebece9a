//! The heap's words, which the allocator's crate keeps in order.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, Ordering};

use linked_list_allocator::Heap;

use super::{first, grow};

struct Memory {
    used: AtomicBool,
    heap: UnsafeCell<Heap>,
}

// SAFETY: the heap is touched only by who has set `used`.
unsafe impl Sync for Memory {}

#[global_allocator]
static MEMORY: Memory = Memory {
    used: AtomicBool::new(false),
    heap: UnsafeCell::new(Heap::empty()),
};

impl Memory {
    /// Does something with the heap, which nobody uses meanwhile; `None` if it is used.
    fn with<T>(&self, work: impl FnOnce(&mut Heap) -> T) -> Option<T> {
        if self.used.swap(true, Ordering::Acquire) {
            return None;
        }
        // SAFETY: this one has set `used`, and takes it back when the reference is gone.
        let result = work(unsafe { &mut *self.heap.get() });
        self.used.store(false, Ordering::Release);
        Some(result)
    }
}

/// A piece of the heap, which grows if there is none.
fn take(heap: &mut Heap, layout: Layout) -> Option<NonNull<u8>> {
    if let Ok(piece) = heap.allocate_first_fit(layout) {
        return Some(piece);
    }
    let came = grow(layout.size().checked_add(layout.align())?);
    match heap.size() {
        _ if came == 0 => {}
        // SAFETY: the pages were just bound there, to be written, and are never unbound; nobody
        // else has these addresses.
        0 => unsafe { heap.init(first() as *mut u8, came) },
        // SAFETY: as above, and they follow those that the heap has.
        _ => unsafe { heap.extend(came) },
    }
    heap.allocate_first_fit(layout).ok()
}

// SAFETY: pieces are the allocator's, which gives each to one only, as large and aligned as asked.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let piece = self.with(|heap| take(heap, layout)).flatten();
        piece.map_or(null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        if let Some(piece) = NonNull::new(piece) {
            // SAFETY: the caller has it of `alloc` with this layout. If the heap is used meanwhile
            // it is lost.
            self.with(|heap| unsafe { heap.deallocate(piece, layout) });
        }
    }
}

/// The compiled `alloc` names it for cleaning up after panics; nothing unwinds here.
// SAFETY: no other symbol of this name is linked.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    postern_aegis::start::exit()
}
