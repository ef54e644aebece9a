//! Where lvalues are: addresses as the processor's operands, `sym + disp + base + index * scale`.
//!
//! An address counts modulo 2^32, so indices are taken as they are: whether an `int` index would
//! have been sign-extended makes no difference, and constants inside an index move into the
//! displacement.

use super::{Lowering, Value};
use crate::ir::{Detail, Inst, NONE, NOP, Op, Scalar, VReg, sym};
use crate::tree::{Arithmetic, Expression, NodeId};
use crate::types::{Bits, Type};

/// A memory operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryOperand {
    pub base: VReg,
    pub index: VReg,
    pub scale: u8,
    pub sym: u32,
    pub disp: i32,
    pub volatile: bool,
    /// Of a bit-field: where its bits are behind the address.
    pub bits: Bits,
}

const NOWHERE: MemoryOperand = MemoryOperand {
    base: NONE,
    index: NONE,
    scale: 1,
    sym: 0,
    disp: 0,
    volatile: false,
    bits: Bits::NONE,
};

impl MemoryOperand {
    pub fn symbol(sym: u32) -> MemoryOperand {
        MemoryOperand { sym, ..NOWHERE }
    }
    pub fn at(base: VReg) -> MemoryOperand {
        MemoryOperand { base, ..NOWHERE }
    }
    pub fn plus(self, offset: i64) -> MemoryOperand {
        MemoryOperand {
            disp: self.disp.wrapping_add(offset as i32),
            ..self
        }
    }
    /// `ins` with this memory operand.
    pub fn on(self, ins: Inst) -> Inst {
        Inst {
            b: self.base,
            c: self.index,
            scale: self.scale,
            sym: self.sym,
            disp: self.disp,
            ..ins
        }
    }
}

