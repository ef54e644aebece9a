//! What the symbol tables of objects and of the linker's output say.

use std::collections::BTreeSet;
use std::path::Path;

use object::elf;
use object::read::archive::ArchiveFile;
use object::read::elf::{ElfFile64, FileHeader as _, SectionHeader as _, Sym as _};
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _};

use postern_image::input;
use postern_verifier::window::{STACK_MASK, STACK_MASK_WORD};

use super::{LinkError, LinkInput, notes};
use crate::compile::symbols::SERVICES;

/// The functions that the host calls for the domain's heap; always linked and exported.
pub const ALLOCATOR: [&str; 4] = ["malloc", "free", "calloc", "realloc"];
/// The function that runs static constructors, exported where there are any.
pub const INIT: &str = "__postern_init";
/// What stands in virtual tables where there is no function. Compilers refer to it weakly, so that
/// no archive is searched for it.
pub const PURE: &str = "__cxa_pure_virtual";
/// The function that every exception starts with.
const RAISE: &str = "_Unwind_RaiseException";

/// The function that runs a program's main, exported where there is one.
pub const MAIN: &str = "__postern_main";

/// What a trial link found.
#[derive(Debug, Default)]
pub struct Found {
    /// Symbols that nobody defines: the imports, at last in slot order ([`super::needs::find`]).
    pub undefined: Vec<String>,
    /// Functions that the host may call, sorted.
    pub exports: Vec<String>,
    /// There is code.
    pub has_text: bool,
    /// There is writable data or bss.
    pub has_data: bool,
    /// There are static constructors.
    pub has_constructors: bool,
    /// The largest alignment of a thread-local variable, if there is one.
    pub thread_locals: Option<u64>,
    /// Code wants the thread pointer.
    pub wants_thread_pointer: bool,
    /// Code has the data stack's size as a number of its own.
    pub fixed_stack: bool,
    /// An exception can be thrown.
    pub throws: bool,
    /// There are virtual tables without a function somewhere, and nothing to put there.
    pub pure: bool,
    /// A number that depends on the code and on nothing else.
    pub code: u64,
}

impl Found {
    /// Leaves only the exports of `names` and those that the runtime gives a meaning; all, if there
    /// are no names.
    pub fn choose_exports(&mut self, names: &[String]) -> Result<(), LinkError> {
        if names.is_empty() {
            return Ok(());
        }
        if let Some(missing) = names.iter().find(|name| !self.exports.contains(name)) {
            return Err(LinkError::Export(missing.clone()));
        }
        self.exports.retain(|name| {
            names.contains(name)
                || ALLOCATOR.contains(&name.as_str())
                || name.starts_with("__postern_")
        });
        Ok(())
    }
}

pub fn load(path: &Path) -> Result<Vec<u8>, LinkError> {
    input::read(path, input::MAX_FILE).map_err(|error| LinkError::File {
        path: path.to_owned(),
        source: error.into(),
    })
}

pub fn parse<'d>(path: &Path, data: &'d [u8]) -> Result<ElfFile64<'d, Endianness>, LinkError> {
    let malformed = |reason: &str| LinkError::Malformed {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    let file = ElfFile64::<Endianness>::parse(data)
        .map_err(|_| malformed("this is not an object file"))?;
    if file.elf_header().e_machine(Endianness::Little) != elf::EM_X86_64 {
        return Err(malformed("this object is not for x86-64"));
    }
    Ok(file)
}

/// The names of functions with default visibility that the objects among `inputs` define.
pub fn exported_functions(inputs: &[LinkInput]) -> Result<Vec<String>, LinkError> {
    let mut names = BTreeSet::new();
    for input in inputs {
        let LinkInput::Object(path) = input else {
            continue;
        };
        let data = load(path)?;
        let file = parse(path, &data)?;
        names.extend(functions(&file, false));
    }
    Ok(names.into_iter().collect())
}

