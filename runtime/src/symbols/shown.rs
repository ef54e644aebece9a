//! What tools are shown of a domain: its functions, lines and text, and where they are.

use crate::domain::DomainInner;
use postern_image::debug::{Function, LineTable, Lines, Symbols};

/// A domain's functions and lines, and where they are.
pub(super) struct Shown<'a> {
    pub(super) base: u64,
    pub(super) domain: &'a str,
    pub(super) functions: Vec<Function<'a>>,
    pub(super) lines: LineTable,
    /// Text, and the offset at which it begins.
    pub(super) text: (u32, Vec<u8>),
}

impl<'a> Shown<'a> {
    /// Of a domain whose image's file is `file`.
    pub(super) fn of(inner: &'a DomainInner, file: &'a [u8], with_lines: bool) -> Shown<'a> {
        let (start, text) = inner.image.text.bytes();
        let mut lines = if with_lines {
            Lines::parse(file)
                .map(|lines| lines.table())
                .unwrap_or_default()
        } else {
            LineTable::default()
        };
        // Functions that the linker left out have lines at low offsets.
        let end = u64::from(start) + text.len() as u64;
        let kept = |offset: u32| offset >= start && u64::from(offset) < end;
        lines.rows.retain(|row| kept(row.offset));
        let mut functions: Vec<Function<'_>> = Symbols::parse(file).iter().collect();
        // Of labels at one place the first; none reaches into the next one.
        functions.dedup_by_key(|f| f.start);
        for i in 1..functions.len() {
            functions[i - 1].end = functions[i - 1].end.min(functions[i].start);
        }
        Shown {
            base: inner.instance.base(),
            domain: &inner.name,
            functions,
            lines,
            text: (start, text),
        }
    }

    /// The bytes of a function.
    pub(super) fn code(&self, function: &Function<'_>) -> &[u8] {
        let (start, text) = &self.text;
        let at = |offset: u32| offset.saturating_sub(*start) as usize;
        text.get(at(function.start)..at(function.end))
            .unwrap_or_default()
    }
}

/// A name for tools: the function's and, since many domains have the same, the domain's. In one
/// line.
pub(super) fn name(shown: &Shown<'_>, function: &Function<'_>) -> String {
    let name = format!("{} [{}]", function.name, shown.domain);
    name.replace(char::is_control, "?")
}
