//! Text that may run: an image's file, laid out in a memory file with its gate slots, sealed
//! against every change, and verified from there.
//!
//! Invariant: the bytes that the verifier judged are the bytes that run. A [`Text`] comes of
//! nothing but [`Text::verify`], its file is nobody's to write, and a window maps it executable
//! only whole and at the offsets for which it was judged ([`super::window::Pin::map_text`]).

use super::atomic_box::OnceBox;
use super::bulk::Function;
use super::machine;
use super::map::{MapError, Mapping};
use super::slots::slot_code;
use postern_image::{ImageFile, MemoryLayout};
use postern_verifier::window::{FILL, SLOT_SIZE};
use postern_verifier::{
    Bounds, Facts, Layout, Links, Profile, Segment, Starts, Violation, bounded_buffer_len,
    buffer_len, verify, verify_within,
};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use thiserror::Error;

/// An image's file with verified text. Offset 0 of the file is the offset of the first gate slot in
/// a window.
pub struct Text {
    file: File,
    layout: MemoryLayout,
    /// How many gate slots there are.
    slots: u32,
    /// Whether one of them leads to the memory gate.
    memory_gate: bool,
    facts: Facts,
    starts: Vec<u64>,
    /// Bytes of text, without what fills its last page.
    size: usize,
    /// The host's view of the file: what a reset copies back.
    view: OnceBox<FileView>,
}

/// The host's memory of a mapped file of the runtime's own, for building images.
struct FileView(Mapping);

impl FileView {
    /// Maps the first `bytes` bytes of `file` readable.
    ///
    /// # Safety
    /// The file has them, and is sealed against writing and shrinking before the view is read.
    unsafe fn new(file: BorrowedFd<'_>, bytes: usize) -> Result<FileView, MapError> {
        Mapping::of_file(file, bytes).map(FileView)
    }

    /// The bytes. The file is sealed, so they never change.
    fn bytes(&self) -> &[u8] {
        let (start, bytes) = (self.0.address(), self.0.bytes());
        // SAFETY: mapped readable for the view's life, as nobody else has the mapping, over a file
        // that is sealed against writing and shrinking.
        unsafe { std::slice::from_raw_parts(start as *const u8, bytes) }
    }
}

