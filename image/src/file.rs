//! The checked view over an extension file.
//!
//! Invariant of [`ImageFile`]: every part lies inside the file, every offset inside the window,
//! parts do not overlap, and names are unique. Only [`ImageFile::parse`] makes one.

use alloc::vec::Vec;

use postern_verifier::window::{FILL, PAGE};
use postern_verifier::{Layout, Links};

use crate::elf::{self, ProgramHeader};
use crate::error::{FileLocation, ImageError, Problem, Protection};
use crate::layout::{MemoryLayout, Sizes};
use crate::notes::{Export, Header, Import, Notes, named};
use crate::thread_locals::ThreadLocals;

/// One segment of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Offset of its first byte in the window.
    pub offset: u32,
    /// Its bytes in the file.
    pub bytes: &'a [u8],
    /// Its size in the window in bytes; what exceeds `bytes` is zero.
    pub memory_size: u32,
}

/// An extension file whose shape has been checked, as a view over its bytes.
///
/// It says nothing about the code: text is judged by the verifier, with
/// [`ImageFile::verifier_layout`].
#[derive(Clone, Debug)]
pub struct ImageFile<'a> {
    header: Header,
    layout: MemoryLayout,
    text: Part<'a>,
    rodata: Option<Part<'a>>,
    data: Option<Part<'a>>,
    thread_locals: Option<ThreadLocals<'a>>,
    imports: Vec<Import<'a>>,
    exports: Vec<Export<'a>>,
    needs: Vec<&'a str>,
    /// Indices into `exports`, in the order of their names.
    by_name: Vec<u32>,
}

impl<'a> ImageFile<'a> {
    /// Checks a file and returns the view. Memory is linear in the length of `bytes`, and time,
    /// too, but for a logarithm of the number of names.
    // Frames stay small, for kernels' stacks, where none of the steps swallows another.
    #[inline(never)]
    pub fn parse(bytes: &'a [u8]) -> Result<ImageFile<'a>, ImageError> {
        if bytes.len() as u64 > 1 << 32 {
            return Err(Problem::FileTooLarge(bytes.len() as u64).at(FileLocation::File));
        }
        let mut segments = Segments::default();
        segments.sort(bytes)?;
        let text = segments
            .text
            .ok_or_else(|| Problem::Missing("executable segment").at(FileLocation::File))?;
        let notes = segments
            .notes
            .ok_or_else(|| Problem::Missing("note segment").at(FileLocation::File))?;
        if segments.rodata.is_some_and(|r| !contains(&r, &notes)) {
            return Err(Problem::NotesOutsideReadOnly.at(notes.place()));
        }
        let note_bytes = notes.file_bytes(bytes).map_err(|p| p.at(notes.place()))?;
        let notes = Notes::parse(note_bytes, notes.offset)?;
        ImageFile::assemble(bytes, &segments, text, notes)
    }

    /// The view, of segments and notes that are of legal form by themselves.
    #[inline(never)]
    fn assemble(
        bytes: &'a [u8],
        segments: &Segments,
        text: ProgramHeader,
        notes: Notes<'a>,
    ) -> Result<ImageFile<'a>, ImageError> {
        let Notes {
            header,
            imports,
            exports,
            by_name,
            needs,
        } = notes;
        let sizes = Sizes {
            text: text.memory_size,
            rodata: segments.rodata.map_or(0, |s| s.memory_size),
            data_file: segments.data.map_or(0, |s| s.file_size),
            data_memory: segments.data.map_or(0, |s| s.memory_size),
        };
        let layout =
            MemoryLayout::new(header.shift, imports.len() as u32, sizes, header.stack_log2)
                .map_err(|p| p.at(segments.last().map_or(FileLocation::File, |s| s.place())))?;
        let part = |segment, offset, what| part(bytes, segment, offset, what);
        let text = part(text, layout.text, "text")?;
        let rodata = segments
            .rodata
            .map(|s| part(s, layout.text_end, "read-only data"))
            .transpose()?;
        let data = segments
            .data
            .map(|s| part(s, layout.data, "data"))
            .transpose()?;

        let thread_locals = segments
            .thread_locals
            .map(|s| {
                ThreadLocals::check(bytes, &s, segments.rodata.as_ref(), layout.stack_size)
                    .map_err(|p| p.at(s.place()))
            })
            .transpose()?;

        for (index, export) in exports.iter().enumerate() {
            let inside = export
                .offset
                .checked_sub(text.offset)
                .is_some_and(|at| at < text.memory_size);
            if !inside {
                let place = FileLocation::Export(index as u32, named(Some(export.name)));
                return Err(Problem::ExportOutsideText(export.offset).at(place));
            }
        }
        Ok(ImageFile {
            header,
            layout,
            text,
            rodata,
            data,
            thread_locals,
            imports,
            exports,
            needs,
            by_name,
        })
    }

