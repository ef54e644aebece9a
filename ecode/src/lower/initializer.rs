//! First values of variables and compound literals: which part gets which value is the parser's
//! knowledge.

use super::{Lowering, MemoryOperand};
use crate::ir::{Inst, NOP, Op, sym};
use crate::tree::{Initializer, LocalId};
use crate::types::TypeKind;

impl Lowering<'_> {
    /// Gives a local its first values: zeros where nothing is said.
    pub(crate) fn initialize(&mut self, local: LocalId, first: u32, count: u32) {
        let tree = self.tree;
        let inits = tree.initializers(first, count);
        let ty = tree.locals[local as usize].ty;
        let addr = MemoryOperand::symbol(sym::FRAME + self.place(local));
        let size = self.types.size(ty);
        // Parts that get values twice, or not in their order, count once at most.
        let (mut covered, mut end) = (0, 0);
        for init in inits.iter().filter(|init| !init.bits.any()) {
            if init.offset >= end {
                let bytes = self.written(init);
                covered += bytes;
                end = init.offset + bytes;
            }
        }
        if covered < size {
            let pointer = self.pointer(addr);
            let a = self.register(pointer);
            self.code.values.clobber();
            self.code.push(Inst {
                op: Op::Zero,
                a,
                imm: size.into(),
                ..NOP
            });
        }
        for init in inits {
            let node = *self.tree.get(init.node);
            let place = MemoryOperand {
                bits: init.bits,
                ..addr.plus(init.offset.into())
            };
            self.code.at = node.at;
            if self.types.is_struct(init.ty) {
                let from = self.address(init.node);
                self.copy_bytes(place, from, self.types.size(init.ty));
            } else if self.types.kind(init.ty) == TypeKind::Array {
                let from = self.address(init.node); // a string
                self.copy_bytes(place, from, self.written(init));
            } else {
                let value = self.lower(init.node);
                self.store(place, init.ty, value);
            }
        }
    }

    /// How many bytes the value writes: a string may be shorter than its array.
    fn written(&self, init: &Initializer) -> u32 {
        let size = self.types.size(init.ty);
        match self.types.kind(init.ty) {
            TypeKind::Array => size.min(self.types.size(self.tree.get(init.node).ty)),
            _ => size,
        }
    }
}
