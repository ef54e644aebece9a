//! The notes of an image: header, imports, exports and what it needs of the processor (extension
//! ABI, section 7).
//!
//! They are claims of whoever linked the file. Here they are checked for form; what they claim is
//! bound to the image by others: `file` compares offsets with text, the verifier judges the code.
//!
//! All memory is asked for so that it may be refused: a kernel parses, too, and must not panic.

use alloc::string::String;
use alloc::vec::Vec;

use postern_verifier::Segment;
use postern_verifier::window::{
    ABI_VERSION, FLAG_ANY_STACK, MAX_EXPORTS, MAX_IMPORTS, MAX_SHIFT, SHIFT_FLAGS, STACK_LOG2,
};

use crate::elf::{u32_at, u64_at};
use crate::error::{FileLocation, ImageError, Problem};
use crate::heap_sort::heap_sort;
use crate::signature::Signature;

/// The name that Postern's notes bear, with its NUL.
pub(crate) const NOTE_NAME: &[u8; 8] = b"Postern\0";
/// Type of the header note.
pub(crate) const NOTE_HEADER: u32 = 1;
/// Type of the imports note.
pub(crate) const NOTE_IMPORTS: u32 = 2;
/// Type of the exports note.
pub(crate) const NOTE_EXPORTS: u32 = 3;
/// Type of the note of what the image needs of the processor.
pub(crate) const NOTE_NEEDS: u32 = 4;
/// Size of the header note's descriptor in bytes.
pub(crate) const HEADER_NOTE_SIZE: usize = 24;
/// Bit of the header's flags: may use x87.
pub(crate) const FLAG_X87: u32 = 1;
/// Bits of the header's flags: the shift.
const FLAGS_SHIFT: u32 = MAX_SHIFT << SHIFT_FLAGS;
const _: () = assert!((MAX_SHIFT + 1).is_power_of_two());
/// Most names of features that an image can say it needs.
const MAX_NEEDS: usize = 64;
/// Longest name of an import or export in bytes.
pub(crate) const MAX_NAME: usize = 255;

/// What the header note says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Version of the extension ABI, always [`ABI_VERSION`].
    pub abi: u32,
    /// Segment register of the image's operands.
    pub segment: Segment,
    /// Binary logarithm of the data stack's size in bytes, within [`STACK_LOG2`].
    pub stack_log2: u32,
    /// How many pages above [`GATES`](postern_verifier::window::GATES) the gate slots begin; at
    /// most [`MAX_SHIFT`].
    pub shift: u32,
    /// Whether the toolchain allowed x87: a claim, for people. What gates do follows from the
    /// verifier's facts.
    pub x87: bool,
    /// Whether the code finds the data stack's size in the info page, so that another one than
    /// `stack_log2` says can be chosen. A claim: if it is wrong, the code misses its own
    /// thread-local variables, inside its window.
    pub any_stack: bool,
    /// Bytes of heap that the extension would like to have; 0 leaves it to the host.
    pub heap_wish: u64,
}

/// A function that the image wants from its host. Its index is its gate slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Import<'a> {
    /// Name, unique among the imports.
    pub name: &'a str,
    /// Signature, where the toolchain knew it.
    pub signature: Option<Signature>,
}

/// A function that the image offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export<'a> {
    /// Name, unique among the exports.
    pub name: &'a str,
    /// Offset in the window of its first byte. It lies in text; that an instruction starts there
    /// is for the verifier's bitmap of starts to say.
    pub offset: u32,
    /// Signature, where the toolchain knew it.
    pub signature: Option<Signature>,
}

/// The notes, checked for form.
pub(crate) struct Notes<'a> {
    pub header: Header,
    pub imports: Vec<Import<'a>>,
    pub exports: Vec<Export<'a>>,
    /// Indices into `exports`, in the order of their names.
    pub by_name: Vec<u32>,
    /// Empty without the note.
    pub needs: Vec<&'a str>,
}

impl<'a> Notes<'a> {
    /// Reads the bytes of the note segment, which begins at `offset` of the file. Notes of other
    /// owners are skipped.
    #[inline(never)]
    pub fn parse(mut segment: &'a [u8], offset: u64) -> Result<Notes<'a>, ImageError> {
        let (mut header, mut imports, mut exports, mut needs) = (None, None, None, None);
        let length = segment.len();
        while !segment.is_empty() {
            let place = FileLocation::Note(offset + (length - segment.len()) as u64);
            let (note, rest) =
                Note::split(segment).ok_or_else(|| Problem::TruncatedNote.at(place.clone()))?;
            segment = rest;
            if note.name != NOTE_NAME {
                continue;
            }
            let second = |what| Err(Problem::Second(what).at(place.clone()));
            match note.kind {
                NOTE_HEADER if header.is_some() => return second("header note"),
                NOTE_IMPORTS if imports.is_some() => return second("imports note"),
                NOTE_EXPORTS if exports.is_some() => return second("exports note"),
                NOTE_NEEDS if needs.is_some() => return second("note of needs"),
                NOTE_HEADER => {
                    header = Some(Header::parse(note.descriptor).map_err(|p| p.at(place))?)
                }
                NOTE_IMPORTS => imports = Some(parse_imports(note.descriptor)?),
                NOTE_EXPORTS => exports = Some(parse_exports(note.descriptor)?),
                NOTE_NEEDS => needs = Some(parse_needs(note.descriptor).map_err(|p| p.at(place))?),
                other => return Err(Problem::UnknownNote(other).at(place)),
            }
        }
        let missing = |what| Problem::Missing(what).at(FileLocation::File);
        let header = header.ok_or_else(|| missing("header note"))?;
        let imports = imports.ok_or_else(|| missing("imports note"))?;
        let (exports, by_name) = exports.ok_or_else(|| missing("exports note"))?;
        Ok(Notes {
            header,
            imports,
            exports,
            by_name,
            needs: needs.unwrap_or_default(),
        })
    }
}

/// One note: twelve bytes of sizes and type, then name and descriptor, each padded to four bytes.
struct Note<'a> {
    name: &'a [u8],
    kind: u32,
    descriptor: &'a [u8],
}

