//! Any bytes as a file with symbols and debug information: names and lines, or none, soon and in
//! little memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern_image::debug::{Lines, Symbols, describe};

fuzz_target!(|bytes: &[u8]| {
    let symbols = Symbols::parse(bytes);
    let mut last = 0;
    for function in symbols.iter() {
        assert!(last <= function.start && function.start < function.end);
        last = function.start;
    }
    // The places of the seeds' code, and the first functions wherever they are.
    let places = (0x1_1000..0x1_1080)
        .step_by(9)
        .chain(symbols.iter().take(4).map(|f| f.start));
    let places: Vec<u32> = places.collect();
    if let Some(lines) = Lines::parse(bytes) {
        for &place in &places {
            for frame in lines.at(place) {
                assert!(!frame.to_string().contains(|c: char| c.is_control()));
            }
        }
    }
    assert!(
        places
            .iter()
            .all(|&place| !describe(bytes, place).is_empty())
    );
});
