//! Images: `pt_image_load`, `pt_image_load_limited`, `pt_image_from_memory`, `pt_image_bounded`,
//! `pt_image_free`.

use crate::boundary::{Out, Source, Text};
use crate::failure;
use crate::handle::{Handle, kind};
use postern::{Bounds, Image};
use std::ffi::{OsStr, c_int};
use std::os::unix::ffi::OsStrExt;

kind!(ImageKind: Image, b'I', "pt_image");

/// `pt_image_load`
#[unsafe(no_mangle)]
pub extern "C" fn pt_image_load(path: Text<'_>) -> Handle<ImageKind> {
    failure::or(Handle::NULL, || {
        let path = OsStr::from_bytes(path.bytes("path")?);
        Ok(Handle::make(Image::load(path)?))
    })
}

/// `pt_image_load_limited`
#[unsafe(no_mangle)]
pub extern "C" fn pt_image_load_limited(path: Text<'_>, most: u64) -> Handle<ImageKind> {
    failure::or(Handle::NULL, || {
        let path = OsStr::from_bytes(path.bytes("path")?);
        Ok(Handle::make(Image::load_limited(path, most)?))
    })
}

/// `pt_image_from_memory`
#[unsafe(no_mangle)]
pub extern "C" fn pt_image_from_memory(bytes: Source<'_>, len: usize) -> Handle<ImageKind> {
    failure::or(Handle::NULL, || {
        Ok(Handle::make(Image::from_bytes(bytes.get(len, "image")?)?))
    })
}

/// `pt_image_bounded`
#[unsafe(no_mangle)]
pub extern "C" fn pt_image_bounded(
    image: Handle<ImageKind>,
    most_instructions: u32,
    most_depth: u32,
    instructions: Out<'_, u32>,
    depth: Out<'_, u32>,
) -> c_int {
    failure::code(|| {
        let facts = image.get()?.bounded(Bounds {
            instructions: most_instructions,
            call_depth: most_depth,
        })?;
        instructions.put(facts.longest_path.unwrap_or(0));
        depth.put(facts.call_depth.unwrap_or(0));
        Ok(())
    })
}

/// `pt_image_free`
#[unsafe(no_mangle)]
pub extern "C" fn pt_image_free(image: Handle<ImageKind>) -> c_int {
    failure::code(|| image.take().map(drop))
}
