//! From the intermediate form of one function to text, and from all of them to a [`Object`].

use alloc::string::String;
use alloc::vec::Vec;

use crate::allocate::{Allocator, allocate};
use crate::building::{Building, global_of};
use crate::encode::encode;
use crate::ir::Code;
use crate::lex::File;
use crate::names::{Name, Names};
use crate::optimize::optimize;
use crate::types::*;
use postern_image::MAX_PARAMETERS;
use postern_image::object::{Import, Object, Symbol};
use postern_verifier::relocation::{Relocation, Section, Target, Width};
use postern_verifier::window::{FILL, PAD};
use postern_x86::ReferenceKind;

/// Makes machine code of a function in the intermediate form: position and size in the text, or
/// nothing if it has too many variables and branches.
pub(crate) fn generate(
    code: &mut Code,
    allocator: &mut Allocator,
    unit: &mut Building,
    liveness: u32,
) -> Option<(u32, u32)> {
    code.steps += (code.ins.len() + code.blocks.len()) as u64;
    optimize(code);
    allocate(code, allocator, liveness).then(|| encode(code, allocator, unit))
}

/// What a unit is made of when all of the source has been read without an error.
pub(crate) struct Finish<'a> {
    pub source: &'a [u8],
    pub files: &'a [File],
    pub names: &'a Names,
    pub types: &'a Types,
    pub unit: &'a mut Building,
    /// [`crate::Options::replaceable`].
    pub replaceable: bool,
    /// All calls are relocations, and go to where functions begin: there are no landing pads.
    pub relocated: bool,
}

