//! Expressions: which construct is lowered where, operators, and conditionals.

use super::{Lowering, Val};
use crate::fold::operator;
use crate::ir::{Ins, NOP, Op, T};
use crate::tree::{K, N, Node};
use crate::types::Kind;

impl Lowering<'_> {
    /// Evaluates for effects only.
    pub(crate) fn discard(&mut self, n: N) {
        let node = *self.tree.get(n);
        self.code.at = node.at;
        match node.kind {
            _ if !node.effects => {}
            K::PostAdd | K::PreAdd => {
                self.add_to(&node, false);
            }
            K::Comma => {
                self.discard(node.a);
                self.discard(node.b);
            }
            K::Cast | K::Neg | K::Not | K::Address | K::Member
                if !self.types.is_struct(node.ty) =>
            {
                self.discard(node.a)
            }
            K::Cond => {
                let (t, f, end) = (self.code.block(), self.code.block(), self.code.block());
                self.branch(node.a, t, f);
                for (block, n) in [(t, node.b), (f, node.c)] {
                    self.arm(block, end, |lower| lower.discard(n));
                }
                self.code.begin(end);
            }
            K::Call => {
                self.call(n, false);
            }
            K::LogicalAnd | K::LogicalOr => {
                let (right, end) = (self.code.block(), self.code.block());
                match node.kind {
                    K::LogicalAnd => self.branch(node.a, right, end),
                    _ => self.branch(node.a, end, right),
                }
                self.arm(right, end, |lower| lower.discard(node.b));
                self.code.begin(end);
            }
            _ if self.types.is_struct(node.ty) => {
                self.structure(n);
            }
            _ => {
                self.lower(n);
            }
        }
    }

    /// Evaluates to a scalar.
    pub(crate) fn lower(&mut self, n: N) -> Val {
        let node = *self.tree.get(n);
        match node.kind {
            K::Int => Val::I(if self.types.size(node.ty) <= 4 {
                node.value as i32 as i64
            } else {
                node.value as i64
            }),
            K::Float => Val::V(self.float_constant(node.ty, node.value)),
            K::Register => {
                let v = self.variable(&node);
                match self.code.constant(v) {
                    Some(constant) => Val::I(constant),
                    None => Val::V(v),
                }
            }
            K::Slot | K::Global | K::Deref | K::Member => {
                if self.types.kind(node.ty) == Kind::Function {
                    let addr = self.address(n);
                    return self.pointer(addr);
                }
                let addr = self.address(n);
                self.load(addr, node.ty)
            }
            K::Text | K::Address => {
                let addr = self.address(if node.kind == K::Text { n } else { node.a });
                self.pointer(addr)
            }
            K::PtrAdd | K::PtrSub => {
                let addr = self.pointer_address(n);
                self.pointer(addr)
            }
            K::PtrDiff => self.pointer_difference(&node),
            K::Neg | K::Not => {
                let a = self.lower(node.a);
                let ty = self.register_type(node.ty);
                if ty.is_float() {
                    let a = self.register(a);
                    return Val::V(self.code.pure(Ins {
                        op: Op::FNeg,
                        ty,
                        a,
                        ..NOP
                    }));
                }
                self.unary(
                    if node.kind == K::Neg {
                        Op::Neg
                    } else {
                        Op::Not
                    },
                    ty,
                    a,
                )
            }
            K::Add
            | K::Sub
            | K::Mul
            | K::Div
            | K::Mod
            | K::And
            | K::Or
            | K::Xor
            | K::Shl
            | K::Shr => self.binary(&node),
            K::LogicalNot
            | K::Less
            | K::Greater
            | K::LessEqual
            | K::GreaterEqual
            | K::Equal
            | K::NotEqual => self.truth(n),
            K::LogicalAnd | K::LogicalOr => self.logical(n),
            K::Assign => self.assignment(&node),
            K::Compound => self.compound(&node),
            K::PreAdd => self.add_to(&node, false),
            K::PostAdd => self.add_to(&node, true),
            K::Cond => self.conditional(&node),
            K::Comma => {
                self.discard(node.a);
                self.lower(node.b)
            }
            K::Call => self.call(n, true),
            K::Cast => self.cast(node.a, node.ty),
            K::Literal => {
                let addr = self.address(n);
                self.load(addr, node.ty)
            }
            K::Error => Val::I(0),
        }
    }

    fn binary(&mut self, node: &Node) -> Val {
        let ty = self.register_type(node.ty);
        if let (K::Or | K::Xor | K::Add, false) = (node.kind, node.effects)
            && let Some(rotated) = self.rotate(node)
        {
            return rotated;
        }
        let a = self.lower(node.a);
        let a = self.protect(a, ty, node.b);
        let b = self.lower(node.b);
        if ty.is_float() {
            let op = match node.kind {
                K::Add => Op::FAdd,
                K::Sub => Op::FSub,
                K::Mul => Op::FMul,
                _ => Op::FDiv,
            };
            let (a, b) = (self.register(a), self.register(b));
            return Val::V(self.code.pure(Ins {
                op,
                ty,
                a,
                b,
                ..NOP
            }));
        }
        let unsigned = self.types.is_unsigned(node.ty);
        let op = operator(node.kind, unsigned);
        self.arith(op, ty, a, b)
    }

    /// `x << n | x >> (w - n)` of an unsigned x and a constant n, as one rotation.
    fn rotate(&mut self, node: &Node) -> Option<Val> {
        let (left, right) = (*self.tree.get(node.a), *self.tree.get(node.b));
        let (shl, shr) = match (left.kind, right.kind) {
            (K::Shl, K::Shr) => (left, right),
            (K::Shr, K::Shl) => (right, left),
            _ => return None,
        };
        let width = u64::from(self.types.size(node.ty)) * 8;
        let constant = |n: N| {
            Some(self.tree.get(n))
                .filter(|node| node.kind == K::Int)
                .map(|node| node.value)
        };
        let (up, down) = (constant(shl.b)?, constant(shr.b)?);
        let unsigned = self.types.is_unsigned(shr.ty) && shl.ty.plain() == shr.ty.plain();
        if !unsigned || up == 0 || up >= width || up + down != width || !self.alike(shl.a, shr.a) {
            return None;
        }
        let ty = self.register_type(node.ty);
        let value = self.lower(shl.a);
        let a = self.register(value);
        Some(Val::V(self.code.pure(Ins {
            op: Op::Rol,
            ty,
            a,
            imm: up as i64,
            ..NOP
        })))
    }

    /// Whether two trees without effects are the same expression.
    fn alike(&self, x: N, y: N) -> bool {
        let (a, b) = (self.tree.get(x), self.tree.get(y));
        if a.kind != b.kind
            || a.ty.plain() != b.ty.plain()
            || a.value != b.value
            || a.weight != b.weight
            || a.effects
        {
            return false;
        }
        match a.kind {
            K::Int | K::Float | K::Text => true,
            K::Register | K::Slot | K::Global => a.a == b.a,
            K::Neg | K::Not | K::LogicalNot | K::Deref | K::Address | K::Member | K::Cast => {
                self.alike(a.a, b.a)
            }
            K::Cond | K::Call | K::Literal | K::Error => false,
            _ => self.alike(a.a, b.a) && self.alike(a.b, b.b),
        }
    }

    /// The difference of two pointers: exact if they point into one object of at most 2 GiB.
    fn pointer_difference(&mut self, node: &Node) -> Val {
        let a = self.lower(node.a);
        let a = self.protect(a, T::I64, node.b);
        let b = self.lower(node.b);
        let difference = self.arith(Op::Sub, T::I32, a, b);
        let size = node.value as i64;
        // The difference is a multiple of the size, so a division is a shift and a product with an odd number's inverse.
        let shift = size.trailing_zeros();
        let wide = self.extend(difference, T::I32, false);
        let shifted = self.arith(Op::Sar, T::I64, wide, Val::I(shift.into()));
        let odd = (size >> shift) as u64;
        if odd == 1 {
            return shifted;
        }
        let mut inverse = odd;
        for _ in 0..6 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        }
        self.arith(Op::Mul, T::I64, shifted, Val::I(inverse as i64))
    }

    fn conditional(&mut self, node: &Node) -> Val {
        let ty = self.register_type(node.ty);
        let (yes, no) = (*self.tree.get(node.b), *self.tree.get(node.c));
        let simple = |node: &Node| matches!(node.kind, K::Int | K::Register);
        let result = self.code.variable(ty.is_float());
        if !ty.is_float() && simple(&yes) && simple(&no) && self.integer_condition(node.a) {
            // Neither costs anything, so both are computed and a conditional move chooses.
            let test = self.comparison(node.a);
            let c = self.lower(node.b);
            let c = self.register(c);
            let otherwise = self.lower(node.c);
            self.store_register(result, otherwise, ty);
            self.code.push(Ins {
                c,
                dst: result,
                ..test.instruction(test.select())
            });
            return Val::V(result);
        }
        let (t, f, end) = (self.code.block(), self.code.block(), self.code.block());
        self.branch(node.a, t, f);
        for (block, n) in [(t, node.b), (f, node.c)] {
            self.arm(block, end, |lower| {
                let fresh = lower.code.ins.len();
                match lower.lower(n) {
                    Val::V(v) => lower.code.assign(result, v, ty, fresh),
                    constant => lower.store_register(result, constant, ty),
                }
            });
        }
        self.code.begin(end);
        Val::V(result)
    }

    /// One of the ways that lead to the block `end`: what `emit` learns about values holds nowhere else.
    pub(crate) fn arm(&mut self, block: u32, end: u32, emit: impl FnOnce(&mut Self)) {
        self.code.values.enter();
        self.code.begin(block);
        emit(self);
        self.code.jump(end);
        self.code.values.leave();
    }

    /// `&&` and `||` as values.
    fn logical(&mut self, n: N) -> Val {
        let result = self.code.variable(false);
        let (t, f, end) = (self.code.block(), self.code.block(), self.code.block());
        self.branch(n, t, f);
        for (block, imm) in [(t, 1), (f, 0)] {
            self.arm(block, end, |lower| {
                lower.code.push(Ins {
                    op: Op::Imm,
                    ty: T::I32,
                    dst: result,
                    imm,
                    ..NOP
                });
            });
        }
        self.code.begin(end);
        Val::V(result)
    }
}
