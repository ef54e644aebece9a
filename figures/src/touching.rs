//! Extensions that do nothing but touch pages.

use crate::machine_code;
use postern::Image;
use postern_image::MemoryLayout;
use postern_verifier::window::{FILL, PAGE};

const TOUCH: [(&str, usize, &str); 1] = [("touch", 0, "i(i)")];

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
    let data = vec![7; (pages * PAGE) as usize];
    machine_code::image(text, data, &[], &TOUCH)
}

/// `i(i) touch` runs one jump in each of so many pages of text and returns its argument plus one.
pub fn going_through(pages: u32) -> Result<Image, String> {
    // Each in another set of the caches.
    let place = |page: u32| (page * PAGE + page % (PAGE / 64) * 64) as usize;
    let end = place(pages);
    let mut text = vec![FILL; end];
    for page in 0..pages {
        let (from, to) = (place(page), place(page + 1));
        text[from] = 0xe9; // jmp to the next one
        let distance = (to - from - 5) as u32;
        text[from + 1..from + 5].copy_from_slice(&distance.to_le_bytes());
    }
    text.extend([0x8d, 0x47, 0x01, 0xc3]); // lea 1(%rdi), %eax; ret
    Ok(machine_code::image(|_| text.clone(), vec![0; 64], &[], &TOUCH)?.0)
}