impl Finish<'_> {
    /// The unit.
    pub fn finish(&mut self) -> Object {
        let mut unit = Object {
            text: self.unit.asm.take_code(),
            rodata: core::mem::take(&mut self.unit.rodata),
            data: core::mem::take(&mut self.unit.data),
            bss: self.unit.bss as u32,
            ..Object::default()
        };
        if unit.text.is_empty() {
            unit.text.push(FILL);
        }
        let mut imports: Vec<u32> = alloc::vec![u32::MAX; self.unit.globals.len()];
        let referenced = self.referenced();
        for (index, place) in imports.iter_mut().enumerate() {
            let global = self.unit.globals[index];
            let known = if global.label == Name(0) {
                global.name
            } else {
                global.label
            };
            let name = self.names.spelling(self.source, known);
            let name = String::from_utf8_lossy(name).into_owned();
            let signature = if global.function {
                self.signature(global.ty)
            } else {
                String::new()
            };
            let section = match global.section {
                Some(section) => section,
                None => {
                    if referenced[index] {
                        *place = unit.imports.len() as u32;
                        unit.imports.push(Import {
                            name,
                            function: global.function,
                            signature,
                        });
                    }
                    continue;
                }
            };
            if !global.in_block {
                let exported = !global.is_static;
                unit.symbols.push(Symbol {
                    name,
                    section,
                    offset: global.offset,
                    size: global.size,
                    exported,
                    signature,
                });
            }
        }
        self.relocations(&mut unit, &imports);
        self.lines(&mut unit);
        unit
    }

    /// Which globals code or data refers to: a call that never runs has left none.
    fn referenced(&self) -> Vec<bool> {
        let mut referenced = alloc::vec![false; self.unit.globals.len()];
        let code = self.unit.asm.references();
        let code = code.iter().map(|reference| reference.symbol.number());
        let data = [&self.unit.rodata_references, &self.unit.data_references];
        let data = data.into_iter().flatten().map(|reference| reference.symbol);
        for global in code.chain(data).filter_map(global_of) {
            referenced[global] = true;
        }
        referenced
    }

    /// Where a symbol number leads: target and what is added.
    fn target(&self, symbol: u32, imports: &[u32]) -> (Target, i64) {
        let Some(index) = global_of(symbol) else {
            return (Target::Section(Section::Rodata), 0);
        };
        let global = &self.unit.globals[index];
        match global.section {
            Some(section) => (Target::Section(section), global.offset.into()),
            None => (Target::Import(imports[index]), 0),
        }
    }

    fn relocations(&self, unit: &mut Object, imports: &[u32]) {
        for reference in self.unit.asm.references() {
            let symbol = reference.symbol.number();
            let (target, start) = self.target(symbol, imports);
            let at = reference.at;
            let relative = reference.kind == ReferenceKind::Relative;
            let fixed = || {
                let global = global_of(symbol).map(|i| &self.unit.globals[i]);
                !self.relocated && (!self.replaceable || global.is_none_or(|g| g.is_static))
            };
            if relative && target == Target::Section(Section::Text) && fixed() {
                // Within this text: known now, and behind the landing pad.
                let distance = start + PAD.len() as i64 - i64::from(at) - 4;
                unit.text[at as usize..at as usize + 4]
                    .copy_from_slice(&(distance as i32).to_le_bytes());
                continue;
            }
            let width = if relative {
                Width::Relative32
            } else {
                Width::Absolute32
            };
            let addend = start + i64::from(reference.addend);
            unit.relocations.push(Relocation {
                section: Section::Text,
                at,
                width,
                target,
                addend,
            });
        }
        for (section, list) in [
            (Section::Rodata, &self.unit.rodata_references),
            (Section::Data, &self.unit.data_references),
        ] {
            for reference in list {
                let (target, start) = self.target(reference.symbol, imports);
                let addend = start + reference.addend;
                let (at, width) = (reference.at, Width::Absolute64);
                unit.relocations.push(Relocation {
                    section,
                    at,
                    width,
                    target,
                    addend,
                });
            }
        }
    }

    /// Positions in the source as lines; both ascend within a function, so one walk finds them.
    fn lines(&self, unit: &mut Object) {
        let mut starts: Vec<u32> = Vec::new();
        starts.push(0);
        starts.extend(
            self.source
                .iter()
                .enumerate()
                .filter(|(_, b)| **b == b'\n')
                .map(|(at, _)| at as u32 + 1),
        );
        unit.lines.reserve(self.unit.lines.len());
        let mut line = 0usize;
        for &(position, at) in &self.unit.lines {
            // What a header says is on the line that includes it.
            let inside = |file: &&File| file.start > 0 && (file.start..file.end).contains(&at);
            let at = self
                .files
                .iter()
                .find(inside)
                .map_or(at, |file| file.included.unwrap_or(0));
            // Mostly the same line or one near it.
            while line + 1 < starts.len() && starts[line + 1] <= at {
                line += 1;
            }
            while starts[line] > at {
                line -= 1;
            }
            let number = line as u32 + 1;
            if unit.lines.last().is_none_or(|(_, last)| *last != number) {
                unit.lines.push((position, number));
            }
        }
    }

    /// The letters of a function's type, or nothing if they cannot say it.
    fn signature(&self, ty: Type) -> String {
        let mut text = String::new();
        let info = self.types.get(ty);
        if info.open && info.count > 0 || info.count as usize > MAX_PARAMETERS {
            return text;
        }
        let letter = |ty: Type| {
            let info = self.types.get(ty);
            Some(match (info.kind, info.size) {
                (TypeKind::Void, _) => 'v',
                (TypeKind::Bool, _) => 'z',
                (TypeKind::Unsigned, 1) => 'B',
                (TypeKind::Int, 1) => 'b',
                (TypeKind::Int, 2) => 'h',
                (TypeKind::Unsigned, 2) => 'H',
                (TypeKind::Int, 4) => 'i',
                (TypeKind::Unsigned, 4) => 'I',
                (TypeKind::Int, _) => 'l',
                (TypeKind::Unsigned, _) => 'L',
                (TypeKind::Float, 4) => 'f',
                (TypeKind::Float, _) => 'd',
                (TypeKind::Pointer, _) => 'p',
                _ => return None,
            })
        };
        let Some(result) = letter(info.of) else {
            return text;
        };
        text.push(result);
        text.push('(');
        for param in self.types.params(ty) {
            match letter(*param) {
                Some(letter) => text.push(letter),
                None => return String::new(),
            }
        }
        text.push(')');
        text
    }
}
