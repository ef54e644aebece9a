//! An image's file with its names and lines.

use std::ops::Range;
use std::path::{Path, PathBuf};

use postern_image::debug::{self, Lines, SourceLine, Symbols};
use postern_image::{ImageFile, input};
use postern_kernel_judge::{self as judge, Verdict};

/// A file was not read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}: {source}")]
pub struct Unreadable {
    /// Which file.
    pub path: PathBuf,
    /// Why.
    pub source: input::ReadError,
}

/// A file that is an image, or is said to be one: the kernel judges it, not this type.
#[derive(Clone, Debug)]
pub struct Image {
    bytes: Vec<u8>,
    name: String,
}

impl Image {
    /// Reads a file, a regular one. Its name without folders and ending is the image's.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(path: impl AsRef<Path>) -> Result<Image, Unreadable> {
        let path = path.as_ref();
        let read = |source| Unreadable {
            path: path.to_owned(),
            source,
        };
        // Longer ones are the device's to refuse, in its words.
        let bytes = input::read(path, input::MAX_FILE).map_err(read)?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Image::new(bytes, stem))
    }

    /// An image's bytes, with a name for it.
    pub fn new(bytes: impl Into<Vec<u8>>, name: impl Into<String>) -> Image {
        Image {
            bytes: bytes.into(),
            name: name.into(),
        }
    }

    /// The file's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where a variable lies in the window, by the file's symbols; none if it was linked with `-s`.
    pub fn variable(&self, name: &str) -> Option<Range<u32>> {
        debug::variable(&self.bytes, name)
    }

    /// The function that an offset lies in, with the distance from its start.
    pub fn symbol(&self, offset: u32) -> Option<String> {
        let symbols = Symbols::parse(&self.bytes);
        symbols.at(offset).map(|symbol| symbol.to_string())
    }

    /// The source line of an offset, if the file was compiled with `-g`.
    pub fn line(&self, offset: u32) -> Option<SourceLine> {
        Lines::parse(&self.bytes)?.at(offset).into_iter().next()
    }

    /// Where in the file text begins, if it is an image.
    pub fn place_of_text(&self) -> Option<usize> {
        let file = ImageFile::parse(&self.bytes).ok()?;
        (file.text().bytes.as_ptr() as usize).checked_sub(self.bytes.as_ptr() as usize)
    }

    /// The name of the import with an index.
    pub fn import(&self, index: u32) -> Option<String> {
        let file = ImageFile::parse(&self.bytes).ok()?;
        let import = file.imports().get(index as usize)?;
        Some(import.name.escape_debug().to_string())
    }

    /// Name and offset of the export with an index.
    pub fn export(&self, index: u64) -> Option<(String, u32)> {
        let file = ImageFile::parse(&self.bytes).ok()?;
        let export = file.exports().get(usize::try_from(index).ok()?)?;
        Some((export.name.escape_debug().to_string(), export.offset))
    }

    /// What this process's own judge says of it: the same code as the module's.
    pub fn judged(&self) -> Verdict {
        judge::image(&self.bytes)
    }

    /// Offset, function and line, as `postern verify` tells them.
    pub fn place(&self, offset: u32) -> String {
        let mut place = format!("{offset:#x}");
        if let Some(symbol) = self.symbol(offset) {
            place += &format!(" in {symbol}");
        }
        if let Some(line) = self.line(offset) {
            place += &format!(", {line}");
        }
        place
    }
}