/// No text came of a file.
#[derive(Debug, Error)]
pub enum TextError {
    /// The file in memory cannot be made, or the image does not fit.
    #[error(transparent)]
    File(#[from] io::Error),
    /// It cannot be mapped.
    #[error(transparent)]
    Map(#[from] MapError),
    /// It would not be confined.
    #[error("the verifier refuses it")]
    Refused(Violation),
    /// Calls of it are to be bounded by their instructions, and it can call the memory gate, whose
    /// time is that of a length.
    #[error("it calls the memory gate")]
    MemoryGate,
}

impl Text {
    /// Lays an image out with gate slots for its imports and for `more` of these names, and with
    /// first values at the top of its data stack, and has its text judged.
    pub fn verify(
        image: &ImageFile<'_>,
        more: &[&str],
        stack_top: &[u8],
    ) -> Result<Text, TextError> {
        let layout = image.layout();
        let own = image.imports().iter().map(|import| import.name);
        let names: Vec<&str> = own.chain(more.iter().copied()).collect();
        let slots = names.len() as u32;
        let file = lay_out(image, &names, stack_top)?;
        let (before, bytes) = sizes(&layout);
        let mut starts = vec![0u64; buffer_len(bytes)];
        // SAFETY: `lay_out` made the file longer, and sealed it.
        let view = unsafe { FileView::new(file.as_fd(), before + bytes)? };
        // Whatever the header says: windows are reached through gs.
        let segment = Segment::Gs;
        let judged = Layout {
            segment,
            ..image.verifier_layout()
        };
        let facts = verify(&view.bytes()[before..], &judged, Profile::User, &mut starts)
            .map_err(TextError::Refused)?;
        // What else the verifier needed is not looked at again.
        starts.truncate(buffer_len(bytes) / 2);
        starts.shrink_to_fit();
        Ok(Text {
            file,
            layout,
            slots,
            memory_gate: names.iter().any(|name| Function::of(name).is_some()),
            facts,
            starts,
            size: image.text().bytes.len(),
            view: OnceBox::default(),
        })
    }

    /// Judges it once more, in the verifier's profile without loops and indirect branches.
    pub fn bounded(&self, bounds: Bounds) -> Result<Facts, TextError> {
        let (before, bytes) = sizes(&self.layout);
        // SAFETY: as in `verify`.
        let view = unsafe { FileView::new(self.file.as_fd(), before + bytes)? };
        let judged = Layout {
            text: self.layout.text,
            gates: self.layout.gates,
            imports: self.slots,
            links: Links::NONE,
            segment: Segment::Gs,
        };
        let mut buffer = vec![0u64; bounded_buffer_len(bytes)];
        let facts = verify_within(&view.bytes()[before..], &judged, bounds, &mut buffer)
            .map_err(TextError::Refused)?;
        // The place of a loop is said before this, which has none.
        match self.memory_gate {
            true => Err(TextError::MemoryGate),
            false => Ok(facts),
        }
    }

    /// What the verifier found out.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Where the parts lie in a window.
    pub fn layout(&self) -> &MemoryLayout {
        &self.layout
    }

    /// How many gate slots there are.
    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    /// Whether `offset` is a place where the text may be entered.
    pub fn is_start(&self, offset: u32) -> bool {
        let (_, bytes) = sizes(&self.layout);
        Starts::new(&self.starts, bytes, self.layout.text).contains(offset)
    }

    /// The file, and where in it lies what a window has at `offset`, which is not below the slots.
    pub fn file(&self, offset: u32) -> (BorrowedFd<'_>, u64) {
        let at = u64::from(offset) - u64::from(self.layout.gates);
        (self.file.as_fd(), at)
    }

    /// Reads what every new window has at `offset`; false if the file has nothing there.
    pub fn read(&self, offset: u32, to: &mut [u8]) -> bool {
        // The file is ours and sealed.
        offset
            .checked_sub(self.layout.gates)
            .is_some_and(|at| self.file.read_exact_at(to, at.into()).is_ok())
    }

    /// What every new window has in `[start, end)`, which lies between the gate slots and the end
    /// of data in the file.
    pub fn first_values(&self, start: u32, end: u32) -> Option<&[u8]> {
        let bytes = (self.layout.data_file_end - self.layout.gates) as usize;
        // SAFETY: the file ends there, and is sealed.
        let view = || unsafe { FileView::new(self.file.as_fd(), bytes).ok() };
        let view = self.view.get_or_make(view)?;
        let at = |offset: u32| offset.checked_sub(self.layout.gates);
        view.bytes().get(at(start)? as usize..at(end)? as usize)
    }

    /// Whether the text at `offset` is exactly these bytes, of which there are at most 16.
    pub fn is(&self, offset: u32, expected: &[u8]) -> bool {
        let at = offset.checked_sub(self.layout.text);
        let mut found = [0; 16];
        let Some(found) = found.get_mut(..expected.len()) else {
            return false;
        };
        at.is_some_and(|at| at as usize + expected.len() <= self.size)
            && self.read(offset, found)
            && found == expected
    }

    /// The offset at which text begins, and its bytes.
    pub fn bytes(&self) -> (u32, Vec<u8>) {
        let start = self.layout.text;
        let mut text = vec![0; self.size];
        if !self.read(start, &mut text) {
            text.clear();
        }
        (start, text)
    }
}

/// Bytes of the slots' pages, and of text with what fills its last page.
fn sizes(layout: &MemoryLayout) -> (usize, usize) {
    let before = layout.text - layout.gates;
    (before as usize, (layout.text_end - layout.text) as usize)
}

/// Writes slots, text, rodata, the top of the first data stack, and data at their places in a
/// memory file and seals it. Holes read as zero.
fn lay_out(image: &ImageFile<'_>, slots: &[&str], stack_top: &[u8]) -> io::Result<File> {
    let layout = image.layout();
    let (room, _) = sizes(&layout);
    // Slots are not judged; so nothing else may reach there, nor they beyond.
    if slots.len() > room / SLOT_SIZE as usize || stack_top.len() > layout.stack_size as usize {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let file = machine::memory_file(c"postern-image", true)?;
    let at = |offset: u32| u64::from(offset - layout.gates);
    machine::size(&file, at(layout.data_file_end.max(layout.data)))?;
    file.write_all_at(&slot_code(slots), at(layout.gates))?;
    let text = image.text();
    file.write_all_at(text.bytes, at(text.offset))?;
    let text_end = text.offset + text.bytes.len() as u32;
    let fill = vec![FILL; (layout.text_end - text_end) as usize];
    file.write_all_at(&fill, at(text_end))?;
    for part in [image.rodata(), image.data()].into_iter().flatten() {
        file.write_all_at(part.bytes, at(part.offset))?;
    }
    file.write_all_at(stack_top, at(layout.data) - stack_top.len() as u64)?;
    machine::seal(&file)?;
    Ok(file)
}
