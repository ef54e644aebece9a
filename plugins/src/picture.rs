//! Pictures on their way in and out: PNG and JPEG by the crate `image`, PPM and PGM here.
//!
//! Invariant: no memory is taken for a picture before its size is known and allowed; a [`Picture`]
//! has exactly the bytes that its size says.

use bytes::Bytes;
use image::codecs::jpeg::{JpegDecoder, JpegEncoder};
use image::codecs::png::{CompressionType, FilterType, PngDecoder, PngEncoder};
use image::{DynamicImage, ExtendedColorType, ImageDecoder, ImageEncoder, ImageError, Limits};
use std::io::Cursor;
use thiserror::Error;

/// Longest side of a picture.
const SIDE: u32 = 65_535;

/// What pictures are encoded as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Portable Network Graphics.
    Png,
    /// JPEG.
    Jpeg,
    /// Portable pixmap, or graymap if it is grey.
    Ppm,
}

/// A picture cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PictureError {
    /// It is none.
    #[error(
        "this is no picture of a known kind; send PNG, JPEG, or PPM or PGM with a byte for each sample (P6, P5)"
    )]
    Format,
    /// It would be too large.
    #[error("the picture says that it is {0} by {1}, which is larger than {2} bytes of pixels")]
    Large(u32, u32, u64),
    /// It is not what its beginning says.
    #[error("the picture is broken: {0}")]
    Broken(String),
    /// It cannot be written in a format.
    #[error("the picture cannot be encoded: {0}")]
    Encode(String),
}

/// Width, height, and bytes of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha.
    pub channels: u32,
}

impl Shape {
    /// Bytes of all pixels, if the shape is one at all.
    pub fn bytes(self) -> Option<usize> {
        let sides = 1..=SIDE;
        let fine = sides.contains(&self.width) && sides.contains(&self.height);
        // Less than 2^34.
        let bytes = u64::from(self.width) * u64::from(self.height) * u64::from(self.channels);
        (fine && (1..=4).contains(&self.channels)).then_some(bytes as usize)
    }
}

/// Pixels, a byte for each channel, rows without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Its size.
    pub shape: Shape,
    /// The bytes.
    pub pixels: Bytes,
}

impl Format {
    /// The format that a name means.
    pub fn named(name: &str) -> Option<Format> {
        match name {
            "png" => Some(Format::Png),
            "jpeg" | "jpg" => Some(Format::Jpeg),
            "ppm" | "pgm" => Some(Format::Ppm),
            _ => None,
        }
    }

    /// The format that a file begins as.
    pub fn of(file: &[u8]) -> Option<Format> {
        match file {
            [0x89, b'P', b'N', b'G', ..] => Some(Format::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Format::Jpeg),
            [b'P', b'5' | b'6', host, ..] if host.is_ascii_whitespace() => Some(Format::Ppm),
            _ => None,
        }
    }

    /// The media type of a picture in this format.
    pub fn media(self, channels: u32) -> &'static str {
        match self {
            Format::Png => "image/png",
            Format::Jpeg => "image/jpeg",
            Format::Ppm if channels < 3 => "image/x-portable-graymap",
            Format::Ppm => "image/x-portable-pixmap",
        }
    }

    /// Bytes that a picture of this shape takes in this format, without what comes before the
    /// pixels.
    fn kept(self, channels: u32) -> u32 {
        match (self, channels) {
            (Format::Png, channels) => channels,
            (_, 1 | 2) => 1,
            (_, _) => 3,
        }
    }
}

impl Picture {
    /// Decodes a file, if its pixels are at most `most` bytes.
    ///
    /// # Errors
    /// See [`PictureError`].
    pub fn decode(file: &Bytes, most: u64) -> Result<(Picture, Format), PictureError> {
        let format = Format::of(file).ok_or(PictureError::Format)?;
        let mut limits = Limits::default();
        limits.max_image_width = Some(SIDE);
        limits.max_image_height = Some(SIDE);
        // The decoder has rows and tables besides.
        limits.max_alloc = Some(most.saturating_mul(2).saturating_add(1 << 20));
        let picture = match format {
            Format::Ppm => portable(file, most)?,
            Format::Png => {
                let decoder = PngDecoder::with_limits(Cursor::new(&file[..]), limits);
                decoded(decoder.map_err(|e| broken(&e))?, most)?
            }
            Format::Jpeg => {
                let decoder = JpegDecoder::new(Cursor::new(&file[..]));
                let mut decoder = decoder.map_err(|e| broken(&e))?;
                decoder.set_limits(limits).map_err(|e| broken(&e))?;
                decoded(decoder, most)?
            }
        };
        Ok((picture, format))
    }

