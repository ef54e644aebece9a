//! The image whose handlers are measured.

use crate::machine_code;
use postern::Image;
use postern_verifier::window;

/// The service that `tells` calls with its arguments.
pub const TOLD: &str = "told";

/// `on`, a handler that counts its calls, `calls`, how many there were, `tells`, a handler that
/// calls the service, and `fills`, one that fills a page with ones.
pub fn image() -> Result<Image, String> {
    const CALLS: usize = 64;
    const TELLS: usize = 128;
    const FILLS: usize = 192;
    /// Of the page that `fills` has.
    const PAGE: u32 = 64;
    let at = window::text_start(2);
    let text = |data: u32| {
        let mut text = vec![0x65, 0x67, 0x48, 0xff, 0x04, 0x25]; // incq %gs:data
        text.extend(data.to_le_bytes());
        text.push(0xc3);
        text.resize(CALLS, window::FILL);
        text.extend([0x65, 0x67, 0x48, 0x8b, 0x04, 0x25]); // mov %gs:data, %rax
        text.extend(data.to_le_bytes());
        text.push(0xc3);
        text.resize(TELLS, window::FILL);
        let next = at + TELLS as u32 + 5;
        text.push(0xe8); // call the slot
        text.extend(window::slot(0).wrapping_sub(next).to_le_bytes());
        text.push(0xc3);
        text.resize(FILLS, window::FILL);
        text.extend([0x89, 0xf7, 0xbe]); // mov %esi, %edi; mov $page, %esi
        text.extend((data + PAGE).to_le_bytes());
        let next = at + FILLS as u32 + 12;
        text.push(0xe8); // call the other slot
        text.extend(window::slot(1).wrapping_sub(next).to_le_bytes());
        text.push(0xc3);
        text
    };
    let exports = [
        ("on", 0, "v(IL)"),
        ("calls", CALLS, "L()"),
        ("tells", TELLS, "v(IL)"),
        ("fills", FILLS, "v(IL)"),
    ];
    let imports = [(TOLD, "v(IL)"), ("__postern_page_fill", "i(II)")];
    let mut data = vec![0; PAGE as usize];
    data.resize(PAGE as usize + 4096, 1);
    Ok(machine_code::image(text, data, &imports, &exports)?.0)
}
