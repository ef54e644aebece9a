//! `-S`: machine code beside the lines that it was made of.

use std::collections::BTreeMap;
use std::fmt::Write;

use postern_ecode::{Linked, Section};
use postern_image::ImageFile;
use postern_verifier::window::SLOT_SIZE;

use super::judged::Source;
use super::report;
use crate::output::Failure;
use postern_toolchain::disassembly;

/// All functions of all sources.
pub fn of(sources: &[Source], linked: &Linked) -> Result<String, Failure> {
    let image = ImageFile::parse(&linked.file).map_err(|e| Failure::unusable(e.to_string()))?;
    let text = image.mapped_text();
    let base = image.layout().text;
    let names = names(sources, linked, &image);
    let mut out = String::new();
    for (number, source) in sources.iter().enumerate() {
        let Ok(unit) = &source.result else { continue };
        let lines: Vec<&str> = source.text.lines().collect();
        let of_line: BTreeMap<u32, u32> = unit.lines.iter().copied().collect();
        let mut functions: Vec<_> = unit
            .symbols
            .iter()
            .filter(|s| s.section == Section::Text)
            .collect();
        functions.sort_by_key(|symbol| symbol.offset);
        if sources.len() > 1 {
            let _ = writeln!(out, "# {}\n", source.path.display());
        }
        for function in functions {
            let c = report::prototype(&function.name, &function.signature);
            let c = c.map_or(String::new(), |c| format!("\t\t# {c}"));
            let _ = writeln!(out, "{}:{c}", function.name);
            let start = linked.offset(number, function.offset);
            let end = (start + function.size - base) as usize;
            let body = text.get(..end).unwrap_or(&text);
            let instructions = disassembly::around(body, base, start, start, 0, body.len());
            for instruction in instructions {
                if let Some(line) = of_line.get(&(instruction.offset - start + function.offset)) {
                    let shown = lines.get(*line as usize - 1).unwrap_or(&"");
                    let clean: String = shown
                        .chars()
                        .map(|c| if c.is_control() && c != '\t' { '?' } else { c })
                        .collect();
                    let _ = writeln!(out, "# {line}: {clean}");
                }
                let _ = writeln!(
                    out,
                    "{}{}",
                    instruction.columns(),
                    target(&instruction.text, &names)
                );
            }
            out.push('\n');
        }
    }
    Ok(out)
}

/// The functions and services that code may call, by their window offsets.
fn names<'a>(
    sources: &'a [Source],
    linked: &Linked,
    image: &ImageFile<'a>,
) -> BTreeMap<u32, String> {
    let mut names = BTreeMap::new();
    for (number, source) in sources.iter().enumerate() {
        let symbols = source.result.iter().flat_map(|unit| &unit.symbols);
        for symbol in symbols.filter(|symbol| symbol.section == Section::Text) {
            names.insert(linked.offset(number, symbol.offset), symbol.name.clone());
        }
    }
    let gates = image.layout().gates;
    for (number, import) in (0..).zip(image.imports()) {
        names.insert(gates + number * SLOT_SIZE, import.name.to_string());
    }
    names
}

/// The name of what a direct call or jump goes to. Direct calls skip the landing pad at the
/// beginning.
fn target(text: &str, names: &BTreeMap<u32, String>) -> String {
    let offset = text
        .split_once(" 0x")
        .filter(|(word, _)| *word == "call" || *word == "jmp")
        .and_then(|(_, digits)| u32::from_str_radix(digits, 16).ok());
    let pad = postern_verifier::window::PAD.len() as u32;
    let name = offset.and_then(|at| names.get(&at).or_else(|| names.get(&at.checked_sub(pad)?)));
    name.map_or(String::new(), |name| format!(" <{name}>"))
}
