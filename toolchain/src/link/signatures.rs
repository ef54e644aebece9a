//! Signatures and lines from debug information.
//!
//! The letters are those of the extension ABI, section 7. What cannot be said in letters (variadic
//! functions, structures by value, 128-bit and extended types) has an empty signature, which means
//! "unknown".

use std::collections::{HashMap, HashSet};
use std::path::Path;

use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, LittleEndian, Unit, UnitOffset,
    constants as dw,
};
use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection as _};

use super::symbols::Found;
use crate::tools::printable;

/// Most parameters that a signature may name.
const MAX_PARAMETERS: usize = 16;

/// What the debug information says about functions and variables, by symbol name.
#[derive(Debug, Default)]
pub struct DebugInfo {
    /// Signatures of declarations.
    pub imports: HashMap<String, String>,
    /// Signatures of definitions.
    pub exports: HashMap<String, String>,
    /// Variables that are declared and not defined.
    pub variables: HashSet<String>,
}

type Slice<'d> = EndianSlice<'d, LittleEndian>;

/// Reads the debug information of a linked file. Whatever is missing or malformed is unknown.
pub fn read(path: &Path, found: &Found) -> DebugInfo {
    let mut info = DebugInfo::default();
    let Ok(data) = super::symbols::load(path) else {
        return info;
    };
    let Ok(file) = ElfFile64::<Endianness>::parse(&*data) else {
        return info;
    };
    let dwarf = dwarf(&file);
    let mut units = dwarf.units();
    // Parts of functions that are still looked at: as many as a sound file can have.
    let mut left = data.len();
    let wanted: HashSet<&str> = found
        .undefined
        .iter()
        .chain(&found.exports)
        .map(String::as_str)
        .collect();
    while let Ok(Some(header)) = units.next() {
        if let Ok(unit) = dwarf.unit(header) {
            let _ = read_unit(&dwarf, &unit, &wanted, &mut info, &mut left);
        }
    }
    info
}

fn dwarf<'d>(file: &ElfFile64<'d, Endianness>) -> Dwarf<Slice<'d>> {
    let section = |id: gimli::SectionId| -> Result<Slice<'d>, gimli::Error> {
        let data = file
            .section_by_name(id.name())
            .and_then(|section| section.data().ok())
            .unwrap_or(&[]);
        Ok(EndianSlice::new(data, LittleEndian))
    };
    let mut dwarf = Dwarf::load(section).unwrap_or_default();
    // Many units may have one table.
    dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
    dwarf
}

/// `file:line` of the instruction at `address`.
pub fn line_of(file: &ElfFile64<Endianness>, address: u64) -> Option<String> {
    let dwarf = dwarf(file);
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let unit = dwarf.unit(header).ok()?;
        let Some(program) = unit.line_program.clone() else {
            continue;
        };
        let mut rows = program.rows();
        let mut last: Option<(u64, u64, u64)> = None;
        while let Ok(Some((_, row))) = rows.next_row() {
            if let Some((start, file, line)) = last
                && (start..row.address()).contains(&address)
            {
                let header = rows.header();
                let entry = header.file(file)?;
                let name = dwarf.attr_string(&unit, entry.path_name()).ok()?;
                return Some(format!("{}:{line}", printable(&name.to_string_lossy())));
            }
            last = (!row.end_sequence()).then(|| {
                (
                    row.address(),
                    row.file_index(),
                    row.line().map_or(0, u64::from),
                )
            });
        }
    }
    None
}

fn read_unit(
    dwarf: &Dwarf<Slice>,
    unit: &Unit<Slice>,
    wanted: &HashSet<&str>,
    info: &mut DebugInfo,
    left: &mut usize,
) -> Result<(), gimli::Error> {
    let mut entries = unit.entries();
    while let Some((_, entry)) = entries.next_dfs()? {
        let tag = entry.tag();
        if tag != dw::DW_TAG_subprogram && tag != dw::DW_TAG_variable {
            continue;
        }
        let origin = origin(unit, entry);
        let attribute = |at| -> Option<AttributeValue<Slice>> {
            entry.attr_value(at).ok().flatten().or_else(|| {
                origin
                    .as_ref()
                    .and_then(|entry| entry.attr_value(at).ok().flatten())
            })
        };
        let name = attribute(dw::DW_AT_linkage_name).or_else(|| attribute(dw::DW_AT_name));
        let Some(name) = name.and_then(|value| dwarf.attr_string(unit, value).ok()) else {
            continue;
        };
        let name = name.to_string_lossy();
        if !wanted.contains(name.as_ref()) {
            continue;
        }
        let declared = matches!(
            entry.attr_value(dw::DW_AT_declaration)?,
            Some(AttributeValue::Flag(true))
        );
        if tag == dw::DW_TAG_variable {
            if declared {
                info.variables.insert(name.into_owned());
            }
            continue;
        }
        let signature = signature(unit, entry.offset(), left)
            .or_else(|| signature(unit, origin.as_ref()?.offset(), left))
            .unwrap_or_default();
        let table = if declared {
            &mut info.imports
        } else {
            &mut info.exports
        };
        let known = table.entry(name.into_owned()).or_default();
        if known.is_empty() {
            *known = signature;
        }
    }
    Ok(())
}

