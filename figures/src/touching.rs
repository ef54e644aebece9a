//! An extension that does nothing but write to pages.

use postern::Image;
use postern_image::{ImageBuilder, MemoryLayout};
use postern_verifier::window::PAGE;

/// `i(i) touch` writes one word to each of so many pages of data and returns its argument plus one.
pub fn touching(pages: u32) -> Result<(Image, MemoryLayout), String> {
    let text = |data: u32| {
        let mut text = Vec::new();
        for page in 0..pages {
            text.extend([0x65, 0x67, 0xc7, 0x04, 0x25]); // movl $1, %gs:data + page
            text.extend((data + page * PAGE).to_le_bytes());
            text.extend(1u32.to_le_bytes());
        }
        text.extend([0x8d, 0x47, 0x01, 0xc3]); // lea 1(%rdi), %eax; ret
        text
    };
    let mut builder = ImageBuilder::new(text(0));
    builder.data(vec![7; (pages * PAGE) as usize], 0);
    let signature = "i(i)".parse().map_err(|e| format!("{e}"))?;
    builder.export("touch", 0, Some(signature));
    let layout = builder.layout().map_err(|e| e.to_string())?;
    builder.text(text(layout.data));
    let file = builder.build().map_err(|e| e.to_string())?;
    let image = Image::from_bytes(&file).map_err(|e| e.to_string())?;
    Ok((image, layout))
}
