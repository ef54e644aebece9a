//! Expressions: which construct is lowered where, operators, and conditionals.

use super::{Lowering, Value};
use crate::fold::operator;
use crate::ir::{Inst, NOP, Op, Scalar};
use crate::tree::{Arithmetic, Expression, Node, NodeId};
use crate::types::{Type, TypeKind};

impl<'a> Lowering<'a> {
    /// A node of the tree, which does not change.
    #[inline]
    pub(crate) fn node(&self, n: NodeId) -> &'a Node {
        self.tree.get(n)
    }

    /// Evaluates for effects only.
    pub(crate) fn discard(&mut self, n: NodeId) {
        use Expression::*;
        let node = self.node(n);
        self.code.at = node.at;
        if !node.effects {
            return;
        }
        let structure = self.types.is_struct(node.ty);
        match node.expression {
            Step { to, delta, .. } => {
                self.step(node, to, delta, false);
            }
            Comma(first, last) => {
                self.discard(first);
                self.discard(last);
            }
            Cast(a) | Negate(a) | Invert(a) | Address(a) | Member { of: a, .. } if !structure => {
                self.discard(a)
            }
            Conditional { condition, yes, no } => {
                let (t, f, end) = (self.code.block(), self.code.block(), self.code.block());
                self.branch(condition, t, f);
                for (block, n) in [(t, yes), (f, no)] {
                    self.arm(block, end, |lower| lower.discard(n));
                }
                self.code.begin(end);
            }
            Call { .. } => {
                self.call(n, false);
            }
            LogicalAnd(first, last) => {
                let (right, end) = (self.code.block(), self.code.block());
                self.branch(first, right, end);
                self.arm(right, end, |lower| lower.discard(last));
                self.code.begin(end);
            }
            LogicalOr(first, last) => {
                let (right, end) = (self.code.block(), self.code.block());
                self.branch(first, end, right);
                self.arm(right, end, |lower| lower.discard(last));
                self.code.begin(end);
            }
            Statements { body, value } => {
                self.body(body);
                if let Some(n) = value.filter(|_| !self.stopped()) {
                    self.discard(n);
                }
            }
            _ if structure => {
                self.structure(n);
            }
            _ => {
                self.lower(n);
            }
        }
    }

    /// Evaluates to a scalar.
    pub(crate) fn lower(&mut self, n: NodeId) -> Value {
        use Expression::*;
        let node = self.node(n);
        match node.expression {
            Integer(value) => Value::Constant(if self.types.size(node.ty) <= 4 {
                value as i32 as i64
            } else {
                value as i64
            }),
            Float(bits) => Value::Register(self.float_constant(node.ty, bits)),
            Register(local) => {
                let v = self.place(local);
                match self.code.constant(v) {
                    Some(constant) => Value::Constant(constant),
                    None => Value::Register(v),
                }
            }
            Memory(_) | Global(_) | Deref(_) | Member { .. } | Literal { .. } => {
                let addr = self.address(n);
                if self.types.kind(node.ty) == TypeKind::Function {
                    return self.pointer(addr);
                }
                self.load(addr, node.ty)
            }
            Text(_) => {
                let addr = self.address(n);
                self.pointer(addr)
            }
            Address(object) => {
                let addr = self.address(object);
                self.pointer(addr)
            }
            PointerAdd { .. } => {
                let addr = self.pointer_address(n);
                self.pointer(addr)
            }
            PointerDifference { left, right, size } => self.pointer_difference(left, right, size),
            Negate(a) => self.negate(node, a, Op::Neg),
            Invert(a) => self.negate(node, a, Op::Not),
            Arithmetic(kind, a, b) => self.binary(node, kind, a, b),
            Not(_) | Compare(..) => self.truth(n),
            LogicalAnd(..) | LogicalOr(..) => self.logical(n),
            Assign { to, value } => self.assignment(node, to, value),
            Compound {
                operator,
                to,
                value,
                computed,
            } => self.compound(node, to, value, |lower, old, right| {
                lower.combine(operator, computed, node.ty, old, right)
            }),
            CompoundPointer { to, index, size } => {
                self.compound(node, to, index, |lower, old, index| {
                    lower.move_pointer(old, index, size)
                })
            }
            Step { to, delta, post } => self.step(node, to, delta, post),
            Conditional { condition, yes, no } => self.conditional(node.ty, condition, yes, no),
            Comma(first, last) => {
                self.discard(first);
                self.lower(last)
            }
            Call { .. } => self.call(n, true),
            Cast(from) => self.cast(from, node.ty),
            Builtin {
                builtin,
                first,
                count,
            } => {
                let tree = self.tree;
                self.builtin(node, builtin, tree.args(first, count))
            }
            Statements { body, value } => {
                self.body(body);
                match value.filter(|_| !self.stopped()) {
                    Some(n) => self.lower(n),
                    None => Value::Constant(0),
                }
            }
            Error => Value::Constant(0),
        }
    }

    /// `-`, or `~`, which only integers have.
    fn negate(&mut self, node: &Node, a: NodeId, op: Op) -> Value {
        let a = self.lower(a);
        let ty = self.register_type(node.ty);
        if !ty.is_float() {
            return self.unary(op, ty, a);
        }
        let a = self.register(a);
        Value::Register(self.code.pure(Inst {
            op: Op::FNeg,
            ty,
            a,
            ..NOP
        }))
    }

    fn binary(&mut self, node: &Node, kind: Arithmetic, left: NodeId, right: NodeId) -> Value {
        let ty = self.register_type(node.ty);
        if let (Arithmetic::Or | Arithmetic::Xor | Arithmetic::Add, false) = (kind, node.effects)
            && let Some(rotated) = self.rotate(node, left, right)
        {
            return rotated;
        }
        let a = self.lower(left);
        let a = self.protect(a, ty, right);
        let b = self.lower(right);
        self.operate(kind, node.ty, a, b)
    }

    /// An arithmetic operator on values of this type.
    pub(crate) fn operate(&mut self, kind: Arithmetic, of: Type, a: Value, b: Value) -> Value {
        let ty = self.register_type(of);
        if !ty.is_float() {
            let op = operator(kind, self.types.is_unsigned(of));
            return self.arith(op, ty, a, b);
        }
        let op = match kind {
            Arithmetic::Add => Op::FAdd,
            Arithmetic::Sub => Op::FSub,
            Arithmetic::Mul => Op::FMul,
            _ => Op::FDiv,
        };
        let (a, b) = (self.register(a), self.register(b));
        Value::Register(self.code.pure(Inst {
            op,
            ty,
            a,
            b,
            ..NOP
        }))
    }

    /// `x << n | x >> (w - n)` of an unsigned x and a constant n, as one rotation.
    fn rotate(&mut self, node: &Node, left: NodeId, right: NodeId) -> Option<Value> {
        use Arithmetic::{Shl, Shr};
        let (left, right) = (self.node(left), self.node(right));
        let ((shl, x, up), (shr, y, down)) = match (left.expression, right.expression) {
            (Expression::Arithmetic(Shl, x, up), Expression::Arithmetic(Shr, y, down)) => {
                ((left, x, up), (right, y, down))
            }
            (Expression::Arithmetic(Shr, y, down), Expression::Arithmetic(Shl, x, up)) => {
                ((right, x, up), (left, y, down))
            }
            _ => return None,
        };
        let width = u64::from(self.types.size(node.ty)) * 8;
        let constant = |n: NodeId| match self.tree.get(n).expression {
            Expression::Integer(value) => Some(value),
            _ => None,
        };
        let (up, down) = (constant(up)?, constant(down)?);
        let unsigned = self.types.is_unsigned(shr.ty) && shl.ty.plain() == shr.ty.plain();
        if !unsigned || up == 0 || up >= width || up + down != width || !self.alike(x, y) {
            return None;
        }
        let ty = self.register_type(node.ty);
        let value = self.lower(x);
        let a = self.register(value);
        Some(Value::Register(self.code.pure(Inst {
            op: Op::Rol,
            ty,
            a,
            imm: up as i64,
            ..NOP
        })))
    }

    /// Whether two trees without effects are the same expression.
    fn alike(&self, x: NodeId, y: NodeId) -> bool {
        use Expression::*;
        let (x, y) = (self.tree.get(x), self.tree.get(y));
        if x.ty.plain() != y.ty.plain() || x.weight != y.weight || x.effects {
            return false;
        }
        match (x.expression, y.expression) {
            (Negate(a), Negate(b))
            | (Invert(a), Invert(b))
            | (Not(a), Not(b))
            | (Deref(a), Deref(b))
            | (Address(a), Address(b))
            | (Cast(a), Cast(b)) => self.alike(a, b),
            (
                Member {
                    of: a,
                    offset,
                    bits,
                },
                Member {
                    of: b,
                    offset: o,
                    bits: c,
                },
            ) => offset == o && bits == c && self.alike(a, b),
            (Arithmetic(k, a, b), Arithmetic(l, c, d)) => {
                k == l && self.alike(a, c) && self.alike(b, d)
            }
            (Compare(k, a, b), Compare(l, c, d)) => k == l && self.alike(a, c) && self.alike(b, d),
            (LogicalAnd(a, b), LogicalAnd(c, d))
            | (LogicalOr(a, b), LogicalOr(c, d))
            | (Comma(a, b), Comma(c, d)) => self.alike(a, c) && self.alike(b, d),
            (
                PointerAdd {
                    pointer: a,
                    index: b,
                    size,
                },
                PointerAdd {
                    pointer: c,
                    index: d,
                    size: s,
                },
            ) => size == s && self.alike(a, c) && self.alike(b, d),
            (
                PointerDifference {
                    left: a,
                    right: b,
                    size,
                },
                PointerDifference {
                    left: c,
                    right: d,
                    size: s,
                },
            ) => size == s && self.alike(a, c) && self.alike(b, d),
            (Conditional { .. } | Builtin { .. } | Error, _) => false,
            (a, b) => a == b, // what has no operands; the rest has effects
        }
    }

    /// The difference of two pointers: exact if they point into one object of at most 2 GiB.
    fn pointer_difference(&mut self, left: NodeId, right: NodeId, size: u32) -> Value {
        let a = self.lower(left);
        let a = self.protect(a, Scalar::I64, right);
        let b = self.lower(right);
        let difference = self.arith(Op::Sub, Scalar::I32, a, b);
        // The difference is a multiple of the size, so a division is a shift and a product with an
        // odd number's inverse.
        let shift = u64::from(size).trailing_zeros();
        let wide = self.extend(difference, Scalar::I32, false);
        let shifted = self.arith(Op::Sar, Scalar::I64, wide, Value::Constant(shift.into()));
        let odd = u64::from(size).checked_shr(shift).unwrap_or(0);
        if odd == 1 {
            return shifted;
        }
        let mut inverse = odd;
        for _ in 0..6 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        }
        self.arith(
            Op::Mul,
            Scalar::I64,
            shifted,
            Value::Constant(inverse as i64),
        )
    }

    fn conditional(&mut self, of: Type, condition: NodeId, yes: NodeId, no: NodeId) -> Value {
        use Expression::{Integer, Register};
        let ty = self.register_type(of);
        let simple = |n| matches!(self.tree.get(n).expression, Integer(_) | Register(_));
        let simple = simple(yes) && simple(no);
        let result = self.code.variable(ty.is_float());
        if !ty.is_float() && simple && self.integer_condition(condition) {
            // Neither costs anything, so both are computed and a conditional move chooses.
            let test = self.comparison(condition);
            let c = self.lower(yes);
            let c = self.register(c);
            let otherwise = self.lower(no);
            self.store_register(result, otherwise, ty);
            self.code.push(Inst {
                c,
                dst: result,
                ..test.instruction(test.select())
            });
            return Value::Register(result);
        }
        let (t, f, end) = (self.code.block(), self.code.block(), self.code.block());
        self.branch(condition, t, f);
        for (block, n) in [(t, yes), (f, no)] {
            self.arm(block, end, |lower| {
                let fresh = lower.code.ins.len();
                match lower.lower(n) {
                    Value::Register(v) => lower.code.assign(result, v, ty, fresh),
                    constant => lower.store_register(result, constant, ty),
                }
            });
        }
        self.code.begin(end);
        Value::Register(result)
    }

    /// One of the ways that lead to the block `end`: what `emit` learns about values holds nowhere
    /// else.
    pub(crate) fn arm(&mut self, block: u32, end: u32, emit: impl FnOnce(&mut Self)) {
        self.code.values.enter();
        self.code.begin(block);
        emit(self);
        self.code.jump(end);
        self.code.values.leave();
    }

    /// `&&` and `||` as values.
    fn logical(&mut self, n: NodeId) -> Value {
        let result = self.code.variable(false);
        let (t, f, end) = (self.code.block(), self.code.block(), self.code.block());
        self.branch(n, t, f);
        for (block, imm) in [(t, 1), (f, 0)] {
            self.arm(block, end, |lower| {
                lower.code.push(Inst {
                    op: Op::Imm,
                    ty: Scalar::I32,
                    dst: result,
                    imm,
                    ..NOP
                });
            });
        }
        self.code.begin(end);
        Value::Register(result)
    }
}
