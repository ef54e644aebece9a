//! Where lvalues are: addresses as the processor's operands, `sym + disp + base + index * scale`.
//!
//! An address counts modulo 2^32, so indices are taken as they are: whether an `int` index would have been sign-extended
//! makes no difference, and constants inside an index move into the displacement.

use super::{Lowering, Val};
use crate::ir::{Ins, NONE, NOP, Op, T, V, sym};
use crate::tree::{K, N};
use crate::types::Type;

/// A memory operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addr {
    pub base: V,
    pub index: V,
    pub scale: u8,
    pub sym: u32,
    pub disp: i32,
    pub volatile: bool,
}

const NOWHERE: Addr = Addr {
    base: NONE,
    index: NONE,
    scale: 1,
    sym: 0,
    disp: 0,
    volatile: false,
};

impl Addr {
    pub fn symbol(sym: u32) -> Addr {
        Addr { sym, ..NOWHERE }
    }
    pub fn at(base: V) -> Addr {
        Addr { base, ..NOWHERE }
    }
    pub fn plus(self, offset: i64) -> Addr {
        Addr {
            disp: self.disp.wrapping_add(offset as i32),
            ..self
        }
    }
    /// `ins` with this memory operand.
    pub fn on(self, ins: Ins) -> Ins {
        Ins {
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
    pub(crate) fn address(&mut self, n: N) -> Addr {
        let node = *self.tree.get(n);
        let mut addr = match node.kind {
            K::Slot => Addr::symbol(sym::FRAME + self.slot(&node)),
            K::Global => Addr::symbol(sym::GLOBAL + node.a),
            K::Text => Addr::symbol(sym::RODATA).plus(node.value as i64),
            K::Deref => self.pointer_address(node.a),
            K::Member => self.address(node.a).plus(node.value as i64),
            K::Literal => {
                self.initialize(node.a, node.b, node.c);
                Addr::symbol(sym::FRAME + self.slot(&node))
            }
            _ => self.structure(n),
        };
        addr.volatile |= node.ty.is_volatile();
        addr
    }

    /// Where a pointer points.
    pub(crate) fn pointer_address(&mut self, n: N) -> Addr {
        let node = *self.tree.get(n);
        match node.kind {
            K::Address => self.address(node.a),
            K::PtrAdd | K::PtrSub => {
                let addr = self.pointer_address(node.a);
                let addr = self.protect_address(addr, node.b);
                let size = if node.kind == K::PtrAdd {
                    node.value as i64
                } else {
                    -(node.value as i64)
                };
                self.indexed(addr, node.b, size)
            }
            K::Cast if self.types.is_pointer(self.tree.get(node.a).ty) => {
                self.pointer_address(node.a)
            }
            K::PostAdd if self.tree.get(node.a).kind == K::Register => {
                // The old value is the new one less what was added; nobody sees the difference.
                let base = self.variable(self.tree.get(node.a));
                self.add_to(&node, false);
                Addr::at(base).plus(-(node.value as i64))
            }
            K::Int => Addr {
                disp: node.value as i32,
                ..NOWHERE
            },
            _ => match self.lower(n) {
                Val::I(constant) => Addr {
                    disp: constant as i32,
                    ..NOWHERE
                },
                Val::V(v) => Addr::at(v),
            },
        }
    }

    /// Keeps an address while `later` is evaluated.
    pub(crate) fn protect_address(&mut self, addr: Addr, later: N) -> Addr {
        if !self.tree.get(later).effects {
            return addr;
        }
        let mut keep = |v: V| match v {
            NONE => NONE,
            _ => match self.protect(Val::V(v), T::I64, later) {
                Val::V(v) => v,
                Val::I(_) => v,
            },
        };
        Addr {
            base: keep(addr.base),
            index: keep(addr.index),
            ..addr
        }
    }

    /// `addr` plus the integer `n` times `size`.
    fn indexed(&mut self, addr: Addr, n: N, size: i64) -> Addr {
        let node = *self.tree.get(n);
        match node.kind {
            K::Int => return addr.plus((node.value as i64).wrapping_mul(size)),
            // Conversions that only change upper bits.
            K::Cast
                if self.types.is_integer(self.tree.get(node.a).ty)
                    && self.types.size(node.ty) >= 4
                    && self.types.size(self.tree.get(node.a).ty) >= 4 =>
            {
                return self.indexed(addr, node.a, size);
            }
            K::Add | K::Sub if self.types.size(node.ty) >= 4 => {
                let right = *self.tree.get(node.b);
                if right.kind == K::Int {
                    let offset = (right.value as i64).wrapping_mul(size);
                    let offset = if node.kind == K::Add {
                        offset
                    } else {
                        offset.wrapping_neg()
                    };
                    return self.indexed(addr.plus(offset), node.a, size);
                }
                let left = *self.tree.get(node.a);
                if left.kind == K::Int && node.kind == K::Add {
                    return self.indexed(
                        addr.plus((left.value as i64).wrapping_mul(size)),
                        node.b,
                        size,
                    );
                }
            }
            _ => {}
        }
        let index = match self.lower(n) {
            Val::I(constant) => return addr.plus(constant.wrapping_mul(size)),
            Val::V(v) => v,
        };
        if addr.index == NONE && matches!(size, 1 | 2 | 4 | 8) {
            return Addr {
                index,
                scale: size as u8,
                ..addr
            };
        }
        let size32 = size as i32 as i64;
        let (scaled, scale) = match size {
            _ if matches!(size, 1 | 2 | 4 | 8) => (index, size as u8),
            _ => match self.arith(Op::Mul, T::I32, Val::V(index), Val::I(size32)) {
                Val::V(v) => (v, 1),
                Val::I(constant) => return addr.plus(constant),
            },
        };
        if addr.base == NONE && scale == 1 {
            return Addr {
                base: scaled,
                ..addr
            };
        }
        let addr = if addr.index != NONE {
            self.folded(addr)
        } else {
            addr
        };
        Addr {
            index: scaled,
            scale,
            ..addr
        }
    }

    /// The address in one register; a symbol without registers stays a symbol.
    fn folded(&mut self, addr: Addr) -> Addr {
        let volatile = addr.volatile;
        // The displacement stays outside, so that neighbours have the rest in common.
        let disp = if addr.sym == 0 { addr.disp } else { 0 };
        let inner = Addr {
            disp: addr.disp - disp,
            ..addr
        };
        let base = self.code.pure(inner.on(Ins {
            op: Op::Lea,
            ty: T::I32,
            ..NOP
        }));
        Addr {
            base,
            disp,
            volatile,
            ..NOWHERE
        }
    }

    /// The address as a pointer value.
    pub(crate) fn pointer(&mut self, addr: Addr) -> Val {
        if addr.sym == 0 && addr.index == NONE {
            if addr.base == NONE {
                return Val::I(addr.disp as u32 as i64);
            }
            if addr.disp == 0 {
                return Val::V(addr.base);
            }
            return Val::V(self.code.pure(Ins {
                op: Op::Add,
                ty: T::I32,
                a: addr.base,
                imm: addr.disp.into(),
                ..NOP
            }));
        }
        Val::V(self.code.pure(addr.on(Ins {
            op: Op::Lea,
            ty: T::I32,
            ..NOP
        })))
    }

    /// Reads a scalar.
    pub(crate) fn load(&mut self, addr: Addr, ty: Type) -> Val {
        let memory = self.memory_type(ty);
        let ins = addr.on(Ins {
            op: Op::Load,
            ty: memory,
            ..NOP
        });
        if addr.volatile || ty.is_volatile() {
            let dst = self.code.temp(memory.is_float());
            self.code.values.clobber();
            self.code.push(Ins { dst, cc: 1, ..ins });
            return Val::V(dst);
        }
        Val::V(self.code.pure(ins))
    }

    /// Writes a scalar.
    pub(crate) fn store(&mut self, addr: Addr, ty: Type, value: Val) {
        let memory = self.memory_type(ty);
        self.code.values.clobber();
        let ins = addr.on(Ins {
            op: Op::Store,
            ty: memory,
            ..NOP
        });
        match value {
            Val::I(imm) if i32::try_from(imm).is_ok() => self.code.push(Ins { imm, ..ins }),
            _ => {
                let a = self.register(value);
                self.code.push(Ins { a, ..ins });
            }
        }
    }
}
