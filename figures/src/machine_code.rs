//! Images whose machine code is written here.

use postern::Image;
use postern_image::{ImageBuilder, MemoryLayout};

/// An image of `text`, which is told the offset of its `data`; and where its parts lie. Imports
/// have names and types; exports names, places in the text, and types.
///
/// # Errors
/// The types are none, or the image is refused.
pub fn image(
    text: impl Fn(u32) -> Vec<u8>,
    data: Vec<u8>,
    imports: &[(&str, &str)],
    exports: &[(&str, usize, &str)],
) -> Result<(Image, MemoryLayout), String> {
    let signature = |types: &str| types.parse().map_err(|error| format!("{types}: {error}"));
    let mut builder = ImageBuilder::new(text(0));
    builder.data(data, 0);
    for &(name, types) in imports {
        builder.import(name, Some(signature(types)?));
    }
    for &(name, place, types) in exports {
        builder.export(name, place as u32, Some(signature(types)?));
    }
    let layout = builder.layout().map_err(|error| error.to_string())?;
    builder.text(text(layout.data));
    let file = builder.build().map_err(|error| error.to_string())?;
    let image = Image::from_bytes(&file).map_err(|error| error.to_string())?;
    Ok((image, layout))
}
