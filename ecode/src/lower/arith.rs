//! Integer arithmetic with the cheap optimisations: constants are computed, products and quotients
//! by constants become shifts and multiplications.

use super::{Lowering, Value};
use crate::fold::compute;
use crate::ir::{Detail, Inst, NONE, NOP, Op, Scalar};

impl Lowering<'_> {
    pub(crate) fn unary(&mut self, op: Op, ty: Scalar, a: Value) -> Value {
        match (a, op) {
            (Value::Constant(a), Op::Neg) => Value::Constant(if ty.wide() {
                a.wrapping_neg()
            } else {
                (a as i32).wrapping_neg().into()
            }),
            (Value::Constant(a), _) => Value::Constant(!a),
            (Value::Register(a), _) => Value::Register(self.code.pure(Inst { op, ty, a, ..NOP })),
        }
    }

    /// `a op b` on integers of width `ty`.
    pub(crate) fn arith(&mut self, op: Op, ty: Scalar, a: Value, b: Value) -> Value {
        if let (Value::Constant(a), Value::Constant(b)) = (a, b)
            && let Some(value) = compute(op, ty.wide(), a, b)
        {
            return Value::Constant(value);
        }
        let commutes = matches!(op, Op::Add | Op::Mul | Op::And | Op::Or | Op::Xor);
        let (a, b) = if commutes && matches!(a, Value::Constant(_)) {
            (b, a)
        } else {
            (a, b)
        };
        if let (Value::Register(v), Value::Constant(constant)) = (a, b)
            && let Some(value) = self.by_constant(op, ty, v, constant)
        {
            return value;
        }
        if let (Op::Sub, Value::Constant(0)) = (op, a) {
            return self.unary(Op::Neg, ty, b);
        }
        let a = self.register(a);
        match b {
            Value::Constant(imm)
                if i32::try_from(imm).is_ok()
                    && !matches!(op, Op::Div | Op::Mod | Op::UDiv | Op::UMod) =>
            {
                Value::Register(self.code.pure(Inst {
                    op,
                    ty,
                    a,
                    imm,
                    ..NOP
                }))
            }
            _ => {
                let b = self.register(b);
                if matches!(op, Op::Div | Op::Mod | Op::UDiv | Op::UMod) {
                    let dst = self.code.temp(false);
                    self.code.push(Inst {
                        op,
                        ty,
                        dst,
                        a,
                        b,
                        ..NOP
                    });
                    return Value::Register(dst);
                }
                // One order for both, so that they are found to be the same.
                let (a, b) = if commutes && a > b { (b, a) } else { (a, b) };
                Value::Register(self.code.pure(Inst {
                    op,
                    ty,
                    a,
                    b,
                    ..NOP
                }))
            }
        }
    }

    fn simple(&mut self, op: Op, ty: Scalar, a: Value, imm: i64) -> Value {
        self.arith(op, ty, a, Value::Constant(imm))
    }

    /// The cheaper ways with a constant on the right.
    fn by_constant(&mut self, op: Op, ty: Scalar, v: u32, constant: i64) -> Option<Value> {
        let a = Value::Register(v);
        let bits = if ty.wide() { 64 } else { 32 };
        let unsigned = if ty.wide() {
            constant as u64
        } else {
            u64::from(constant as u32)
        };
        match (op, constant) {
            (Op::Add | Op::Sub | Op::Or | Op::Xor, 0) | (Op::Mul, 1) | (Op::And, -1) => Some(a),
            (Op::Mul | Op::And, 0) => Some(Value::Constant(0)),
            (Op::Or, -1) => Some(Value::Constant(-1)),
            (Op::Xor, -1) => Some(self.unary(Op::Not, ty, a)),
            (Op::Mul, -1) => Some(self.unary(Op::Neg, ty, a)),
            (Op::Shl | Op::Shr | Op::Sar, _) => {
                let count = constant & (bits - 1);
                if count == 0 {
                    return Some(a);
                }
                (count != constant).then(|| self.simple(op, ty, a, count))
            }
            (Op::Sub, _) if constant != i32::MIN.into() && i32::try_from(constant).is_ok() => {
                Some(self.simple(Op::Add, ty, a, -constant))
            }
            (Op::Mul, _) if unsigned.is_power_of_two() => {
                Some(self.simple(Op::Shl, ty, a, unsigned.trailing_zeros().into()))
            }
            (Op::Mul, 3 | 5 | 9) => {
                let scale = constant as u8 - 1;
                Some(Value::Register(self.code.pure(Inst {
                    op: Op::Lea,
                    ty,
                    b: v,
                    c: v,
                    scale,
                    ..NOP
                })))
            }
            (Op::UDiv, _) if unsigned.is_power_of_two() => {
                Some(self.simple(Op::Shr, ty, a, unsigned.trailing_zeros().into()))
            }
            (Op::UMod, _) if unsigned.is_power_of_two() => {
                let mask = unsigned.wrapping_sub(1) as i64;
                Some(self.simple(
                    Op::And,
                    ty,
                    a,
                    if ty.wide() { mask } else { mask as i32 as i64 },
                ))
            }
            (Op::Div | Op::Mod, 2..) if constant & (constant - 1) == 0 => {
                let shift = constant.trailing_zeros() as i64;
                let sign = self.simple(Op::Sar, ty, a, bits - 1);
                let bias = self.simple(Op::Shr, ty, sign, bits - shift);
                let biased = self.arith(Op::Add, ty, a, bias);
                if op == Op::Div {
                    return Some(self.simple(Op::Sar, ty, biased, shift));
                }
                let whole = self.simple(Op::And, ty, biased, -constant);
                Some(self.arith(Op::Sub, ty, a, whole))
            }
            (Op::Div | Op::Mod, 3..) if !ty.wide() => {
                let log = 64 - ((constant - 1) as u64).leading_zeros();
                let magic = ((1u64 << (31 + log)) / constant as u64 + 1) as i64;
                let wide = self.extend(a, Scalar::I32, false);
                let product = self.arith(Op::Mul, Scalar::I64, wide, Value::Constant(magic));
                let high = self.simple(Op::Sar, Scalar::I64, product, i64::from(31 + log));
                let sign = self.simple(Op::Sar, Scalar::I32, a, 31);
                let quotient = self.arith(Op::Sub, Scalar::I32, high, sign);
                Some(self.remainder(op == Op::Div, ty, a, quotient, constant))
            }
            (Op::UDiv | Op::UMod, _) if !ty.wide() && unsigned > 2 => {
                let log = 64 - (unsigned - 1).leading_zeros();
                let (mut magic, mut shift) =
                    ((1u128 << (32 + log)) / u128::from(unsigned) + 1, 32 + log);
                while magic & 1 == 0 && shift > 32 {
                    (magic, shift) = (magic >> 1, shift - 1);
                }
                let wide = self.extend(a, Scalar::I32, true);
                let quotient = if magic < 1 << 32 {
                    let product =
                        self.arith(Op::Mul, Scalar::I64, wide, Value::Constant(magic as i64));
                    self.simple(Op::Shr, Scalar::I64, product, shift.into())
                } else {
                    let magic = ((1u128 << 64) / u128::from(unsigned) + 1) as i64;
                    let (a, b) = (self.register(wide), self.register(Value::Constant(magic)));
                    Value::Register(self.code.pure(Inst {
                        op: Op::MulHigh,
                        ty: Scalar::I64,
                        a,
                        b,
                        ..NOP
                    }))
                };
                Some(self.remainder(op == Op::UDiv, ty, a, quotient, constant))
            }
            _ => None,
        }
    }

    fn remainder(
        &mut self,
        division: bool,
        ty: Scalar,
        a: Value,
        quotient: Value,
        divisor: i64,
    ) -> Value {
        if division {
            return quotient;
        }
        let whole = self.simple(Op::Mul, ty, quotient, divisor);
        self.arith(Op::Sub, ty, a, whole)
    }

    /// Extends the low part of a value to 64 bits.
    pub(crate) fn extend(&mut self, value: Value, from: Scalar, zero: bool) -> Value {
        match value {
            Value::Constant(constant) => Value::Constant(match (from, zero) {
                (Scalar::I8, _) => constant as i8 as i64,
                (Scalar::U8, _) => constant as u8 as i64,
                (Scalar::I16, _) => constant as i16 as i64,
                (Scalar::U16, _) => constant as u16 as i64,
                (Scalar::I32, false) => constant as i32 as i64,
                (Scalar::I32, true) => constant as u32 as i64,
                _ => constant,
            }),
            Value::Register(a) => {
                let detail = if zero {
                    Detail::ZeroExtend
                } else {
                    Detail::Nothing
                };
                Value::Register(self.code.pure(Inst {
                    op: Op::Extend,
                    ty: from,
                    detail,
                    a,
                    b: NONE,
                    ..NOP
                }))
            }
        }
    }
}
