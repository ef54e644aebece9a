//! The file of an image that is loaded, which the user names: the device keeps no names and lines.

use std::path::Path;

use postern_kernel::{Device, Id, Image};

use crate::output::Failure;

/// The image that somebody says is the one that is loaded under the number; another size is
/// another image.
pub fn loaded(device: &Device, id: Id, path: Option<&Path>) -> Result<Option<Image>, Failure> {
    let Some(path) = path else {
        return Ok(None);
    };
    let image = Image::read(path)?;
    let (here, there) = (image.bytes().len() as u64, device.statistics(id)?.size);
    match here == there {
        true => Ok(Some(image)),
        false => Err(Failure::unusable(format!(
            "{} has {here} bytes, and what is loaded as extension {id} has {there}: it is another image",
            path.display()
        ))),
    }
}
