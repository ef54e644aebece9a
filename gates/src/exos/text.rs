//! Text that may run: an image laid out in memory of the process's own with its gate slots, and
//! verified from there.
//!
//! Invariant: the bytes that the verifier judged are the bytes that run. A [`Text`] comes of
//! nothing but [`Text::verify`], nobody changes it, and a window has an executable copy only whole
//! and at the offsets for which it was judged ([`super::window::Window::furnish`]).

use super::slots::slot_code;
use alloc::vec;
use alloc::vec::Vec;
use postern_image::{ImageFile, MemoryLayout, Part};
use postern_verifier::window::{FILL, SLOT_SIZE, page_up};
use postern_verifier::{Facts, Layout, Profile, Segment, Starts, Violation, buffer_len, verify};

/// An image with verified text.
pub struct Text {
    /// What new windows have, but for zeros: slots and text, read-only data, the top of the data
    /// stack, data; each with where it lies.
    parts: Vec<(u32, Vec<u8>)>,
    layout: MemoryLayout,
    slots: u32,
    /// End of read-only data, rounded up to a page.
    readonly_end: u32,
    facts: Facts,
    starts: Vec<u64>,
}

/// No text came of a file.
#[derive(Debug, Clone, Copy)]
pub enum TextError {
    /// It has no shape in which it fits into a window.
    Shape,
    /// It would not be confined.
    Refused(Violation),
}

impl Text {
    /// Lays an image out with gate slots for its imports, and with first values at the top of its
    /// data stack, and has its text judged.
    pub fn verify(image: &ImageFile<'_>, stack_top: &[u8]) -> Result<Text, TextError> {
        let layout = image.layout();
        let names: Vec<&str> = image.imports().iter().map(|import| import.name).collect();
        let room = (layout.text - layout.gates) / SLOT_SIZE;
        if names.len() > room as usize || stack_top.len() > layout.stack_size as usize {
            return Err(TextError::Shape);
        }
        let at = |offset: u32| (offset - layout.gates) as usize;
        let mut code = vec![FILL; at(layout.text_end)];
        let slots = slot_code(&names);
        let text = image.text();
        for (at, from) in [(0, &slots[..]), (at(text.offset), text.bytes)] {
            let to = code.get_mut(at..at + from.len());
            to.ok_or(TextError::Shape)?.copy_from_slice(from);
        }
        let part = |part: Part<'_>| (part.offset, part.bytes.to_vec());
        let mut parts = vec![(layout.gates, code)];
        parts.extend(image.rodata().map(part));
        parts.push((layout.data - stack_top.len() as u32, stack_top.to_vec()));
        parts.extend(image.data().map(part));
        let judged = Layout {
            segment: Segment::Gs,
            ..image.verifier_layout()
        };
        let text = &parts[0].1[at(layout.text)..];
        let mut starts = vec![0u64; buffer_len(text.len())];
        let facts =
            verify(text, &judged, Profile::User, &mut starts).map_err(TextError::Refused)?;
        starts.truncate(buffer_len(text.len()) / 2);
        let readonly_end = image.rodata().map_or(layout.text_end, |part| {
            page_up(part.offset + part.bytes.len() as u32)
        });
        Ok(Text {
            parts,
            layout,
            readonly_end,
            slots: names.len() as u32,
            facts,
            starts,
        })
    }

    /// What the verifier found out.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Where the parts lie in a window.
    pub fn layout(&self) -> &MemoryLayout {
        &self.layout
    }

    /// End of read-only data, rounded up to a page. Between it and the data stack nothing is.
    pub fn readonly_end(&self) -> u32 {
        self.readonly_end
    }

    /// How many gate slots there are.
    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    /// Whether `offset` is a place where the text may be entered.
    pub fn is_start(&self, offset: u32) -> bool {
        let bytes = (self.layout.text_end - self.layout.text) as usize;
        Starts::new(&self.starts, bytes, self.layout.text).contains(offset)
    }

    /// What new windows have besides zeros: where, and which bytes.
    pub(super) fn first_values(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.parts.iter().map(|(at, bytes)| (*at, &bytes[..]))
    }

    /// Whether the text at `offset` is exactly these bytes.
    pub fn is(&self, offset: u32, expected: &[u8]) -> bool {
        let (gates, code) = (self.layout.gates, &self.parts[0].1);
        let found = offset
            .checked_sub(gates)
            .and_then(|at| code.get(at as usize..));
        offset >= self.layout.text && found.is_some_and(|found| found.starts_with(expected))
    }
}
