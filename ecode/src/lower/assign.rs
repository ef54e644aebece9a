//! Assignments, increments, structures and initialisers.

use super::{Addr, Lowering, Val};
use crate::fold::operator;
use crate::ir::{Ins, NOP, Op, T, sym};
use crate::tree::{K, LocalId, N, Node};
use crate::types::{Kind, Type};

impl Lowering<'_> {
    /// `a = b` of scalars; the value is the new one of `a`.
    pub(crate) fn assignment(&mut self, node: &Node) -> Val {
        if self.types.is_struct(node.ty) {
            self.assign_structure(node);
            return Val::I(0);
        }
        let target = *self.tree.get(node.a);
        if target.kind == K::Register {
            let fresh = self.code.ins.len();
            let value = self.lower(node.b);
            self.code.at = node.at;
            return self.write_register(&target, value, fresh);
        }
        let size = self.types.size(node.ty);
        let source =
            if self.types.is_integer(node.ty) && self.types.kind(node.ty) != Kind::Bool && size < 4
            {
                self.narrowed(node.b, size)
            } else {
                node.b
            };
        let (addr, value) = if target.effects || self.tree.get(node.b).effects {
            let addr = self.address(node.a);
            let addr = self.protect_address(addr, source);
            (addr, self.lower(source))
        } else {
            let value = self.lower(source);
            (self.address(node.a), value)
        };
        self.code.at = node.at;
        self.store(addr, target.ty, value);
        if source == node.b {
            value
        } else {
            self.convert(value, self.tree.get(source).ty, node.ty)
        }
    }

    /// `a op= b`.
    pub(crate) fn compound(&mut self, node: &Node) -> Val {
        let target = *self.tree.get(node.a);
        let kind = (node.value & 0xff) as u8;
        if target.kind == K::Register {
            let variable = self.variable(&target);
            let before = self.protect(Val::V(variable), self.register_type(node.ty), node.b);
            let right = self.lower(node.b);
            let old = match (before, self.code.constant(variable)) {
                (Val::V(v), Some(constant)) if v == variable => Val::I(constant),
                (before, _) => before,
            };
            let fresh = self.code.ins.len();
            let value = self.combine(node, kind, old, right);
            return self.write_register(&target, value, fresh);
        }
        let addr = self.address(node.a);
        let addr = self.protect_address(addr, node.b);
        let right = self.lower(node.b);
        let old = self.load(addr, target.ty);
        let value = self.combine(node, kind, old, right);
        self.code.at = node.at;
        self.store(addr, target.ty, value);
        value
    }

    fn write_register(&mut self, target: &Node, value: Val, fresh: usize) -> Val {
        let ty = self.register_type(target.ty);
        let variable = self.variable(target);
        match value {
            Val::V(v) => {
                self.code.assign(variable, v, ty, fresh);
                Val::V(variable)
            }
            constant => {
                self.store_register(variable, constant, ty);
                constant
            }
        }
    }

    /// The new value of a compound assignment.
    fn combine(&mut self, node: &Node, kind: u8, old: Val, right: Val) -> Val {
        if self.types.is_pointer(node.ty) {
            let size = (node.value >> 8) as i64;
            let offset = self.arith(Op::Mul, T::I32, right, Val::I(size));
            let op = if kind == K::PtrAdd as u8 {
                Op::Add
            } else {
                Op::Sub
            };
            return self.arith(op, T::I32, old, offset);
        }
        let compute = Type(node.c);
        let left = self.convert(old, node.ty, compute);
        let ty = self.register_type(compute);
        const KINDS: [K; 10] = [
            K::Mul,
            K::Div,
            K::Mod,
            K::Add,
            K::Sub,
            K::Shl,
            K::Shr,
            K::And,
            K::Xor,
            K::Or,
        ];
        let kind = KINDS
            .into_iter()
            .find(|k| *k as u8 == kind)
            .unwrap_or(K::Add);
        let value = if ty.is_float() {
            let op = match kind {
                K::Add => Op::FAdd,
                K::Sub => Op::FSub,
                K::Mul => Op::FMul,
                _ => Op::FDiv,
            };
            let (a, b) = (self.register(left), self.register(right));
            Val::V(self.code.pure(Ins {
                op,
                ty,
                a,
                b,
                ..NOP
            }))
        } else {
            let op = operator(kind, self.types.is_unsigned(compute));
            self.arith(op, ty, left, right)
        };
        self.convert(value, compute, node.ty)
    }

    /// `++` and `--`; the result is the old value if `post`, else the new one.
    pub(crate) fn add_to(&mut self, node: &Node, post: bool) -> Val {
        let target = *self.tree.get(node.a);
        let ty = self.register_type(node.ty);
        let addr = (target.kind != K::Register).then(|| self.address(node.a));
        let old = match addr {
            Some(addr) => self.load(addr, target.ty),
            None => {
                let variable = self.variable(&target);
                match self.code.constant(variable) {
                    Some(constant) => Val::I(constant),
                    None if post => Val::V(self.copy(variable, ty)),
                    None => Val::V(variable),
                }
            }
        };
        let fresh = self.code.ins.len();
        let delta = node.value as i64;
        let new = if ty.is_float() {
            let one = self.float_constant(node.ty, (delta as f64).to_bits());
            let a = self.register(old);
            Val::V(self.code.pure(Ins {
                op: Op::FAdd,
                ty,
                a,
                b: one,
                ..NOP
            }))
        } else if self.types.kind(node.ty) == Kind::Bool {
            // ++ makes it true, -- inverts it.
            if delta > 0 {
                Val::I(1)
            } else {
                self.arith(Op::Xor, T::I32, old, Val::I(1))
            }
        } else {
            let width = if self.types.is_pointer(node.ty) {
                T::I32
            } else {
                ty
            };
            let sum = self.arith(Op::Add, width, old, Val::I(delta));
            if self.types.size(node.ty) < 4 {
                self.extend(sum, self.memory_type(node.ty), false)
            } else {
                sum
            }
        };
        self.code.at = node.at;
        let new = match addr {
            Some(addr) => {
                self.store(addr, target.ty, new);
                new
            }
            None => self.write_register(&target, new, fresh),
        };
        if post { old } else { new }
    }

    /// The address of a structure that an expression gives.
    pub(crate) fn structure(&mut self, n: N) -> Addr {
        let node = *self.tree.get(n);
        match node.kind {
            K::Assign => self.assign_structure(&node),
            K::Call => match self.call(n, true) {
                Val::V(v) => Addr::at(v),
                Val::I(_) => Addr::symbol(sym::NONE),
            },
            K::Comma => {
                self.discard(node.a);
                self.address(node.b)
            }
            K::Cond => {
                let result = self.code.variable(false);
                let (t, f, end) = (self.code.block(), self.code.block(), self.code.block());
                self.branch(node.a, t, f);
                for (block, n) in [(t, node.b), (f, node.c)] {
                    self.arm(block, end, |lower| {
                        let addr = lower.address(n);
                        let pointer = lower.pointer(addr);
                        lower.store_register(result, pointer, T::I64);
                    });
                }
                self.code.begin(end);
                Addr::at(result)
            }
            K::Cast => self.structure(node.a),
            K::Slot | K::Global | K::Deref | K::Member | K::Literal | K::Text => self.address(n),
            _ => Addr::symbol(sym::NONE),
        }
    }

    fn assign_structure(&mut self, node: &Node) -> Addr {
        let to = self.address(node.a);
        let to = self.protect_address(to, node.b);
        let from = self.address(node.b);
        self.copy_bytes(to, from, self.types.size(node.ty));
        to
    }

    /// Copies a structure; the two may be the same one, but do not overlap otherwise.
    pub(crate) fn copy_bytes(&mut self, to: Addr, from: Addr, size: u32) {
        let (to, from) = (self.pointer(to), self.pointer(from));
        let (a, b) = (self.register(to), self.register(from));
        self.code.values.clobber();
        self.code.push(Ins {
            op: Op::Copy,
            a,
            b,
            imm: size.into(),
            ..NOP
        });
    }

    /// Gives a local its first values: zeros where nothing is said.
    pub(crate) fn initialize(&mut self, local: LocalId, first: u32, count: u32) {
        let tree = self.tree;
        let inits = tree.initializers(first, count);
        let ty = tree.locals[local as usize].ty;
        let addr = Addr::symbol(sym::FRAME + self.scratch.places[local as usize]);
        let size = self.types.size(ty);
        let covered: u64 = inits
            .iter()
            .map(|init| u64::from(self.types.size(init.ty)))
            .sum();
        if covered < u64::from(size) && size > 0 {
            let pointer = self.pointer(addr);
            let a = self.register(pointer);
            self.code.values.clobber();
            self.code.push(Ins {
                op: Op::Zero,
                a,
                imm: size.into(),
                ..NOP
            });
        }
        for init in inits {
            let node = *self.tree.get(init.node);
            let place = addr.plus(init.offset.into());
            self.code.at = node.at;
            if self.types.is_struct(init.ty) {
                let from = self.address(init.node);
                self.copy_bytes(place, from, self.types.size(init.ty));
            } else if self.types.kind(init.ty) == Kind::Array {
                let from = self.address(init.node); // a string
                let length = self.types.size(init.ty).min(self.types.size(node.ty));
                self.copy_bytes(place, from, length);
            } else {
                let value = self.lower(init.node);
                self.store(place, init.ty, value);
            }
        }
    }
}
