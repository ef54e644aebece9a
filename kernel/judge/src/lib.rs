//! Judges images for kernels: the file's shape, then its code by [`Profile::Kernel`].
//!
//! The answer is a [`Verdict`] of plain numbers, which is the same wherever the judge runs: a
//! kernel's can be compared with a process's, and is. Memory that is refused is a verdict, too.
//! What is accepted can run on the kernel's own stack at most [`Verdict::depth`] calls deep.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;

use postern_image::{FileLocation, ImageError, ImageFile, Problem, Segment};
use postern_verifier::{
    Facts, Layout, Profile, Starts, Violation, bounded_buffer_len, next, verify,
};

/// The text, or the image, is accepted.
pub const ACCEPTED: u32 = 0;
/// The file is no image: [`Verdict::rule`] is a problem's number ([`Problem::number`]).
pub const NO_IMAGE: u32 = 1;
/// The code breaks a rule: [`Verdict::rule`] is its index in `Rule::ALL`.
pub const REFUSED: u32 = 2;
/// An export is no start of an instruction.
pub const EXPORT_MISPLACED: u32 = 3;
/// There was no memory to judge it.
pub const OUT_OF_MEMORY: u32 = 4;

/// What is at [`Verdict::at`]: nothing that could be told.
pub const PLACE_FILE: u32 = 0;
/// The ELF header.
pub const PLACE_ELF_HEADER: u32 = 1;
/// The index of a program header.
pub const PLACE_PROGRAM_HEADER: u32 = 2;
/// A note's offset in the file.
pub const PLACE_NOTE: u32 = 3;
/// The index of an import.
pub const PLACE_IMPORT: u32 = 4;
/// The index of an export.
pub const PLACE_EXPORT: u32 = 5;
/// An instruction's offset in the window.
pub const PLACE_TEXT: u32 = 6;

/// What the judge says. The fields are those of `struct postern_verdict` in `postern.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// [`ACCEPTED`], or why not.
    pub verdict: u32,
    /// The number of the rule or problem; 0 if there is none.
    pub rule: u32,
    /// What kind of place is at `at`.
    pub place: u32,
    /// Accepted: how deep calls nest at most, those of gate slots among them.
    pub depth: u32,
    /// Refused: where.
    pub at: u64,
    /// Accepted: number of instructions.
    pub instructions: u32,
    /// Accepted: instructions on the longest path; 0 if there are loops.
    pub longest_path: u32,
}

impl Verdict {
    const OUT_OF_MEMORY: Verdict = Verdict {
        verdict: OUT_OF_MEMORY,
        rule: 0,
        place: PLACE_FILE,
        depth: 0,
        at: 0,
        instructions: 0,
        longest_path: 0,
    };
}

impl From<ImageError> for Verdict {
    fn from(error: ImageError) -> Verdict {
        if error.problem == Problem::OutOfMemory {
            return Verdict::OUT_OF_MEMORY;
        }
        let (place, at) = match error.place {
            FileLocation::ElfHeader => (PLACE_ELF_HEADER, 0),
            FileLocation::ProgramHeader(index) => (PLACE_PROGRAM_HEADER, index.into()),
            FileLocation::Note(offset) => (PLACE_NOTE, offset),
            FileLocation::Import(index, _) => (PLACE_IMPORT, index.into()),
            FileLocation::Export(index, _) => (PLACE_EXPORT, index.into()),
            _ => (PLACE_FILE, 0),
        };
        Verdict {
            verdict: NO_IMAGE,
            rule: error.problem.number(),
            place,
            at,
            ..Verdict::default()
        }
    }
}

impl From<Violation> for Verdict {
    fn from(violation: Violation) -> Verdict {
        Verdict {
            verdict: REFUSED,
            rule: violation.rule as u32,
            place: PLACE_TEXT,
            at: violation.offset.into(),
            ..Verdict::default()
        }
    }
}

impl From<Facts> for Verdict {
    fn from(facts: Facts) -> Verdict {
        Verdict {
            verdict: ACCEPTED,
            depth: facts.call_depth.unwrap_or(u32::MAX),
            instructions: facts.instructions,
            longest_path: facts.longest_path.unwrap_or(0),
            ..Verdict::default()
        }
    }
}

/// Judges an extension file.
pub fn image(bytes: &[u8]) -> Verdict {
    image_with_parts(bytes).0
}

/// Judges an extension file, and says where its parts lie if it is accepted.
pub fn image_with_parts(bytes: &[u8]) -> (Verdict, Parts) {
    judged(bytes).unwrap_or_else(|verdict| (verdict, Parts::default()))
}

