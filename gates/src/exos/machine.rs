//! What the processor has, and what a process of one thread need not do.

use super::below::below;
use core::arch::x86_64::{__cpuid_count, __get_cpuid_max};

/// Leaf, subleaf, register (a, b, c, d) and bit.
type Bit = (u32, u32, usize, u32);

fn bit((leaf, subleaf, register, bit): Bit) -> bool {
    if __get_cpuid_max(leaf & 0x8000_0000).0 < leaf {
        return false;
    }
    let found = __cpuid_count(leaf, subleaf);
    [found.eax, found.ebx, found.ecx, found.edx][register] & 1 << bit != 0
}

/// Whether the kernel lets programs use these vector registers: bits of XCR0.
fn enabled(state: u64) -> bool {
    const OSXSAVE: Bit = (1, 0, 2, 27);
    if !bit(OSXSAVE) {
        return false;
    }
    let (low, high): (u32, u32);
    // SAFETY: the instruction is there, and reads a register that programs may read.
    unsafe {
        core::arch::asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags));
    }
    (u64::from(high) << 32 | u64::from(low)) & state == state
}

const VECTORS: u64 = 6;

/// Whether this processor's string instructions are fast.
pub(super) fn has_fast_strings() -> bool {
    bit((7, 0, 1, 9))
}

/// Whether this processor and kernel have AVX.
pub(super) fn has_avx() -> bool {
    bit((1, 0, 2, 28)) && enabled(VECTORS)
}

/// Whether this processor and kernel have AVX2.
pub fn has_avx2() -> bool {
    bit((7, 0, 1, 5)) && has_avx()
}

/// Whether this processor and kernel have a feature, by the name of gcc's option that allows it. A
/// name that is not known here is of a feature that is not there.
pub fn has(name: &str) -> bool {
    let simple = match name {
        "sse3" => (1, 0, 2, 0),
        "ssse3" => (1, 0, 2, 9),
        "sse4.1" => (1, 0, 2, 19),
        "sse4.2" => (1, 0, 2, 20),
        "popcnt" => (1, 0, 2, 23),
        "movbe" => (1, 0, 2, 22),
        "pclmul" => (1, 0, 2, 1),
        "aes" => (1, 0, 2, 25),
        "bmi" => (7, 0, 1, 3),
        "bmi2" => (7, 0, 1, 8),
        "adx" => (7, 0, 1, 19),
        "sha" => (7, 0, 1, 29),
        "lzcnt" => (0x8000_0001, 0, 2, 5),
        "avx" => return has_avx(),
        "avx2" => return has_avx2(),
        "fma" => return has_avx() && bit((1, 0, 2, 12)),
        "f16c" => return has_avx() && bit((1, 0, 2, 29)),
        _ => return false,
    };
    bit(simple)
}

/// There are no other threads.
pub fn barrier() {}

/// Ends the process with a word to whoever reads its errors.
pub(super) fn abandon(message: &str) -> ! {
    (below().abandon)(message)
}
