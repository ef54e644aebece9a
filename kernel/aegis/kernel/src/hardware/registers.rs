//! Control registers and what the processor can do.

use core::arch::asm;
use core::arch::x86_64::{__cpuid, __cpuid_count};

const CR0_MONITOR: u64 = 1 << 1;
const CR0_EMULATE: u64 = 1 << 2;
const CR0_SWITCHED: u64 = 1 << 3;
const CR0_NUMERIC: u64 = 1 << 5;
const CR0_WRITE_PROTECT: u64 = 1 << 16;
const CR0_ALIGNMENT: u64 = 1 << 18;
const CR4_GLOBAL: u64 = 1 << 7;
const CR4_FXSR: u64 = 1 << 9;
const CR4_SIMD_EXCEPTIONS: u64 = 1 << 10;
const CR4_UMIP: u64 = 1 << 11;
const CR4_FSGSBASE: u64 = 1 << 16;
const CR4_XSAVE: u64 = 1 << 18;
const CR4_SMEP: u64 = 1 << 20;
const CR4_SMAP: u64 = 1 << 21;

const PROTECTION: u64 = CR4_UMIP | CR4_SMEP | CR4_SMAP;

/// A processor without one of these cannot run the kernel: (name, present).
pub fn required() -> [(&'static str, bool); 6] {
    let seven = __cpuid_count(7, 0);
    let one = __cpuid(1);
    let bit = |word: u32, bit: u32| word >> bit & 1 != 0;
    [
        ("fsgsbase", bit(seven.ebx, 0)),
        ("smep", bit(seven.ebx, 7)),
        ("smap", bit(seven.ebx, 20)),
        ("umip", bit(seven.ecx, 2)),
        ("xsave", bit(one.ecx, 26)),
        ("nx", bit(__cpuid(0x8000_0001).edx, 20)),
    ]
}

/// Sets this processor's control registers: write protection, alignment checks for those who ask
/// for them, no user instructions or data from the kernel (SMEP, SMAP), no descriptor tables for
/// users (UMIP), bases of fs and gs by instruction, vector state by XSAVE; the coprocessor off.
pub fn start() {
    // SAFETY: the kernel's tables mark its own pages as supervisor's and its constants read-only,
    // it holds no state in the coprocessor, and `required` found each of these bits' features.
    unsafe {
        let mut cr0: u64;
        asm!("mov {}, cr0", out(reg) cr0, options(nomem, nostack));
        cr0 &= !CR0_EMULATE;
        cr0 |= CR0_MONITOR | CR0_NUMERIC | CR0_WRITE_PROTECT | CR0_ALIGNMENT;
        asm!("mov cr0, {}", in(reg) cr0, options(nostack));
        let mut cr4: u64;
        asm!("mov {}, cr4", out(reg) cr4, options(nomem, nostack));
        cr4 |= CR4_GLOBAL | CR4_FXSR | CR4_SIMD_EXCEPTIONS | CR4_FSGSBASE | CR4_XSAVE | PROTECTION;
        asm!("mov cr4, {}", in(reg) cr4, options(nostack));
        let avx = __cpuid(1).ecx >> 28 & 1;
        asm!("xsetbv", in("ecx") 0, in("eax") 3 | avx << 2, in("edx") 0, options(nostack));
    }
    set_fpu(false);
}

/// Forgets all translations, those that every space has among them.
pub fn toggle_global() {
    // SAFETY: the bit only decides what is remembered.
    unsafe {
        let cr4: u64;
        asm!("mov {}, cr4", out(reg) cr4, options(nomem, nostack, preserves_flags));
        asm!("mov cr4, {}", in(reg) cr4 & !CR4_GLOBAL, options(nostack, preserves_flags));
        asm!("mov cr4, {}", in(reg) cr4, options(nostack, preserves_flags));
    }
}

/// Whether all protections that the kernel asks for are on.
pub fn protected() -> bool {
    let (cr0, cr4): (u64, u64);
    // SAFETY: reading has no effect.
    unsafe {
        asm!("mov {}, cr0", "mov {}, cr4", out(reg) cr0, out(reg) cr4, options(nomem, nostack))
    }
    cr0 & CR0_WRITE_PROTECT != 0 && cr4 & PROTECTION == PROTECTION
}

/// Switches the coprocessor on or off.
pub fn set_fpu(on: bool) {
    // SAFETY: the kernel has no coprocessor instruction; the bit only decides about exception 7.
    unsafe {
        if on {
            asm!("clts", options(nomem, nostack));
        } else {
            let mut cr0: u64;
            asm!("mov {}, cr0", out(reg) cr0, options(nomem, nostack));
            cr0 |= CR0_SWITCHED;
            asm!("mov cr0, {}", in(reg) cr0, options(nomem, nostack));
        }
    }
}

/// The address whose translation failed last.
pub fn fault_address() -> u64 {
    let value;
    // SAFETY: reading has no effect.
    unsafe { asm!("mov {}, cr2", out(reg) value, options(nomem, nostack)) }
    value
}

/// Writes a model-specific register.
///
/// # Safety
/// The value must be one that the kernel can go on with.
pub unsafe fn write_model(register: u32, value: u64) {
    let (low, high) = (value as u32, (value >> 32) as u32);
    // SAFETY: the caller's promise.
    unsafe { asm!("wrmsr", in("ecx") register, in("eax") low, in("edx") high, options(nostack)) }
}

/// Reads the time stamp.
pub fn time() -> u64 {
    // SAFETY: reading has no effect.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// 64 bits that nobody outside can know, if the processor makes any; otherwise of the time stamp.
pub fn random() -> u64 {
    if __cpuid(1).ecx >> 30 & 1 != 0 {
        for _ in 0..100 {
            let (value, done): (u64, u8);
            // SAFETY: the processor has the instruction.
            unsafe { asm!("rdrand {}", "setc {}", out(reg) value, out(reg_byte) done) }
            if done != 0 {
                return value;
            }
        }
    }
    time().wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Waits for an interrupt with interrupts off before and after: those that came are served.
pub fn wait() {
    // SAFETY: interrupts in the kernel's own code come here only, on a stack of the kernel.
    unsafe { asm!("sti", "hlt", "cli") }
}

/// Serves interrupts that have come.
pub fn let_in() {
    // SAFETY: as above.
    unsafe { asm!("sti", "nop", "cli") }
}

/// Stops this processor until an interrupt.
pub fn halt() {
    // SAFETY: as above, without letting interrupts in.
    unsafe { asm!("hlt") }
}