    /// What the header note says.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Text: not empty, `memory_size` bytes all from the file.
    pub fn text(&self) -> Part<'a> {
        self.text
    }

    /// Read-only data, all from the file.
    pub fn rodata(&self) -> Option<Part<'a>> {
        self.rodata
    }

    /// Data, followed by zeroed bss.
    pub fn data(&self) -> Option<Part<'a>> {
        self.data
    }

    /// Thread-local variables; an image without them may have a header for them all the same, of no
    /// bytes.
    pub fn thread_locals(&self) -> Option<ThreadLocals<'a>> {
        self.thread_locals
    }

    /// Where everything lies in a window.
    pub fn layout(&self) -> MemoryLayout {
        self.layout
    }

    /// What the verifier has to know to judge [`ImageFile::mapped_text`].
    pub fn verifier_layout(&self) -> Layout {
        Layout {
            text: self.text.offset,
            gates: self.layout.gates,
            // At most MAX_IMPORTS.
            imports: self.imports.len() as u32,
            links: Links::NONE,
            segment: self.header.segment,
        }
    }

    /// Text as it is mapped, and as the verifier judges it: filled up to a page with `int3`.
    pub fn mapped_text(&self) -> Vec<u8> {
        let mut text = self.text.bytes.to_vec();
        let size = self.layout.text_end - self.layout.text;
        text.resize(size as usize, FILL);
        text
    }

    /// As [`ImageFile::mapped_text`], where memory may be refused.
    ///
    /// # Errors
    /// [`Problem::OutOfMemory`].
    pub fn try_mapped_text(&self) -> Result<Vec<u8>, ImageError> {
        let size = (self.layout.text_end - self.layout.text) as usize;
        let mut text = Vec::new();
        text.try_reserve_exact(size)
            .map_err(|_| Problem::OutOfMemory.at(FileLocation::File))?;
        // Exactly what was reserved, so that no compiler asks what to do without memory.
        text.resize(size, FILL);
        // Text lies in its pages, so there is no more of it.
        text.iter_mut()
            .zip(self.text.bytes)
            .for_each(|(to, from)| *to = *from);
        Ok(text)
    }

    /// What the image wants from its host, in the order of the gate slots.
    pub fn imports(&self) -> &[Import<'a>] {
        &self.imports
    }

    /// What the image offers, in the file's order.
    pub fn exports(&self) -> &[Export<'a>] {
        &self.exports
    }

    /// What the image needs of the processor, by the names of the compiler's options (`aes` for
    /// `-maes`): a claim of whoever linked it. Code that uses more faults where the processor lacks
    /// it.
    pub fn needs(&self) -> &[&'a str] {
        &self.needs
    }

    /// Indices into [`ImageFile::exports`], in the order of their names.
    pub(crate) fn by_name(&self) -> &[u32] {
        &self.by_name
    }

    /// The export with a name, by binary search.
    pub fn export(&self, name: &str) -> Option<&Export<'a>> {
        let name_of = |&i: &u32| self.exports[i as usize].name;
        let found = self.by_name.binary_search_by_key(&name, name_of).ok()?;
        self.exports.get(self.by_name[found] as usize)
    }
}

/// Whether the file bytes of `inner` lie inside those of `outer`.
fn contains(outer: &ProgramHeader, inner: &ProgramHeader) -> bool {
    // In 128 bits nothing wraps around.
    let end = |s: &ProgramHeader| u128::from(s.offset) + u128::from(s.file_size);
    inner.offset >= outer.offset && end(inner) <= end(outer)
}