type Entry<'u, 'd> = DebuggingInformationEntry<'u, 'u, Slice<'d>>;

fn origin<'u, 'd>(unit: &'u Unit<Slice<'d>>, entry: &Entry<'u, 'd>) -> Option<Entry<'u, 'd>> {
    for at in [dw::DW_AT_abstract_origin, dw::DW_AT_specification] {
        if let Ok(Some(AttributeValue::UnitRef(offset))) = entry.attr_value(at) {
            let next = unit.entry(offset).ok()?;
            return match next.attr_value(dw::DW_AT_specification) {
                Ok(Some(AttributeValue::UnitRef(offset))) => unit.entry(offset).ok(),
                _ => Some(next),
            };
        }
    }
    None
}

/// The signature of the subprogram at `offset`; none if it cannot be said.
fn signature(unit: &Unit<Slice>, offset: UnitOffset, left: &mut usize) -> Option<String> {
    let mut tree = unit.entries_tree(Some(offset)).ok()?;
    let root = tree.root().ok()?;
    let entry = root.entry();
    let result = match type_of(entry) {
        None => match origin(unit, entry).and_then(|entry| type_of(&entry)) {
            Some(result) => letter(unit, result)?,
            None => 'v',
        },
        Some(result) => letter(unit, result)?,
    };
    let prototyped = matches!(
        entry.attr_value(dw::DW_AT_prototyped),
        Ok(Some(AttributeValue::Flag(true)))
    );
    let declared = matches!(
        entry.attr_value(dw::DW_AT_declaration),
        Ok(Some(AttributeValue::Flag(true)))
    );
    let mut parameters = String::new();
    let mut children = root.children();
    while let Ok(Some(child)) = children.next() {
        *left = left.checked_sub(1)?;
        let entry = child.entry();
        match entry.tag() {
            dw::DW_TAG_formal_parameter => {
                let parameter = type_of(entry).or_else(|| type_of(&origin(unit, entry)?))?;
                parameters.push(letter(unit, parameter)?);
            }
            dw::DW_TAG_unspecified_parameters => return None,
            _ => {}
        }
    }
    let is_c = unit_is_c(unit);
    if parameters.len() > MAX_PARAMETERS
        || (is_c && declared && !prototyped && parameters.is_empty())
    {
        return None;
    }
    Some(format!("{result}({parameters})"))
}

fn unit_is_c(unit: &Unit<Slice>) -> bool {
    let mut entries = unit.entries();
    let Ok(Some((_, root))) = entries.next_dfs() else {
        return false;
    };
    matches!(
        root.attr_value(dw::DW_AT_language),
        Ok(Some(AttributeValue::Language(
            dw::DW_LANG_C89 | dw::DW_LANG_C | dw::DW_LANG_C99 | dw::DW_LANG_C11 | dw::DW_LANG_C17
        )))
    )
}

fn type_of(entry: &Entry) -> Option<UnitOffset> {
    match entry.attr_value(dw::DW_AT_type) {
        Ok(Some(AttributeValue::UnitRef(offset))) => Some(offset),
        _ => None,
    }
}

/// The letter of a type.
fn letter(unit: &Unit<Slice>, mut offset: UnitOffset) -> Option<char> {
    // A chain of names and qualifiers is finite in sound debug information.
    for _ in 0..64 {
        let entry = unit.entry(offset).ok()?;
        let size = entry
            .attr_value(dw::DW_AT_byte_size)
            .ok()
            .flatten()
            .and_then(|value| value.udata_value());
        match entry.tag() {
            dw::DW_TAG_typedef
            | dw::DW_TAG_const_type
            | dw::DW_TAG_volatile_type
            | dw::DW_TAG_restrict_type
            | dw::DW_TAG_atomic_type => offset = type_of(&entry)?,
            dw::DW_TAG_pointer_type
            | dw::DW_TAG_reference_type
            | dw::DW_TAG_rvalue_reference_type
            | dw::DW_TAG_unspecified_type => return Some('p'),
            dw::DW_TAG_enumeration_type => {
                if let Some(base) = type_of(&entry) {
                    offset = base;
                    continue;
                }
                return (size == Some(4)).then_some('I');
            }
            dw::DW_TAG_base_type => {
                let Ok(Some(AttributeValue::Encoding(encoding))) =
                    entry.attr_value(dw::DW_AT_encoding)
                else {
                    return None;
                };
                let signed = matches!(encoding, dw::DW_ATE_signed | dw::DW_ATE_signed_char);
                return match (encoding, size?) {
                    (dw::DW_ATE_float, 4) => Some('f'),
                    (dw::DW_ATE_float, 8) => Some('d'),
                    (dw::DW_ATE_float | dw::DW_ATE_complex_float, _) => None,
                    (dw::DW_ATE_boolean, 1) => Some('z'),
                    (_, 1) => Some(if signed { 'b' } else { 'B' }),
                    (_, 2) => Some(if signed { 'h' } else { 'H' }),
                    (_, 4) => Some(if signed { 'i' } else { 'I' }),
                    (_, 8) => Some(if signed { 'l' } else { 'L' }),
                    _ => None,
                };
            }
            _ => return None,
        }
    }
    None
}