/// Whether one of the objects defines a main, of whatever visibility.
pub fn define_main(inputs: &[LinkInput]) -> Result<bool, LinkError> {
    for input in inputs {
        let LinkInput::Object(path) = input else {
            continue;
        };
        let data = load(path)?;
        let file = parse(path, &data)?;
        let is_main = |symbol: &object::read::elf::ElfSymbol64<'_, '_, Endianness>| {
            symbol.name() == Ok("main")
                && symbol.is_global()
                && symbol.is_definition()
                && symbol.kind() == object::SymbolKind::Text
        };
        if file.symbols().any(|symbol| is_main(&symbol)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Each of `names` with the first input that refers to it, for messages.
pub fn places(inputs: &[LinkInput], names: &[&String]) -> Result<Vec<(String, String)>, LinkError> {
    let mut places: Vec<(String, String)> = names
        .iter()
        .map(|name| ((*name).clone(), String::new()))
        .collect();
    each_object(inputs, |path, member, data| {
        let Ok(file) = ElfFile64::<Endianness>::parse(data) else {
            return Ok(());
        };
        let wanted: BTreeSet<&str> = file
            .symbols()
            .filter(|symbol| symbol.is_undefined())
            .filter_map(|symbol| symbol.name().ok())
            .collect();
        for (name, found) in &mut places {
            if found.is_empty() && wanted.contains(name.as_str()) {
                *found = match member {
                    Some(member) => {
                        format!("{}({})", file_name(path), String::from_utf8_lossy(member))
                    }
                    None => file_name(path),
                };
            }
        }
        Ok(())
    })?;
    Ok(places)
}

/// Shows `visit` the objects among the inputs and the members of archives: the file, the member's
/// name, the bytes.
fn each_object(
    inputs: &[LinkInput],
    mut visit: impl FnMut(&Path, Option<&[u8]>, &[u8]) -> Result<(), LinkError>,
) -> Result<(), LinkError> {
    for input in inputs {
        match input {
            LinkInput::Object(path) => visit(path, None, &load(path)?)?,
            LinkInput::Archive(path) => {
                let data = load(path)?;
                // What is no archive, or a thin one, is the linker's to judge.
                let Ok(archive) = ArchiveFile::parse(&*data) else {
                    continue;
                };
                for member in archive.members().flatten() {
                    if let Ok(bytes) = member.data(&*data) {
                        visit(path, Some(member.name()), bytes)?;
                    }
                }
            }
            LinkInput::Option(_) => {}
        }
    }
    Ok(())
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The functions that objects and members of archives declare as the host's.
pub fn services(inputs: &[LinkInput]) -> Result<Vec<String>, LinkError> {
    let mut names = BTreeSet::new();
    each_object(inputs, |path, member, data| {
        // A member that is no object is the linker's to judge, too.
        match member.is_none() || ElfFile64::<Endianness>::parse(data).is_ok() {
            true => read_services(path, data, &mut names),
            false => Ok(()),
        }
    })?;
    Ok(names.into_iter().collect())
}

fn read_services(path: &Path, data: &[u8], names: &mut BTreeSet<String>) -> Result<(), LinkError> {
    let file = parse(path, data)?;
    if let Some(section) = file.section_by_name(SERVICES)
        && let Ok(text) = section.data()
    {
        let found = text
            .split(|byte| *byte == 0)
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .filter(|name| !name.is_empty());
        names.extend(found);
    }
    Ok(())
}

/// Defined functions of default visibility; weak ones only where `weak` says so or the runtime
/// gives them a meaning.
fn functions(file: &ElfFile64<Endianness>, weak: bool) -> Vec<String> {
    let mut names = Vec::new();
    for symbol in file.symbols() {
        let raw = symbol.elf_symbol();
        let Ok(name) = symbol.name() else { continue };
        let global = match raw.st_bind() {
            elf::STB_GLOBAL => true,
            elf::STB_WEAK => weak || ALLOCATOR.contains(&name),
            _ => false,
        };
        let defined = raw.st_shndx(Endianness::Little) != elf::SHN_UNDEF;
        let visible = raw.st_visibility() == elf::STV_DEFAULT;
        if global && defined && visible && raw.st_type() == elf::STT_FUNC && notes::is_name(name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// A number for these bytes, the same everywhere and always (FNV-1a over words, its halves put
/// together).
fn number_of(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    let number = words.fold(0xcbf2_9ce4_8422_2325, |number: u64, word| {
        (number ^ word).wrapping_mul(0x100_0000_01b3)
    });
    number >> 32 ^ number >> 48 ^ number
}

/// Reads the linker's output.
pub fn read(path: &Path) -> Result<Found, LinkError> {
    let data = load(path)?;
    let file = parse(path, &data)?;
    let size = |name: &str| {
        file.section_by_name(name)
            .map_or(0, |section| section.size())
    };
    let mut found = Found {
        has_data: file.sections().any(|section| {
            let flags = section.elf_section_header().sh_flags(Endianness::Little) as u32;
            flags & (elf::SHF_ALLOC | elf::SHF_WRITE | elf::SHF_TLS)
                == elf::SHF_ALLOC | elf::SHF_WRITE
                && section.size() > 0
        }),
        has_constructors: size(".init_array") > 0,
        thread_locals: file
            .sections()
            .filter(|section| {
                let flags = section.elf_section_header().sh_flags(Endianness::Little) as u32;
                flags & elf::SHF_TLS != 0 && section.size() > 0
            })
            .map(|section| section.align())
            .max(),
        exports: functions(&file, false),
        code: file
            .section_by_name(".text")
            .and_then(|text| text.data().ok())
            .map_or(0, number_of),
        ..Found::default()
    };
    let mut undefined = BTreeSet::new();
    // Names may be parts of one long text: together they are not to be longer than the file.
    let mut left = data.len();
    for symbol in file.symbols() {
        let Ok(name) = symbol.name() else { continue };
        // What is weak and undefined is 0, as everywhere: it is not asked of the host.
        if symbol.is_undefined() && !symbol.is_weak() && !name.is_empty() {
            left = left
                .checked_sub(name.len())
                .ok_or_else(|| LinkError::Malformed {
                    path: path.to_owned(),
                    reason: "its names are together longer than the file".to_owned(),
                })?;
            undefined.insert(name.to_owned());
        }
        // The linker's script has these two if anything refers to them.
        found.wants_thread_pointer |= name == STACK_MASK_WORD;
        found.fixed_stack |= name == STACK_MASK;
        found.pure |= name == PURE && symbol.is_undefined();
        found.throws |= name == RAISE && symbol.is_definition();
        found.has_text |= symbol.kind() == object::SymbolKind::Text && symbol.is_definition();
    }
    found.undefined = undefined.into_iter().collect();
    found.exports.sort_unstable();
    found.exports.dedup();
    Ok(found)
}
