//! Buffers: how files and texts get into the window before the call, and out of it after.

use postern::{Domain, Offset};
use postern_image::Type;
use postern_verifier::window::INFO_HEAP_END;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::arguments::{self, Source};
use crate::number;
use crate::output::Failure;

/// A buffer in the window.
pub struct Buffer {
    /// Where it is.
    pub at: Offset,
    /// Its length in bytes.
    pub length: usize,
    /// Whether it held only zeros before the call: it is there for results.
    pub zeros: bool,
}

/// What a buffer holds before the call.
pub fn contents(source: &Source) -> Result<Vec<u8>, Failure> {
    const MOST: u64 = 3 << 30;
    match source {
        Source::File(path) => data(path, MOST),
        Source::Text(text) => Ok([text.as_bytes(), b"\0"].concat()),
        Source::Zeros(size) if *size > MOST => {
            Err(Failure::unusable("a buffer can have at most 3G".to_owned()))
        }
        Source::Zeros(size) => Ok(vec![0; *size as usize]),
    }
}

/// What a file, or a pipe, holds.
fn data(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes));
    let failure = |e: &dyn std::fmt::Display| {
        Failure::unusable(format!("cannot read {}: {e}", path.display()))
    };
    read.map_err(|e| failure(&e))?;
    match bytes.len() as u64 > most {
        true => Err(failure(&"a buffer can have at most 3G")),
        false => Ok(bytes),
    }
}

/// Puts the buffers into the window: from the extension's `malloc`, or, if it has none, at the end
/// of its heap.
pub fn place(
    domain: &Domain,
    sources: &[Source],
    contents: &[Vec<u8>],
) -> Result<Vec<Buffer>, Failure> {
    let failed = |what: &dyn std::fmt::Display| {
        Failure::unusable(format!("cannot place a buffer: {what}; try --heap"))
    };
    let malloc = domain.image().tables().export("malloc").is_some();
    let mut end = 0;
    if !malloc && !contents.is_empty() {
        let mut word = [0; 4];
        domain
            .read(Offset(INFO_HEAP_END), &mut word)
            .map_err(|e| failed(&e))?;
        end = u32::from_le_bytes(word);
    }
    let mut buffers = Vec::new();
    for (source, bytes) in sources.iter().zip(contents) {
        let at = if malloc {
            domain.alloc(bytes.len().max(1)).map_err(|e| failed(&e))?
        } else {
            let length = u32::try_from(bytes.len()).map_err(|e| failed(&e))?;
            // Aligned for every vector instruction.
            end = end.checked_sub(length).ok_or_else(|| failed(&"no room"))? & !63;
            Offset(end)
        };
        domain.write(at, bytes).map_err(|e| failed(&e))?;
        buffers.push(Buffer {
            at,
            length: bytes.len(),
            zeros: matches!(source, Source::Zeros(_)),
        });
    }
    Ok(buffers)
}

impl Buffer {
    /// The first `length` bytes as they are now.
    pub fn read(&self, domain: &Domain, length: usize) -> Result<Vec<u8>, Failure> {
        let failed = |e| Failure::unusable(format!("cannot read a buffer back: {e}"));
        domain.read_vec(self.at, length).map_err(failed)
    }
}

/// The buffer that `-o` writes: the one with this number, counted from 1; without a number the
/// first that is there for results, else the first.
pub fn chosen(number: Option<usize>, buffers: &[Buffer]) -> Result<&Buffer, Failure> {
    let buffer = match number {
        None => buffers.iter().find(|b| b.zeros).or(buffers.first()),
        Some(number) => number.checked_sub(1).and_then(|index| buffers.get(index)),
    };
    buffer.ok_or_else(|| {
        Failure::unusable("-o has no such buffer to write; give one as @FILE or @:SIZE")
    })
}

/// How many bytes of the buffer `-o` writes: all, or what the word says, which is a size or
/// `result`.
pub fn length(
    word: Option<&str>,
    buffer: &Buffer,
    result: Option<(Type, u64)>,
) -> Result<usize, Failure> {
    let wanted = match (word, result) {
        (None, _) => return Ok(buffer.length),
        (Some("result"), Some((kind, bits))) if kind.is_integer() => {
            let shown = arguments::shown(kind, bits);
            let length = shown.parse::<u64>();
            length.map_err(|_| Failure::unusable(format!("the result {shown} is no length")))?
        }
        (Some("result"), _) => {
            let message = "the function returns no integer; give --out-length a number";
            return Err(Failure::unusable(message));
        }
        (Some(text), _) => {
            number::size(text).map_err(|e| Failure::unusable(format!("--out-length: {e}")))?
        }
    };
    match usize::try_from(wanted) {
        Ok(length) if length <= buffer.length => Ok(length),
        _ => {
            let message = format!("the buffer has {} bytes, not {wanted}", buffer.length);
            Err(Failure::unusable(message))
        }
    }
}
