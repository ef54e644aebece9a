//! The host's hands in a window: bounds are checked by the callers' tables, bytes are moved by instructions that the
//! compiler knows nothing about, because other threads may write the same memory at the same time.

use super::control::Control;
use std::arch::asm;

/// Copies from a window. `[offset, offset + to.len())` must be mapped readable.
pub(crate) fn read(control: &Control, offset: u32, to: &mut [u8]) {
    copy(control.address(offset), to.as_mut_ptr() as usize, to.len());
}

/// Copies into a window. `[offset, offset + from.len())` must be mapped writable.
pub(crate) fn write(control: &Control, offset: u32, from: &[u8]) {
    copy(from.as_ptr() as usize, control.address(offset), from.len());
}

/// Copies into a window that has no domain yet, at `base`. The range must be mapped writable.
pub(crate) fn write_at(base: u64, offset: u32, from: &[u8]) {
    copy(
        from.as_ptr() as usize,
        base as usize + offset as usize,
        from.len(),
    );
}

fn copy(from: usize, to: usize, bytes: usize) {
    // SAFETY: one side is a Rust slice, the other a range of a window that the caller found in the domain's table of mapped
    // ranges while it holds the domain. Windows are disjoint from all memory of the host. Assembly has no data races.
    unsafe {
        asm!("rep movsb", inout("rcx") bytes => _, inout("rsi") from => _, inout("rdi") to => _,
            options(nostack, preserves_flags));
    }
}

/// Fills a range of a window with zero. The range must be mapped writable.
pub(crate) fn zero(control: &Control, offset: u32, bytes: usize) {
    // SAFETY: as in `copy`.
    unsafe {
        asm!("rep stosb", inout("rcx") bytes => _, inout("rdi") control.address(offset) => _, in("al") 0u8,
            options(nostack, preserves_flags));
    }
}

/// Writes one word into a data stack. The word must lie in a mapped data stack.
pub(crate) fn write_word(control: &Control, offset: u32, value: u64) {
    write(control, offset, &value.to_ne_bytes());
}

/// Reads a word of the calling thread's own stack.
pub(crate) fn host_word(address: u64) -> u64 {
    let value: u64;
    // SAFETY: the callers pass addresses between a stack pointer and the frame above it on the same stack.
    unsafe {
        asm!("mov {}, qword ptr [{}]", out(reg) value, in(reg) address, options(nostack, readonly, preserves_flags));
    }
    value
}

/// Writes a word of the control stack on which the innermost call runs, or is about to.
pub(crate) fn set_host_word(address: u64, value: u64) {
    // SAFETY: `super::jump` passes addresses between the innermost call's service gate and its base: return addresses of frames of
    // the extension, which only the extension's own returns read. `super::slow` passes that of the saved rdi in the gate's frame.
    unsafe {
        asm!("mov qword ptr [{}], {}", in(reg) address, in(reg) value, options(nostack, preserves_flags));
    }
}

/// The host's memory of a mapped file, for building images.
pub(crate) struct FileView {
    start: *const u8,
    bytes: usize,
}

impl FileView {
    /// Maps the first `bytes` bytes of `file` readable. The file must be sealed against shrinking before the view is read.
    pub(crate) fn new(
        file: std::os::fd::BorrowedFd<'_>,
        bytes: usize,
    ) -> Result<FileView, super::map::MapError> {
        let start = super::map::reserve(bytes)?;
        // Made first, so that an error gives the reservation back.
        let view = FileView { start, bytes };
        super::map::place(
            start as usize,
            bytes,
            super::map::Protection::Read,
            Some((file, 0)),
        )?;
        Ok(view)
    }

    /// The bytes. The file is sealed, so they never change.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: mapped readable for the view's life over a file that is sealed against writing and shrinking.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }
}

impl Drop for FileView {
    fn drop(&mut self) {
        super::map::release(self.start as *mut u8, self.bytes);
    }
}
