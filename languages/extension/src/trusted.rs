//! The unsafe parts: the heap of the window, and slices of what the host passes. They decide
//! nothing about confinement: whoever gives a wrong slice gives one of the extension's own memory.

/// A slice that a host passed as an address and a size.
///
/// # Safety
/// Only for what `#[postern::export]` writes: nobody has the bytes for other purposes meanwhile.
#[doc(hidden)]
pub unsafe fn slice<'a>(at: *const u8, size: usize) -> &'a [u8] {
    if at.is_null() || size == 0 {
        return &[];
    }
    // SAFETY: the host says that so many bytes are there, as a caller in C does, and waits for the
    // result. Whatever lies there, it is of this window.
    unsafe { core::slice::from_raw_parts(at, size) }
}

/// The same of bytes that may be changed.
///
/// # Safety
/// As for [`slice`].
#[doc(hidden)]
pub unsafe fn slice_mut<'a>(at: *mut u8, size: usize) -> &'a mut [u8] {
    if at.is_null() || size == 0 {
        return &mut [];
    }
    // SAFETY: as in `slice`; the host passes no bytes twice in one call.
    unsafe { core::slice::from_raw_parts_mut(at, size) }
}

#[cfg(all(postern, not(feature = "std")))]
mod without_std {
    use core::alloc::{GlobalAlloc, Layout};
    use core::fmt::Write;
    use core::panic::PanicInfo;

    unsafe extern "C" {
        fn malloc(size: usize) -> *mut u8;
        fn calloc(count: usize, size: usize) -> *mut u8;
        fn realloc(block: *mut u8, size: usize) -> *mut u8;
        fn memalign(alignment: usize, size: usize) -> *mut u8;
        fn free(block: *mut u8);
        fn __postern_abort(reason: *const u8) -> !;
    }

    /// What `malloc` aligns to.
    const ALIGNED: usize = 16;

    /// The heap of the window.
    struct Heap;

    // SAFETY: these are the functions of the C library, which keep the contract of allocators; a
    // stricter alignment than theirs is asked of `memalign`, whose blocks `free` takes, too.
    unsafe impl GlobalAlloc for Heap {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: any size is allowed.
            unsafe {
                match layout.align() <= ALIGNED {
                    true => malloc(layout.size()),
                    false => memalign(layout.align(), layout.size()),
                }
            }
        }

        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            // SAFETY: any size is allowed; what `alloc` gave has as many bytes.
            unsafe {
                if layout.align() <= ALIGNED {
                    return calloc(1, layout.size());
                }
                let block = self.alloc(layout);
                if !block.is_null() {
                    block.write_bytes(0, layout.size());
                }
                block
            }
        }

        unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
            // SAFETY: the block is of one of these functions, by the caller's duty.
            unsafe { free(block) }
        }

        unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            // SAFETY: the block is of one of these functions, by the caller's duty, and has as many
            // bytes as its layout says.
            unsafe {
                if layout.align() <= ALIGNED {
                    return realloc(block, size);
                }
                let other = memalign(layout.align(), size);
                if !other.is_null() {
                    block.copy_to_nonoverlapping(other, layout.size().min(size));
                    free(block);
                }
                other
            }
        }
    }

    #[global_allocator]
    static HEAP: Heap = Heap;

    /// Text of bounded length, which always ends in a zero.
    struct Reason {
        bytes: [u8; 512],
        length: usize,
    }

    impl Write for Reason {
        fn write_str(&mut self, text: &str) -> core::fmt::Result {
            let room = self.bytes.len() - 1 - self.length;
            let taken = text.len().min(room);
            self.bytes[self.length..self.length + taken].copy_from_slice(&text.as_bytes()[..taken]);
            self.length += taken;
            Ok(())
        }
    }

    #[panic_handler]
    fn panic(info: &PanicInfo) -> ! {
        let mut reason = Reason {
            bytes: [0; 512],
            length: 0,
        };
        let _ = match info.location() {
            Some(place) => write!(reason, "panic at {place}: {}", info.message()),
            None => write!(reason, "panic: {}", info.message()),
        };
        // SAFETY: the text ends in a zero; the call does not return.
        unsafe { __postern_abort(reason.bytes.as_ptr()) }
    }
}
