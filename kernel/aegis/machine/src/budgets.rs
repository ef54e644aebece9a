//! Exact budgets: what Aegis's operations take in instructions, under an emulator that counts them.
//! A test holds each to the instruction, so a change of a figure is a change of these tables; the
//! book's page about calls shows them.

/// The compiler that [`COMPILED`] is of. Another one makes other code of the same source.
pub const COMPILER: &str = "rustc 1.95.";

/// Paths that are written in assembly: the same with every compiler.
pub const ASSEMBLY: &[(&str, u64)] = &[
    ("procedure", 2),
    ("null", 11),
    ("fpu", 19),
    ("unaligned", 26),
    ("unaligned-trip", 39),
    ("division", 25),
    ("division-trip", 38),
    ("coprocessor", 26),
    ("coprocessor-trip", 39),
    ("protection", 34),
    ("protection-trip", 47),
    ("synchronous", 56),
    ("asynchronous", 54),
    ("yield", 59),
    ("flush", 13),
    ("flush-all", 14),
    ("translation", 34),
    ("touch-16", 4),
    ("touch-8192", 4),
];

/// Paths through Rust, as [`COMPILER`] compiles them.
pub const COMPILED: &[(&str, u64)] = &[
    ("null-stack", 37),
    ("set", 161),
    ("quota", 197),
    ("create", 4653),
    ("destroy", 161),
    ("take-slice", 133),
    ("free-slice", 122),
    ("give-slice", 156),
    ("map", 156),
    ("protect", 124),
    ("unprotect", 138),
    ("unmap", 119),
    ("map-100", 10281),
    ("protect-100", 6124),
    ("unprotect-100", 7723),
    ("unmap-100", 8832),
    ("translation-trip", 221),
    ("allocate", 859),
    ("free", 285),
    ("rename", 117),
    ("break", 164),
    ("capability", 299),
    ("table", 1924),
    ("untable", 16431),
    ("classify", 52),
];

/// Figures that wait for somebody outside, whom the emulator does not count: a test holds each to a
/// twentieth.
pub const WAITING: &[(&str, u64)] = &[("copy-sum", 2112), ("copy-then-sum", 2833)];

/// Figures that no budget holds. A round trip is 6,700 instructions, or half as much again where
/// the device says apart from the next message that it has sent the last one, which is up to the
/// host: one way through the idle processor more. How long an answer takes follows from when the
/// message comes.
pub const NOT_HELD: &[&str] = &["round-trip", "latency"];

/// All budgets.
pub fn all() -> impl Iterator<Item = &'static (&'static str, u64)> {
    ASSEMBLY.iter().chain(COMPILED).chain(WAITING)
}

/// The budget of a figure.
pub fn of(name: &str) -> Option<u64> {
    let found = all().find(|(figure, _)| *figure == name);
    found.map(|(_, instructions)| *instructions)
}
