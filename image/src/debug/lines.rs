//! Which source line an offset comes from, with the calls that the compiler expanded inline.
//!
//! A query walks the units of `.debug_info` until one covers the offset, then that unit's line
//! program and entries. Nothing is cached, so nothing piles up; every loop pays from one
//! [`Budget`], and line programs beyond [`MAX_LINE_HEADER`] and [`MAX_LINE_PROGRAM`] are not read.

mod rows;

pub use rows::{LineRow, LineTable};

use std::fmt;

use gimli::{
    Abbreviations, AttributeValue, DebugAbbrev, DebugAbbrevOffset, DebugLineOffset, Dwarf,
    EndianSlice, IncompleteLineProgram, LineProgramHeader, LittleEndian, Section, Unit, UnitHeader,
    UnitOffset, constants,
};

use super::budget::{Budget, STEPS, Stop};
use super::sections::Sections;
use crate::elf::{u32_at, u64_at};

/// Bytes of a line program's header that are read.
const MAX_LINE_HEADER: u64 = 256 << 10;
/// Bytes of a line program that are run.
const MAX_LINE_PROGRAM: u64 = 4 << 20;
/// Units whose ranges cover an offset that are looked into.
const MAX_UNITS: u32 = 4;
/// Most frames of one place.
const MAX_FRAMES: usize = 64;
/// Most entries that a name is looked for in.
const MAX_ORIGINS: u32 = 8;
/// Longest path or name in bytes.
const MAX_TEXT: usize = 4096;

type Slice<'a> = EndianSlice<'a, LittleEndian>;
type Value<'a> = AttributeValue<Slice<'a>>;

/// A place in source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The function, where the file names it.
    pub function: Option<String>,
    /// Path as the compiler was given it.
    pub file: String,
    /// Line, counted from 1; 0 if unknown.
    pub line: u64,
    /// Column, counted from 1; 0 if unknown.
    pub column: u64,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The path comes from the file: nothing of it may command a terminal.
        write!(f, "{}:{}", self.file.escape_debug(), self.line)?;
        match self.column {
            0 => Ok(()),
            column => write!(f, ":{column}"),
        }
    }
}

/// The debug information of an image.
pub struct Lines<'a> {
    dwarf: Dwarf<Slice<'a>>,
}

impl fmt::Debug for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lines")
    }
}

/// The attributes of an entry that matter here.
#[derive(Default)]
struct DieAttributes<'a> {
    low: Option<Value<'a>>,
    high: Option<Value<'a>>,
    ranges: Option<Value<'a>>,
    name: Option<Value<'a>>,
    linkage_name: Option<Value<'a>>,
    origin: Option<Value<'a>>,
    line_program: Option<DebugLineOffset>,
    call_file: u64,
    call_line: u64,
    call_column: u64,
}

/// A call that covers the offset: the function's name and where it was called from.
struct Call {
    depth: isize,
    function: Option<String>,
    file: u64,
    line: u64,
    column: u64,
}

impl<'a> Lines<'a> {
    /// Finds the debug information; `None` if the file has none. Reads section headers only.
    pub fn parse(bytes: &'a [u8]) -> Option<Lines<'a>> {
        let sections = Sections::parse(bytes)?;
        sections.named(".debug_info")?;
        let load = |id: gimli::SectionId| -> Result<Slice<'a>, gimli::Error> {
            let data = sections
                .named(id.name())
                .and_then(|s| sections.data(&s))
                .unwrap_or_default();
            Ok(EndianSlice::new(data, LittleEndian))
        };
        Some(Lines {
            dwarf: Dwarf::load(load).ok()?,
        })
    }

    /// The source line of `offset`: the innermost place first, then each call site that was
    /// expanded inline. Empty if the file does not say, or would take longer than [`STEPS`] to say
    /// it.
    pub fn at(&self, offset: u32) -> Vec<SourceLine> {
        let mut query = Query {
            dwarf: &self.dwarf,
            budget: Budget(STEPS),
            offset: offset.into(),
        };
        query.run().unwrap_or_default()
    }
}

struct Query<'d, 'a> {
    dwarf: &'d Dwarf<Slice<'a>>,
    budget: Budget,
    offset: u64,
}

