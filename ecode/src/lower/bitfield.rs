//! Bit-fields: read and written with the bytes that they lie in, and no others.

use super::{Lowering, MemoryOperand, Value};
use crate::ir::{Op, Scalar};
use crate::types::{Bits, INT, LONG, Type, UCHAR, ULONG, USHORT};

/// Bytes that are read and written in one go: where they begin, and how many.
type Piece = (u32, u32);

impl Lowering<'_> {
    /// The pieces of a bit-field of this type: the type's bytes, or as many as the bits lie in.
    fn pieces(&self, ty: Type, bits: Bits) -> impl Iterator<Item = Piece> + use<> {
        let size = self.types.size(ty);
        let end = match bits.whole {
            true => size,
            false => (u32::from(bits.first) + u32::from(bits.width)).div_ceil(8),
        };
        let mut at = 0;
        core::iter::from_fn(move || {
            let length = match end - at {
                0 => return None,
                8.. => 8,
                4.. => 4,
                2.. => 2,
                _ => 1,
            };
            at += length;
            Some((at - length, length))
        })
    }

    /// Cuts a value to the bits and extends it again.
    pub(crate) fn bits_value(&mut self, value: Value, ty: Type, bits: Bits) -> Value {
        self.cut(value, self.register_type(ty), 0, ty, bits)
    }

    /// The bits of a value from `first` on, extended as the type is.
    fn cut(&mut self, value: Value, register: Scalar, first: u32, ty: Type, bits: Bits) -> Value {
        let all = if register.wide() { 64 } else { 32 };
        let width = u32::from(bits.width);
        let up = Value::Constant((all - first - width).into());
        let down = Value::Constant((all - width).into());
        let value = self.arith(Op::Shl, register, value, up);
        let op = if self.has_sign(ty) { Op::Sar } else { Op::Shr };
        self.arith(op, register, value, down)
    }

    /// A piece as an integer of 64 bits without a sign; of 32 if that is all that there is.
    fn piece(&mut self, addr: MemoryOperand, length: u32) -> Value {
        let ty = match length {
            1 => UCHAR,
            2 => USHORT,
            4 => INT,
            _ => LONG,
        };
        self.load(addr, ty)
    }

    pub(crate) fn load_bits(&mut self, addr: MemoryOperand, ty: Type) -> Value {
        let bits = addr.bits;
        let addr = MemoryOperand {
            bits: Bits::NONE,
            volatile: addr.volatile || ty.is_volatile(),
            ..addr
        };
        if bits.whole {
            let value = self.piece(addr, self.types.size(ty));
            return self.cut(value, self.register_type(ty), bits.first.into(), ty, bits);
        }
        let wide = Scalar::I64;
        let mut all = Value::Constant(0);
        for (at, length) in self.pieces(ty, bits) {
            let mut value = self.piece(addr.plus(at.into()), length);
            if length < 8 {
                value = self.extend(value, Scalar::I32, true);
            }
            let shift = i64::from(at) * 8 - i64::from(bits.first);
            let op = if shift < 0 { Op::Shr } else { Op::Shl };
            value = self.arith(op, wide, value, Value::Constant(shift.abs()));
            all = self.arith(Op::Or, wide, all, value);
        }
        self.cut(all, wide, 0, ty, bits)
    }

    pub(crate) fn store_bits(&mut self, addr: MemoryOperand, ty: Type, value: Value) {
        let bits = addr.bits;
        let addr = MemoryOperand {
            bits: Bits::NONE,
            volatile: addr.volatile || ty.is_volatile(),
            ..addr
        };
        for (at, length) in self.pieces(ty, bits) {
            let register = if length == 8 || !bits.whole {
                Scalar::I64
            } else {
                Scalar::I32
            };
            let shift = i64::from(bits.first) - i64::from(at) * 8;
            let (first, last) = (
                shift.max(0),
                (shift + i64::from(bits.width)).min(i64::from(length) * 8),
            );
            let ones = u64::MAX >> (64 - (last - first));
            let mask = ones << first;
            let op = if shift < 0 { Op::Shr } else { Op::Shl };
            let moved = self.arith(op, register, value, Value::Constant(shift.abs()));
            let place = addr.plus(at.into());
            let stored = match length {
                1 => UCHAR,
                2 => USHORT,
                4 => INT,
                _ => ULONG,
            };
            if last - first == i64::from(length) * 8 {
                self.store(place, stored, moved);
                continue;
            }
            let constant = |mask: u64| match register {
                Scalar::I64 => Value::Constant(mask as i64),
                _ => Value::Constant(mask as i32 as i64),
            };
            let new = self.arith(Op::And, register, moved, constant(mask));
            let old = self.piece(place, length);
            let old = self.arith(Op::And, register, old, constant(!mask));
            let all = self.arith(Op::Or, register, old, new);
            self.store(place, stored, all);
        }
    }
}
