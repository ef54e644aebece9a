//! An image of a disk as a disk: the part that is files'.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use postern_exos_abi::disk::{BLOCK, of_files};
use postern_exos_fs::{Block, Disk, DiskError, Format, format};

use super::ImageError;

/// An image.
#[derive(Debug)]
pub struct Image {
    path: PathBuf,
    file: File,
    blocks: u64,
}

/// Nanoseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

impl Image {
    /// Opens one.
    pub fn open(path: &Path, is_written: bool) -> Result<Image, ImageError> {
        let file = |error| ImageError::File(path.to_owned(), error);
        let opened = OpenOptions::new().read(true).write(is_written).open(path);
        let opened = opened.map_err(file)?;
        let blocks = opened.metadata().map_err(file)?.len() / BLOCK;
        Ok(Image {
            path: path.to_owned(),
            file: opened,
            blocks: of_files(blocks),
        })
    }

    /// Makes one of so many bytes, with an empty file system. `anew`: whatever there is.
    pub fn make(path: &Path, bytes: u64, anew: bool) -> Result<Image, ImageError> {
        let file = |error| ImageError::File(path.to_owned(), error);
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        match anew {
            true => options.create(true).truncate(true),
            false => options.create_new(true),
        };
        let made = options.open(path).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => ImageError::IsThere(path.to_owned()),
            _ => file(error),
        })?;
        let result = made.set_len(bytes).map_err(file).and_then(|()| {
            let mut image = Image::open(path, true)?;
            let how = Format {
                id: now(),
                now: now(),
                ..Format::default()
            };
            let made = format(&mut image, &how);
            made.map_err(|error| ImageError::Files(path.to_owned(), error))?;
            Ok(image)
        });
        if result.is_err() {
            // Half an image would be taken for one.
            let _ = std::fs::remove_file(path);
        }
        result
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Disk for Image {
    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn read(&mut self, blocks: &mut [(u64, &mut Block)]) -> Result<(), DiskError> {
        for (block, to) in blocks {
            if *block >= self.blocks {
                return Err(DiskError::Beyond);
            }
            let read = self.file.read_exact_at(&mut to.0, *block * BLOCK);
            read.map_err(|_| DiskError::Device)?;
        }
        Ok(())
    }

    fn write(&mut self, blocks: &[(u64, &Block)]) -> Result<(), DiskError> {
        for (block, from) in blocks {
            if *block >= self.blocks {
                return Err(DiskError::Beyond);
            }
            let written = self.file.write_all_at(&from.0, *block * BLOCK);
            written.map_err(|_| DiskError::Device)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DiskError> {
        self.file.sync_data().map_err(|_| DiskError::Device)
    }
}
