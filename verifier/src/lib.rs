//! Judges x86-64 machine code: what it accepts cannot leave its window.
//!
//! This crate is the whole security argument of native extensions. Whatever made the code is not
//! trusted; for any bytes that [`verify`] accepts, and that are then mapped read-only and
//! executable at the offset that it was told,
//!
//! - every access to memory is at segment base + a 32-bit address, at most 32 bytes wide: inside
//!   the window or in the 64 KiB above it that are never mapped;
//! - the instructions executed are exactly those that were judged, since direct branches go to
//!   judged starts, gate slots or link slots, indirect ones to landing pads, and returns to where a
//!   `call` pushed, which nothing else can write;
//! - no instruction enters the kernel, or reads or writes machine state but general, vector and x87
//!   registers and the arithmetic flags.
//!
//! The judgement is by byte grammar against a list of what is allowed ([`rules`]); everything else
//! is refused. It needs no heap and no state beyond the caller's buffer, never panics, and takes
//! time linear in the length of text.
//!
//! The modules, in the order of reading: `row` and `allow` (the list as data), `table` (the same,
//! dense), `decode` (one instruction), `guard` and `pad` (indirect branches), `layout` (what lies
//! around a text), `verify` and `pass` (a text), `bounded` (the longest path), `nesting` (the
//! deepest call), `explain` and `rule`
//! (what to say when code is refused). Beside them, for those who make code, stand [`window`] (the
//! numbers of the ABI) and [`relocation`] (addresses that are filled in later).
#![no_std]
#![forbid(unsafe_code)]
// The tables are computed from a few hundred rows at compile time.
#![allow(long_running_const_eval)]

#[cfg(test)]
extern crate std;

mod allow;
mod bounded;
mod decode;
mod explain;
mod guard;
mod layout;
mod nesting;
mod pad;
mod pass;
pub mod relocation;
pub mod row;
mod rule;
mod starts;
mod table;
#[cfg(test)]
mod tests;
mod verify;
mod walk;
pub mod window;

pub use allow::{fixed, rules, sets};
pub use bounded::Bounds;
pub use layout::{Layout, Links, Profile, Segment};
pub use row::{InstructionKind, Row};
pub use rule::{Rule, Violation};
pub use starts::{Starts, bounded_buffer_len, buffer_len};
pub use verify::{Facts, verify, verify_within};
pub use walk::{Instruction, next};
