//! The judge as the module calls it: a few functions in C, and memory of the module's.
//!
//! All bytes were copied into the kernel before they come here, so nobody changes them while they
//! are judged. Nothing here panics on input; should it all the same, the module's
//! `postern_judge_panicked` ends the task and not the machine.
#![no_std]

use core::alloc::{GlobalAlloc, Layout};
use core::slice;

use postern_kernel_judge::{Parts, Verdict};

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

/// Judges the file of `size` bytes at `file`; `parts` says where things lie if it is accepted.
///
/// # Safety
/// They can be read and stay as they are; `verdict` and `parts` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn postern_judge_image(
    file: *const u8,
    size: usize,
    verdict: *mut Verdict,
    parts: *mut Parts,
) {
    // SAFETY: the caller's duty.
    let file = unsafe { slice::from_raw_parts(file, size) };
    let (said, found) = postern_kernel_judge::image_with_parts(file);
    // SAFETY: likewise.
    unsafe {
        verdict.write(said);
        parts.write(found);
    }
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

/// `struct postern_symbol` of `module.h`: a name in the file.
#[repr(C)]
pub struct Symbol {
    name: *const u8,
    length: u32,
    offset: u32,
}

/// What takes symbols one after the other, as many as there is room for.
///
/// # Safety
/// `to` can be written for `most` symbols, by the result alone as long as that lives.
unsafe fn writer<'a>(to: *mut Symbol, most: u32) -> impl FnMut(&'a str, u32) {
    let mut count = 0;
    move |name, offset| {
        if count < most as usize {
            let symbol = Symbol {
                name: name.as_ptr(),
                length: name.len() as u32,
                offset,
            };
            // SAFETY: `count` is below `most`, for which the caller answers.
            unsafe { to.add(count).write(symbol) };
            count += 1;
        }
    }
}

/// Writes the imports of an accepted file, at most `most`; false if there is no memory.
///
/// # Safety
/// As [`postern_judge_image`]; `to` can be written for `most` symbols.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn postern_judge_imports(
    file: *const u8,
    size: usize,
    to: *mut Symbol,
    most: u32,
) -> bool {
    // SAFETY: the caller's duty.
    let (file, write) = unsafe { (slice::from_raw_parts(file, size), writer(to, most)) };
    postern_kernel_judge::imports(file, write)
}

/// Writes the exports of an accepted file, at most `most`; false if there is no memory.
///
/// # Safety
/// As [`postern_judge_imports`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn postern_judge_exports(
    file: *const u8,
    size: usize,
    to: *mut Symbol,
    most: u32,
) -> bool {
    // SAFETY: the caller's duty.
    let (file, write) = unsafe { (slice::from_raw_parts(file, size), writer(to, most)) };
    postern_kernel_judge::exports(file, write)
}

/// Writes the offsets of the instructions of accepted text that access memory, at most `most`;
/// returns how many there are.
///
/// # Safety
/// The `size` bytes at `text` can be read and stay as they are; `to` can be written for `most`
/// offsets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn postern_judge_accesses(
    text: *const u8,
    size: usize,
    to: *mut u32,
    most: u32,
) -> u32 {
    // SAFETY: the caller's duty.
    let text = unsafe { slice::from_raw_parts(text, size) };
    let mut count = 0;
    postern_kernel_judge::accesses(text, |at| {
        if count < most {
            // SAFETY: `count` is below `most`, for which the caller answers.
            unsafe { to.add(count as usize).write(at) };
        }
        count += 1;
    });
    count
}
