//! A plugin's machine code, with the lines that it was made of.

use crate::plugin::Plugin;
use crate::source::PluginKind;
use postern_image::ImageFile;
use postern_toolchain::disassembly;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Whether an instruction is what assemblers put where nothing runs: traps, halts, and such as do
/// nothing.
fn is_fill(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [0xcc | 0xf4 | 0x90] | [0, 0] | [0x0f, 0x1f, ..] | [0x66, 0x90] | [0x66, 0x0f, 0x1f, ..]
    )
}

/// The code of a plugin, if it is kept: of E-code with its lines, of an image with its exports. It
/// lies at other offsets than in the namespace, and calls of other plugins go to gates, because it
/// is linked alone.
pub fn of(plugin: &Plugin) -> Option<String> {
    let artifact = &plugin.artifact;
    let image = ImageFile::parse(&artifact.file).ok()?;
    let (text, base) = (image.mapped_text(), image.layout().text);
    let shown = match plugin.kind {
        PluginKind::Ecode | PluginKind::Native => plugin.source.as_deref(),
        _ => None,
    };
    let lines: Vec<&str> = shown.unwrap_or_default().lines().collect();
    let of_line: BTreeMap<u32, u32> = artifact.lines.iter().copied().collect();
    let names: BTreeMap<u32, &str> = match artifact.symbols.is_empty() {
        false => artifact
            .symbols
            .iter()
            .map(|(at, name)| (*at, &**name))
            .collect(),
        true => image.exports().iter().map(|e| (e.offset, e.name)).collect(),
    };
    let mut out = String::new();
    // Between functions, and to the end of a page, nobody comes by.
    let mut fill = String::new();
    let mut inside = false;
    for instruction in disassembly::around(&text, base, base, base, 0, usize::MAX - 1) {
        let name = names.get(&instruction.offset);
        if name.is_none() && is_fill(&instruction.bytes) {
            let _ = writeln!(fill, "{}", instruction.columns());
            continue;
        }
        // What goes on behind it is of the same function.
        if name.is_none() && inside {
            out += &fill;
        }
        fill.clear();
        inside = true;
        if let Some(name) = name {
            let _ = writeln!(out, "{name}:");
        }
        if let Some(line) = of_line.get(&instruction.offset) {
            let shown = lines.get((*line as usize).wrapping_sub(1)).unwrap_or(&"");
            let clean = shown
                .chars()
                .map(|c| if c.is_control() && c != '\t' { '?' } else { c });
            let _ = writeln!(out, "# {line}: {}", clean.collect::<String>());
        }
        let _ = writeln!(out, "{}", instruction.columns());
    }
    Some(out)
}
