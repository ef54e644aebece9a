//! Makes an extension file from machine code, for compilers that work in memory, and for tests.
//!
//! Invariant: what [`ImageBuilder::build`] returns parses as an [`ImageFile`], for it has been
//! parsed. Whether the code is harmless is the verifier's question, here as with any file.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use postern_verifier::Segment;
use postern_verifier::window::{self, ABI_VERSION, PAGE, STACK_LOG2};

use crate::elf;
use crate::error::{FileLocation, ImageError, Problem, Protection};
use crate::file::ImageFile;
use crate::layout::{MemoryLayout, Sizes};
use crate::notes;
use crate::signature::Signature;

/// An extension file in the making.
///
/// Text begins at the offset that [`text_offset`](Self::text_offset) says once all imports are
/// declared; code needs that to name slots and data. For example, the smallest extension:
///
/// ```
/// use postern_image::{ImageBuilder, ImageFile};
/// // lea 2(%rdi), %eax; ret
/// let mut builder = ImageBuilder::new([0x8d, 0x47, 0x02, 0xc3]);
/// builder.export("add_two", 0, Some("i(i)".parse()?));
/// let file = builder.build()?;
/// assert_eq!(ImageFile::parse(&file)?.export("add_two").unwrap().offset, builder.text_offset());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ImageBuilder {
    text: Vec<u8>,
    rodata: Vec<u8>,
    data: Vec<u8>,
    bss: u64,
    thread_locals: Option<(Vec<u8>, u64, u64)>,
    imports: Vec<(String, Option<Signature>)>,
    exports: Vec<(String, u32, Option<Signature>)>,
    segment: Segment,
    stack_log2: u32,
    x87: bool,
    any_stack: bool,
    heap_wish: u64,
    shift: u32,
    needs: Vec<String>,
}

impl ImageBuilder {
    /// An image of this text and nothing else.
    pub fn new(text: impl Into<Vec<u8>>) -> ImageBuilder {
        ImageBuilder {
            text: text.into(),
            rodata: Vec::new(),
            data: Vec::new(),
            bss: 0,
            thread_locals: None,
            imports: Vec::new(),
            exports: Vec::new(),
            segment: Segment::Gs,
            stack_log2: STACK_LOG2.1,
            x87: false,
            any_stack: false,
            heap_wish: 0,
            shift: 0,
            needs: Vec::new(),
        }
    }

    /// Replaces the text, for code that had to know the layout first.
    pub fn text(&mut self, text: impl Into<Vec<u8>>) -> &mut Self {
        self.text = text.into();
        self
    }

    /// Sets the read-only data. It begins in the page after text.
    pub fn rodata(&mut self, bytes: impl Into<Vec<u8>>) -> &mut Self {
        self.rodata = bytes.into();
        self
    }

    /// Sets the data, followed by `bss` zero bytes. It begins where the data stack ends.
    pub fn data(&mut self, bytes: impl Into<Vec<u8>>, bss: u64) -> &mut Self {
        self.data = bytes.into();
        self.bss = bss;
        self
    }

    /// Sets the thread-local variables: `bytes` and zeros behind them, `memory_size` bytes in all,
    /// the first one aligned to `alignment`.
    pub fn thread_locals(
        &mut self,
        bytes: impl Into<Vec<u8>>,
        memory_size: u64,
        alignment: u64,
    ) -> &mut Self {
        self.thread_locals = Some((bytes.into(), memory_size, alignment));
        self
    }

    /// Adds an import and returns its gate slot.
    pub fn import(&mut self, name: impl Into<String>, signature: Option<Signature>) -> u32 {
        self.imports.push((name.into(), signature));
        self.imports.len() as u32 - 1
    }

    /// Adds an export that begins `position` bytes into text.
    pub fn export(
        &mut self,
        name: impl Into<String>,
        position: u32,
        signature: Option<Signature>,
    ) -> &mut Self {
        self.exports.push((name.into(), position, signature));
        self
    }

    /// Sets the segment register that the code's operands use.
    pub fn segment(&mut self, segment: Segment) -> &mut Self {
        self.segment = segment;
        self
    }

    /// Sets the data stack's size to 2^`log2` bytes; [`STACK_LOG2`] says what is possible.
    pub fn stack_log2(&mut self, log2: u32) -> &mut Self {
        self.stack_log2 = log2;
        self
    }

    /// Says that the code may use x87.
    pub fn x87(&mut self, allowed: bool) -> &mut Self {
        self.x87 = allowed;
        self
    }

    /// Says that the code finds the data stack's size in the info page, if it needs it.
    pub fn any_stack(&mut self, found: bool) -> &mut Self {
        self.any_stack = found;
        self
    }

