//! The allow list: every instruction that confined code may use. What is not here is refused.
//!
//! Nothing in these rows may access memory but through ModRM (or an absolute address under 67h),
//! touch rsp, branch (but for the kinds that say so), or read or write machine state besides
//! general, vector and x87 registers and the arithmetic flags. That is checked against three
//! independent decoders by `tests/sweep.rs`.

mod avx;
mod integer;
mod sse;
mod x87;

use crate::row::{Fixed, InstructionKind, Row};

/// The rows, by instruction set.
pub(crate) const SETS: [(&str, &[Row]); 4] = [
    ("Integer", integer::ROWS),
    ("SSE to SSE4.2", sse::ROWS),
    ("AVX, AVX2, FMA, BMI", avx::ROWS),
    ("x87", x87::ROWS),
];

/// Instructions that are accepted as whole strings of bytes, because a prefix or a ModRM byte means
/// something else in them than in others.
pub(crate) const FIXED: &[Fixed] = &[
    fixed_row("pause", &[0xf3, 0x90], InstructionKind::Plain),
    fixed_row("endbr64", &[0xf3, 0x0f, 0x1e, 0xfa], InstructionKind::Plain),
    fixed_row("lfence", &[0x0f, 0xae, 0xe8], InstructionKind::Plain),
    fixed_row("mfence", &[0x0f, 0xae, 0xf0], InstructionKind::Plain),
    fixed_row("sfence", &[0x0f, 0xae, 0xf8], InstructionKind::Plain),
    // What GNU as fills alignment with.
    fixed_row(
        "nop",
        &[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
        InstructionKind::Nop,
    ),
    fixed_row(
        "nop",
        &[0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
        InstructionKind::Nop,
    ),
];

const fn fixed_row(name: &'static str, bytes: &'static [u8], kind: InstructionKind) -> Fixed {
    Fixed { name, bytes, kind }
}

/// All rows of the allow list, in the order of the reference page.
pub fn rules() -> impl Iterator<Item = &'static Row> {
    SETS.iter().flat_map(|(_, rows)| rows.iter())
}

/// The rows of each instruction set under its title.
pub fn sets() -> impl Iterator<Item = (&'static str, &'static [Row])> {
    SETS.iter().copied()
}

/// The instructions that are accepted as one fixed string of bytes.
pub fn fixed() -> impl Iterator<Item = &'static Fixed> {
    FIXED.iter()
}
