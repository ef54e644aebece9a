//! Makes an extension of a unit, so that tests can run it.
#![allow(dead_code, clippy::undocumented_unsafe_blocks)]

use postern::Image;
use postern_ecode::{Places, Section, Unit};
use postern_image::ImageBuilder;
use postern_verifier::window;

/// The extension file of a unit: its imports are services, its exported functions exports.
pub fn file(unit: &Unit) -> Vec<u8> {
    let mut builder = ImageBuilder::new(unit.text.clone());
    builder.stack_log2(22);
    for import in &unit.imports {
        builder.import(&*import.name, import.signature.parse().ok());
    }
    builder.rodata(unit.rodata.clone());
    let bss_at = unit.data.len().next_multiple_of(16);
    let mut data = unit.data.clone();
    data.resize(bss_at, 0);
    builder.data(data.clone(), unit.bss.into());
    let layout = builder.layout().unwrap();
    let places = Places {
        text: layout.text,
        rodata: layout.text_end,
        data: layout.data,
        bss: layout.data + bss_at as u32,
    };
    let slots: Vec<&str> = unit.imports.iter().map(|import| &*import.name).collect();
    let placed = unit
        .place(&places, |import| {
            slots
                .iter()
                .position(|name| *name == import.name)
                .map(|k| window::slot(k as u32))
        })
        .unwrap();
    builder.text(placed.text).rodata(placed.rodata);
    data[..placed.data.len()].copy_from_slice(&placed.data);
    builder.data(data, unit.bss.into());
    for symbol in &unit.symbols {
        if symbol.exported && symbol.section == Section::Text {
            builder.export(&*symbol.name, symbol.offset, symbol.signature.parse().ok());
        }
    }
    builder.build().unwrap()
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
pub mod differential;
pub mod generate;
pub mod torture;
