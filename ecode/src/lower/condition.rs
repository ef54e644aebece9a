//! Conditions: as branches, with short circuits, and as values.

use super::{Lowering, Val};
use crate::ir::{Ins, NONE, NOP, Op, T, V, cc};
use crate::tree::{K, N};

/// A comparison of integers: operands of [`Op::Set`], [`Op::Branch`] and [`Op::Select`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Test {
    /// Of `a & b` with zero instead of `a` with `b`.
    pub bits: bool,
    pub cc: u8,
    pub ty: T,
    pub a: V,
    pub b: V,
    pub imm: i64,
}

impl Test {
    /// The instruction with this operation.
    pub fn instruction(&self, op: Op) -> Ins {
        Ins {
            op,
            ty: self.ty,
            cc: self.cc,
            a: self.a,
            b: self.b,
            imm: self.imm,
            ..NOP
        }
    }
    pub fn select(&self) -> Op {
        if self.bits {
            Op::SelectTest
        } else {
            Op::Select
        }
    }
    fn set(&self) -> Op {
        if self.bits { Op::SetTest } else { Op::Set }
    }
    fn branch(&self) -> Op {
        if self.bits {
            Op::BranchTest
        } else {
            Op::Branch
        }
    }
}

fn is_comparison(kind: K) -> bool {
    matches!(
        kind,
        K::Less | K::Greater | K::LessEqual | K::GreaterEqual | K::Equal | K::NotEqual
    )
}

