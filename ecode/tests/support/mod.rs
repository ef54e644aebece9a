//! Makes an extension of a unit, so that tests can run it.
#![allow(dead_code, clippy::undocumented_unsafe_blocks)]

use postern::Image;
use postern_ecode::Object;

/// The extension file of a unit: its imports are services, its exported functions exports.
pub fn file(unit: &Object) -> Vec<u8> {
    postern_ecode::link(std::slice::from_ref(unit), 22)
        .unwrap()
        .file
}

/// The image of a source.
pub fn image(source: &str) -> Image {
    let unit = match postern_ecode::compile(source) {
        Ok(unit) => unit,
        Err(errors) => panic!("{errors}"),
    };
    match Image::from_bytes(&file(&unit)) {
        Ok(image) => image,
        Err(error) => {
            std::fs::write("/tmp/refused.bin", &unit.text).ok();
            panic!("the verifier refused what E-code made: {error}")
        }
    }
}
/// The next of an example's arguments, all of which are numbers, or what is meant without it.
pub fn number(args: &mut impl Iterator<Item = String>, otherwise: u64, usage: &str) -> u64 {
    match args.next().map(|word| word.parse()) {
        None => otherwise,
        Some(Ok(number)) => number,
        Some(Err(_)) => {
            eprintln!("usage: {usage}");
            std::process::exit(2)
        }
    }
}

pub mod csmith;
pub mod differential;
pub mod generate;
pub mod kernels;
pub mod torture;
