//! The memory that plugins and server share for one request: `struct picture` of `picture.h`, and
//! two places for pixels.
//!
//! A plugin reads one place and writes the other, which is the next plugin's picture: pixels are
//! copied into the area once and out of it once, however many plugins there are. Invariant: one
//! domain at most sees an area at a time. What a plugin left in it is copied before it is judged,
//! and the copy is used: others of the same client may write the area at any time.

use crate::picture::{Picture, Shape};
use bytes::Bytes;
use postern::{Domain, MemoryError, Prot, ShareError, Shared};

/// Where the first place begins; the structure lies in front of it.
const PAGE: usize = 4096;
/// Bytes of the structure.
const SIZE: usize = 4 * 4 + 4 * 8 + 9 * 4 + 4;
/// Most arguments of a plugin.
pub const ARGUMENTS: usize = 8;
/// Least bytes of a place.
const LEAST: usize = 256 << 10;

/// What a plugin left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A picture of this shape.
    Picture(Shape),
    /// The answer's bytes: how many, and what they are.
    Answer(Encoding, usize),
}

/// What the bytes of an answer are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// A PPM or PGM file.
    Ppm,
    /// The same, deflated.
    Deflated,
    /// Anything.
    Bytes,
}

/// An area, and who sees it.
#[derive(Debug)]
pub struct PictureArea {
    shared: Shared,
    /// Bytes of each place.
    room: usize,
    seen: Option<Domain>,
    /// Which place has the picture.
    place: usize,
}

impl PictureArea {
    /// Bytes that each place needs for a picture of so many bytes: `deflate` has a copy there
    /// besides, and the least leaves room for those who make a small picture larger.
    fn needs(pixels: usize) -> usize {
        let needed = pixels + pixels / 4 * 5 + PAGE;
        let needed = needed.max(LEAST);
        // In steps, so that pictures of about the same size have the same room.
        needed.next_multiple_of(needed.next_power_of_two() / 8)
    }

    /// Bytes that a picture of so many bytes takes at most, from the first copy to the last: three
    /// places.
    pub fn most(pixels: usize) -> usize {
        PAGE + 3 * PictureArea::needs(pixels)
    }

    /// A new one with room for a picture of so many bytes.
    ///
    /// # Errors
    /// No memory, or no room in windows.
    pub fn new(pixels: usize) -> Result<PictureArea, ShareError> {
        let room = PictureArea::needs(pixels);
        let shared = Shared::builder().name("picture").zeroed(PAGE + 2 * room)?;
        Ok(PictureArea {
            shared,
            room,
            seen: None,
            place: 0,
        })
    }

    /// Bytes of address space that it takes.
    pub fn bytes(&self) -> usize {
        PAGE + 2 * self.room
    }

    /// Whether a picture of so many bytes has the room that it would get in a new one.
    pub fn fits(&self, pixels: usize) -> bool {
        PictureArea::needs(pixels) <= self.room
    }

    /// Shows it to one domain and to no other.
    ///
    /// # Errors
    /// No room in its window; or the kernel refused.
    pub fn show(&mut self, domain: Option<&Domain>) -> Result<(), ShareError> {
        if let Some(before) = &self.seen {
            if domain.is_some_and(|domain| domain.id() == before.id()) {
                return Ok(());
            }
            before.unshare(&self.shared)?;
            self.seen = None;
        }
        if let Some(domain) = domain {
            domain.share(&self.shared, Prot::ReadWrite)?;
            self.seen = Some(domain.clone());
        }
        Ok(())
    }

    /// Copies a picture into it.
    ///
    /// # Errors
    /// It does not fit.
    pub fn put(&mut self, picture: &Picture) -> Result<(), MemoryError> {
        self.place = 0;
        self.shared.write(PAGE, &picture.pixels)
    }

    fn at(&self, place: usize) -> usize {
        PAGE + place * self.room
    }

    /// The memory; the structure lies at its beginning.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Writes the structure for the next plugin, with pointers as that sees them.
    ///
    /// # Errors
    /// The area is gone.
    pub fn describe(
        &self,
        shape: Shape,
        arguments: &[i32],
        confined: bool,
    ) -> Result<(), MemoryError> {
        let base = match confined {
            true => u64::from(self.shared.offset().0),
            false => self.shared.as_ptr() as u64,
        };
        let mut bytes = Vec::with_capacity(SIZE);
        for word in [shape.width, shape.height, shape.channels, 0] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        let (pixels, out) = (self.at(self.place), self.at(1 - self.place));
        for word in [base + pixels as u64, base + out as u64, self.room as u64, 0] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&(arguments.len().min(ARGUMENTS) as i32).to_le_bytes());
        for argument in arguments.iter().take(ARGUMENTS) {
            bytes.extend_from_slice(&argument.to_le_bytes());
        }
        bytes.resize(SIZE, 0);
        self.shared.write(0, &bytes)
    }

    /// Looks once at what a plugin left, and takes the place where it left it for the picture's.
    /// `None` if that is no answer.
    ///
    /// # Errors
    /// The area is gone.
    pub fn outcome(&mut self, in_place: bool) -> Result<Option<Outcome>, MemoryError> {
        let mut bytes = [0; SIZE];
        self.shared.read(0, &mut bytes)?;
        let word = |at: usize| {
            let mut word = [0; 4];
            word.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(word)
        };
        let size = u64::from(word(40)) | u64::from(word(44)) << 32;
        if !in_place {
            self.place = 1 - self.place;
        }
        let shape = Shape {
            width: word(0),
            height: word(4),
            channels: word(8),
        };
        let encoding = match word(12) {
            0 => {
                let fits = shape.bytes().is_some_and(|bytes| bytes <= self.room);
                return Ok(fits.then_some(Outcome::Picture(shape)));
            }
            1 => Encoding::Ppm,
            2 => Encoding::Deflated,
            3 => Encoding::Bytes,
            _ => return Ok(None),
        };
        let fits = size <= self.room as u64;
        Ok(fits.then_some(Outcome::Answer(encoding, size as usize)))
    }

    /// A copy of the first bytes of the picture's place.
    ///
    /// # Errors
    /// There are fewer.
    pub fn take(&self, size: usize) -> Result<Bytes, MemoryError> {
        let mut bytes = vec![0; size.min(self.room)];
        self.shared.read(self.at(self.place), &mut bytes)?;
        Ok(bytes.into())
    }
}

impl Drop for PictureArea {
    fn drop(&mut self) {
        // The namespace would keep it as long as it lives. If the kernel refuses that, it does.
        let _ = self.show(None);
    }
}