fn judged(bytes: &[u8]) -> Result<(Verdict, Parts), Verdict> {
    let file = ImageFile::parse(bytes)?;
    let text = file.try_mapped_text()?;
    let layout = file.verifier_layout();
    let mut buffer = buffer(text.len())?;
    let facts = verify(&text, &layout, Profile::Kernel, &mut buffer)?;
    let starts = Starts::new(&buffer, text.len(), layout.text);
    let misplaced = |export: &postern_image::Export| !starts.contains(export.offset);
    match file.exports().iter().position(misplaced) {
        None => Ok((facts.into(), Parts::new(&file, bytes))),
        Some(index) => Err(Verdict {
            verdict: EXPORT_MISPLACED,
            place: PLACE_EXPORT,
            at: index as u64,
            ..Verdict::default()
        }),
    }
}

/// Where the parts of an accepted image lie. The fields are those of `struct postern_layout` in
/// `module.h`: offsets in the window and in the file, and sizes in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The first byte of text in the window.
    pub text: u32,
    /// The end of its pages.
    pub text_end: u32,
    /// Read-only data in the window; the end of text if there are none.
    pub rodata: u32,
    /// Their bytes.
    pub rodata_size: u32,
    /// Their place in the file.
    pub rodata_file: u32,
    /// The data stack.
    pub stack: u32,
    /// Its bytes.
    pub stack_size: u32,
    /// Data in the window.
    pub data: u32,
    /// Bytes of data that are in the file.
    pub data_size: u32,
    /// Their place there.
    pub data_file: u32,
    /// Bytes of data and bss.
    pub data_memory: u32,
    /// The first page behind them.
    pub heap_start: u32,
    /// The first gate slot.
    pub gates: u32,
    /// Number of imports.
    pub imports: u32,
    /// Number of exports.
    pub exports: u32,
    /// The place of text in the file.
    pub text_file: u32,
    /// Its bytes there.
    pub text_size: u32,
}

impl Parts {
    /// The parts of a file whose bytes these are.
    fn new(file: &ImageFile<'_>, bytes: &[u8]) -> Parts {
        let layout = file.layout();
        let rodata = file.rodata().map_or(&[][..], |part| part.bytes);
        let data = file.data();
        let data_bytes = data.map_or(&[][..], |part| part.bytes);
        Parts {
            text: layout.text,
            text_end: layout.text_end,
            rodata: layout.text_end,
            rodata_size: rodata.len() as u32,
            rodata_file: place_in(bytes, rodata),
            stack: layout.stack,
            stack_size: layout.stack_size,
            data: layout.data,
            data_size: data_bytes.len() as u32,
            data_file: place_in(bytes, data_bytes),
            data_memory: data.map_or(0, |part| part.memory_size),
            heap_start: layout.heap_start,
            gates: layout.gates,
            imports: file.imports().len() as u32,
            exports: file.exports().len() as u32,
            text_file: place_in(bytes, file.text().bytes),
            text_size: file.text().bytes.len() as u32,
        }
    }
}

/// Where a piece of the file is in it: parts are views over its bytes. Files are far below 4 GiB.
fn place_in(file: &[u8], piece: &[u8]) -> u32 {
    match piece {
        [] => 0,
        _ => (piece.as_ptr().addr() - file.as_ptr().addr()) as u32,
    }
}

/// Calls `each` with the name of each import of an accepted file, and 0; false if there is no
/// memory.
pub fn imports<'a>(bytes: &'a [u8], mut each: impl FnMut(&'a str, u32)) -> bool {
    let file = ImageFile::parse(bytes);
    if let Ok(file) = &file {
        file.imports()
            .iter()
            .for_each(|import| each(import.name, 0));
    }
    file.is_ok()
}

/// Calls `each` with the name and the offset of each export of an accepted file, in ascending order
/// of the file; false if there is no memory.
pub fn exports<'a>(bytes: &'a [u8], mut each: impl FnMut(&'a str, u32)) -> bool {
    let file = ImageFile::parse(bytes);
    if let Ok(file) = &file {
        let exports = file.exports().iter();
        exports.for_each(|export| each(export.name, export.offset));
    }
    file.is_ok()
}

/// Calls `each` with the position of each instruction of accepted text that accesses memory, in
/// ascending order.
pub fn accesses(text: &[u8], mut each: impl FnMut(u32)) {
    let mut at = 0;
    while let Ok(instruction) = next(text, at, Segment::Fs) {
        if instruction.memory {
            each(at as u32);
        }
        at += instruction.length;
    }
}

/// Judges code alone, as if it were the text of an image with so many imports.
pub fn text(text: &[u8], imports: u32) -> Verdict {
    let layout = Layout {
        segment: Segment::Fs,
        ..Layout::new(imports)
    };
    let facts = buffer(text.len())
        .and_then(|mut buffer| Ok(verify(text, &layout, Profile::Kernel, &mut buffer)?));
    facts.map_or_else(|verdict| verdict, Verdict::from)
}

/// What the verifier writes its findings to.
fn buffer(text_len: usize) -> Result<Vec<u64>, Verdict> {
    let mut buffer = Vec::new();
    let words = bounded_buffer_len(text_len);
    buffer
        .try_reserve_exact(words)
        .map_err(|_| Verdict::OUT_OF_MEMORY)?;
    buffer.resize(words, 0);
    Ok(buffer)
}
