//! Pictures: files of BMP and of PNM as pixels, and back. A size is looked at before memory is
//! taken for it.

use alloc::vec::Vec;
use core::fmt::Write;

use crate::text::Words;

/// Bytes of pixels at most.
pub const MOST: usize = 1 << 20;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Windows' bitmap, not compressed: 24 or 32 bits, rows of fours of bytes.
    Bmp,
    /// A portable pixmap or graymap: P6 or P5.
    Ppm,
}

impl Format {
    /// By the name that a query has for it.
    pub fn named(name: &[u8]) -> Option<Format> {
        match name {
            b"bmp" => Some(Format::Bmp),
            b"ppm" => Some(Format::Ppm),
            _ => None,
        }
    }

    /// The media type.
    pub const fn kind(self) -> &'static str {
        match self {
            Format::Bmp => "image/bmp",
            Format::Ppm => "image/x-portable-pixmap",
        }
    }
}

/// Width, height, and bytes of a pixel: 1 gray, 3 RGB, with one more for alpha.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Bytes of a pixel.
    pub channels: u32,
}

impl Shape {
    /// Bytes of its pixels. `None`: it is no picture, or one that is too large.
    pub fn bytes(&self) -> Option<usize> {
        let good = self.width > 0 && self.height > 0 && (1..=4).contains(&self.channels);
        let pixels = u64::from(self.width).checked_mul(self.height.into())?;
        let bytes = pixels.checked_mul(self.channels.into())?;
        let bytes = usize::try_from(bytes).ok()?;
        (good && bytes <= MOST).then_some(bytes)
    }
}

/// A picture: rows from the top, without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Its shape.
    pub shape: Shape,
    /// Its pixels.
    pub pixels: Vec<u8>,
}

