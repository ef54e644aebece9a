//! What a plugin sees of a picture: `struct picture` of `picture.h`, and two places for pixels. It
//! reads one and writes the other, or changes the picture where it is.
//!
//! ```text
//! the area:   0   struct picture
//!          PAGE   the picture
//!   PAGE + ROOM   the result
//!          AREA   the end
//! ```

use alloc::vec::Vec;

use crate::picture::{self, Shape};

/// Where the picture begins.
pub const PICTURE: usize = 4096;
/// Bytes of each place: results may be somewhat larger than pictures.
pub const ROOM: usize = picture::MOST / 4 * 5;
/// Bytes of it all.
pub const AREA: usize = PICTURE + 2 * ROOM;
/// Bytes of the structure.
pub const SIZE: usize = 4 * 4 + 4 * 8 + 9 * 4 + 4;

/// The declarations of `picture.h`, in one line: what sources include, whose lines keep their
/// numbers.
pub const HEADER: &str = "enum { PICTURE_DONE = 0, PICTURE_IN_PLACE = 1, PICTURE_ARGUMENTS = 2 }; \
enum { PICTURE_PIXELS = 0, PICTURE_PPM = 1, PICTURE_PPM_DEFLATE = 2, PICTURE_BYTES = 3 }; \
struct picture { unsigned width, height; unsigned channels; unsigned answer; unsigned char *pixels; \
unsigned char *out; unsigned long room; unsigned long size; int count; int argument[8]; };";

/// The structure for a picture in an area that begins at `at` for the plugin.
pub fn describe(shape: &Shape, arguments: &[i32], at: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(SIZE);
    for word in [shape.width, shape.height, shape.channels, 0] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    let place = |from: usize| u64::from(at) + from as u64;
    for word in [place(PICTURE), place(PICTURE + ROOM), ROOM as u64, 0] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    let arguments = arguments.get(..8.min(arguments.len())).unwrap_or_default();
    bytes.extend_from_slice(&(arguments.len() as i32).to_le_bytes());
    bytes.extend(arguments.iter().flat_map(|number| number.to_le_bytes()));
    bytes.resize(SIZE, 0);
    bytes
}

/// What a plugin left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A picture of this shape.
    Picture(Shape),
    /// Bytes of the answer, and what they are.
    Bytes(usize, Kind),
}

/// What bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A PPM or PGM file.
    Ppm,
    /// The same, deflated.
    Deflated,
    /// Anything.
    Own,
}

/// The structure as a plugin left it, which is looked at once. `None`: it is no answer.
pub fn outcome(bytes: &[u8; SIZE]) -> Option<Outcome> {
    let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let kind = match word(12)? {
        0 => {
            let shape = Shape {
                width: word(0)?,
                height: word(4)?,
                channels: word(8)?,
            };
            shape.bytes()?;
            return Some(Outcome::Picture(shape));
        }
        1 => Kind::Ppm,
        2 => Kind::Deflated,
        3 => Kind::Own,
        _ => return None,
    };
    let size = u64::from_le_bytes(*bytes.get(40..)?.first_chunk()?);
    let size = usize::try_from(size).ok().filter(|size| *size <= ROOM)?;
    Some(Outcome::Bytes(size, kind))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    const SHAPE: Shape = Shape {
        width: 3,
        height: 2,
        channels: 3,
    };

    #[test]
    fn the_structure_is_that_of_the_header() {
        let bytes = describe(&SHAPE, &[5, -6], 0x2000);
        let bytes: [u8; SIZE] = bytes.try_into().expect("all of it");
        assert_eq!(bytes[16..24], 0x3000u64.to_le_bytes());
        assert_eq!(bytes[48..52], 2i32.to_le_bytes());
        assert_eq!(bytes[56..60], (-6i32).to_le_bytes());
        assert_eq!(outcome(&bytes), Some(Outcome::Picture(SHAPE)));
        assert_eq!(SIZE, 88);
    }

    #[test]
    fn what_a_plugin_leaves_is_checked() {
        let bytes: [u8; SIZE] = describe(&SHAPE, &[], 0).try_into().expect("all of it");
        let with = |at: usize, word: u32| {
            let mut bytes = bytes;
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
            bytes
        };
        for (at, word) in [(0, 0), (0, u32::MAX), (4, 1 << 30), (8, 0), (8, 5), (12, 4)] {
            assert_eq!(outcome(&with(at, word)), None, "{at} {word}");
        }
        let mut bytes = with(12, 3);
        assert_eq!(outcome(&bytes), Some(Outcome::Bytes(0, Kind::Own)));
        bytes[44] = 1;
        assert_eq!(outcome(&bytes), None);
    }
}
