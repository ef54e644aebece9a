//! Names and source lines of offsets, for messages, from a file whose debug information may lie.
//!
//! Nothing that is decided depends on this: a wrong name misleads a reader and no more. What it
//! promises, for any bytes, is to end soon, to use little memory and not to panic: every query has
//! a budget of [`STEPS`] steps (entries, rows, ranges, attributes), and what does not fit is
//! `None`.
//!
//! [`Listing`] writes such information, for debuggers and into files of compilers that work in
//! memory.

mod budget;
mod kept;
mod lines;
mod sections;
mod symbols;
mod write;

pub use budget::STEPS;
pub use kept::Kept;
pub use lines::{LineRow, LineTable, Lines, SourceLine};
pub use symbols::{Function, Symbol, Symbols, variable};
pub use write::Listing;

/// The text of a place for messages: `sum+0x12 (sum.c:7:12)`, or just the offset if nothing is
/// known.
pub fn describe(bytes: &[u8], offset: u32) -> String {
    let symbol = Symbols::parse(bytes).at(offset).map(|s| s.to_string());
    let frames = Lines::parse(bytes)
        .map(|lines| lines.at(offset))
        .unwrap_or_default();
    let place = symbol.unwrap_or_else(|| format!("{offset:#x}"));
    match frames.first() {
        Some(line) => format!("{place} ({line})"),
        None => place,
    }
}