    /// Encodes it. Where the format has no alpha, that goes.
    ///
    /// # Errors
    /// The format's encoder fails.
    pub fn encode(&self, format: Format) -> Result<Vec<u8>, PictureError> {
        let Shape {
            width,
            height,
            channels,
        } = self.shape;
        let kept = format.kept(channels);
        let without;
        let pixels = match kept == channels {
            true => &self.pixels[..],
            false => {
                let pixels = self.pixels.chunks_exact(channels as usize);
                without = pixels
                    .flat_map(|pixel| &pixel[..kept as usize])
                    .copied()
                    .collect::<Vec<u8>>();
                &without[..]
            }
        };
        let colour = match kept {
            1 => ExtendedColorType::L8,
            2 => ExtendedColorType::La8,
            3 => ExtendedColorType::Rgb8,
            _ => ExtendedColorType::Rgba8,
        };
        let mut file = Vec::new();
        let encoded = match format {
            Format::Ppm => {
                let kind = if kept == 1 { 5 } else { 6 };
                file.reserve_exact(pixels.len() + 32);
                file.extend_from_slice(format!("P{kind}\n{width} {height}\n255\n").as_bytes());
                file.extend_from_slice(pixels);
                Ok(())
            }
            Format::Png => {
                PngEncoder::new_with_quality(&mut file, CompressionType::Fast, FilterType::Adaptive)
                    .write_image(pixels, width, height, colour)
            }
            Format::Jpeg => JpegEncoder::new_with_quality(&mut file, 85)
                .write_image(pixels, width, height, colour),
        };
        encoded.map_err(|error| PictureError::Encode(error.to_string()))?;
        Ok(file)
    }
}

fn broken(error: &ImageError) -> PictureError {
    PictureError::Broken(error.to_string())
}

fn allowed(width: u32, height: u32, channels: u32, most: u64) -> Result<Shape, PictureError> {
    let shape = Shape {
        width,
        height,
        channels,
    };
    if width == 0 || height == 0 {
        return Err(PictureError::Broken("it has no pixels".to_owned()));
    }
    match shape.bytes() {
        Some(bytes) if bytes as u64 <= most => Ok(shape),
        _ => Err(PictureError::Large(width, height, most)),
    }
}

fn decoded(decoder: impl ImageDecoder, most: u64) -> Result<Picture, PictureError> {
    let (width, height) = decoder.dimensions();
    let colour = decoder.color_type();
    let channels = u32::from(colour.channel_count());
    allowed(width, height, channels, most)?;
    if decoder.total_bytes() > most.saturating_mul(2) {
        return Err(PictureError::Large(width, height, most));
    }
    let image = DynamicImage::from_decoder(decoder).map_err(|e| broken(&e))?;
    let pixels = match (colour.has_color(), colour.has_alpha()) {
        (false, false) => image.into_luma8().into_raw(),
        (false, true) => image.into_luma_alpha8().into_raw(),
        (true, false) => image.into_rgb8().into_raw(),
        (true, true) => image.into_rgba8().into_raw(),
    };
    let shape = allowed(width, height, channels, most)?;
    match shape.bytes() == Some(pixels.len()) {
        true => Ok(Picture {
            shape,
            pixels: pixels.into(),
        }),
        false => Err(PictureError::Broken(
            "it has other pixels than it says".to_owned(),
        )),
    }
}

