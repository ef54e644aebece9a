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
    ("set", 196),
    ("quota", 230),
    ("create", 4741),
    ("destroy", 177),
    ("take-slice", 145),
    ("free-slice", 131),
    ("give-slice", 174),
    ("map", 158),
    ("protect", 124),
    ("unprotect", 138),
    ("unmap", 124),
    ("map-100", 10278),
    ("protect-100", 6120),
    ("unprotect-100", 7719),
    ("unmap-100", 8800),
    ("translation-trip", 223),
    ("allocate", 877),
    ("free", 347),
    ("rename", 122),
    ("break", 227),
    ("capability", 155),
    ("table", 1988),
    ("untable", 2124),
    ("classify", 55),
];

/// Figures that wait for somebody outside, whom the emulator does not count: a test holds each to a
/// twentieth.
pub const WAITING: &[(&str, u64)] = &[
    ("copy-sum", 1532),
    ("copy-then-sum", 1814),
    ("latency-handler-1", 1784),
    ("latency-handler-2", 1784),
    ("latency-handler-4", 1784),
    ("latency-handler-8", 1784),
    ("latency-handler-16", 1784),
];

/// Figures that no budget holds. A round trip depends on whether
/// the device says that it has sent the last message before the next one comes, or with it, which
/// is up to the host: one way through the idle processor more. How long an answer takes follows
/// from when the message comes.
pub const NOT_HELD: &[&str] = &[
    "round-trip",
    "round-trip-handler",
    "latency-1",
    "latency-2",
    "latency-4",
    "latency-8",
    "latency-16",
];

/// All budgets.
pub fn all() -> impl Iterator<Item = &'static (&'static str, u64)> {
    ASSEMBLY.iter().chain(COMPILED).chain(WAITING)
}

/// The budget of a figure.
pub fn of(name: &str) -> Option<u64> {
    let found = all().find(|(figure, _)| *figure == name);
    found.map(|(_, instructions)| *instructions)
}