impl<'a> Note<'a> {
    /// The first note and what follows it. The last one's padding may be missing.
    fn split(bytes: &'a [u8]) -> Option<(Note<'a>, &'a [u8])> {
        let name_size = usize::try_from(u32_at(bytes, 0)?).ok()?;
        let descriptor_size = usize::try_from(u32_at(bytes, 4)?).ok()?;
        let kind = u32_at(bytes, 8)?;
        let rest = bytes.get(12..)?;
        let name = rest.get(..name_size)?;
        let rest = rest.get(name_size.checked_next_multiple_of(4)?..)?;
        let descriptor = rest.get(..descriptor_size)?;
        let rest = rest
            .get(descriptor_size.checked_next_multiple_of(4)?..)
            .unwrap_or_default();
        Some((
            Note {
                name,
                kind,
                descriptor,
            },
            rest,
        ))
    }
}

impl Header {
    fn parse(descriptor: &[u8]) -> Result<Header, Problem> {
        let size = Problem::HeaderSize(descriptor.len() as u64);
        if descriptor.len() != HEADER_NOTE_SIZE {
            return Err(size);
        }
        let word = |at| u32_at(descriptor, at).ok_or(size.clone());
        let (abi, segment, stack_log2, flags) = (word(0)?, word(4)?, word(8)?, word(12)?);
        if abi != ABI_VERSION {
            return Err(Problem::Abi(abi));
        }
        let segment = match segment {
            0 => Segment::Gs,
            1 => Segment::Fs,
            other => return Err(Problem::SegmentRegister(other)),
        };
        if !(STACK_LOG2.0..=STACK_LOG2.2).contains(&stack_log2) {
            return Err(Problem::StackSize(stack_log2));
        }
        if flags & !(FLAG_X87 | FLAG_ANY_STACK | FLAGS_SHIFT) != 0 {
            return Err(Problem::Flags(flags));
        }
        let heap_wish = u64_at(descriptor, 16).ok_or(size)?;
        Ok(Header {
            abi,
            segment,
            stack_log2,
            shift: (flags & FLAGS_SHIFT) >> SHIFT_FLAGS,
            x87: flags & FLAG_X87 != 0,
            any_stack: flags & FLAG_ANY_STACK != 0,
            heap_wish,
        })
    }
}

/// Takes what precedes the next NUL; `None` if there is none.
fn until_nul<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = bytes.iter().position(|&b| b == 0)?;
    let (text, rest) = (bytes.get(..end)?, bytes.get(end + 1..)?);
    *bytes = rest;
    Some(text)
}

/// The text of a name, if it is 1 to 255 bytes of printable ASCII without spaces.
pub(crate) fn checked_name(name: &[u8]) -> Option<&str> {
    let printable = name.iter().all(u8::is_ascii_graphic) && (1..=MAX_NAME).contains(&name.len());
    core::str::from_utf8(name).ok().filter(|_| printable)
}

/// A name and a signature, with the name for messages about what is wrong with the signature.
type Entry<'a> = (&'a str, Option<Signature>);

fn parse_entry<'a>(bytes: &mut &'a [u8]) -> Result<Entry<'a>, (Problem, Option<&'a str>)> {
    let name = until_nul(bytes).ok_or((Problem::TruncatedEntry, None))?;
    let name = checked_name(name).ok_or((Problem::Name, None))?;
    let signature = until_nul(bytes).ok_or((Problem::TruncatedEntry, Some(name)))?;
    if signature.is_empty() {
        return Ok((name, None));
    }
    let signature = Signature::from_letters(letters(signature));
    Ok((
        name,
        Some(signature.map_err(|e| (Problem::Signature(e), Some(name)))?),
    ))
}

/// The letters of a signature. Where it is no UTF-8 one letter stands that no type has.
fn letters(bytes: &[u8]) -> impl Iterator<Item = char> + '_ {
    bytes.utf8_chunks().flat_map(|chunk| {
        let broken = (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
        chunk.valid().chars().chain(broken)
    })
}