impl<'a> Query<'_, 'a> {
    fn run(&mut self) -> Result<Vec<SourceLine>, Stop> {
        let mut units = self.dwarf.units();
        let mut looked_into = 0;
        while let Some(header) = units.next()? {
            self.budget.pay(1)?;
            // A damaged unit hides itself, not those after it.
            let Ok(Some((unit, program))) = self.covering_unit(header) else {
                continue;
            };
            if let Ok(lines) = self.lines_of(&unit, program)
                && !lines.is_empty()
            {
                return Ok(lines);
            }
            looked_into += 1;
            if looked_into == MAX_UNITS {
                break;
            }
        }
        Ok(Vec::new())
    }

    /// The unit and its line program, if one of its ranges covers the offset.
    fn covering_unit(
        &mut self,
        header: UnitHeader<Slice<'a>>,
    ) -> Result<Option<(Unit<Slice<'a>>, DebugLineOffset)>, Stop> {
        let mut unit = self.unit(header)?;
        let root = self.root(&mut unit)?;
        let Some(program) = root.line_program else {
            return Ok(None);
        };
        Ok(self.covers(&unit, &root)?.then_some((unit, program)))
    }

    /// A unit without its line program: [`Unit::new`] would read its header, of any size, for every
    /// unit.
    fn unit(&mut self, header: UnitHeader<Slice<'a>>) -> Result<Unit<Slice<'a>>, Stop> {
        let section = self.dwarf.debug_abbrev.reader().slice();
        let table = section.get(header.debug_abbrev_offset().0..).ok_or(Stop)?;
        let length = abbreviations_length(table);
        self.budget.pay(length.unwrap_or(table.len()))?;
        let table = table.get(..length.ok_or(Stop)?).ok_or(Stop)?;
        let abbreviations: Abbreviations =
            DebugAbbrev::new(table, LittleEndian).abbreviations(DebugAbbrevOffset(0))?;
        let (encoding, kind) = (header.encoding(), gimli::DwarfFileType::Main);
        Ok(Unit {
            abbreviations: abbreviations.into(),
            name: None,
            comp_dir: None,
            low_pc: 0,
            str_offsets_base: gimli::DebugStrOffsetsBase::default_for_encoding_and_file(
                encoding, kind,
            ),
            addr_base: gimli::DebugAddrBase(0),
            loclists_base: gimli::DebugLocListsBase::default_for_encoding_and_file(encoding, kind),
            rnglists_base: gimli::DebugRngListsBase::default_for_encoding_and_file(encoding, kind),
            line_program: None,
            dwo_id: None,
            header,
        })
    }

    /// Reads the unit's first entry and the bases that the others need.
    fn root(&mut self, unit: &mut Unit<Slice<'a>>) -> Result<DieAttributes<'a>, Stop> {
        let abbreviations = unit.abbreviations.clone();
        let header = unit.header;
        let mut entries = header.entries_raw(&abbreviations, None)?;
        let abbreviation = entries.read_abbreviation()?.ok_or(Stop)?;
        self.budget.pay(abbreviation.attributes().len())?;
        let mut root = DieAttributes::default();
        for spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(*spec)?;
            match (attribute.name(), attribute.value()) {
                (_, AttributeValue::DebugStrOffsetsBase(base)) => unit.str_offsets_base = base,
                (_, AttributeValue::DebugAddrBase(base)) => unit.addr_base = base,
                (_, AttributeValue::DebugRngListsBase(base)) => unit.rnglists_base = base,
                (constants::DW_AT_stmt_list, AttributeValue::DebugLineRef(at)) => {
                    root.line_program = Some(at)
                }
                (name, value) => root.set(name, value),
            }
        }
        unit.low_pc = match root.low {
            Some(low) => self.dwarf.attr_address(unit, low)?.unwrap_or(0),
            None => 0,
        };
        Ok(root)
    }

    /// Whether an entry's ranges cover the offset.
    fn covers(&mut self, unit: &Unit<Slice<'a>>, entry: &DieAttributes<'a>) -> Result<bool, Stop> {
        if let Some(ranges) = entry.ranges
            && let Some(mut ranges) = self.dwarf.attr_ranges(unit, ranges)?
        {
            while let Some(range) = ranges.next()? {
                self.budget.pay(1)?;
                if (range.begin..range.end).contains(&self.offset) {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        let (Some(low), Some(high)) = (entry.low, entry.high) else {
            return Ok(false);
        };
        let Some(low) = self.dwarf.attr_address(unit, low)? else {
            return Ok(false);
        };
        let high = match high.udata_value() {
            Some(size) => low.saturating_add(size),
            None => self.dwarf.attr_address(unit, high)?.unwrap_or(low),
        };
        Ok((low..high).contains(&self.offset))
    }

    /// The frames of the offset in a unit that covers it.
    fn lines_of(
        &mut self,
        unit: &Unit<Slice<'a>>,
        program: DebugLineOffset,
    ) -> Result<Vec<SourceLine>, Stop> {
        let Some((header, file, line, column)) = self.row(unit, program)? else {
            return Ok(Vec::new());
        };
        let path = |file| self.path(unit, &header, file);
        let mut place = (path(file), line, column);
        let calls = self.calls(unit)?;
        let path = |file| self.path(unit, &header, file);
        let mut frames = Vec::new();
        for call in calls.into_iter().rev() {
            let (file, line, column) = place;
            frames.push(SourceLine {
                function: call.function,
                file,
                line,
                column,
            });
            place = (path(call.file), call.line, call.column);
        }
        if frames.is_empty() {
            let (file, line, column) = place;
            frames.push(SourceLine {
                function: None,
                file,
                line,
                column,
            });
        }
        Ok(frames)
    }

    /// A line program whose sizes have been checked.
    fn line_program(
        &self,
        unit: &Unit<Slice<'a>>,
        at: DebugLineOffset,
    ) -> Result<IncompleteLineProgram<Slice<'a>>, Stop> {
        let lines = &self.dwarf.debug_line;
        let bytes = lines.reader().slice().get(at.0..).ok_or(Stop)?;
        check_line_header(bytes).ok_or(Stop)?;
        Ok(lines.program(at, unit.header.address_size(), None, None)?)
    }

    /// The last row of the line program at or below the offset, in a sequence that covers it: file,
    /// line, column.
    #[allow(clippy::type_complexity)]
    fn row(
        &mut self,
        unit: &Unit<Slice<'a>>,
        at: DebugLineOffset,
    ) -> Result<Option<(LineProgramHeader<Slice<'a>>, u64, u64, u64)>, Stop> {
        let program = self.line_program(unit, at)?;
        let header = program.header().clone();
        let mut rows = program.rows();
        let mut before: Option<(u64, u64, u64)> = None;
        while let Some((_, row)) = rows.next_row()? {
            self.budget.pay(1)?;
            if row.address() > self.offset
                && let Some((file, line, column)) = before
            {
                return Ok(Some((header, file, line, column)));
            }
            let column = match row.column() {
                gimli::ColumnType::LeftEdge => 0,
                gimli::ColumnType::Column(column) => column.get(),
            };
            let here = (
                row.file_index(),
                row.line().map_or(0, |line| line.get()),
                column,
            );
            before = (!row.end_sequence() && row.address() <= self.offset).then_some(here);
        }
        Ok(None)
    }

    /// The function that covers the offset and the calls inside it that do, outermost first.
    fn calls(&mut self, unit: &Unit<Slice<'a>>) -> Result<Vec<Call>, Stop> {
        let mut calls: Vec<Call> = Vec::new();
        let mut entries = unit.header.entries_raw(&unit.abbreviations, None)?;
        while !entries.is_empty() {
            let depth = entries.next_depth();
            if calls
                .first()
                .is_some_and(|function| depth <= function.depth)
            {
                break;
            }
            self.budget.pay(1)?;
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            self.budget.pay(abbreviation.attributes().len())?;
            let wanted = match abbreviation.tag() {
                constants::DW_TAG_subprogram => calls.is_empty(),
                // Inside the innermost call so far, not beside it.
                constants::DW_TAG_inlined_subroutine => {
                    calls.last().is_some_and(|c| depth > c.depth)
                }
                _ => false,
            };
            if !wanted {
                entries.skip_attributes(abbreviation.attributes())?;
                continue;
            }
            let mut entry = DieAttributes::default();
            for spec in abbreviation.attributes() {
                let attribute = entries.read_attribute(*spec)?;
                entry.set(attribute.name(), attribute.value());
            }
            if self.covers(unit, &entry)? && calls.len() < MAX_FRAMES {
                let function = self.name(unit, &entry)?;
                let (file, line, column) = (entry.call_file, entry.call_line, entry.call_column);
                calls.push(Call {
                    depth,
                    function,
                    file,
                    line,
                    column,
                });
            }
        }
        Ok(calls)
    }

    /// An entry's name, its own or that of the entry that it is an instance of.
    fn name(
        &mut self,
        unit: &Unit<Slice<'a>>,
        entry: &DieAttributes<'a>,
    ) -> Result<Option<String>, Stop> {
        let text = |entry: &DieAttributes<'a>| {
            let value = entry.name.or(entry.linkage_name)?;
            self.dwarf.attr_string(unit, value).ok().map(text)
        };
        if let Some(name) = text(entry) {
            return Ok(Some(name));
        }
        let mut origin = entry.origin;
        for _ in 0..MAX_ORIGINS {
            let at: UnitOffset = match origin {
                Some(AttributeValue::UnitRef(at)) => at,
                Some(AttributeValue::DebugInfoRef(at)) => match at.to_unit_offset(&unit.header) {
                    Some(at) => at,
                    None => return Ok(None),
                },
                _ => return Ok(None),
            };
            let mut entries = unit.header.entries_raw(&unit.abbreviations, Some(at))?;
            let Some(abbreviation) = entries.read_abbreviation()? else {
                return Ok(None);
            };
            self.budget.pay(abbreviation.attributes().len())?;
            let mut entry = DieAttributes::default();
            for spec in abbreviation.attributes() {
                let attribute = entries.read_attribute(*spec)?;
                entry.set(attribute.name(), attribute.value());
            }
            if let Some(name) = text(&entry) {
                return Ok(Some(name));
            }
            origin = entry.origin;
        }
        Ok(None)
    }

    /// The path of a file of the line program: as the compiler was given it, so without the
    /// directory that it ran in, which is number 0.
    fn path(
        &self,
        unit: &Unit<Slice<'a>>,
        header: &LineProgramHeader<Slice<'a>>,
        file: u64,
    ) -> String {
        let unknown = || "?".to_owned();
        let Some(entry) = header.file(file) else {
            return unknown();
        };
        let string = |value| self.dwarf.attr_string(unit, value).ok().map(text);
        let Some(name) = string(entry.path_name()) else {
            return unknown();
        };
        let directory = match entry.directory_index() {
            0 => None,
            _ => entry.directory(header).and_then(string),
        };
        match directory {
            Some(directory) if !name.starts_with('/') => format!("{directory}/{name}"),
            _ => name,
        }
    }
}

impl<'a> DieAttributes<'a> {
    fn set(&mut self, name: gimli::DwAt, value: Value<'a>) {
        match name {
            constants::DW_AT_low_pc => self.low = Some(value),
            constants::DW_AT_high_pc => self.high = Some(value),
            constants::DW_AT_ranges => self.ranges = Some(value),
            constants::DW_AT_name => self.name = Some(value),
            constants::DW_AT_linkage_name => self.linkage_name = Some(value),
            constants::DW_AT_abstract_origin | constants::DW_AT_specification => {
                self.origin = Some(value)
            }
            constants::DW_AT_call_file => {
                self.call_file = match value {
                    AttributeValue::FileIndex(index) => index,
                    other => other.udata_value().unwrap_or(0),
                }
            }
            constants::DW_AT_call_line => self.call_line = value.udata_value().unwrap_or(0),
            constants::DW_AT_call_column => self.call_column = value.udata_value().unwrap_or(0),
            _ => {}
        }
    }
}

/// Text of the file, cut to a length that a message can bear.
fn text(slice: Slice<'_>) -> String {
    let slice = slice.slice();
    String::from_utf8_lossy(&slice[..slice.len().min(MAX_TEXT)]).into_owned()
}

/// Length in bytes of the table of abbreviations that `bytes` begins with (DWARF 5, section 7.5.3),
/// up to its end mark.
fn abbreviations_length(bytes: &[u8]) -> Option<usize> {
    const DW_FORM_IMPLICIT_CONST: u64 = 0x21;
    let mut at = 0;
    let mut number = || -> Option<u64> {
        let (mut value, mut shift) = (0u64, 0u32);
        loop {
            let byte = *bytes.get(at)?;
            at += 1;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift = shift.saturating_add(7);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
    };
    while number()? != 0 {
        // Tag, and whether there are children, which is one byte and read as a number of one byte.
        number()?;
        number()?;
        loop {
            let (name, form) = (number()?, number()?);
            if form == DW_FORM_IMPLICIT_CONST {
                number()?;
            }
            if name == 0 && form == 0 {
                break;
            }
        }
    }
    Some(at)
}

/// Whether a line program and its header have sizes that are worth reading (DWARF 5, section
/// 6.2.4).
fn check_line_header(bytes: &[u8]) -> Option<()> {
    let (length, after) = match u32_at(bytes, 0)? {
        0xffff_ffff => (u64_at(bytes, 4)?, 12),
        length => (length.into(), 4),
    };
    let version = crate::elf::u16_at(bytes, after)?;
    let at = after + if version >= 5 { 4 } else { 2 };
    let header = if after == 12 {
        u64_at(bytes, at)?
    } else {
        u32_at(bytes, at)?.into()
    };
    (length <= MAX_LINE_PROGRAM && header <= MAX_LINE_HEADER).then_some(())
}
