//! Which function an offset lies in.

use std::fmt;
use std::ops::Range;

use super::sections::{SHF_EXECINSTR, SHF_WRITE, SHT_SYMTAB, Sections};
use crate::elf::{u16_at, u32_at, u64_at};
use crate::file::ImageFile;

/// Size of an ELF-64 symbol in bytes.
pub(super) const SYMBOL_SIZE: usize = 24;
/// Longest part of a name that is looked at, in bytes. C++ names beyond it are cut.
const MAX_NAME: usize = 1024;

/// A function and a place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// The function's name as the linker knows it.
    pub name: &'a str,
    /// Offset in the window of its first byte.
    pub start: u32,
    /// Bytes from `start` to the offset that was asked for.
    pub delta: u32,
}

impl fmt::Display for Symbol<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The name comes from the file: nothing of it may command a terminal.
        write!(f, "{}", self.name.escape_debug())?;
        match self.delta {
            0 => Ok(()),
            delta => write!(f, "+{delta:#x}"),
        }
    }
}

/// A function of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function<'a> {
    /// Offset in the window of its first byte.
    pub start: u32,
    /// Offset after its last byte; the end of its section where the file does not say.
    pub end: u32,
    /// Name as the linker knows it.
    pub name: &'a str,
}

/// The functions of an image in the order of their offsets.
#[derive(Clone, Debug, Default)]
pub struct Symbols<'a> {
    functions: Vec<Function<'a>>,
}

impl<'a> Symbols<'a> {
    /// Reads the symbol table, or the exports of an image that has none. Time is at most
    /// proportional to n log n in the file's length, memory linear; a damaged table has no symbols.
    pub fn parse(bytes: &'a [u8]) -> Symbols<'a> {
        let mut functions = symbol_table(bytes).unwrap_or_default();
        if functions.is_empty()
            && let Ok(image) = ImageFile::parse(bytes)
        {
            // The parser keeps text inside the window, so the end cannot overflow.
            let text = image.text();
            let end = text.offset.saturating_add(text.memory_size);
            functions.extend(image.exports().iter().map(|e| Function {
                start: e.offset,
                end,
                name: e.name,
            }));
        }
        functions.sort_unstable();
        Symbols { functions }
    }

    /// The function that `offset` lies in; of several that begin at one place, the longest.
    pub fn at(&self, offset: u32) -> Option<Symbol<'a>> {
        let after = self.functions.partition_point(|f| f.start <= offset);
        let function = self.functions.get(after.checked_sub(1)?)?;
        (offset < function.end).then(|| Symbol {
            name: function.name,
            start: function.start,
            delta: offset - function.start,
        })
    }

    /// All functions in the order of their offsets.
    pub fn iter(&self) -> impl Iterator<Item = Function<'a>> + '_ {
        self.functions.iter().copied()
    }
}

fn symbol_table(bytes: &[u8]) -> Option<Vec<Function<'_>>> {
    let sections = Sections::parse(bytes)?;
    let table = sections.iter().find(|s| s.kind == SHT_SYMTAB)?;
    let names = sections.data(&sections.get(table.link)?)?;
    let function = |symbol: &[u8]| {
        // st_info's low half is the type: 0 a plain label, 2 a function.
        if !matches!(symbol.get(4)? & 15, 0 | 2) {
            return None;
        }
        let section = sections
            .get(u16_at(symbol, 6)?.into())
            .filter(|s| s.flags & SHF_EXECINSTR != 0)?;
        let start = u32::try_from(u64_at(symbol, 8)?).ok()?;
        let size = u64_at(symbol, 16)?;
        let section_end = section.address.saturating_add(section.size);
        let end = if size == 0 {
            section_end
        } else {
            u64::from(start).saturating_add(size).min(section_end)
        };
        let end = u32::try_from(end).ok()?;
        let name = name_at(names, u32_at(symbol, 0)?)?;
        (start < end).then_some(Function { start, end, name })
    };
    Some(
        sections
            .data(&table)?
            .chunks_exact(SYMBOL_SIZE)
            .filter_map(function)
            .collect(),
    )
}

/// Where a variable that the code may write lies in the window, by the symbol table; of several
/// with the name, the first. Time is linear in the length of the file.
pub fn variable(bytes: &[u8], name: &str) -> Option<Range<u32>> {
    /// `STT_OBJECT`.
    const OBJECT: u8 = 1;
    let sections = Sections::parse(bytes)?;
    let table = sections.iter().find(|s| s.kind == SHT_SYMTAB)?;
    let names = sections.data(&sections.get(table.link)?)?;
    let range = |symbol: &[u8]| {
        let text = names.get(u32_at(symbol, 0)? as usize..)?;
        let named = text.strip_prefix(name.as_bytes())?.first() == Some(&0);
        if !named || symbol.get(4)? & 15 != OBJECT {
            return None;
        }
        sections
            .get(u16_at(symbol, 6)?.into())
            .filter(|section| section.flags & SHF_WRITE != 0)?;
        let start = u64_at(symbol, 8)?;
        let end = start.checked_add(u64_at(symbol, 16)?)?;
        Some(u32::try_from(start).ok()?..u32::try_from(end).ok()?)
    };
    sections
        .data(&table)?
        .chunks_exact(SYMBOL_SIZE)
        .find_map(range)
}

/// The NUL-terminated name at `offset`, cut to [`MAX_NAME`]: names may overlap, so an uncut scan
/// could take time quadratic in the file's length.
fn name_at(names: &[u8], offset: u32) -> Option<&str> {
    let rest = names.get(offset as usize..)?;
    let rest = &rest[..rest.len().min(MAX_NAME)];
    let end = rest.iter().position(|&b| b == 0).unwrap_or(rest.len());
    std::str::from_utf8(&rest[..end])
        .ok()
        .filter(|name| !name.is_empty())
}
