//! Relocatable ELF objects, as `postern cc -c` writes them, become objects.
//!
//! The file may be anybody's: every field is checked, and what is made of it is judged by the
//! verifier like all else. Sections that are loaded are joined into text, constants, data and
//! zeroed data; debug information is left out.
//!
//! Invariant: time and memory are linear in the file's length, but for sorting. No byte of it is a
//! part of two sections, and the names that are copied are together no longer than the file,
//! however many refer to one text. A symbol lies in its section with all its bytes, so sums of
//! offsets and sizes fit, and its name is one that can be printed.

use super::{CreateError, Created, Namespace};
use postern_image::Signature;
use postern_image::object::{Import, Object, Symbol};
use postern_verifier::relocation::{Relocation, Section, Target, Width};
use postern_verifier::window::FILL;
use std::cell::Cell;
use std::collections::HashMap;

/// Largest alignment that a section may ask for.
const ALIGNMENT: u64 = crate::state::ALIGNMENT as u64;

const NULL: u32 = 0;
const PROGBITS: u32 = 1;
const SYMTAB: u32 = 2;
const RELA: u32 = 4;
const NOTE: u32 = 7;
const NOBITS: u32 = 8;
const WRITE: u64 = 1;
const ALLOC: u64 = 2;
const EXEC: u64 = 4;
const TLS: u64 = 0x400;
/// Special section numbers of symbols.
const UNDEFINED: u16 = 0;
const ABSOLUTE: u16 = 0xfff1;
const COMMON: u16 = 0xfff2;

fn wrong(what: impl Into<String>) -> CreateError {
    CreateError::Object(what.into())
}

/// Little-endian fields of a piece of the file.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&self, at: usize) -> Result<[u8; N], CreateError> {
        let bytes = self.0.get(at..).and_then(|rest| rest.first_chunk());
        bytes.copied().ok_or_else(|| wrong("it ends too early"))
    }
    fn u16(&self, at: usize) -> Result<u16, CreateError> {
        Ok(u16::from_le_bytes(self.bytes(at)?))
    }
    fn u32(&self, at: usize) -> Result<u32, CreateError> {
        Ok(u32::from_le_bytes(self.bytes(at)?))
    }
    fn u64(&self, at: usize) -> Result<u64, CreateError> {
        Ok(u64::from_le_bytes(self.bytes(at)?))
    }
}

/// A section header.
struct Header {
    /// Where its name begins.
    name: u32,
    kind: u32,
    flags: u64,
    offset: u64,
    size: u64,
    link: u32,
    info: u32,
    align: u64,
}

struct File<'a> {
    bytes: &'a [u8],
    sections: Vec<Header>,
    /// Names of sections.
    names: &'a [u8],
    /// Bytes of symbols' names that may still be copied.
    left: Cell<usize>,
}

