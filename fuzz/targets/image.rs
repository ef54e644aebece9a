//! Any bytes as an extension file: an image that keeps the parser's promises, or a typed error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern_image::{ImageFile, ImageTables, debug};
use postern_verifier::{Profile, Starts, buffer_len, verify};

fuzz_target!(|bytes: &[u8]| {
    let image = match ImageFile::parse(bytes) {
        Ok(image) => image,
        Err(error) => {
            // The message must hold together, too.
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let l = image.layout();
    let order = [
        l.gates,
        l.text,
        l.text_end,
        l.stack,
        l.data,
        l.data_file_end,
        l.heap_start,
        0xffff_0000,
    ];
    assert!(order.is_sorted(), "{l:?}");
    assert!(
        l.stack.is_multiple_of(l.stack_size) && l.stack + l.stack_size == l.data,
        "{l:?}"
    );
    let parts = [
        (Some(image.text()), l.text_end),
        (image.rodata(), l.stack),
        (image.data(), l.heap_start),
    ];
    for (part, limit) in parts
        .into_iter()
        .filter_map(|(part, limit)| Some((part?, limit)))
    {
        assert!(part.bytes.len() as u64 <= u64::from(part.memory_size));
        assert!(u64::from(part.offset) + u64::from(part.memory_size) <= u64::from(limit));
    }
    if let Some(variables) = image.thread_locals() {
        assert!(variables.bytes.len() <= variables.memory_size as usize);
        assert!(variables.size() < l.stack_size / 4, "{variables:?}");
        assert_eq!(variables.initial(1).len(), variables.reserved() as usize);
    }
    let tables = ImageTables::from(&image);
    for export in image.exports() {
        assert_eq!(image.export(export.name), Some(export));
        assert_eq!(
            tables.export(export.name).map(|e| e.offset),
            Some(export.offset)
        );
        debug::describe(bytes, export.offset);
    }

    let text = image.mapped_text();
    let mut buffer = vec![0; buffer_len(text.len())];
    match verify(&text, &image.verifier_layout(), Profile::User, &mut buffer) {
        Ok(_) => assert!(Starts::new(&buffer, text.len(), l.text).contains(l.text)),
        Err(violation) => {
            assert!(
                (l.text..l.text_end).contains(&violation.offset),
                "{violation}"
            );
            debug::describe(bytes, violation.offset);
        }
    }
});
