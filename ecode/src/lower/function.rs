//! Functions: where parameters and locals are, how a function begins and ends.

use super::{Lowering, MemoryOperand, Value};
use crate::ir::{Inst, NOP, Op, Scalar, VReg, sym};
use crate::tree::{Expression, Function, LocalId, NodeId};
use crate::types::Type;

impl Lowering<'_> {
    /// Makes the code of the function whose tree this is.
    pub fn function(&mut self, function: &Function) {
        self.code.reset(self.limits.function, function.at);
        let labels = function.labels as usize;
        self.scratch.reset(self.tree.locals.len(), labels);
        self.result = function.result;
        self.allocates = function.allocates;
        self.code.dynamic = function.dynamic;
        if function.variadic {
            let slot = self.code.slot();
            let place = &mut self.code.slots[slot as usize];
            (place.size, place.align) = (176, 16);
            self.code.frame += 176;
            self.code.variadic = Some(slot);
        }
        self.parameters(function);
        self.body(function.body);
        if function.returns_zero {
            let zero = self.register(Value::Constant(0));
            let result = Inst {
                op: Op::Return,
                ty: Scalar::I32,
                a: zero,
                ..NOP
            };
            self.code.end(result, 0, 0);
        } else {
            self.end_with_nothing();
        }
    }

    fn parameters(&mut self, function: &Function) {
        if self.types.is_struct(self.result) {
            self.result_pointer = self.code.temp(false);
            self.code.params.push((self.result_pointer, Scalar::I64));
        }
        for local in 0..function.parameters {
            self.parameter(local);
        }
    }

    fn parameter(&mut self, local: LocalId) {
        let declared = self.tree.locals[local as usize];
        let ty = declared.ty;
        if self.types.is_struct(ty) {
            let v = self.code.variable(false);
            self.code.params.push((v, Scalar::I64));
            self.scratch.places[local as usize] = v;
            return;
        }
        let register = self.register_type(ty);
        let v = self.code.variable(register.is_float());
        self.code.params.push((v, register));
        if self.types.is_integer(ty) && self.types.size(ty) < 4 {
            // Callers need not have extended it.
            let ty = self.memory_type(ty);
            self.code.push(Inst {
                op: Op::Extend,
                ty,
                dst: v,
                a: v,
                ..NOP
            });
        }
        self.scratch.places[local as usize] = if declared.memory {
            let slot = self.slot_of(ty, declared.at);
            self.store(
                MemoryOperand::symbol(sym::FRAME + slot),
                ty,
                Value::Register(v),
            );
            slot
        } else {
            v
        };
    }

    /// Gives a local of a block its place.
    pub(crate) fn declare(&mut self, local: LocalId) {
        let declared = self.tree.locals[local as usize];
        self.scratch.places[local as usize] = if declared.memory {
            let slot = self.slot_of(declared.ty, declared.at);
            let place = &mut self.code.slots[slot as usize];
            place.align = place.align.max(declared.align);
            slot
        } else {
            let float = self.types.is_float(declared.ty);
            self.code.variable(float)
        };
    }

    /// Where a local is: its register, or its slot of the frame.
    #[inline]
    pub(crate) fn place(&self, local: LocalId) -> u32 {
        self.scratch.places[local as usize]
    }

    /// The register of an lvalue that is one.
    pub(crate) fn variable(&self, n: NodeId) -> Option<VReg> {
        match self.tree.get(n).expression {
            Expression::Register(local) => Some(self.place(local)),
            _ => None,
        }
    }

    /// A slot of the frame for a value of this type; it stays empty if the frame gets too large.
    pub(crate) fn slot_of(&mut self, ty: Type, at: u32) -> u32 {
        let slot = self.code.slot();
        let info = *self.types.get(ty);
        if self.code.frame + u64::from(info.size) > u64::from(self.limits.frame) {
            self.scratch.exceeded.push(at);
            return slot;
        }
        self.code.frame += u64::from(info.size);
        let place = &mut self.code.slots[slot as usize];
        (place.size, place.align) = (info.size, info.align.max(1));
        slot
    }

    /// Ends the block with a return without a value.
    pub(crate) fn end_with_nothing(&mut self) {
        let nothing = Inst {
            op: Op::Return,
            ..NOP
        };
        self.code.end(nothing, 0, 0);
    }
}
