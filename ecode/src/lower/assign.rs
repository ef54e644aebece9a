//! Assignments, increments, and structures.

use super::{Lowering, MemoryOperand, Value};
use crate::float;
use crate::ir::{Inst, NOP, Op, Scalar, VReg, sym};
use crate::tree::{Arithmetic, Expression, Node, NodeId};
use crate::types::{Type, TypeKind};

impl Lowering<'_> {
    /// `to = from` of scalars; the value is the new one.
    pub(crate) fn assignment(&mut self, node: &Node, to: NodeId, from: NodeId) -> Value {
        if self.types.is_struct(node.ty) {
            self.assign_structure(node, to, from);
            return Value::Constant(0);
        }
        let target = self.node(to);
        if let Some(variable) = self.variable(to) {
            let fresh = self.code.ins.len();
            let value = self.lower(from);
            self.code.at = node.at;
            return self.write_register(variable, target.ty, value, fresh);
        }
        let size = self.types.size(node.ty);
        let integer = self.types.is_integer(node.ty) && self.types.kind(node.ty) != TypeKind::Bool;
        let source = if integer && size < 4 {
            self.narrowed(from, size)
        } else {
            from
        };
        let (addr, value) = if target.effects || self.tree.get(from).effects {
            let addr = self.address(to);
            let addr = self.protect_address(addr, source);
            (addr, self.lower(source))
        } else {
            let value = self.lower(source);
            (self.address(to), value)
        };
        self.code.at = node.at;
        self.store(addr, target.ty, value);
        if addr.bits.any() {
            return self.bits_value(value, target.ty, addr.bits);
        }
        if source == from {
            value
        } else {
            self.convert(value, self.tree.get(source).ty, node.ty)
        }
    }

    /// `to op= value`, where `combine` makes the new value of the old one and `value`.
    pub(crate) fn compound(
        &mut self,
        node: &Node,
        to: NodeId,
        value: NodeId,
        combine: impl FnOnce(&mut Self, Value, Value) -> Value,
    ) -> Value {
        let target = self.node(to);
        if let Some(variable) = self.variable(to) {
            let before = self.protect(
                Value::Register(variable),
                self.register_type(node.ty),
                value,
            );
            let right = self.lower(value);
            let old = match (before, self.code.constant(variable)) {
                (Value::Register(v), Some(constant)) if v == variable => Value::Constant(constant),
                (before, _) => before,
            };
            let fresh = self.code.ins.len();
            let new = combine(self, old, right);
            return self.write_register(variable, target.ty, new, fresh);
        }
        let addr = self.address(to);
        let addr = self.protect_address(addr, value);
        let right = self.lower(value);
        let old = self.load(addr, target.ty);
        let new = combine(self, old, right);
        self.code.at = node.at;
        self.store(addr, target.ty, new);
        self.as_stored(new, target.ty, addr)
    }

    /// What a place holds to which the value was written.
    fn as_stored(&mut self, value: Value, ty: Type, addr: MemoryOperand) -> Value {
        match addr.bits.any() {
            true => self.bits_value(value, ty, addr.bits),
            false => value,
        }
    }

    fn write_register(&mut self, variable: VReg, of: Type, value: Value, fresh: usize) -> Value {
        let ty = self.register_type(of);
        match value {
            Value::Register(v) => {
                self.code.assign(variable, v, ty, fresh);
                Value::Register(variable)
            }
            constant => {
                self.store_register(variable, constant, ty);
                constant
            }
        }
    }

    /// The new value of a compound assignment to a number of type `of`.
    pub(crate) fn combine(
        &mut self,
        kind: Arithmetic,
        computed: Type,
        of: Type,
        old: Value,
        right: Value,
    ) -> Value {
        let left = self.convert(old, of, computed);
        let value = self.operate(kind, computed, left, right);
        self.convert(value, computed, of)
    }

    /// A pointer plus an index times `size`, or minus if that is negative.
    pub(crate) fn move_pointer(&mut self, old: Value, index: Value, size: i32) -> Value {
        let distance = Value::Constant(i64::from(size).abs());
        let offset = self.arith(Op::Mul, Scalar::I32, index, distance);
        let op = if size < 0 { Op::Sub } else { Op::Add };
        self.arith(op, Scalar::I32, old, offset)
    }

    /// `++` and `--`; the result is the old value if `post`, else the new one.
    pub(crate) fn step(&mut self, node: &Node, to: NodeId, delta: i32, post: bool) -> Value {
        let target = self.node(to);
        let ty = self.register_type(node.ty);
        let variable = self.variable(to);
        let addr = match variable {
            Some(_) => None,
            None => Some(self.address(to)),
        };
        let old = match (addr, variable) {
            (Some(addr), _) => self.load(addr, target.ty),
            (None, Some(variable)) => match self.code.constant(variable) {
                Some(constant) => Value::Constant(constant),
                None if post => Value::Register(self.copy(variable, ty)),
                None => Value::Register(variable),
            },
            (None, None) => Value::Constant(0),
        };
        let fresh = self.code.ins.len();
        let new = if ty.is_float() {
            let one = self.float_constant(node.ty, float::of_signed(delta.into(), false));
            let a = self.register(old);
            Value::Register(self.code.pure(Inst {
                op: Op::FAdd,
                ty,
                a,
                b: one,
                ..NOP
            }))
        } else if self.types.kind(node.ty) == TypeKind::Bool {
            // ++ makes it true, -- inverts it.
            if delta > 0 {
                Value::Constant(1)
            } else {
                self.arith(Op::Xor, Scalar::I32, old, Value::Constant(1))
            }
        } else {
            let width = if self.types.is_pointer(node.ty) {
                Scalar::I32
            } else {
                ty
            };
            let sum = self.arith(Op::Add, width, old, Value::Constant(delta.into()));
            if self.types.size(node.ty) < 4 {
                self.extend(sum, self.memory_type(node.ty), false)
            } else {
                sum
            }
        };
        self.code.at = node.at;
        let new = match (addr, variable) {
            (Some(addr), _) => {
                self.store(addr, target.ty, new);
                self.as_stored(new, target.ty, addr)
            }
            (None, Some(variable)) => self.write_register(variable, target.ty, new, fresh),
            (None, None) => new,
        };
        if post { old } else { new }
    }

    /// The address of a structure that an expression gives.
    pub(crate) fn structure(&mut self, n: NodeId) -> MemoryOperand {
        use Expression::*;
        let node = self.node(n);
        match node.expression {
            Assign { to, value } => self.assign_structure(node, to, value),
            Call { .. } => match self.call(n, true) {
                Value::Register(v) => MemoryOperand::at(v),
                Value::Constant(_) => MemoryOperand::symbol(sym::NONE),
            },
            Comma(first, last) => {
                self.discard(first);
                self.address(last)
            }
            Conditional { condition, yes, no } => {
                let result = self.code.variable(false);
                let (t, f, end) = (self.code.block(), self.code.block(), self.code.block());
                self.branch(condition, t, f);
                for (block, n) in [(t, yes), (f, no)] {
                    self.arm(block, end, |lower| {
                        let addr = lower.address(n);
                        let pointer = lower.pointer(addr);
                        lower.store_register(result, pointer, Scalar::I64);
                    });
                }
                self.code.begin(end);
                MemoryOperand::at(result)
            }
            Cast(from) => self.structure(from),
            Statements { body, value } => {
                self.body(body);
                match value.filter(|_| !self.stopped()) {
                    Some(n) => self.address(n),
                    None => MemoryOperand::symbol(sym::NONE),
                }
            }
            Memory(_) | Global(_) | Deref(_) | Member { .. } | Literal { .. } | Text(_) => {
                self.address(n)
            }
            _ => MemoryOperand::symbol(sym::NONE),
        }
    }

    fn assign_structure(&mut self, node: &Node, to: NodeId, from: NodeId) -> MemoryOperand {
        let to = self.address(to);
        let to = self.protect_address(to, from);
        let from = self.address(from);
        self.copy_bytes(to, from, self.types.size(node.ty));
        to
    }

    /// Copies a structure; the two may be the same one, but do not overlap otherwise.
    pub(crate) fn copy_bytes(&mut self, to: MemoryOperand, from: MemoryOperand, size: u32) {
        let (to, from) = (self.pointer(to), self.pointer(from));
        let (a, b) = (self.register(to), self.register(from));
        self.code.values.clobber();
        self.code.push(Inst {
            op: Op::Copy,
            a,
            b,
            imm: size.into(),
            ..NOP
        });
    }
}
