//! Images: `pt_image_load`, `pt_image_load_limited`, `pt_image_from_memory`, `pt_image_unref`.

use crate::boundary::{Source, Text};
use crate::failure;
use crate::handle::{Handle, kind};
use postern::Image;
use std::ffi::{OsStr, c_int};
use std::os::unix::ffi::OsStrExt;

kind!(ImageKind: Image, b'I', "pt_image");

/// `pt_image_load`
#[unsafe(no_mangle)]
pub extern "C" fn pt_image_load(path: Text) -> Handle<ImageKind> {
    failure::or(Handle::NULL, || {
        let path = OsStr::from_bytes(path.bytes("path")?);
        Ok(Handle::make(Image::load(path)?))
    })
}

/// `pt_image_load_limited`
#[unsafe(no_mangle)]
pub extern "C" fn pt_image_load_limited(path: Text, most: u64) -> Handle<ImageKind> {
    failure::or(Handle::NULL, || {
        let path = OsStr::from_bytes(path.bytes("path")?);
        Ok(Handle::make(Image::load_limited(path, most)?))
    })
}

/// `pt_image_from_memory`
#[unsafe(no_mangle)]
pub extern "C" fn pt_image_from_memory(bytes: Source, len: usize) -> Handle<ImageKind> {
    failure::or(Handle::NULL, || {
        Ok(Handle::make(Image::from_bytes(bytes.get(len, "image")?)?))
    })
}

/// `pt_image_unref`
#[unsafe(no_mangle)]
pub extern "C" fn pt_image_unref(image: Handle<ImageKind>) -> c_int {
    failure::code(|| image.take().map(drop))
}