/// Why there is no picture: the status, and words.
pub type Refused = (u16, &'static str);

const OTHER: Refused = (415, "this is neither BMP with 24 or 32 bits nor PPM or PGM");
const SHORT: Refused = (422, "the file is shorter than it says");
const LARGE: Refused = (413, "the picture is too large");

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Reads a file.
///
/// # Errors
/// It is none of these, broken, or too large.
pub fn read(file: &[u8]) -> Result<(Picture, Format), Refused> {
    match file.get(..2) {
        Some(b"BM") => Ok((bitmap(file)?, Format::Bmp)),
        Some(b"P5") => Ok((portable(file, 1)?, Format::Ppm)),
        Some(b"P6") => Ok((portable(file, 3)?, Format::Ppm)),
        _ => Err(OTHER),
    }
}

fn bitmap(file: &[u8]) -> Result<Picture, Refused> {
    let field = |at| word(file, at).ok_or(SHORT);
    let (start, size) = (field(10)?, field(14)?);
    let (width, height) = (field(18)? as i32, field(22)? as i32);
    let (planes, bits, packed) = (field(26)? as u16, field(26)? >> 16, field(30)?);
    if size < 40 || planes != 1 || !matches!(bits, 24 | 32) || packed != 0 || width < 0 {
        return Err(OTHER);
    }
    let shape = Shape {
        width: width as u32,
        height: height.unsigned_abs(),
        channels: 3,
    };
    let bytes = shape.bytes().ok_or(LARGE)?;
    let (width, step) = (shape.width as usize, bits as usize / 8);
    let row = (width * step).next_multiple_of(4);
    let mut pixels = Vec::new();
    pixels.try_reserve_exact(bytes).map_err(|_| LARGE)?;
    for line in 0..shape.height as usize {
        // From the bottom, unless the height is below zero.
        let line = match height < 0 {
            true => line,
            false => shape.height as usize - 1 - line,
        };
        let from = start as usize + line * row;
        let from = file.get(from..from + width * step).ok_or(SHORT)?;
        for pixel in from.chunks_exact(step) {
            if let [blue, green, red, ..] = *pixel {
                pixels.extend_from_slice(&[red, green, blue]);
            }
        }
    }
    Ok(Picture { shape, pixels })
}

fn portable(file: &[u8], channels: u32) -> Result<Picture, Refused> {
    let mut at = 2;
    let mut numbers = [0u32; 3];
    for number in &mut numbers {
        let mut digits = 0;
        loop {
            match file.get(at).ok_or(SHORT)? {
                digit @ b'0'..=b'9' if digits < 7 => {
                    *number = *number * 10 + u32::from(digit - b'0');
                    digits += 1;
                }
                b'#' if digits == 0 => {
                    let line = file.get(at..).unwrap_or_default();
                    let end = line.iter().position(|byte| *byte == b'\n');
                    at += end.ok_or(SHORT)?;
                }
                byte if byte.is_ascii_whitespace() && digits > 0 => break,
                byte if byte.is_ascii_whitespace() => {}
                _ => return Err(OTHER),
            }
            at += 1;
        }
        at += 1;
    }
    let [width, height, most] = numbers;
    if most != 255 {
        return Err(OTHER);
    }
    let shape = Shape {
        width,
        height,
        channels,
    };
    let bytes = shape.bytes().ok_or(LARGE)?;
    // The last blank is behind the numbers already.
    let pixels = file.get(at..).and_then(|rest| rest.get(..bytes));
    let pixels = pixels.ok_or(SHORT)?.to_vec();
    Ok(Picture { shape, pixels })
}

impl Picture {
    /// Red, green and blue of a pixel; alpha is lost.
    fn colours(pixel: &[u8]) -> [u8; 3] {
        match *pixel {
            [red, green, blue, ..] => [red, green, blue],
            [gray, ..] => [gray; 3],
            [] => [0; 3],
        }
    }

    fn rows(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        let row = self.shape.width as usize * self.shape.channels as usize;
        self.pixels.chunks_exact(row.max(1))
    }

    /// Makes a file of it.
    pub fn write(&self, format: Format) -> Vec<u8> {
        match format {
            Format::Bmp => self.write_bitmap(),
            Format::Ppm => self.write_portable(),
        }
    }

    fn write_bitmap(&self) -> Vec<u8> {
        let row = (self.shape.width as usize * 3).next_multiple_of(4);
        let size = row * self.shape.height as usize;
        let mut file = Vec::with_capacity(54 + size);
        file.extend_from_slice(b"BM");
        let words = [
            54 + size as u32,
            0,
            54,
            40,
            self.shape.width,
            self.shape.height,
            24 << 16 | 1,
            0,
            size as u32,
            2835,
            2835,
            0,
            0,
        ];
        file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        for line in self.rows().rev() {
            for pixel in line.chunks_exact(self.shape.channels.max(1) as usize) {
                let [red, green, blue] = Picture::colours(pixel);
                file.extend_from_slice(&[blue, green, red]);
            }
            file.resize(file.len() + row - self.shape.width as usize * 3, 0);
        }
        file
    }

    fn write_portable(&self) -> Vec<u8> {
        let Shape {
            width,
            height,
            channels,
        } = self.shape;
        let gray = channels < 3;
        let mut text = Words::default();
        let _ = write!(
            text,
            "P{}\n{width} {height}\n255\n",
            if gray { 5 } else { 6 }
        );
        let mut file = text.bytes().to_vec();
        for pixel in self.pixels.chunks_exact(channels.max(1) as usize) {
            let colours = Picture::colours(pixel);
            let taken = if gray { 1 } else { 3 };
            file.extend_from_slice(colours.get(..taken).unwrap_or_default());
        }
        file
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn picture(width: u32, height: u32, channels: u32) -> Picture {
        let shape = Shape {
            width,
            height,
            channels,
        };
        let bytes = shape.bytes().expect("small") as u32;
        Picture {
            shape,
            pixels: (0..bytes).map(|at| (at * 37 % 251) as u8).collect(),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for (width, height) in [(1, 1), (2, 3), (3, 2), (4, 1), (5, 7)] {
            let colour = picture(width, height, 3);
            for format in [Format::Bmp, Format::Ppm] {
                let file = colour.write(format);
                assert_eq!(read(&file), Ok((colour.clone(), format)), "{width}");
            }
            let gray = picture(width, height, 1);
            assert_eq!(read(&gray.write(Format::Ppm)).map(|read| read.0), Ok(gray));
        }
        let file = b"P6 # a comment\n#another\n 1\t1 255\nabc";
        assert_eq!(read(file).map(|(read, _)| read.pixels), Ok(b"abc".to_vec()));
    }

    #[test]
    fn files_that_lie() {
        let file = picture(4, 7, 3).write(Format::Bmp);
        for length in 0..file.len() {
            assert!(read(&file[..length]).is_err(), "{length}");
        }
        assert_eq!(read(b"P5 99999 99999 255\n"), Err(LARGE));
        assert_eq!(read(b"P5 0 1 255\n"), Err(LARGE));
        let mut random = fastrand::Rng::with_seed(6);
        for _ in 0..50_000 {
            let mut file =
                picture(3, 3, 3).write(*random.choice(&[Format::Bmp, Format::Ppm]).expect("one"));
            for _ in 0..random.usize(1..5) {
                let at = random.usize(..60.min(file.len()));
                file[at] = random.u8(..);
            }
            let file: Vec<u8> = file.into_iter().take(random.usize(1..100)).collect();
            let _ = read(&file);
        }
    }
}