/// The part that a segment describes, if it begins where the layout puts it.
fn part<'a>(
    bytes: &'a [u8],
    segment: ProgramHeader,
    offset: u32,
    what: &'static str,
) -> Result<Part<'a>, ImageError> {
    let check = || {
        if segment.address != u64::from(offset) {
            return Err(Problem::Misplaced {
                what,
                found: segment.address,
                wanted: offset.into(),
            });
        }
        let memory_size = u32::try_from(segment.memory_size).map_err(|_| {
            Problem::BeyondWindow(segment.address.saturating_add(segment.memory_size))
        })?;
        // A segment that is all bss has no bytes, wherever its p_offset points.
        let bytes = if segment.file_size == 0 {
            &[]
        } else {
            segment.file_bytes(bytes)?
        };
        Ok(Part {
            offset,
            bytes,
            memory_size,
        })
    };
    check().map_err(|p| p.at(segment.place()))
}

/// The program headers by kind: each is the only one of its kind and of legal form by itself.
#[derive(Default)]
struct Segments {
    text: Option<ProgramHeader>,
    rodata: Option<ProgramHeader>,
    data: Option<ProgramHeader>,
    notes: Option<ProgramHeader>,
    thread_locals: Option<ProgramHeader>,
    stack: Option<ProgramHeader>,
    /// End in the file of the last loaded segment so far.
    file_end: u64,
}

impl Segments {
    #[inline(never)]
    fn sort(&mut self, bytes: &[u8]) -> Result<(), ImageError> {
        for header in elf::program_headers(bytes).map_err(|p| p.at(FileLocation::ElfHeader))? {
            self.add(bytes, header).map_err(|p| p.at(header.place()))?;
        }
        Ok(())
    }

    fn add(&mut self, bytes: &[u8], header: ProgramHeader) -> Result<(), Problem> {
        const RX: u32 = Protection::R | Protection::X;
        const RW: u32 = Protection::R | Protection::W;
        let (what, place) = match (header.kind, header.flags) {
            (elf::PT_LOAD, RX) => ("executable segment", &mut self.text),
            (elf::PT_LOAD, Protection::R) => ("read-only segment", &mut self.rodata),
            (elf::PT_LOAD, RW) => ("writable segment", &mut self.data),
            (elf::PT_NOTE, flags) if flags & !RW == 0 => ("note segment", &mut self.notes),
            (elf::PT_TLS, flags) if flags & !RW == 0 => {
                ("thread-local segment", &mut self.thread_locals)
            }
            (elf::PT_GNU_STACK, flags) if flags & Protection::X == 0 => {
                ("stack header", &mut self.stack)
            }
            (elf::PT_LOAD | elf::PT_NOTE | elf::PT_TLS | elf::PT_GNU_STACK, flags) => {
                return Err(Problem::ForeignProtection(Protection(flags)));
            }
            (other, _) => return Err(Problem::ForeignSegment(other)),
        };
        if place.replace(header).is_some() {
            return Err(Problem::Second(what));
        }
        match header.kind {
            elf::PT_LOAD => self.check_load(bytes, header, what),
            _ => Ok(()),
        }
    }

    /// Checks a loaded segment's sizes, alignment and order among the others.
    fn check_load(
        &mut self,
        bytes: &[u8],
        header: ProgramHeader,
        what: &'static str,
    ) -> Result<(), Problem> {
        let (file, memory) = (header.file_size, header.memory_size);
        let writable = header.flags & Protection::W != 0;
        if file > memory {
            return Err(Problem::FileLargerThanMemory { file, memory });
        }
        if file != memory && !writable {
            return Err(Problem::Unfilled { file, memory });
        }
        if memory == 0 && header.flags & Protection::X != 0 {
            return Err(Problem::EmptyText);
        }
        let aligned = |field, value| match value % u64::from(PAGE) {
            0 => Ok(()),
            _ => Err(Problem::Unaligned { field, value }),
        };
        aligned("p_vaddr", header.address)?;
        // Executable, read-only, writable: none may come before one that it has to follow.
        let early = match what {
            "executable segment" => self.rodata.is_some() || self.data.is_some(),
            "read-only segment" => self.data.is_some() || self.text.is_none(),
            _ => self.text.is_none(),
        };
        if early {
            return Err(Problem::Order(what));
        }
        if file != 0 {
            aligned("p_offset", header.offset)?;
            header.file_bytes(bytes)?;
            if header.offset < self.file_end {
                return Err(Problem::Order(what));
            }
            self.file_end = header.offset + file;
        }
        Ok(())
    }

    /// The loaded segment that ends last.
    fn last(&self) -> Option<ProgramHeader> {
        self.data.or(self.rodata).or(self.text)
    }
}