    /// Says that the code needs a feature of the processor (`aes`).
    pub fn need(&mut self, name: impl Into<String>) -> &mut Self {
        self.needs.push(name.into());
        self
    }

    /// Asks for a heap of this many bytes; 0 leaves it to the host.
    pub fn heap_wish(&mut self, bytes: u64) -> &mut Self {
        self.heap_wish = bytes;
        self
    }

    /// Lets the gate slots, and all that follows them, begin `pages` higher than they need; at most
    /// [`window::MAX_SHIFT`].
    pub fn shift(&mut self, pages: u32) -> &mut Self {
        self.shift = pages.min(window::MAX_SHIFT);
        self
    }

    /// Offset in the window of the first byte of text, for the imports declared so far.
    pub fn text_offset(&self) -> u32 {
        window::text_start(self.imports.len() as u32) + self.shift * PAGE
    }

    /// Offset in the window of a gate slot.
    pub fn slot_offset(&self, slot: u32) -> u32 {
        window::slot(slot) + self.shift * PAGE
    }

    /// Where everything lies, for what has been declared so far.
    pub fn layout(&self) -> Result<MemoryLayout, ImageError> {
        if !(STACK_LOG2.0..=STACK_LOG2.2).contains(&self.stack_log2) {
            return Err(Problem::StackSize(self.stack_log2).at(FileLocation::File));
        }
        if self.imports.len() > window::MAX_IMPORTS as usize {
            return Err(Problem::TooMany(window::MAX_IMPORTS).at(FileLocation::File));
        }
        let sizes = Sizes {
            text: self.text.len() as u64,
            rodata: self.readonly_segment().bytes.len() as u64,
            data_file: self.data.len() as u64,
            data_memory: (self.data.len() as u64).saturating_add(self.bss),
        };
        MemoryLayout::new(
            self.shift,
            self.imports.len() as u32,
            sizes,
            self.stack_log2,
        )
        .map_err(|p| p.at(FileLocation::File))
    }

    /// The file's bytes; fails if no legal image can be made of what was declared.
    pub fn build(&self) -> Result<Vec<u8>, ImageError> {
        for (index, (name, ..)) in (0..).zip(&self.imports) {
            notes::checked_name(name.as_bytes())
                .ok_or_else(|| Problem::Name.at(FileLocation::Import(index, None)))?;
        }
        for (index, (name, position, _)) in (0..).zip(&self.exports) {
            let place = |name| FileLocation::Export(index, name);
            notes::checked_name(name.as_bytes()).ok_or_else(|| Problem::Name.at(place(None)))?;
            // Below the sum's overflow; beyond text is found by the parser.
            let offset = self.text_offset().checked_add(*position);
            offset.ok_or_else(|| {
                Problem::ExportOutsideText(u32::MAX).at(place(Some(name.as_str().into())))
            })?;
        }
        let layout = self.layout()?;
        let ReadOnly {
            bytes: readonly,
            notes: note_position,
            thread_locals,
        } = self.readonly_segment();

        let mut file = FileParts::default();
        file.add_load(Protection::R | Protection::X, layout.text, &self.text, 0);
        let readonly_at = file.add_load(Protection::R, layout.text_end, &readonly, 0);
        let note_size = (readonly.len() - note_position) as u64;
        let (at, address) = (
            note_position as u64 + readonly_at,
            note_position as u64 + u64::from(layout.text_end),
        );
        file.add_header(
            elf::PT_NOTE,
            Protection::R,
            at,
            address,
            note_size,
            note_size,
            4,
        );
        if !self.data.is_empty() || self.bss != 0 {
            file.add_load(
                Protection::R | Protection::W,
                layout.data,
                &self.data,
                self.bss,
            );
        }
        if let Some((initial, memory_size, alignment)) = &self.thread_locals {
            let position = thread_locals as u64;
            file.add_header(
                elf::PT_TLS,
                Protection::R,
                readonly_at + position,
                u64::from(layout.text_end) + position,
                initial.len() as u64,
                *memory_size,
                *alignment,
            );
        }
        let bytes = file.finish();
        ImageFile::parse(&bytes)?;
        Ok(bytes)
    }

