//! Floating-point and vector instructions, up to SSE2.

use crate::assembler::Assembler;
use crate::encode::{Imm, Opcode};
use crate::operand::{Mem, Rm};
use crate::register::{Gpr, Width, Xmm};

/// Bits of a floating-point number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// 32.
    Single,
    /// 64.
    Double,
}

impl Precision {
    /// Before instructions on one such number.
    const fn scalar(self) -> u8 {
        match self {
            Precision::Single => 0xf3,
            Precision::Double => 0xf2,
        }
    }
}

/// Operations on one number of each operand. Their numbers are opcodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum FloatOp {
    /// Of the source alone.
    Sqrt = 0x51,
    Add = 0x58,
    Mul = 0x59,
    Sub = 0x5c,
    Min = 0x5d,
    Div = 0x5e,
    Max = 0x5f,
}

/// Moves and operations on whole registers: from xmm or memory to xmm.
macro_rules! packed {
    ($($name:ident $prefix:literal $byte:literal $text:literal;)*) => {$(
        #[doc = $text]
        #[inline]
        pub fn $name(&mut self, dst: Xmm, src: impl Into<Rm<Xmm>>) {
            let opcode = Opcode::escaped($byte).prefix($prefix);
            self.emit(opcode, dst.number(), src.into().numbered(), Imm::NONE);
        }
    )*};
}

impl Assembler {
    /// `movss`, `movsd`: one number from memory; the rest of the register becomes 0.
    #[inline]
    pub fn mov_scalar(&mut self, precision: Precision, dst: Xmm, src: Mem) {
        let opcode = Opcode::escaped(0x10).prefix(precision.scalar());
        self.emit(opcode, dst.number(), Rm::Mem(src), Imm::NONE);
    }

    /// `movss`, `movsd`: one number to memory.
    #[inline]
    pub fn mov_scalar_mr(&mut self, precision: Precision, dst: Mem, src: Xmm) {
        let opcode = Opcode::escaped(0x11).prefix(precision.scalar());
        self.emit(opcode, src.number(), Rm::Mem(dst), Imm::NONE);
    }

    packed! {
        movaps 0 0x28 "`movaps`: all of it; memory must be aligned to 16 bytes.";
        movups 0 0x10 "`movups`: all of it, from anywhere.";
        xorps 0 0x57 "`xorps`; memory must be aligned to 16 bytes.";
        movq 0xf3 0x7e "`movq`: the lower half; the upper one becomes 0.";
    }

    /// `movups`: all of it, to anywhere.
    #[inline]
    pub fn movups_mr(&mut self, dst: Mem, src: Xmm) {
        self.emit(Opcode::escaped(0x11), src.number(), Rm::Mem(dst), Imm::NONE);
    }

    /// `movq`: the lower half to memory.
    #[inline]
    pub fn movq_mr(&mut self, dst: Mem, src: Xmm) {
        let opcode = Opcode::escaped(0xd6).prefix(0x66);
        self.emit(opcode, src.number(), Rm::Mem(dst), Imm::NONE);
    }

    /// `movd`, `movq`: 32 or 64 bits from where integers are; the rest becomes 0.
    #[inline]
    pub fn mov_from_int(&mut self, width: Width, dst: Xmm, src: impl Into<Rm<Gpr>>) {
        let opcode = Opcode::escaped(0x6e).width(width).prefix(0x66);
        self.emit(opcode, dst.number(), src.into().numbered(), Imm::NONE);
    }

    /// `movd`, `movq`: 32 or 64 bits to where integers are.
    #[inline]
    pub fn mov_to_int(&mut self, width: Width, dst: impl Into<Rm<Gpr>>, src: Xmm) {
        let opcode = Opcode::escaped(0x7e).width(width).prefix(0x66);
        self.emit(opcode, src.number(), dst.into().numbered(), Imm::NONE);
    }

    /// `addsd` and its like: `dst = dst op src`.
    #[inline]
    pub fn float(&mut self, op: FloatOp, precision: Precision, dst: Xmm, src: impl Into<Rm<Xmm>>) {
        let opcode = Opcode::escaped(op as u8).prefix(precision.scalar());
        self.emit(opcode, dst.number(), src.into().numbered(), Imm::NONE);
    }

    /// `ucomiss`, `ucomisd`: compares as unsigned integers are compared; without order, it sets the
    /// flags of `Below`, `Equal` and `Parity`.
    #[inline]
    pub fn ucomis(&mut self, precision: Precision, a: Xmm, b: impl Into<Rm<Xmm>>) {
        let prefix = match precision {
            Precision::Single => 0,
            Precision::Double => 0x66,
        };
        let opcode = Opcode::escaped(0x2e).prefix(prefix);
        self.emit(opcode, a.number(), b.into().numbered(), Imm::NONE);
    }

    /// `cvtsd2ss`, `cvtss2sd`: to this precision, from the other one.
    #[inline]
    pub fn convert(&mut self, to: Precision, dst: Xmm, src: impl Into<Rm<Xmm>>) {
        let from = match to {
            Precision::Single => Precision::Double,
            Precision::Double => Precision::Single,
        };
        let opcode = Opcode::escaped(0x5a).prefix(from.scalar());
        self.emit(opcode, dst.number(), src.into().numbered(), Imm::NONE);
    }

    /// `cvtsi2ss`, `cvtsi2sd`: from a signed integer of 32 or 64 bits. What else was in the
    /// register stays.
    #[inline]
    pub fn convert_from_int(
        &mut self,
        to: Precision,
        width: Width,
        dst: Xmm,
        src: impl Into<Rm<Gpr>>,
    ) {
        let opcode = Opcode::escaped(0x2a).width(width).prefix(to.scalar());
        self.emit(opcode, dst.number(), src.into().numbered(), Imm::NONE);
    }

    /// `cvttss2si`, `cvttsd2si`: to a signed integer of 32 or 64 bits, towards zero.
    #[inline]
    pub fn truncate_to_int(
        &mut self,
        from: Precision,
        width: Width,
        dst: Gpr,
        src: impl Into<Rm<Xmm>>,
    ) {
        let opcode = Opcode::escaped(0x2c).width(width).prefix(from.scalar());
        self.emit(opcode, dst.number(), src.into().numbered(), Imm::NONE);
    }
}
