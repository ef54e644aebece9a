//! How large a picture says it is, from the first bytes of its file: before anything is decoded,
//! and without taking memory.
//!
//! Invariant: whoever decodes the file is held to this: a picture that turns out larger is refused.
//! (One whose pixels lie in its file cannot be.)

use crate::picture::Format;

/// What a picture will need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    /// Bytes of its pixels, at most.
    pub pixels: u64,
    /// Bytes that the decoder makes of it, at most: samples may have two.
    pub decoded: u64,
}

/// Measures a file; `None` if it does not say, or says it where a decoder alone finds it.
pub fn measure(file: &[u8]) -> Option<Measure> {
    match Format::of(file)? {
        Format::Png => png(file),
        Format::Jpeg => jpeg(file),
        // Pixels stay in the file.
        Format::Ppm => Some(Measure {
            pixels: file.len() as u64,
            decoded: 0,
        }),
    }
}

fn of(width: u32, height: u32, channels: u64, sample: u64) -> Option<Measure> {
    let pixels = u64::from(width).checked_mul(u64::from(height))?;
    let pixels = pixels.checked_mul(channels)?;
    Some(Measure {
        pixels,
        decoded: pixels.checked_mul(sample)?,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*bytes))
}

/// The first chunk is the header (Portable Network Graphics, third edition, section 11.2.1).
fn png(file: &[u8]) -> Option<Measure> {
    if file.get(12..16)? != b"IHDR" {
        return None;
    }
    // Whatever has no alpha may get some from a chunk behind it.
    let channels = match file.get(25)? {
        0 | 4 => 2,
        2 | 3 | 6 => 4,
        _ => return None,
    };
    let sample = if *file.get(24)? == 16 { 2 } else { 1 };
    of(word(file, 16)?, word(file, 20)?, channels, sample)
}

/// Segments up to the frame's header (ITU T.81, annex B).
fn jpeg(file: &[u8]) -> Option<Measure> {
    let mut at = 2;
    loop {
        let [0xff, marker] = *file.get(at..)?.first_chunk()? else {
            return None;
        };
        let size = word(file, at + 2)? >> 16;
        match marker {
            // Fill.
            0xff => at += 1,
            0xc0..=0xcf if ![0xc4, 0xc8, 0xcc].contains(&marker) => {
                let sides = word(file, at + 5)?;
                let channels = (*file.get(at + 9)?).into();
                return of(sides & 0xffff, sides >> 16, channels, 1);
            }
            // Restart markers and the like have no size.
            0x01 | 0xd0..=0xd9 => at += 2,
            0xda => return None,
            _ => at += 2 + (size as usize).max(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::{Picture, Shape};

    #[test]
    fn what_was_encoded_is_measured() {
        for channels in 1..=4 {
            let shape = Shape {
                width: 70,
                height: 30,
                channels,
            };
            let picture = Picture {
                shape,
                pixels: vec![9; shape.bytes().unwrap()].into(),
            };
            for format in [Format::Png, Format::Jpeg, Format::Ppm] {
                let file = picture.encode(format).unwrap();
                let (decoded, _) = Picture::decode(&file.clone().into(), 1 << 20).unwrap();
                let found = measure(&file).unwrap().pixels;
                let least = decoded.pixels.len() as u64;
                assert!(
                    (least..=2 * least + 64).contains(&found),
                    "{format:?}: {found}"
                );
            }
        }
        for file in [
            &b"\x89PNG"[..],
            b"\xff\xd8\xff",
            b"\xff\xd8\xff\xe0\0\0",
            b"",
            b"GIF",
        ] {
            assert_eq!(measure(file), None);
        }
    }
}