impl Lowering<'_> {
    /// The address of an lvalue, or of a structure that an expression makes.
    pub(crate) fn address(&mut self, n: NodeId) -> MemoryOperand {
        let node = self.node(n);
        let mut addr = match node.expression {
            Expression::Memory(local) => MemoryOperand::symbol(sym::FRAME + self.place(local)),
            Expression::Global(global) => MemoryOperand::symbol(sym::GLOBAL + global),
            Expression::Text(start) => MemoryOperand::symbol(sym::RODATA).plus(start.into()),
            Expression::Deref(pointer) => self.pointer_address(pointer),
            Expression::Member { of, offset, bits } => MemoryOperand {
                bits,
                ..self.address(of).plus(offset.into())
            },
            Expression::Literal {
                local,
                first,
                count,
            } => {
                self.initialize(local, first, count);
                MemoryOperand::symbol(sym::FRAME + self.place(local))
            }
            _ => self.structure(n),
        };
        addr.volatile |= node.ty.is_volatile();
        addr
    }

    /// Where a pointer points.
    pub(crate) fn pointer_address(&mut self, n: NodeId) -> MemoryOperand {
        let node = self.node(n);
        match node.expression {
            Expression::Address(object) => self.address(object),
            Expression::PointerAdd {
                pointer,
                index,
                size,
            } => {
                let addr = self.pointer_address(pointer);
                let addr = self.protect_address(addr, index);
                self.indexed(addr, index, size.into())
            }
            Expression::Cast(from) if self.types.is_pointer(self.tree.get(from).ty) => {
                self.pointer_address(from)
            }
            Expression::Step {
                to,
                delta,
                post: true,
            } if self.variable(to).is_some() => {
                // The old value is the new one less what was added; nobody sees the difference.
                self.step(node, to, delta, false);
                let base = self.variable(to).unwrap_or(NONE);
                MemoryOperand::at(base).plus(-i64::from(delta))
            }
            Expression::Integer(value) => MemoryOperand {
                disp: value as i32,
                ..NOWHERE
            },
            _ => match self.lower(n) {
                Value::Constant(constant) => MemoryOperand {
                    disp: constant as i32,
                    ..NOWHERE
                },
                Value::Register(v) => MemoryOperand::at(v),
            },
        }
    }

    /// Keeps an address while `later` is evaluated.
    pub(crate) fn protect_address(&mut self, addr: MemoryOperand, later: NodeId) -> MemoryOperand {
        if !self.tree.get(later).effects {
            return addr;
        }
        let mut keep = |v: VReg| match v {
            NONE => NONE,
            _ => match self.protect(Value::Register(v), Scalar::I64, later) {
                Value::Register(v) => v,
                Value::Constant(_) => v,
            },
        };
        MemoryOperand {
            base: keep(addr.base),
            index: keep(addr.index),
            ..addr
        }
    }

    /// `addr` plus the integer `n` times `size`.
    fn indexed(&mut self, addr: MemoryOperand, n: NodeId, size: i64) -> MemoryOperand {
        let node = self.node(n);
        let wide = self.types.size(node.ty) >= 4;
        match node.expression {
            Expression::Integer(value) => {
                return addr.plus((value as i64).wrapping_mul(size));
            }
            // Conversions that only change upper bits.
            Expression::Cast(from) if wide => {
                let ty = self.tree.get(from).ty;
                if self.types.is_integer(ty) && self.types.size(ty) >= 4 {
                    return self.indexed(addr, from, size);
                }
            }
            Expression::Arithmetic(kind @ (Arithmetic::Add | Arithmetic::Sub), left, right)
                if wide =>
            {
                let minus = kind == Arithmetic::Sub;
                if let Expression::Integer(value) = self.tree.get(right).expression {
                    let offset = (value as i64).wrapping_mul(size);
                    let offset = if minus { offset.wrapping_neg() } else { offset };
                    return self.indexed(addr.plus(offset), left, size);
                }
                if let (Expression::Integer(value), false) = (self.tree.get(left).expression, minus)
                {
                    let offset = (value as i64).wrapping_mul(size);
                    return self.indexed(addr.plus(offset), right, size);
                }
            }
            _ => {}
        }
        let index = match self.lower(n) {
            Value::Constant(constant) => return addr.plus(constant.wrapping_mul(size)),
            Value::Register(v) => v,
        };
        if addr.index == NONE && matches!(size, 1 | 2 | 4 | 8) {
            return MemoryOperand {
                index,
                scale: size as u8,
                ..addr
            };
        }
        let size32 = size as i32 as i64;
        let (scaled, scale) = match size {
            _ if matches!(size, 1 | 2 | 4 | 8) => (index, size as u8),
            _ => match self.arith(
                Op::Mul,
                Scalar::I32,
                Value::Register(index),
                Value::Constant(size32),
            ) {
                Value::Register(v) => (v, 1),
                Value::Constant(constant) => return addr.plus(constant),
            },
        };
        if addr.base == NONE && scale == 1 {
            return MemoryOperand {
                base: scaled,
                ..addr
            };
        }
        let addr = if addr.index != NONE {
            self.folded(addr)
        } else {
            addr
        };
        MemoryOperand {
            index: scaled,
            scale,
            ..addr
        }
    }

    /// The address in one register; a symbol without registers stays a symbol.
    fn folded(&mut self, addr: MemoryOperand) -> MemoryOperand {
        let volatile = addr.volatile;
        // The displacement stays outside, so that neighbours have the rest in common.
        let disp = if addr.sym == 0 { addr.disp } else { 0 };
        let inner = MemoryOperand {
            disp: addr.disp - disp,
            ..addr
        };
        let base = self.code.pure(inner.on(Inst {
            op: Op::Lea,
            ty: Scalar::I32,
            ..NOP
        }));
        MemoryOperand {
            base,
            disp,
            volatile,
            bits: addr.bits,
            ..NOWHERE
        }
    }

    /// The address as a pointer value.
    pub(crate) fn pointer(&mut self, addr: MemoryOperand) -> Value {
        if addr.sym == 0 && addr.index == NONE {
            if addr.base == NONE {
                return Value::Constant(addr.disp as u32 as i64);
            }
            if addr.disp == 0 {
                return Value::Register(addr.base);
            }
            return Value::Register(self.code.pure(Inst {
                op: Op::Add,
                ty: Scalar::I32,
                a: addr.base,
                imm: addr.disp.into(),
                ..NOP
            }));
        }
        Value::Register(self.code.pure(addr.on(Inst {
            op: Op::Lea,
            ty: Scalar::I32,
            ..NOP
        })))
    }

    /// Reads a scalar.
    pub(crate) fn load(&mut self, addr: MemoryOperand, ty: Type) -> Value {
        if addr.bits.any() {
            return self.load_bits(addr, ty);
        }
        let memory = self.memory_type(ty);
        let ins = addr.on(Inst {
            op: Op::Load,
            ty: memory,
            ..NOP
        });
        if addr.volatile || ty.is_volatile() {
            let dst = self.code.temp(memory.is_float());
            self.code.values.clobber();
            self.code.push(Inst {
                dst,
                detail: Detail::Volatile,
                ..ins
            });
            return Value::Register(dst);
        }
        Value::Register(self.code.pure(ins))
    }

    /// Writes a scalar.
    pub(crate) fn store(&mut self, addr: MemoryOperand, ty: Type, value: Value) {
        if addr.bits.any() {
            return self.store_bits(addr, ty, value);
        }
        let memory = self.memory_type(ty);
        self.code.values.clobber();
        let ins = addr.on(Inst {
            op: Op::Store,
            ty: memory,
            ..NOP
        });
        match value {
            Value::Constant(imm) if i32::try_from(imm).is_ok() => {
                self.code.push(Inst { imm, ..ins })
            }
            _ => {
                let a = self.register(value);
                self.code.push(Inst { a, ..ins });
            }
        }
    }
}