/// Appends to a list, if there is memory.
fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), Problem> {
    list.try_reserve(1).map_err(|_| Problem::OutOfMemory)?;
    list.push(item);
    Ok(())
}

/// A name for a message, without which the message must do if there is no memory.
// A string and not a box, which would be shrunk to what was asked for; and by itself, so that the
// compiler sees that what is reserved suffices. Else either could panic as far as it knows.
#[inline(never)]
pub(crate) fn named(name: Option<&str>) -> Option<String> {
    let name = name?;
    let mut owned = String::new();
    owned.try_reserve_exact(name.len()).ok()?;
    owned.push_str(name);
    Some(owned)
}

/// The indices of `count` names in the order of the names, and the first whose name another one
/// before it has.
fn sorted<'a>(
    count: usize,
    name: impl Fn(u32) -> Option<&'a str>,
) -> Result<(Vec<u32>, Option<u32>), Problem> {
    let mut order: Vec<u32> = Vec::new();
    order
        .try_reserve_exact(count)
        .map_err(|_| Problem::OutOfMemory)?;
    // The same length as above, so that no compiler asks what to do without memory.
    order.resize(count, 0);
    order.iter_mut().zip(0..).for_each(|(index, n)| *index = n);
    // Indices, and not names: what sorting keeps on the stack is small so.
    heap_sort(&mut order, |a, b| {
        name(a).cmp(&name(b)).then(a.cmp(&b)).is_lt()
    });
    let pairs = order.iter().zip(order.iter().skip(1));
    let again = pairs.filter(|(one, next)| name(**one) == name(**next));
    let again = again.map(|(_, next)| *next).min();
    Ok((order, again))
}

/// What is wrong with an entry, with its name if that could be read.
type Wrong<'a> = (Problem, Option<&'a str>);

/// The entries of a note in the file's order, and their indices in the order of their names, which
/// differ. What stands first is told first.
// Not by pointers to functions: a kernel wants no branches through registers.
fn entries<'a, T>(
    mut bytes: &'a [u8],
    most: u32,
    place: impl Fn(u32, Option<String>) -> FileLocation,
    read: impl Fn(&mut &'a [u8]) -> Result<T, Wrong<'a>>,
    name: impl Fn(&T) -> &'a str,
) -> Result<(Vec<T>, Vec<u32>), ImageError> {
    let fail = |(problem, name): Wrong, index: u32| problem.at(place(index, named(name)));
    let mut list = Vec::new();
    let mut read_all = || {
        while !bytes.is_empty() {
            if list.len() as u32 == most {
                return Err((Problem::TooMany(most), None));
            }
            let entry = read(&mut bytes)?;
            let name = name(&entry);
            push(&mut list, entry).map_err(|problem| (problem, Some(name)))?;
        }
        Ok(())
    };
    let read = read_all();
    let name_of = |index: u32| list.get(index as usize).map(&name);
    let (order, again) = sorted(list.len(), name_of).map_err(|p| fail((p, None), 0))?;
    if let Some(index) = again {
        return Err(fail((Problem::DuplicateName, name_of(index)), index));
    }
    read.map_err(|wrong| fail(wrong, list.len() as u32))?;
    Ok((list, order))
}

fn parse_imports(bytes: &[u8]) -> Result<Vec<Import<'_>>, ImageError> {
    let place = FileLocation::Import;
    let (imports, _) = entries(bytes, MAX_IMPORTS, place, read_import, |import| import.name)?;
    Ok(imports)
}

fn read_import<'a>(bytes: &mut &'a [u8]) -> Result<Import<'a>, Wrong<'a>> {
    let (name, signature) = parse_entry(bytes)?;
    Ok(Import { name, signature })
}

/// The exports in the file's order, and their indices in the order of their names.
fn parse_exports(bytes: &[u8]) -> Result<(Vec<Export<'_>>, Vec<u32>), ImageError> {
    let place = FileLocation::Export;
    entries(bytes, MAX_EXPORTS, place, read_export, |export| export.name)
}

fn read_export<'a>(bytes: &mut &'a [u8]) -> Result<Export<'a>, Wrong<'a>> {
    let truncated = (Problem::TruncatedEntry, None);
    let offset = u32_at(bytes, 0).ok_or(truncated.clone())?;
    *bytes = bytes.get(4..).ok_or(truncated)?;
    let (name, signature) = parse_entry(bytes)?;
    Ok(Export {
        name,
        offset,
        signature,
    })
}

/// Names of features of the processor, each with a NUL behind it. Whoever loads the image knows
/// which there are.
fn parse_needs(mut bytes: &[u8]) -> Result<Vec<&str>, Problem> {
    let mut needs = Vec::new();
    while !bytes.is_empty() {
        if needs.len() == MAX_NEEDS {
            return Err(Problem::TooMany(MAX_NEEDS as u32));
        }
        let name = until_nul(&mut bytes).ok_or(Problem::TruncatedEntry)?;
        push(&mut needs, checked_name(name).ok_or(Problem::Name)?)?;
    }
    Ok(needs)
}