    fn readonly_segment(&self) -> ReadOnly {
        let mut bytes = self.rodata.clone();
        let mut thread_locals = 0;
        if let Some((initial, _, alignment)) = &self.thread_locals {
            pad(&mut bytes, (*alignment).clamp(1, 4096) as usize);
            thread_locals = bytes.len();
            bytes.extend(initial);
        }
        pad(&mut bytes, 4);
        let position = bytes.len();
        let segment = match self.segment {
            Segment::Gs => 0,
            Segment::Fs => 1,
        };
        let x87 = if self.x87 { notes::FLAG_X87 } else { 0 };
        let any_stack = if self.any_stack {
            window::FLAG_ANY_STACK
        } else {
            0
        };
        let flags = x87 | any_stack | self.shift << window::SHIFT_FLAGS;
        let mut header: Vec<u8> = Vec::with_capacity(notes::HEADER_NOTE_SIZE);
        for word in [ABI_VERSION, segment, self.stack_log2, flags] {
            header.extend(word.to_le_bytes());
        }
        header.extend(self.heap_wish.to_le_bytes());
        let entry = |name: &str, signature: &Option<Signature>| {
            let signature = signature.map_or(String::new(), |s| s.to_string());
            [name.as_bytes(), b"\0", signature.as_bytes(), b"\0"].concat()
        };
        let imports: Vec<u8> = self
            .imports
            .iter()
            .flat_map(|(name, s)| entry(name, s))
            .collect();
        let offset = |position: u32| self.text_offset().wrapping_add(position).to_le_bytes();
        let exports = self.exports.iter();
        let exports: Vec<u8> = exports
            .flat_map(|(name, position, s)| [&offset(*position)[..], &entry(name, s)].concat())
            .collect();
        let mut all = vec![
            (notes::NOTE_HEADER, header),
            (notes::NOTE_IMPORTS, imports),
            (notes::NOTE_EXPORTS, exports),
        ];
        if !self.needs.is_empty() {
            let needs = self.needs.iter().flat_map(|name| name.bytes().chain([0]));
            all.push((notes::NOTE_NEEDS, needs.collect()));
        }
        for (kind, descriptor) in all {
            for word in [notes::NOTE_NAME.len() as u32, descriptor.len() as u32, kind] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(notes::NOTE_NAME);
            bytes.extend(descriptor);
            pad(&mut bytes, 4);
        }
        ReadOnly {
            bytes,
            notes: position,
            thread_locals,
        }
    }
}

/// The read-only segment: rodata, initial values of thread-local variables, notes.
struct ReadOnly {
    bytes: Vec<u8>,
    /// Where the notes begin.
    notes: usize,
    /// Where the initial values begin.
    thread_locals: usize,
}

/// Appends zeros up to a multiple of `alignment`.
fn pad(bytes: &mut Vec<u8>, alignment: usize) {
    bytes.resize(bytes.len().next_multiple_of(alignment), 0);
}

/// An ELF file in the making: one page of headers, then each segment from a page on.
#[derive(Default)]
struct FileParts {
    headers: Vec<u8>,
    count: u16,
    body: Vec<u8>,
}

impl FileParts {
    /// Adds a loaded segment; returns where its bytes begin in the file.
    fn add_load(&mut self, flags: u32, address: u32, bytes: &[u8], bss: u64) -> u64 {
        pad(&mut self.body, PAGE as usize);
        let at = u64::from(PAGE) + self.body.len() as u64;
        self.body.extend(bytes);
        let size = bytes.len() as u64;
        self.add_header(
            elf::PT_LOAD,
            flags,
            at,
            address.into(),
            size,
            size.saturating_add(bss),
            PAGE.into(),
        );
        at
    }

    #[allow(clippy::too_many_arguments)]
    fn add_header(
        &mut self,
        kind: u32,
        flags: u32,
        offset: u64,
        address: u64,
        file_size: u64,
        memory_size: u64,
        alignment: u64,
    ) {
        self.headers.extend(kind.to_le_bytes());
        self.headers.extend(flags.to_le_bytes());
        for word in [offset, address, address, file_size, memory_size, alignment] {
            self.headers.extend(word.to_le_bytes());
        }
        self.count += 1;
    }

    fn finish(self) -> Vec<u8> {
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        pad(&mut file, 16);
        file.extend(elf::ET_EXEC.to_le_bytes());
        file.extend(elf::EM_X86_64.to_le_bytes());
        file.extend(1u32.to_le_bytes());
        // e_entry, e_phoff, e_shoff
        for word in [0, elf::HEADER_SIZE, 0] {
            file.extend(word.to_le_bytes());
        }
        file.extend(0u32.to_le_bytes());
        // e_ehsize, e_phentsize, e_phnum, and no sections
        for half in [
            elf::HEADER_SIZE as u16,
            elf::PROGRAM_HEADER_SIZE as u16,
            self.count,
            0,
            0,
            0,
        ] {
            file.extend(half.to_le_bytes());
        }
        file.extend(self.headers);
        pad(&mut file, PAGE as usize);
        file.extend(self.body);
        file
    }
}