/// PGM and PPM with a byte for each sample. The pixels stay where they are in the file.
fn portable(file: &Bytes, most: u64) -> Result<Picture, PictureError> {
    let broken = |text: &str| PictureError::Broken(text.to_owned());
    let channels = if file.get(1) == Some(&b'5') { 1 } else { 3 };
    let mut at = 2;
    let mut number = || -> Option<u32> {
        loop {
            match file.get(at)? {
                b'#' => at += file[at..].iter().position(|b| *b == b'\n')?,
                byte if byte.is_ascii_whitespace() => at += 1,
                _ => break,
            }
        }
        let digits = file[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        let text = std::str::from_utf8(&file[at..at + digits]).ok()?;
        at += digits;
        text.parse().ok()
    };
    let mut next = || number().ok_or_else(|| broken("its head is not three numbers"));
    let (width, height, deepest) = (next()?, next()?, next()?);
    if deepest != 255 {
        return Err(PictureError::Format);
    }
    let shape = allowed(width, height, channels, most)?;
    if !file.get(at).is_some_and(u8::is_ascii_whitespace) {
        return Err(broken("its head does not end"));
    }
    let (from, size) = (at + 1, shape.bytes().unwrap_or(usize::MAX));
    match file.len() - from >= size {
        true => Ok(Picture {
            shape,
            pixels: file.slice(from..from + size),
        }),
        false => Err(broken("it has fewer pixels than it says")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(channels: u32) -> Picture {
        let shape = Shape {
            width: 5,
            height: 3,
            channels,
        };
        let pixels = (0..shape.bytes().unwrap()).map(|i| (i * 37 % 256) as u8);
        Picture {
            shape,
            pixels: pixels.collect::<Vec<u8>>().into(),
        }
    }

    #[test]
    fn what_is_encoded_is_decoded_again() {
        for channels in 1..=4 {
            let before = picture(channels);
            let file: Bytes = before.encode(Format::Png).unwrap().into();
            let (after, format) = Picture::decode(&file, 1 << 20).unwrap();
            assert_eq!((after, format), (before.clone(), Format::Png));
            for format in [Format::Jpeg, Format::Ppm] {
                let file: Bytes = before.encode(format).unwrap().into();
                let (after, found) = Picture::decode(&file, 1 << 20).unwrap();
                let channels = if channels < 3 { 1 } else { 3 };
                assert_eq!((found, after.shape.channels), (format, channels));
                assert_eq!((after.shape.width, after.shape.height), (5, 3));
            }
        }
    }

    #[test]
    fn what_lies_about_its_size_is_refused() {
        let decode = |bytes: &[u8], most| Picture::decode(&Bytes::copy_from_slice(bytes), most);
        let large = decode(b"P6\n60000 60000\n255\nxxx", 1 << 20);
        assert_eq!(large, Err(PictureError::Large(60_000, 60_000, 1 << 20)));
        let large = decode(b"P6\n4294967295 4294967295\n255\nxxx", 1 << 20);
        assert!(matches!(large, Err(PictureError::Large(..))), "{large:?}");
        for (file, text) in [
            (&b"P6\n2 2\n255\nxxxxxxxxxxx"[..], "fewer pixels"),
            (b"P6\n99999999999 1\n255\nx", "three numbers"),
            (b"P6\n2", "three numbers"),
            (b"P6\n2 2\n255", "does not end"),
            (b"P5\n0 4\n255\n", "no pixels"),
            (b"P5 # without an end", "three numbers"),
            (b"\x89PNG\r\n\x1a\n", "broken"),
            (b"\xff\xd8\xff\xe0\0", "broken"),
        ] {
            let error = decode(file, 1 << 20).unwrap_err();
            assert!(
                matches!(error, PictureError::Broken(_)),
                "{file:?}: {error}"
            );
            assert!(error.to_string().contains(text), "{file:?}: {error}");
        }
        for file in [
            &b"GIF89a"[..],
            b"",
            b"P",
            b"P3\n1 1\n255\n0 0 0",
            b"P5\n1 1\n65535\n00",
        ] {
            assert_eq!(decode(file, 1 << 20), Err(PictureError::Format), "{file:?}");
        }
    }

    #[test]
    fn comments_and_what_comes_behind() {
        let file = Bytes::from_static(b"P5 # grey\n# of two\n2 1 255\n\x01\x02 more");
        let (picture, format) = Picture::decode(&file, 2).unwrap();
        assert_eq!((&picture.pixels[..], format), (&[1, 2][..], Format::Ppm));
    }
}