impl Lowering<'_> {
    /// Whether the condition is one comparison of integers or pointers.
    pub(crate) fn integer_condition(&self, n: N) -> bool {
        let node = self.tree.get(n);
        match node.kind {
            K::LogicalNot => self.integer_condition(node.a),
            K::LogicalAnd | K::LogicalOr | K::Int => false,
            kind if is_comparison(kind) => !self.types.is_float(self.tree.get(node.a).ty),
            _ => !self.types.is_float(node.ty),
        }
    }

    /// The comparison that an integer condition is.
    pub(crate) fn comparison(&mut self, n: N) -> Test {
        let node = *self.tree.get(n);
        if node.kind == K::LogicalNot {
            let test = self.comparison(node.a);
            return Test {
                cc: test.cc ^ 1,
                ..test
            };
        }
        if !is_comparison(node.kind) {
            return self.nonzero(n, cc::NE);
        }
        let operand = self.tree.get(node.a).ty;
        let ty = self.compare_type(operand);
        let unsigned = self.types.is_unsigned(operand);
        let zero = |n: &crate::tree::Node| n.kind == K::Int && n.value == 0;
        if matches!(node.kind, K::Equal | K::NotEqual) && zero(self.tree.get(node.b)) {
            return self.nonzero(node.a, if node.kind == K::Equal { cc::E } else { cc::NE });
        }
        let code = code_of(node.kind, unsigned);
        let a = self.lower(node.a);
        let a = self.protect(a, ty, node.b);
        let b = self.lower(node.b);
        match (a, b) {
            (Val::I(_), Val::V(_)) => self.tested(false, cc::swapped(code), ty, b, a),
            _ => self.tested(false, code, ty, a, b),
        }
    }

    /// The test of `a` and `b`, which is the instruction's immediate if it fits there.
    fn tested(&mut self, bits: bool, cc: u8, ty: T, a: Val, b: Val) -> Test {
        let a = self.register(a);
        let (b, imm) = match b {
            Val::I(imm) if i32::try_from(imm).is_ok() => (NONE, imm),
            _ => (self.register(b), 0),
        };
        Test {
            bits,
            cc,
            ty,
            a,
            b,
            imm,
        }
    }

    /// Whether an integer or pointer is zero (`code` E) or not (NE); the bits of an `&` are tested without computing it.
    fn nonzero(&mut self, n: N, code: u8) -> Test {
        let node = *self.tree.get(n);
        if is_comparison(node.kind) && self.integer_condition(n) {
            let test = self.comparison(n);
            return if code == cc::NE {
                test
            } else {
                Test {
                    cc: test.cc ^ 1,
                    ..test
                }
            };
        }
        let ty = self.compare_type(node.ty);
        if node.kind == K::And {
            let a = self.lower(node.a);
            let a = self.protect(a, ty, node.b);
            let b = self.lower(node.b);
            return match a {
                Val::I(_) => self.tested(true, code, ty, b, a),
                Val::V(_) => self.tested(true, code, ty, a, b),
            };
        }
        let value = self.lower(n);
        self.tested(false, code, ty, value, Val::I(0))
    }

    /// Ends the block with a jump to `t` if the condition holds, else to `f`.
    pub(crate) fn branch(&mut self, n: N, t: u32, f: u32) {
        let node = *self.tree.get(n);
        self.code.at = node.at;
        match node.kind {
            K::Int => self.code.jump(if node.value != 0 { t } else { f }),
            K::LogicalNot => self.branch(node.a, f, t),
            K::LogicalAnd | K::LogicalOr => {
                let right = self.code.block();
                match node.kind {
                    K::LogicalAnd => self.branch(node.a, right, f),
                    _ => self.branch(node.a, t, right),
                }
                self.code.values.enter();
                self.code.begin(right);
                self.branch(node.b, t, f);
                self.code.values.leave();
            }
            K::Comma => {
                self.discard(node.a);
                self.branch(node.b, t, f);
            }
            K::Cast if self.types.kind(node.ty) == crate::types::Kind::Bool => {
                self.branch(node.a, t, f)
            }
            _ if self.integer_condition(n) => {
                let test = self.comparison(n);
                if test.b == NONE
                    && let Some(known) = self.known(&test)
                {
                    self.code.jump(if known { t } else { f });
                    return;
                }
                let branch = test.instruction(test.branch());
                self.code.end(branch, t, f);
            }
            _ => {
                let (cc, ty, a, b) = self.float_comparison(n);
                self.code.end(
                    Ins {
                        op: Op::FBranch,
                        ty,
                        cc,
                        a,
                        b,
                        ..NOP
                    },
                    t,
                    f,
                );
            }
        }
    }

    /// Whether the comparison of two constants holds, if they are constants.
    fn known(&self, test: &Test) -> Option<bool> {
        let first = self.code.blocks[self.code.current as usize].first as usize;
        let ins = self.code.ins[first..]
            .last()
            .filter(|ins| ins.dst == test.a && ins.op == Op::Imm)?;
        let (a, b) = (ins.imm, test.imm);
        let (a, b) = if test.ty.wide() {
            (a, b)
        } else {
            (i64::from(a as i32), i64::from(b as i32))
        };
        if test.bits {
            return Some((a & b == 0) == (test.cc == cc::E));
        }
        let unsigned = |x: i64| {
            if test.ty.wide() {
                x as u64
            } else {
                u64::from(x as u32)
            }
        };
        Some(match test.cc {
            cc::E => a == b,
            cc::NE => a != b,
            cc::L => a < b,
            cc::LE => a <= b,
            cc::G => a > b,
            cc::GE => a >= b,
            cc::B => unsigned(a) < unsigned(b),
            cc::BE => unsigned(a) <= unsigned(b),
            cc::A => unsigned(a) > unsigned(b),
            _ => unsigned(a) >= unsigned(b),
        })
    }

    /// Code, type and operands of a comparison of floats, or of one with zero. Codes: A, AE (operands swapped for less), E, NE.
    fn float_comparison(&mut self, n: N) -> (u8, T, V, V) {
        let node = *self.tree.get(n);
        if !is_comparison(node.kind) {
            let value = self.lower(n);
            let (a, ty) = (self.register(value), self.register_type(node.ty));
            return (cc::NE, ty, a, self.float_constant(node.ty, 0));
        }
        let ty = self.register_type(self.tree.get(node.a).ty);
        let a = self.lower(node.a);
        let a = self.protect(a, ty, node.b);
        let b = self.lower(node.b);
        let (a, b) = (self.register(a), self.register(b));
        match node.kind {
            K::Less => (cc::A, ty, b, a),
            K::LessEqual => (cc::AE, ty, b, a),
            K::Greater => (cc::A, ty, a, b),
            K::GreaterEqual => (cc::AE, ty, a, b),
            K::Equal => (cc::E, ty, a, b),
            _ => (cc::NE, ty, a, b),
        }
    }

    /// A comparison or `!` as 0 or 1.
    pub(crate) fn truth(&mut self, n: N) -> Val {
        let node = *self.tree.get(n);
        if self.integer_condition(n) {
            let test = self.comparison(n);
            if test.b == NONE
                && let Some(known) = self.known(&test)
            {
                return Val::I(known.into());
            }
            return Val::V(self.code.pure(test.instruction(test.set())));
        }
        if node.kind == K::LogicalNot {
            let inner = self.truth_of(node.a);
            return self.arith(Op::Xor, T::I32, inner, Val::I(1));
        }
        self.float_truth(n)
    }

    fn float_truth(&mut self, n: N) -> Val {
        let (cc, ty, a, b) = self.float_comparison(n);
        Val::V(self.code.pure(Ins {
            op: Op::FSet,
            ty,
            cc,
            a,
            b,
            ..NOP
        }))
    }

    /// Whether any scalar is not zero, as 0 or 1.
    pub(crate) fn truth_of(&mut self, n: N) -> Val {
        let node = *self.tree.get(n);
        match node.kind {
            K::Int => Val::I((node.value != 0).into()),
            K::LogicalAnd | K::LogicalOr => self.lower(n),
            K::LogicalNot => self.truth(n),
            kind if is_comparison(kind) => self.truth(n),
            _ if self.types.is_float(node.ty) => self.float_truth(n),
            _ if self.types.kind(node.ty) == crate::types::Kind::Bool => self.lower(n),
            _ => {
                let test = self.nonzero(n, cc::NE);
                Val::V(self.code.pure(test.instruction(test.set())))
            }
        }
    }
}

/// The condition code of a comparison.
fn code_of(kind: K, unsigned: bool) -> u8 {
    match (kind, unsigned) {
        (K::Less, false) => cc::L,
        (K::Less, true) => cc::B,
        (K::Greater, false) => cc::G,
        (K::Greater, true) => cc::A,
        (K::LessEqual, false) => cc::LE,
        (K::LessEqual, true) => cc::BE,
        (K::GreaterEqual, false) => cc::GE,
        (K::GreaterEqual, true) => cc::AE,
        (K::Equal, _) => cc::E,
        _ => cc::NE,
    }
}
