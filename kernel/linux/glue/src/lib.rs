//! The judge as the module calls it: a few functions in C, and memory of the module's.
//!
//! All bytes were copied into the kernel before they come here, so nobody changes them while they
//! are judged. Nothing here panics on input; should it all the same, the module's
//! `postern_judge_panicked` ends the task and not the machine.
#![no_std]

use core::alloc::{GlobalAlloc, Layout};
use core::slice;

use postern_kernel_judge::Verdict;

// SAFETY: `main.c` defines them with these types.
unsafe extern "C" {
    /// Memory aligned to 8, or null.
    fn postern_judge_alloc(size: usize) -> *mut u8;
    fn postern_judge_free(memory: *mut u8);
    safe fn postern_judge_panicked() -> !;
}

struct ModuleMemory;

// SAFETY: memory is the module's, which gives each piece once, as large as it is asked for and
// aligned to 8; what must be aligned to more is refused.
unsafe impl GlobalAlloc for ModuleMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > 8 {
            return core::ptr::null_mut();
        }
        // SAFETY: any size may be asked for.
        unsafe { postern_judge_alloc(layout.size()) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, _: Layout) {
        // SAFETY: the caller gives back what `alloc` gave.
        unsafe { postern_judge_free(memory) }
    }
}

#[global_allocator]
static MEMORY: ModuleMemory = ModuleMemory;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    postern_judge_panicked()
}

/// Judges the file of `size` bytes at `file`.
///
/// # Safety
/// They can be read and stay as they are; `verdict` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn postern_judge_image(file: *const u8, size: usize, verdict: *mut Verdict) {
    // SAFETY: the caller's duty.
    let file = unsafe { slice::from_raw_parts(file, size) };
    // SAFETY: likewise.
    unsafe { verdict.write(postern_kernel_judge::image(file)) }
}

/// Judges the code of `size` bytes at `text` alone, with so many imports.
///
/// # Safety
/// As [`postern_judge_image`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn postern_judge_text(
    text: *const u8,
    size: usize,
    imports: u32,
    verdict: *mut Verdict,
) {
    // SAFETY: the caller's duty.
    let text = unsafe { slice::from_raw_parts(text, size) };
    // SAFETY: likewise.
    unsafe { verdict.write(postern_kernel_judge::text(text, imports)) }
}
