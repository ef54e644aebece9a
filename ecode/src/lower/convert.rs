//! Conversions between scalar types.

use super::{Lowering, Value};
use crate::float;
use crate::ir::{Detail, Inst, NOP, Op, Scalar};
use crate::tree::{Expression, NodeId};
use crate::types::{DOUBLE, FLOAT, Type, TypeKind};
use postern_x86::Cond;

/// 2^63.
const TWO_63: u64 = 0x43e0_0000_0000_0000;

impl Lowering<'_> {
    pub(crate) fn cast(&mut self, n: NodeId, to: Type) -> Value {
        let from = self.tree.get(n).ty;
        if self.types.kind(to) == TypeKind::Void {
            self.discard(n);
            return Value::Constant(0);
        }
        if self.types.kind(to) == TypeKind::Bool {
            return self.truth_of(n);
        }
        let n = if self.types.is_integer(to) {
            self.narrowed(n, self.types.size(to))
        } else {
            n
        };
        let from = if self.types.is_integer(to) {
            self.tree.get(n).ty
        } else {
            from
        };
        let value = self.lower(n);
        self.convert(value, from, to)
    }

    /// The tree without conversions that do not change the low `size` bytes.
    pub(crate) fn narrowed(&self, mut n: NodeId, size: u32) -> NodeId {
        loop {
            let node = self.tree.get(n);
            let Expression::Cast(from) = node.expression else {
                return n;
            };
            if !self.types.is_integer(node.ty) || self.types.kind(node.ty) == TypeKind::Bool {
                return n;
            }
            let inner = self.tree.get(from).ty;
            if !self.types.is_integer(inner)
                || self.types.size(inner) < size
                || self.types.size(node.ty) < size
            {
                return n;
            }
            n = from;
        }
    }

    /// A value of type `from` as one of type `to`.
    pub(crate) fn convert(&mut self, value: Value, from: Type, to: Type) -> Value {
        let (from_float, to_float) = (self.types.is_float(from), self.types.is_float(to));
        match (from_float, to_float) {
            (false, false) => self.convert_integer(value, from, to),
            (true, true) if self.types.size(from) == self.types.size(to) => value,
            (true, true) => {
                let (a, ty) = (self.register(value), self.register_type(to));
                Value::Register(self.code.pure(Inst {
                    op: Op::FCvt,
                    ty,
                    a,
                    ..NOP
                }))
            }
            (false, true) => self.make_float(value, from, to),
            (true, false) => self.make_integer(value, from, to),
        }
    }

    fn convert_integer(&mut self, value: Value, from: Type, to: Type) -> Value {
        let (from_size, to_size) = (self.types.size(from), self.types.size(to));
        if self.types.kind(to) == TypeKind::Bool {
            if self.types.kind(from) == TypeKind::Bool {
                return value;
            }
            return match value {
                Value::Constant(constant) => Value::Constant(i64::from(constant != 0)),
                Value::Register(a) => {
                    let ty = self.compare_type(from);
                    Value::Register(self.code.pure(Inst {
                        op: Op::Set,
                        ty,
                        detail: Detail::Cond(Cond::NotEqual),
                        a,
                        ..NOP
                    }))
                }
            };
        }
        let to_type = self.memory_type(to);
        if to_size < 4 {
            let fits = from_size < to_size && self.types.is_unsigned(from)
                || self.memory_type(from) == to_type;
            let widens = from_size < to_size && !self.types.is_unsigned(to);
            return if fits || widens {
                value
            } else {
                self.extend(value, to_type, false)
            };
        }
        if to_size == 8 && from_size < 8 {
            // Values of small types are kept extended to 32 bits.
            return self.extend(value, Scalar::I32, self.types.is_unsigned(from));
        }
        match value {
            Value::Constant(constant) if to_size == 4 => Value::Constant(constant as i32 as i64),
            other => other,
        }
    }

    fn make_float(&mut self, value: Value, from: Type, to: Type) -> Value {
        let ty = self.register_type(to);
        let unsigned = self.types.is_unsigned(from);
        let size = self.types.size(from);
        if let Value::Constant(constant) = value {
            let single = ty == Scalar::F32;
            let exact = match (size, unsigned) {
                (8, true) => float::of_unsigned(constant as u64, single),
                // Rounded when it is stored, once.
                (4, true) => float::of_unsigned(constant as u32 as u64, false),
                (_, true) => float::of_signed(constant, false),
                _ => float::of_signed(constant, single),
            };
            return Value::Register(self.float_constant(to, exact));
        }
        let (value, width) = match (size, unsigned) {
            (8, _) => (value, Detail::Integer64),
            (4, true) => (self.extend(value, Scalar::I32, true), Detail::Integer64),
            _ => (value, Detail::Integer32),
        };
        let a = self.register(value);
        if !(size == 8 && unsigned) {
            return Value::Register(self.code.pure(Inst {
                op: Op::ToFloat,
                ty,
                detail: width,
                a,
                ..NOP
            }));
        }
        // Half of a large number, its last bit kept for rounding, and then twice that.
        let result = self.code.variable(true);
        let (small, large, end) = (self.code.block(), self.code.block(), self.code.block());
        self.code.end(
            Inst {
                op: Op::Branch,
                ty: Scalar::I64,
                detail: Detail::Cond(Cond::GreaterOrEqual),
                a,
                ..NOP
            },
            small,
            large,
        );
        self.arm(small, end, |lower| {
            lower.code.push(Inst {
                op: Op::ToFloat,
                ty,
                detail: Detail::Integer64,
                a,
                dst: result,
                ..NOP
            });
        });
        self.arm(large, end, |lower| {
            let half = lower.arith(Op::Shr, Scalar::I64, Value::Register(a), Value::Constant(1));
            let odd = lower.arith(Op::And, Scalar::I64, Value::Register(a), Value::Constant(1));
            let half = lower.arith(Op::Or, Scalar::I64, half, odd);
            let half = lower.register(half);
            let half = lower.code.pure(Inst {
                op: Op::ToFloat,
                ty,
                detail: Detail::Integer64,
                a: half,
                ..NOP
            });
            lower.code.push(Inst {
                op: Op::FAdd,
                ty,
                a: half,
                b: half,
                dst: result,
                ..NOP
            });
        });
        self.code.begin(end);
        Value::Register(result)
    }

    fn make_integer(&mut self, value: Value, from: Type, to: Type) -> Value {
        let ty = self.register_type(from);
        let a = self.register(value);
        let (size, unsigned) = (self.types.size(to), self.types.is_unsigned(to));
        if self.types.kind(to) == TypeKind::Bool {
            let zero = self.float_constant(if ty == Scalar::F32 { FLOAT } else { DOUBLE }, 0);
            return Value::Register(self.code.pure(Inst {
                op: Op::FSet,
                ty,
                detail: Detail::Cond(Cond::NotEqual),
                a,
                b: zero,
                ..NOP
            }));
        }
        if !(size == 8 && unsigned) {
            let width = if size == 8 || size == 4 && unsigned {
                Detail::Integer64
            } else {
                Detail::Integer32
            };
            let whole = Value::Register(self.code.pure(Inst {
                op: Op::ToInt,
                ty,
                detail: width,
                a,
                ..NOP
            }));
            return if size < 4 {
                self.extend(whole, self.memory_type(to), false)
            } else {
                whole
            };
        }
        let limit = self.float_constant(if ty == Scalar::F32 { FLOAT } else { DOUBLE }, TWO_63);
        let result = self.code.variable(false);
        let (large, small, end) = (self.code.block(), self.code.block(), self.code.block());
        self.code.end(
            Inst {
                op: Op::FBranch,
                ty,
                detail: Detail::Cond(Cond::AboveOrEqual),
                a,
                b: limit,
                ..NOP
            },
            large,
            small,
        );
        self.arm(small, end, |lower| {
            lower.code.push(Inst {
                op: Op::ToInt,
                ty,
                detail: Detail::Integer64,
                a,
                dst: result,
                ..NOP
            });
        });
        self.arm(large, end, |lower| {
            let less = lower.code.pure(Inst {
                op: Op::FSub,
                ty,
                a,
                b: limit,
                ..NOP
            });
            let less = lower.code.pure(Inst {
                op: Op::ToInt,
                ty,
                detail: Detail::Integer64,
                a: less,
                ..NOP
            });
            let top = lower.register(Value::Constant(i64::MIN));
            lower.code.push(Inst {
                op: Op::Xor,
                ty: Scalar::I64,
                a: less,
                b: top,
                dst: result,
                ..NOP
            });
        });
        self.code.begin(end);
        Value::Register(result)
    }
}