impl<'a> File<'a> {
    fn parse(bytes: &'a [u8]) -> Result<File<'a>, CreateError> {
        const SIZE: usize = 64;
        let head = Fields(bytes);
        // ELF, 64 bits, little-endian, current version; a relocatable file for x86-64.
        let is = bytes.starts_with(b"\x7fELF\x02\x01\x01") && head.u32(16)? == 62 << 16 | 1;
        if !is || usize::from(head.u16(58)?) != SIZE {
            return Err(wrong(
                "it is no relocatable ELF file for x86-64; compile it with `postern cc -c`",
            ));
        }
        let (start, count, names) = (head.u64(40)?, head.u16(60)?, head.u16(62)?);
        let mut file = File {
            bytes,
            sections: Vec::new(),
            names: &[],
            left: Cell::new(bytes.len()),
        };
        for index in 0..u64::from(count) {
            let at = start.saturating_add(index * SIZE as u64);
            let fields = Fields(file.range(at, SIZE as u64)?);
            file.sections.push(Header {
                name: fields.u32(0)?,
                kind: fields.u32(4)?,
                flags: fields.u64(8)?,
                offset: fields.u64(24)?,
                size: fields.u64(32)?,
                link: fields.u32(40)?,
                info: fields.u32(44)?,
                align: fields.u64(48)?,
            });
        }
        let names = file.section(names.into())?;
        file.names = file.content(names)?;
        file.check_apart()?;
        Ok(file)
    }

    /// Each byte of the file is of one section at most, so the sections are no longer than the
    /// file.
    fn check_apart(&self) -> Result<(), CreateError> {
        let mut ranges = Vec::new();
        for section in &self.sections {
            if !matches!(section.kind, NULL | NOBITS) && section.size != 0 {
                self.content(section)?;
                ranges.push((section.offset, section.offset.saturating_add(section.size)));
            }
        }
        ranges.sort_unstable();
        match ranges.windows(2).all(|two| two[0].1 <= two[1].0) {
            true => Ok(()),
            false => Err(wrong("two of its sections overlap")),
        }
    }

    fn section(&self, index: u32) -> Result<&Header, CreateError> {
        let section = self.sections.get(index as usize);
        section.ok_or_else(|| wrong("it names a section that is not there"))
    }

    /// Whether a section has this name.
    fn is_named(&self, section: &Header, name: &str) -> bool {
        let text = self.names.get(section.name as usize..).unwrap_or_default();
        let rest = text.strip_prefix(name.as_bytes());
        rest.is_some_and(|rest| rest.first() == Some(&0))
    }

    /// A section's name as a message can show it.
    fn shown(&self, section: &Header) -> String {
        let text = self.names.get(section.name as usize..).unwrap_or_default();
        shown(text.split(|&b| b == 0).next().unwrap_or_default())
    }

    fn range(&self, offset: u64, size: u64) -> Result<&'a [u8], CreateError> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(usize::try_from(size).unwrap_or(usize::MAX));
        let found = self.bytes.get(start..end);
        found.ok_or_else(|| wrong("a part of it lies behind its end"))
    }

    fn content(&self, section: &Header) -> Result<&'a [u8], CreateError> {
        match section.kind {
            NOBITS => Ok(&[]),
            _ => self.range(section.offset, section.size),
        }
    }

    /// A symbol's name.
    fn text(&self, table: u32, offset: u32) -> Result<String, CreateError> {
        let rest = self.content(self.section(table)?)?.get(offset as usize..);
        let rest = rest.ok_or_else(|| wrong("a name lies behind its table"))?;
        let left = self.left.get();
        let (near, long) = (&rest[..rest.len().min(left)], rest.len() > left);
        let end = near
            .iter()
            .position(|&b| b == 0)
            .ok_or_else(|| match long {
                true => wrong("its names are together longer than the file"),
                false => wrong("a name does not end"),
            })?;
        self.left.set(left - end - 1);
        // What compilers write; of anything else a message would be a command to somebody's
        // terminal.
        let plain = |c: char| c.is_ascii_graphic() || !c.is_ascii() && c.is_alphanumeric();
        let name = std::str::from_utf8(&rest[..end]).ok();
        let name = name.filter(|name| !name.is_empty() && name.chars().all(plain));
        let name = name.ok_or_else(|| {
            let shown = shown(&rest[..end]);
            wrong(format!("`{shown}` is no name that a compiler writes"))
        })?;
        Ok(name.to_owned())
    }
}

/// Text of the file as a message can show it: the beginning, without anything that commands a
/// terminal.
fn shown(text: &[u8]) -> String {
    const MOST: usize = 64;
    let text = String::from_utf8_lossy(&text[..text.len().min(MOST)]);
    text.escape_debug().to_string()
}

/// Where a section went, if it was taken.
type Places = Vec<Option<JoinedSection>>;

/// A section that was taken.
#[derive(Clone, Copy)]
struct JoinedSection {
    section: Section,
    /// Where it begins there.
    at: u32,
    /// Its bytes.
    size: u64,
}

impl JoinedSection {
    /// The offset in the joined section of `size` bytes that begin at `value` in this one.
    fn offset(&self, value: u64, size: u64) -> Option<u32> {
        let end = value.checked_add(size)?;
        let offset = u64::from(self.at).checked_add(value)?;
        u32::try_from(offset).ok().filter(|_| end <= self.size)
    }
}

