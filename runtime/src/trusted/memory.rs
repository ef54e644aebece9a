//! The host's hands in a window: bounds are checked by the callers' tables, bytes are moved by instructions that the
//! compiler knows nothing about, because other threads may write the same memory at the same time.
//!
//! A checked page can go all the same: another thread takes the domain's right to it, or somebody truncates the file behind a
//! shared area. So a copy that meets a fault ends there and says how many bytes it left ([`after_fault`]).

use super::control::Control;
use std::arch::{asm, global_asm};

// Both take the destination in rdi, a source in rsi and a length in rdx, and return how many bytes they left. The instruction
// that touches memory keeps that number in rcx, and when it faults, the handler goes on behind it.
global_asm!(
    ".p2align 4",
    "postern_copy:",
    "endbr64",
    "mov rcx, rdx",
    "postern_copy_touches: rep movsb",
    "postern_copy_over: mov rax, rcx",
    "ret",
    "postern_fill:",
    "endbr64",
    "mov rcx, rdx",
    "xor eax, eax",
    "postern_fill_touches: rep stosb",
    "postern_fill_over: mov rax, rcx",
    "ret",
    ".irp name, copy, copy_touches, copy_over, fill, fill_touches, fill_over",
    ".globl postern_\\name",
    ".hidden postern_\\name",
    ".endr",
);

unsafe extern "C" {
    fn postern_copy(to: usize, from: usize, bytes: usize) -> usize;
    fn postern_fill(to: usize, unused: usize, bytes: usize) -> usize;
    static postern_copy_touches: u8;
    static postern_copy_over: u8;
    static postern_fill_touches: u8;
    static postern_fill_over: u8;
}

/// Where the interrupted thread goes on if `pc` is the one instruction of a copy that may fault.
pub(crate) fn after_fault(pc: usize) -> Option<usize> {
    let places = [
        (
            &raw const postern_copy_touches,
            &raw const postern_copy_over,
        ),
        (
            &raw const postern_fill_touches,
            &raw const postern_fill_over,
        ),
    ];
    let found = places.iter().find(|(touches, _)| *touches as usize == pc);
    found.map(|(_, over)| *over as usize)
}

/// A page was not there any more, or did not allow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone;

/// Copies from a window. `[offset, offset + to.len())` must lie in it.
pub(crate) fn read(control: &Control, offset: u32, to: &mut [u8]) -> Result<(), Gone> {
    copy(control.address(offset), to.as_mut_ptr() as usize, to.len())
}

/// Copies into a window. `[offset, offset + from.len())` must lie in it.
pub(crate) fn write(control: &Control, offset: u32, from: &[u8]) -> Result<(), Gone> {
    copy(from.as_ptr() as usize, control.address(offset), from.len())
}

/// Copies from memory of the runtime's own at `base`, which domains may be writing.
pub(crate) fn read_at(base: u64, offset: u32, to: &mut [u8]) -> Result<(), Gone> {
    let from = base as usize + offset as usize;
    copy(from, to.as_mut_ptr() as usize, to.len())
}

/// Copies into a window that has no domain yet, or into other memory of the runtime's own, at `base`.
pub(crate) fn write_at(base: u64, offset: u32, from: &[u8]) -> Result<(), Gone> {
    let to = base as usize + offset as usize;
    copy(from.as_ptr() as usize, to, from.len())
}

fn copy(from: usize, to: usize, bytes: usize) -> Result<(), Gone> {
    // SAFETY: one side is a Rust slice, the other a range of a window (or another reservation of the runtime's) that the caller
    // found in its table while it holds the owner. Those are disjoint from all memory of the host, so nothing of the host is
    // overwritten, and assembly has no data races. If the range is not accessible after all, the copy ends early.
    match unsafe { postern_copy(to, from, bytes) } {
        0 => Ok(()),
        _ => Err(Gone),
    }
}

/// Fills a range of a window with zero. The range must lie in it.
pub(crate) fn zero(control: &Control, offset: u32, bytes: usize) -> Result<(), Gone> {
    // SAFETY: as in `copy`.
    match unsafe { postern_fill(control.address(offset), 0, bytes) } {
        0 => Ok(()),
        _ => Err(Gone),
    }
}

/// Writes one word into a data stack. The word must lie in a mapped data stack.
pub(crate) fn write_word(control: &Control, offset: u32, value: u64) {
    // A data stack is private memory that stays as long as the domain, so this does not fail; and what it holds is the
    // extension's own affair.
    let _ = write(control, offset, &value.to_ne_bytes());
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
