//! Constant expressions, and objects whose values are known before the program runs.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec;

use super::Parser;
use crate::building::Reference;
use crate::diagnostics::Rule;
use crate::float;
use crate::ir::sym;
use crate::tree::{Expression, Initializer, NodeId};
use crate::types::*;
use postern_verifier::relocation::Section;

impl Parser<'_> {
    /// An integer constant expression; reports what is none.
    pub(crate) fn constant_expression(&mut self) -> Option<i64> {
        let n = self.conditional_expression();
        let node = *self.tree.get(n);
        if let Expression::Integer(value) = node.expression
            && !self.types.is_pointer(node.ty)
        {
            return Some(value as i64);
        }
        if node.expression != Expression::Error && node.ty != ERROR {
            self.not_constant(node.at);
        }
        None
    }

    pub(crate) fn not_constant(&mut self, at: u32) {
        let message = "this must be an integer constant".into();
        let help = "only literals, enumeration constants and sizeof are";
        self.error(Rule::NotConstant, at, message, help);
    }

    /// The symbol and offset that an address constant is made of.
    fn address_constant(&self, n: NodeId) -> Option<(u32, i64)> {
        let node = self.tree.get(n);
        match node.expression {
            Expression::Integer(value) => Some((sym::NONE, value as i64)),
            Expression::Address(object) => self.place_constant(object),
            Expression::Cast(from) => {
                let ty = self.tree.get(from).ty;
                let whole = self.types.size(node.ty) == 8 && self.types.size(ty) == 8;
                (whole && !self.types.is_float(ty))
                    .then(|| self.address_constant(from))
                    .flatten()
            }
            Expression::PointerAdd {
                pointer,
                index,
                size,
            } => {
                let (symbol, offset) = self.address_constant(pointer)?;
                let index = self.constant_of(index)? as i64;
                Some((symbol, offset.wrapping_add(index.wrapping_mul(size.into()))))
            }
            Expression::Text(_) => self.place_constant(n),
            _ => None,
        }
    }

    fn place_constant(&self, n: NodeId) -> Option<(u32, i64)> {
        match self.tree.get(n).expression {
            Expression::Global(global) => Some((sym::GLOBAL + global, 0)),
            Expression::Text(start) => Some((sym::RODATA, start.into())),
            Expression::Member { of, offset, .. } => self
                .place_constant(of)
                .map(|(symbol, start)| (symbol, start + i64::from(offset))),
            Expression::Deref(pointer) => self.address_constant(pointer),
            _ => None,
        }
    }

    /// Gives a global its place and the values read since there were `first`, which are forgotten.
    pub(crate) fn place_initialized(&mut self, global: u32, ty: Type, first: usize, at: u32) {
        self.place_values(global, ty, first, at);
        self.values.truncate(first);
    }

    fn place_values(&mut self, global: u32, ty: Type, first: usize, at: u32) {
        if ty == ERROR || self.panic || !self.types.is_complete(ty) {
            return;
        }
        let info = *self.types.get(ty);
        let constant = self.is_constant_object(ty);
        if self.unit.data.len() + self.unit.rodata.len() + info.size as usize
            > self.limits.data as usize
        {
            self.limit(at, "bytes of data", "data");
            return;
        }
        let mut bytes = vec![0u8; info.size as usize];
        let mut references: BTreeMap<u32, (u32, i64)> = BTreeMap::new();
        let mut behind = 0; // everything so far lies before it
        for index in first..self.values.len() {
            let init = self.values[index];
            let node = *self.tree.get(init.node);
            if init.bits.any() {
                self.place_bits(&mut bytes, &init);
                continue;
            }
            let size = self.types.size(init.ty) as usize;
            let Some(target) = bytes.get_mut(init.offset as usize..init.offset as usize + size)
            else {
                continue;
            };
            let end = init.offset + size as u32;
            if init.offset < behind {
                // It takes the place of what was said before.
                while let Some((&at, _)) = references.range(init.offset..end).next() {
                    references.remove(&at);
                }
            }
            behind = behind.max(end);
            if let (TypeKind::Array, Expression::Text(start)) =
                (self.types.kind(init.ty), node.expression)
            {
                let start = start as usize;
                let length = (self.types.size(node.ty) as usize).min(size);
                target.fill(0);
                target[..length].copy_from_slice(&self.unit.rodata[start..start + length]);
                continue;
            }
            match node.expression {
                Expression::Float(bits) if size == 4 => {
                    target.copy_from_slice(&float::single(bits).to_le_bytes())
                }
                Expression::Integer(bits) | Expression::Float(bits) => {
                    target.copy_from_slice(&bits.to_le_bytes()[..size])
                }
                Expression::Error => {}
                _ => match self.address_constant(init.node) {
                    Some((sym::NONE, value)) if size == 8 => {
                        target.copy_from_slice(&value.to_le_bytes())
                    }
                    Some((symbol, addend)) if size == 8 => {
                        references.insert(init.offset, (symbol, addend));
                    }
                    _ if node.ty == ERROR => {}
                    _ => {
                        let message = format!(
                            "this value of type `{}` is not known at compile time",
                            self.spell(node.ty.plain())
                        );
                        self.error(Rule::NotConstant, node.at, message, "set it in a function");
                    }
                },
            }
        }
        let zero = references.is_empty() && bytes.iter().all(|byte| *byte == 0);
        if zero && !constant {
            self.place_zeroed(global, ty, at);
            return;
        }
        let align = info
            .align
            .max(self.unit.globals[global as usize].align)
            .max(1);
        let section = if constant {
            &mut self.unit.rodata
        } else {
            &mut self.unit.data
        };
        let start = section.len().next_multiple_of(align as usize);
        section.resize(start, 0);
        section.extend_from_slice(&bytes);
        let list = if constant {
            &mut self.unit.rodata_references
        } else {
            &mut self.unit.data_references
        };
        list.extend(
            references
                .into_iter()
                .map(|(at, (symbol, addend))| Reference {
                    at: at + start as u32,
                    symbol,
                    addend,
                }),
        );
        let entry = &mut self.unit.globals[global as usize];
        entry.section = Some(if constant {
            Section::Rodata
        } else {
            Section::Data
        });
        entry.offset = start as u32;
        entry.size = info.size;
    }

    /// Puts the value of a bit-field among the bytes of an object.
    fn place_bits(&mut self, bytes: &mut [u8], init: &Initializer) {
        let node = *self.tree.get(init.node);
        let Expression::Integer(value) = node.expression else {
            if node.ty != ERROR {
                self.not_constant(node.at);
            }
            return;
        };
        for bit in 0..u32::from(init.bits.width) {
            let at = init.offset * 8 + u32::from(init.bits.first) + bit;
            if let Some(byte) = bytes.get_mut(at as usize / 8) {
                *byte &= !(1 << (at % 8));
                *byte |= ((value >> bit & 1) as u8) << (at % 8);
            }
        }
    }

    /// Whether nothing in an object of the type can be written.
    fn is_constant_object(&self, ty: Type) -> bool {
        ty.is_const() && !ty.is_volatile()
            || self.types.kind(ty) == TypeKind::Array
                && self.is_constant_object(self.types.get(ty).of)
    }

    pub(crate) fn place_zeroed(&mut self, global: u32, ty: Type, at: u32) {
        let info = *self.types.get(ty);
        let align = info
            .align
            .max(self.unit.globals[global as usize].align)
            .max(1);
        let start = self.unit.bss.next_multiple_of(align.into());
        let end = start + u64::from(info.size);
        if end > self.limits.bss.into() {
            self.limit(at, "bytes of zeroed data", "bss");
            return;
        }
        self.unit.bss = end;
        let entry = &mut self.unit.globals[global as usize];
        entry.section = Some(Section::Bss);
        entry.offset = start as u32;
        entry.size = info.size;
    }
}