/// Joins the sections that are loaded.
fn join(file: &File<'_>, object: &mut Object) -> Result<Places, CreateError> {
    let mut places = vec![None; file.sections.len()];
    for (index, header) in file.sections.iter().enumerate() {
        // Unwinding tables and notes are of no use here.
        if header.flags & ALLOC == 0 || header.kind == NOTE || file.is_named(header, ".eh_frame") {
            continue;
        }
        if header.flags & TLS != 0 {
            return Err(wrong(
                "thread-local variables; a namespace has none, use ordinary ones",
            ));
        }
        if !matches!(header.kind, PROGBITS | NOBITS) {
            let name = file.shown(header);
            return Err(wrong(format!(
                "section `{name}`, which a namespace does not run; do without constructors"
            )));
        }
        let section = match (header.flags & (EXEC | WRITE), header.kind) {
            (EXEC, PROGBITS) => Section::Text,
            (0, PROGBITS) => Section::Rodata,
            (WRITE, PROGBITS) => Section::Data,
            (WRITE, _) => Section::Bss,
            _ => return Err(wrong("a section that is executable and not plain code")),
        };
        let align = header.align.max(1);
        if !align.is_power_of_two() || align > ALIGNMENT {
            return Err(wrong(format!("an alignment above {ALIGNMENT} bytes")));
        }
        let content = file.content(header)?;
        let at = match section {
            Section::Text => append(&mut object.text, FILL, align, content),
            Section::Rodata => append(&mut object.rodata, 0, align, content),
            Section::Data => append(&mut object.data, 0, align, content),
            Section::Bss => reserve(&mut object.bss, align, header.size),
        };
        places[index] = Some(JoinedSection {
            section,
            at: at?,
            size: header.size,
        });
    }
    // Text that runs to its very end would fall through, as the verifier sees it.
    object.text.push(FILL);
    Ok(places)
}

fn append(part: &mut Vec<u8>, fill: u8, align: u64, content: &[u8]) -> Result<u32, CreateError> {
    let at = part.len().next_multiple_of(align as usize);
    part.resize(at, fill);
    part.extend_from_slice(content);
    u32::try_from(at).map_err(|_| wrong("it is too large"))
}

fn reserve(bss: &mut u32, align: u64, size: u64) -> Result<u32, CreateError> {
    let at = u64::from(*bss).next_multiple_of(align);
    let end = at.saturating_add(size);
    *bss = u32::try_from(end).map_err(|_| wrong("it is too large"))?;
    Ok(at as u32)
}

/// What a symbol stands for.
#[derive(Clone, Copy)]
enum Meaning {
    Place(Section, u32),
    Import(u32),
    Nothing,
}

fn symbols(
    file: &File<'_>,
    table: &Header,
    places: &Places,
    types: &HashMap<&str, &str>,
    object: &mut Object,
) -> Result<Vec<Meaning>, CreateError> {
    const SIZE: usize = 24;
    let mut meanings = Vec::new();
    for entry in file.content(table)?.chunks_exact(SIZE) {
        let fields = Fields(entry);
        let (info, index) = (entry[4], fields.u16(6)?);
        let (value, size) = (fields.u64(8)?, fields.u64(16)?);
        let name = || file.text(table.link, fields.u32(0)?);
        let (global, kind) = (info >> 4 != 0, info & 15);
        let size = u32::try_from(size).map_err(|_| wrong("a symbol is too large"))?;
        let place = match index {
            UNDEFINED if !global => {
                meanings.push(Meaning::Nothing);
                continue;
            }
            UNDEFINED => {
                let name = name()?;
                let signature = types.get(&*name).copied().unwrap_or_default().to_owned();
                meanings.push(Meaning::Import(object.imports.len() as u32));
                object.imports.push(Import {
                    name,
                    function: true,
                    signature,
                });
                continue;
            }
            COMMON => {
                let align = value.max(1);
                if !align.is_power_of_two() || align > ALIGNMENT {
                    return Err(wrong(format!("an alignment above {ALIGNMENT} bytes")));
                }
                Some((Section::Bss, reserve(&mut object.bss, align, size.into())?))
            }
            ABSOLUTE => None,
            index => match places.get(usize::from(index)).copied().flatten() {
                Some(place) => {
                    let offset = place.offset(value, size.into());
                    let offset =
                        offset.ok_or_else(|| wrong("a symbol lies outside of its section"));
                    Some((place.section, offset?))
                }
                None => None,
            },
        };
        let Some((section, offset)) = place else {
            meanings.push(Meaning::Nothing);
            continue;
        };
        meanings.push(Meaning::Place(section, offset));
        // Functions, objects, and what has no type.
        if kind <= 2 && (global || kind == 2) {
            let name = name()?;
            let signature = types.get(&*name).copied().unwrap_or_default().to_owned();
            object.symbols.push(Symbol {
                name,
                section,
                offset,
                size,
                exported: global,
                signature,
            });
        }
    }
    Ok(meanings)
}

