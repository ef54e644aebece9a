//! Conditions: as branches, with short circuits, and as values.

use super::{Lowering, Value};
use crate::ir::{Detail, Inst, NONE, NOP, Op, Scalar, VReg};
use crate::tree::{Arithmetic, Comparison, Expression, NodeId};
use crate::types::TypeKind;
use postern_x86::Cond;

/// A comparison of integers: operands of [`Op::Set`], [`Op::Branch`] and [`Op::Select`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Test {
    /// Of `a & b` with zero instead of `a` with `b`.
    pub bits: bool,
    pub cond: Cond,
    pub ty: Scalar,
    pub a: VReg,
    pub b: VReg,
    pub imm: i64,
}

impl Test {
    /// The instruction with this operation.
    pub fn instruction(&self, op: Op) -> Inst {
        Inst {
            op,
            ty: self.ty,
            detail: Detail::Cond(self.cond),
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

impl Lowering<'_> {
    /// Whether the condition is one comparison of integers or pointers.
    pub(crate) fn integer_condition(&self, n: NodeId) -> bool {
        let node = self.tree.get(n);
        match node.expression {
            Expression::Not(inner) => self.integer_condition(inner),
            Expression::LogicalAnd(..) | Expression::LogicalOr(..) | Expression::Integer(_) => {
                false
            }
            Expression::Compare(_, left, _) => !self.types.is_float(self.tree.get(left).ty),
            _ => !self.types.is_float(node.ty),
        }
    }

    /// The comparison that an integer condition is.
    pub(crate) fn comparison(&mut self, n: NodeId) -> Test {
        let (kind, left, right) = match self.tree.get(n).expression {
            Expression::Not(inner) => {
                let test = self.comparison(inner);
                return Test {
                    cond: test.cond.negated(),
                    ..test
                };
            }
            Expression::Compare(kind, left, right) => (kind, left, right),
            _ => return self.nonzero(n, Cond::NotEqual),
        };
        let operand = self.tree.get(left).ty;
        let ty = self.compare_type(operand);
        let unsigned = self.types.is_unsigned(operand);
        let zero = self.tree.get(right).expression == Expression::Integer(0);
        match kind {
            Comparison::Equal if zero => return self.nonzero(left, Cond::Equal),
            Comparison::NotEqual if zero => return self.nonzero(left, Cond::NotEqual),
            _ => {}
        }
        let code = condition_of(kind, unsigned);
        let a = self.lower(left);
        let a = self.protect(a, ty, right);
        let b = self.lower(right);
        match (a, b) {
            (Value::Constant(_), Value::Register(_)) => {
                self.tested(false, code.swapped(), ty, b, a)
            }
            _ => self.tested(false, code, ty, a, b),
        }
    }

    /// The test of `a` and `b`, which is the instruction's immediate if it fits there.
    fn tested(&mut self, bits: bool, cond: Cond, ty: Scalar, a: Value, b: Value) -> Test {
        let a = self.register(a);
        let (b, imm) = match b {
            Value::Constant(imm) if i32::try_from(imm).is_ok() => (NONE, imm),
            _ => (self.register(b), 0),
        };
        Test {
            bits,
            cond,
            ty,
            a,
            b,
            imm,
        }
    }

    /// Whether an integer or pointer is zero (`Equal`) or not (`NotEqual`); the bits of an `&` are
    /// tested without computing it.
    fn nonzero(&mut self, n: NodeId, code: Cond) -> Test {
        let node = self.node(n);
        if matches!(node.expression, Expression::Compare(..)) && self.integer_condition(n) {
            let test = self.comparison(n);
            return if code == Cond::NotEqual {
                test
            } else {
                Test {
                    cond: test.cond.negated(),
                    ..test
                }
            };
        }
        let ty = self.compare_type(node.ty);
        if let Expression::Arithmetic(Arithmetic::And, left, right) = node.expression {
            let a = self.lower(left);
            let a = self.protect(a, ty, right);
            let b = self.lower(right);
            return match a {
                Value::Constant(_) => self.tested(true, code, ty, b, a),
                Value::Register(_) => self.tested(true, code, ty, a, b),
            };
        }
        let value = self.lower(n);
        self.tested(false, code, ty, value, Value::Constant(0))
    }

    /// Ends the block with a jump to `t` if the condition holds, else to `f`.
    pub(crate) fn branch(&mut self, n: NodeId, t: u32, f: u32) {
        let node = self.node(n);
        self.code.at = node.at;
        match node.expression {
            Expression::Integer(value) => self.code.jump(if value != 0 { t } else { f }),
            Expression::Not(inner) => self.branch(inner, f, t),
            Expression::LogicalAnd(first, last) => {
                let right = self.code.block();
                self.branch(first, right, f);
                self.branch_right(right, last, t, f);
            }
            Expression::LogicalOr(first, last) => {
                let right = self.code.block();
                self.branch(first, t, right);
                self.branch_right(right, last, t, f);
            }
            Expression::Comma(first, last) => {
                self.discard(first);
                self.branch(last, t, f);
            }
            Expression::Cast(from) if self.types.kind(node.ty) == TypeKind::Bool => {
                self.branch(from, t, f)
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
                let (cond, ty, a, b) = self.float_comparison(n);
                self.code.end(
                    Inst {
                        op: Op::FBranch,
                        ty,
                        detail: Detail::Cond(cond),
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

    /// The right side of a condition, which one of the ways through the left leads to.
    fn branch_right(&mut self, block: u32, n: NodeId, t: u32, f: u32) {
        self.code.values.enter();
        self.code.begin(block);
        self.branch(n, t, f);
        self.code.values.leave();
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
            return Some((a & b == 0) == (test.cond == Cond::Equal));
        }
        let unsigned = |x: i64| {
            if test.ty.wide() {
                x as u64
            } else {
                u64::from(x as u32)
            }
        };
        Some(match test.cond {
            Cond::Equal => a == b,
            Cond::NotEqual => a != b,
            Cond::Less => a < b,
            Cond::LessOrEqual => a <= b,
            Cond::Greater => a > b,
            Cond::GreaterOrEqual => a >= b,
            Cond::Below => unsigned(a) < unsigned(b),
            Cond::BelowOrEqual => unsigned(a) <= unsigned(b),
            Cond::Above => unsigned(a) > unsigned(b),
            _ => unsigned(a) >= unsigned(b),
        })
    }

    /// Condition, type and operands of a comparison of floats, or of one with zero. The condition
    /// is above, above or equal (for less, operands are swapped), equal, or not equal.
    fn float_comparison(&mut self, n: NodeId) -> (Cond, Scalar, VReg, VReg) {
        let node = self.node(n);
        let Expression::Compare(kind, left, right) = node.expression else {
            let value = self.lower(n);
            let (a, ty) = (self.register(value), self.register_type(node.ty));
            return (Cond::NotEqual, ty, a, self.float_constant(node.ty, 0));
        };
        let ty = self.register_type(self.tree.get(left).ty);
        let a = self.lower(left);
        let a = self.protect(a, ty, right);
        let b = self.lower(right);
        let (a, b) = (self.register(a), self.register(b));
        match kind {
            Comparison::Less => (Cond::Above, ty, b, a),
            Comparison::LessEqual => (Cond::AboveOrEqual, ty, b, a),
            Comparison::Greater => (Cond::Above, ty, a, b),
            Comparison::GreaterEqual => (Cond::AboveOrEqual, ty, a, b),
            Comparison::Equal => (Cond::Equal, ty, a, b),
            Comparison::NotEqual => (Cond::NotEqual, ty, a, b),
        }
    }

    /// A comparison or `!` as 0 or 1.
    pub(crate) fn truth(&mut self, n: NodeId) -> Value {
        if self.integer_condition(n) {
            let test = self.comparison(n);
            if test.b == NONE
                && let Some(known) = self.known(&test)
            {
                return Value::Constant(known.into());
            }
            return Value::Register(self.code.pure(test.instruction(test.set())));
        }
        if let Expression::Not(inner) = self.tree.get(n).expression {
            let inner = self.truth_of(inner);
            return self.arith(Op::Xor, Scalar::I32, inner, Value::Constant(1));
        }
        self.float_truth(n)
    }

    fn float_truth(&mut self, n: NodeId) -> Value {
        let (cond, ty, a, b) = self.float_comparison(n);
        Value::Register(self.code.pure(Inst {
            op: Op::FSet,
            ty,
            detail: Detail::Cond(cond),
            a,
            b,
            ..NOP
        }))
    }

    /// Whether any scalar is not zero, as 0 or 1.
    pub(crate) fn truth_of(&mut self, n: NodeId) -> Value {
        let node = self.node(n);
        match node.expression {
            Expression::Integer(value) => Value::Constant((value != 0).into()),
            Expression::LogicalAnd(..) | Expression::LogicalOr(..) => self.lower(n),
            Expression::Not(_) | Expression::Compare(..) => self.truth(n),
            _ if self.types.is_float(node.ty) => self.float_truth(n),
            _ if self.types.kind(node.ty) == TypeKind::Bool => self.lower(n),
            _ => {
                let test = self.nonzero(n, Cond::NotEqual);
                Value::Register(self.code.pure(test.instruction(test.set())))
            }
        }
    }
}

/// The condition of a comparison.
fn condition_of(kind: Comparison, unsigned: bool) -> Cond {
    match (kind, unsigned) {
        (Comparison::Less, false) => Cond::Less,
        (Comparison::Less, true) => Cond::Below,
        (Comparison::Greater, false) => Cond::Greater,
        (Comparison::Greater, true) => Cond::Above,
        (Comparison::LessEqual, false) => Cond::LessOrEqual,
        (Comparison::LessEqual, true) => Cond::BelowOrEqual,
        (Comparison::GreaterEqual, false) => Cond::GreaterOrEqual,
        (Comparison::GreaterEqual, true) => Cond::AboveOrEqual,
        (Comparison::Equal, _) => Cond::Equal,
        (Comparison::NotEqual, _) => Cond::NotEqual,
    }
}
