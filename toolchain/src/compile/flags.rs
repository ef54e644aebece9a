//! The compiler flags of extensions.

/// Before the user's flags, which may say otherwise.
pub const DEFAULTS: &[&str] = &[
    "-ffunction-sections",
    "-fdata-sections",
    "-g",
    "-fno-stack-protector",
];

/// Before the user's flags, for ring 0: there is no C library, but the compiler knows the memory
/// functions.
pub const DEFAULTS_KERNEL: &[&str] = &["-ffreestanding", "-fbuiltin"];

/// Before the user's flags, for C++ where the C++ library cannot be built.
pub const WITHOUT_CXX_LIBRARY: &[&str] =
    &["-fno-rtti", "-fno-exceptions", "-fno-threadsafe-statics"];

/// After the user's flags: what the extension ABI needs.
///
/// - fixed offsets in the window: no position-independent code, small model;
/// - `%r15` and `%r11` are the ABI's; no red zone, since there is no use of memory below the stack
///   pointer that the rewriter could know;
/// - `endbr64` marks where landing pads go, with switch labels;
/// - no push from memory (it needs a scratch register) and no knowledge of what callees leave alone
///   (gates do not);
/// - thread-local variables lie at fixed distances from the thread pointer;
/// - string instructions cannot be confined (for gathers, see below);
/// - frames are described at calls only, which is where the data stack is what the compiler thinks.
pub const REQUIRED: &[&str] = &[
    "-fno-pic",
    "-fno-pie",
    "-mcmodel=small",
    "-ffixed-r15",
    "-ffixed-r11",
    "-mno-red-zone",
    "-fcf-protection=branch",
    "-mcet-switch",
    "-mno-push-args",
    "-fno-ipa-ra",
    "-ftls-model=local-exec",
    "-fno-stack-clash-protection",
    "-fno-asynchronous-unwind-tables",
    "-mstringop-strategy=libcall",
    "-fno-var-tracking",
    "-fno-lto",
    "-masm=att",
    "-mno-avx512f",
    "-U_FORTIFY_SOURCE",
];

/// After the user's flags, for C++.
pub const REQUIRED_CXX: &[&str] = &["-fno-gnu-unique"];

/// After those, for ring 0.
///
/// - general registers only, for the others are the interrupted program's;
/// - no indirect branches: switches are comparisons, and nothing is a landing pad;
/// - each function is one section, which the link puts behind its callers: a part of it that lay
///   elsewhere would have to jump back.
pub const REQUIRED_KERNEL: &[&str] = &[
    "-mgeneral-regs-only",
    "-fno-jump-tables",
    "-fcf-protection=none",
    "-mno-cet-switch",
    "-ffunction-sections",
    "-fno-reorder-blocks-and-partition",
    "-fno-exceptions",
    "-D__postern_kernel__=1",
];

/// Ways to keep the compiler from making gathers, one for each range of its versions. The first
/// that it accepts is used, and only where the user's flags allow AVX2.
pub const NO_GATHER: &[&str] = &[
    "-mno-gather",
    "-mtune-ctrl=^use_gather_2parts,^use_gather_4parts,^use_gather_8parts",
    "-mtune-ctrl=^use_gather_2parts,^use_gather_4parts,^use_gather",
];

/// Beginnings of options that may allow AVX2.
pub const ALLOWS_AVX2: &[&str] = &["-march=", "-mavx2"];

/// The C library is not Linux's, so that code which asks for Linux asks in vain.
pub const NOT_LINUX: &[&str] = &[
    "-U__linux__",
    "-U__linux",
    "-Ulinux",
    "-U__gnu_linux__",
    "-D__postern__=1",
];
