//! The processor's clock.

/// What it says now.
pub fn clock() -> u64 {
    // SAFETY: the instruction is there on every processor for which this is built, and the kernel
    // does not forbid it.
    unsafe { core::arch::x86_64::_rdtsc() }
}
