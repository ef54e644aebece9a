//! Names and source lines of a file's functions, for those who look at it: `perf`, GDB, people.

use alloc::vec::Vec;

use postern_image::debug::{Function, LineRow, LineTable, Listing};
use postern_image::object::Object;
use postern_verifier::relocation::Section;

use crate::image::Linked;

impl Linked {
    /// Adds the names of all functions and their lines to the file, which was made of `units`: so
    /// faults, `perf` and GDB tell them. The units are of these sources, in this order.
    pub fn name_lines(&mut self, units: &[Object], sources: &[&str]) {
        let (mut functions, mut lines) = (Vec::<Function<'_>>::new(), LineTable::default());
        for (number, (unit, source)) in units.iter().zip(sources).enumerate() {
            let at = |position: u32| self.offset(number, position);
            let inside = unit.symbols.iter().filter(|s| s.section == Section::Text);
            functions.extend(inside.map(|symbol| Function {
                start: at(symbol.offset),
                end: at(symbol.offset).saturating_add(symbol.size),
                name: &symbol.name,
            }));
            let file = lines.files.len() as u32;
            lines.files.push((*source).into());
            lines
                .rows
                .extend(unit.lines.iter().map(|&(position, line)| LineRow {
                    offset: at(position),
                    file,
                    line,
                }));
        }
        functions.sort_unstable();
        // The order of the text, if functions have one of their own.
        lines.rows.sort_by_key(|row| row.offset);
        let bounds = functions
            .iter()
            .map(|function| (function.start, function.end));
        let text = bounds.fold((u32::MAX, 0), |text, (start, end)| {
            (text.0.min(start), text.1.max(end))
        });
        if text.0 < text.1 {
            let listing = Listing {
                name: sources.first().copied().unwrap_or_default(),
                base: 0,
                text,
                functions: &functions,
                lines: &lines,
            };
            listing.append(&mut self.file);
        }
    }
}
