//! Calls. Scalars travel as the System V ABI says. A structure travels as the address of a copy
//! that the caller makes; a function that returns one gets, before its other arguments, the address
//! where it goes.

use alloc::vec::Vec;

use super::{Lowering, MemoryOperand, Value};
use crate::ir::{Arg, Detail, Inst, NONE, NOP, Op, Scalar, sym};
use crate::tree::{Expression, NodeId};
use crate::types::TypeKind;

impl Lowering<'_> {
    /// Calls; the value is the result if it is `wanted`, or the address of the structure that was
    /// returned.
    pub(crate) fn call(&mut self, n: NodeId, wanted: bool) -> Value {
        let node = self.node(n);
        let Expression::Call {
            callee,
            first,
            count,
        } = node.expression
        else {
            return Value::Constant(0);
        };
        let args = self.tree.args(first, count);
        let effects = args.iter().any(|n| self.tree.get(*n).effects);
        let (symbol, mut target) = match self.known_function(callee) {
            Some(global) => (sym::GLOBAL + global, NONE),
            None => {
                let value = self.lower(callee);
                (sym::NONE, self.register(value))
            }
        };
        if target != NONE && effects && !self.code.vregs[target as usize].temp {
            target = self.copy(target, Scalar::I64);
        }
        let mut list: Vec<Arg> = Vec::with_capacity(args.len() + 1);
        let is_struct = self.types.is_struct(node.ty);
        if is_struct {
            let slot = self.slot_of(node.ty, node.at);
            let pointer = self.pointer(MemoryOperand::symbol(sym::FRAME + slot));
            list.push(Arg {
                v: self.register(pointer),
                imm: 0,
                ty: Scalar::I64,
            });
        }
        for (index, n) in args.iter().enumerate() {
            let arg = *self.tree.get(*n);
            if self.types.is_struct(arg.ty) {
                let slot = self.slot_of(arg.ty, arg.at);
                let from = self.address(*n);
                let to = MemoryOperand::symbol(sym::FRAME + slot);
                self.copy_bytes(to, from, self.types.size(arg.ty));
                let pointer = self.pointer(to);
                list.push(Arg {
                    v: self.register(pointer),
                    imm: 0,
                    ty: Scalar::I64,
                });
                continue;
            }
            let ty = self.register_type(arg.ty);
            let mut value = self.lower(*n);
            for later in &args[index + 1..] {
                value = self.protect(value, ty, *later);
            }
            list.push(match value {
                Value::Register(v) => Arg { v, imm: 0, ty },
                Value::Constant(imm) => Arg { v: NONE, imm, ty },
            });
        }
        let (start, count) = (self.code.args.len() as u32, list.len() as u32);
        self.code.args.extend_from_slice(&list);
        let function = self.types.get(self.tree.get(callee).ty).of;
        let open = self.types.get(function).open;
        let void = self.types.kind(node.ty) == TypeKind::Void;
        let ty = if is_struct || void {
            Scalar::I64
        } else {
            self.register_type(node.ty)
        };
        let dst = if void || !wanted && !is_struct {
            NONE
        } else {
            self.code.temp(ty.is_float())
        };
        self.code.values.clobber();
        self.code.at = node.at;
        let ins = Inst {
            op: Op::Call,
            ty,
            detail: if open {
                Detail::Variadic
            } else {
                Detail::Nothing
            },
            dst,
            a: target,
            b: start,
            c: count,
            sym: symbol,
            ..NOP
        };
        self.code.push(ins);
        if dst == NONE {
            return Value::Constant(0);
        }
        if !is_struct && self.types.is_integer(node.ty) && self.types.size(node.ty) < 4 {
            // Whoever returned it need not have extended it.
            return self.extend(Value::Register(dst), self.memory_type(node.ty), false);
        }
        Value::Register(dst)
    }

    /// The function that is called if it is named.
    fn known_function(&self, callee: NodeId) -> Option<u32> {
        if let Expression::Address(of) = self.tree.get(callee).expression
            && let Expression::Global(global) = self.tree.get(of).expression
        {
            return Some(global);
        }
        None
    }
}