fn relocations(
    file: &File<'_>,
    places: &Places,
    meanings: &[Meaning],
    object: &mut Object,
) -> Result<(), CreateError> {
    const SIZE: usize = 24;
    for table in file.sections.iter().filter(|s| s.kind == RELA) {
        let Some(place) = places.get(table.info as usize).copied().flatten() else {
            continue;
        };
        for entry in file.content(table)?.chunks_exact(SIZE) {
            let fields = Fields(entry);
            let (kind, symbol) = (fields.u32(8)?, fields.u32(12)?);
            let addend = fields.u64(16)? as i64;
            let (width, more) = match kind {
                1 => (Width::Absolute64, 0),
                // The distance counts from the field, ours from behind it.
                2 | 4 => (Width::Relative32, 4),
                10 | 11 => (Width::Absolute32, 0),
                _ => {
                    return Err(wrong(format!(
                        "a relocation of type {kind}; compile it with `postern cc -c`"
                    )));
                }
            };
            let bytes = if width == Width::Absolute64 { 8 } else { 4 };
            let at = place.offset(fields.u64(0)?, bytes);
            let at = at.ok_or_else(|| wrong("a relocation lies outside of its section"))?;
            let addend = addend.wrapping_add(more);
            let (target, addend) = match meanings.get(symbol as usize) {
                Some(&Meaning::Place(section, offset)) => {
                    let addend = addend.wrapping_add(offset.into());
                    (Target::Section(section), addend)
                }
                Some(&Meaning::Import(index)) => (Target::Import(index), addend),
                _ => return Err(wrong("a relocation to something that is not loaded")),
            };
            // So that no sum of offsets overflows.
            if i32::try_from(addend).is_err() {
                return Err(CreateError::Address);
            }
            object.relocations.push(Relocation {
                section: place.section,
                at,
                width,
                target,
                addend,
            });
        }
    }
    Ok(())
}

/// What an ELF file holds; `types` are the signatures of functions in it.
fn read(bytes: &[u8], types: &[(&str, &str)]) -> Result<Object, CreateError> {
    let mut known = HashMap::new();
    for (name, signature) in types {
        let parsed: Result<Signature, _> = signature.parse();
        parsed.map_err(|error| wrong(format!("the type of `{name}`: {error}")))?;
        known.insert(*name, *signature);
    }
    let file = File::parse(bytes)?;
    let mut object = Object::default();
    let places = join(&file, &mut object)?;
    let mut tables = file.sections.iter().filter(|s| s.kind == SYMTAB);
    let meanings = match (tables.next(), tables.next()) {
        (Some(table), None) => symbols(&file, table, &places, &known, &mut object)?,
        _ => return Err(wrong("it has no symbol table, or two")),
    };
    relocations(&file, &places, &meanings, &mut object)?;
    Ok(object)
}

impl Namespace {
    /// Adds the functions and variables of a relocatable object, as `postern cc -c` compiles it
    /// from C or C++; otherwise as [`Namespace::create`]. An object does not say the types of its
    /// functions: `types` does, by name, in the notation of [`Signature`], for those that the host
    /// calls.
    ///
    /// # Errors
    /// The file is no such object, or needs what a namespace does not have; else as
    /// [`Namespace::create`].
    pub fn create_object(
        &self,
        unit: &str,
        object: &[u8],
        types: &[(&str, &str)],
    ) -> Result<Created, CreateError> {
        self.add(unit, read(object, types)?)
    }
}
