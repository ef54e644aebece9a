//! Integer instructions.

use crate::assembler::{Assembler, ReferenceKind};
use crate::condition::Cond;
use crate::encode::{Imm, Opcode};
use crate::operand::{Mem, Rm, Symbol};
use crate::register::{Gpr, Width};

/// The operations that share the encodings of `add`. Their numbers are the processor's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Alu {
    Add,
    Or,
    Adc,
    Sbb,
    And,
    Sub,
    Xor,
    /// `sub` that keeps only the flags.
    Cmp,
}

/// Shifts and rotations. Their numbers are the processor's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Shift {
    Rol = 0,
    Ror = 1,
    Shl = 4,
    Shr = 5,
    Sar = 7,
}

/// The three methods of each operation.
macro_rules! alu {
    ($($op:ident $name:ident $mr:ident $mi:ident $text:literal;)*) => {$(
        #[doc = concat!("`", $text, " rm, reg`, see [`Assembler::alu`].")]
        #[inline]
        pub fn $name(&mut self, width: Width, dst: Gpr, src: impl Into<Rm<Gpr>>) {
            self.alu(Alu::$op, width, dst, src);
        }
        #[doc = concat!("`", $text, " reg, rm`, see [`Assembler::alu_mr`].")]
        #[inline]
        pub fn $mr(&mut self, width: Width, dst: impl Into<Rm<Gpr>>, src: Gpr) {
            self.alu_mr(Alu::$op, width, dst, src);
        }
        #[doc = concat!("`", $text, " $imm, rm`, see [`Assembler::alu_mi`].")]
        #[inline]
        pub fn $mi(&mut self, width: Width, dst: impl Into<Rm<Gpr>>, imm: i32) {
            self.alu_mi(Alu::$op, width, dst, imm);
        }
    )*};
}

/// Instructions of one operand in the group F6h and F7h.
macro_rules! unary {
    ($($digit:literal $name:ident $text:literal;)*) => {$(
        #[doc = $text]
        #[inline]
        pub fn $name(&mut self, width: Width, operand: impl Into<Rm<Gpr>>) {
            let opcode = Opcode::group(0xf7, width);
            self.emit(opcode, $digit, operand.into().numbered(), Imm::NONE);
        }
    )*};
}

/// Instructions that are always the same bytes.
macro_rules! fixed {
    ($($name:ident [$($byte:literal)*] $text:literal;)*) => {$(
        #[doc = $text]
        #[inline]
        pub fn $name(&mut self) {
            self.bytes(&[$($byte),*]);
        }
    )*};
}

impl Assembler {
    /// `mov rm, reg`.
    #[inline]
    pub fn mov(&mut self, width: Width, dst: Gpr, src: impl Into<Rm<Gpr>>) {
        self.register_first(Opcode::sized(0x8b, width), dst, src);
    }

    /// `mov reg, rm`.
    #[inline]
    pub fn mov_mr(&mut self, width: Width, dst: impl Into<Rm<Gpr>>, src: Gpr) {
        self.register_first(Opcode::sized(0x89, width), src, dst);
    }

    /// `mov $imm, rm`, with four bytes for 32 bits and above: sign-extended to 64.
    #[inline]
    pub fn mov_mi(&mut self, width: Width, dst: impl Into<Rm<Gpr>>, imm: i32) {
        let (opcode, imm) = (Opcode::group(0xc7, width), Imm::sized(imm, width));
        self.emit(opcode, 0, dst.into().numbered(), imm);
    }

    /// `movl $imm, reg`, which clears the upper half.
    #[inline]
    pub fn mov_imm32(&mut self, dst: Gpr, imm: u32) {
        let [a, b, c, d] = imm.to_le_bytes();
        let opcode = 0xb8 | dst.number() & 7;
        if dst.number() >= 8 {
            self.bytes(&[0x41, opcode, a, b, c, d]);
        } else {
            self.bytes(&[opcode, a, b, c, d]);
        }
    }

    /// `movabsq $imm, reg`: ten bytes.
    #[inline]
    pub fn mov_imm64(&mut self, dst: Gpr, imm: u64) {
        self.bytes(&[0x48 | dst.number() >> 3, 0xb8 | dst.number() & 7]);
        self.bytes(&imm.to_le_bytes());
    }

    /// The shortest `mov` that makes all 64 bits of the register `imm`. Flags stay.
    #[inline]
    pub fn mov_imm(&mut self, dst: Gpr, imm: i64) {
        if let Ok(imm) = u32::try_from(imm) {
            self.mov_imm32(dst, imm);
        } else if let Ok(imm) = i32::try_from(imm) {
            self.mov_mi(Width::Qword, dst, imm);
        } else {
            self.mov_imm64(dst, imm as u64);
        }
    }

    /// `movl $symbol + addend, reg`, which clears the upper half.
    #[inline]
    pub fn mov_symbol(&mut self, dst: Gpr, symbol: Symbol, addend: i32) {
        let behind = if dst.number() >= 8 { 2 } else { 1 };
        self.refer(behind, symbol, addend, ReferenceKind::Absolute);
        self.mov_imm32(dst, addend as u32);
    }

    /// `movzb`: eight bits, zero-extended.
    #[inline]
    pub fn movzx8(&mut self, width: Width, dst: Gpr, src: impl Into<Rm<Gpr>>) {
        self.register_first(Opcode::escaped(0xb6).width(width).byte_rm(), dst, src);
    }

    /// `movzw`: 16 bits, zero-extended to 32 or 64.
    #[inline]
    pub fn movzx16(&mut self, width: Width, dst: Gpr, src: impl Into<Rm<Gpr>>) {
        self.register_first(Opcode::escaped(0xb7).width(width), dst, src);
    }

    /// `movsb`: eight bits, sign-extended.
    #[inline]
    pub fn movsx8(&mut self, width: Width, dst: Gpr, src: impl Into<Rm<Gpr>>) {
        self.register_first(Opcode::escaped(0xbe).width(width).byte_rm(), dst, src);
    }

    /// `movsw`: 16 bits, sign-extended to 32 or 64.
    #[inline]
    pub fn movsx16(&mut self, width: Width, dst: Gpr, src: impl Into<Rm<Gpr>>) {
        self.register_first(Opcode::escaped(0xbf).width(width), dst, src);
    }

    /// `movslq`: 32 bits, sign-extended to 64.
    #[inline]
    pub fn movsxd(&mut self, dst: Gpr, src: impl Into<Rm<Gpr>>) {
        self.register_first(Opcode::new(0x63).width(Width::Qword), dst, src);
    }

    /// `lea`: the address itself. A segment's base is no part of it.
    #[inline]
    pub fn lea(&mut self, width: Width, dst: Gpr, mem: Mem) {
        self.register_first(Opcode::new(0x8d).width(width), dst, mem);
    }

    /// `add rm, reg` and its like.
    #[inline]
    pub fn alu(&mut self, op: Alu, width: Width, dst: Gpr, src: impl Into<Rm<Gpr>>) {
        self.register_first(Opcode::sized((op as u8) << 3 | 3, width), dst, src);
    }

    /// `add reg, rm` and its like.
    #[inline]
    pub fn alu_mr(&mut self, op: Alu, width: Width, dst: impl Into<Rm<Gpr>>, src: Gpr) {
        self.register_first(Opcode::sized((op as u8) << 3 | 1, width), src, dst);
    }

    /// `add $imm, rm` and its like: the constant has one byte if it fits, sign-extended.
    #[inline]
    pub fn alu_mi(&mut self, op: Alu, width: Width, dst: impl Into<Rm<Gpr>>, imm: i32) {
        let (opcode, imm) = match i8::try_from(imm) {
            _ if width == Width::Byte => (0x81, Imm::byte(imm as u8)),
            Ok(short) => (0x83, Imm::byte(short as u8)),
            Err(_) => (0x81, Imm::sized(imm, width)),
        };
        let opcode = Opcode::group(opcode, width);
        self.emit(opcode, op as u8, dst.into().numbered(), imm);
    }

    alu! {
        Add add add_mr add_mi "add";
        Or or or_mr or_mi "or";
        And and and_mr and_mi "and";
        Sub sub sub_mr sub_mi "sub";
        Xor xor xor_mr xor_mi "xor";
        Cmp cmp cmp_mr cmp_mi "cmp";
    }

    /// `test reg, rm`.
    #[inline]
    pub fn test(&mut self, width: Width, a: impl Into<Rm<Gpr>>, b: Gpr) {
        self.register_first(Opcode::sized(0x85, width), b, a);
    }

    /// `test $imm, rm`.
    #[inline]
    pub fn test_mi(&mut self, width: Width, a: impl Into<Rm<Gpr>>, imm: i32) {
        let (opcode, imm) = (Opcode::group(0xf7, width), Imm::sized(imm, width));
        self.emit(opcode, 0, a.into().numbered(), imm);
    }

    /// A shift by a constant, which is a byte of its own even if it is 1.
    #[inline]
    pub fn shift(&mut self, op: Shift, width: Width, dst: impl Into<Rm<Gpr>>, count: u8) {
        let opcode = Opcode::group(0xc1, width);
        self.emit(opcode, op as u8, dst.into().numbered(), Imm::byte(count));
    }

    /// A shift by 1.
    #[inline]
    pub fn shift_1(&mut self, op: Shift, width: Width, dst: impl Into<Rm<Gpr>>) {
        let opcode = Opcode::group(0xd1, width);
        self.emit(opcode, op as u8, dst.into().numbered(), Imm::NONE);
    }

    /// A shift by cl.
    #[inline]
    pub fn shift_cl(&mut self, op: Shift, width: Width, dst: impl Into<Rm<Gpr>>) {
        let opcode = Opcode::group(0xd3, width);
        self.emit(opcode, op as u8, dst.into().numbered(), Imm::NONE);
    }

    /// `imul rm, reg`.
    #[inline]
    pub fn imul(&mut self, width: Width, dst: Gpr, src: impl Into<Rm<Gpr>>) {
        self.register_first(Opcode::escaped(0xaf).width(width), dst, src);
    }

    /// `imul $imm, rm, reg`: the constant has one byte if it fits.
    #[inline]
    pub fn imul_imm(&mut self, width: Width, dst: Gpr, src: impl Into<Rm<Gpr>>, imm: i32) {
        let (opcode, imm) = match i8::try_from(imm) {
            Ok(short) => (0x6b, Imm::byte(short as u8)),
            Err(_) => (0x69, Imm::sized(imm, width)),
        };
        let opcode = Opcode::new(opcode).width(width);
        self.emit(opcode, dst.number(), src.into().numbered(), imm);
    }

    /// `imull $imm, rm, reg` with a constant of four bytes, whatever it is.
    #[inline]
    pub fn imul_imm32(&mut self, width: Width, dst: Gpr, src: impl Into<Rm<Gpr>>, imm: i32) {
        let opcode = Opcode::new(0x69).width(width);
        self.emit(
            opcode,
            dst.number(),
            src.into().numbered(),
            Imm::sized(imm, width),
        );
    }

    unary! {
        2 not "`not`.";
        3 neg "`neg`.";
        4 mul "`mul`: rdx and rax become rax times the operand, unsigned.";
        6 div "`div`: rax and rdx become quotient and remainder of rdx and rax, unsigned.";
        7 idiv "`idiv`: the same, signed.";
    }

    /// `popcnt`, of 32 or 64 bits.
    #[inline]
    pub fn popcnt(&mut self, width: Width, dst: Gpr, src: impl Into<Rm<Gpr>>) {
        let opcode = Opcode::escaped(0xb8).width(width).prefix(0xf3);
        self.register_first(opcode, dst, src);
    }

    /// `bsf`, of 32 or 64 bits.
    #[inline]
    pub fn bsf(&mut self, width: Width, dst: Gpr, src: impl Into<Rm<Gpr>>) {
        self.register_first(Opcode::escaped(0xbc).width(width), dst, src);
    }

    /// `bsr`, of 32 or 64 bits.
    #[inline]
    pub fn bsr(&mut self, width: Width, dst: Gpr, src: impl Into<Rm<Gpr>>) {
        self.register_first(Opcode::escaped(0xbd).width(width), dst, src);
    }

    /// `bswap`, of 32 or 64 bits.
    #[inline]
    pub fn bswap(&mut self, width: Width, register: Gpr) {
        let number = register.number();
        let rex = u8::from(width == Width::Qword) << 3 | number >> 3;
        if rex != 0 {
            self.bytes(&[0x40 | rex, 0x0f, 0xc8 | number & 7]);
        } else {
            self.bytes(&[0x0f, 0xc8 | number & 7]);
        }
    }

    /// `setcc`, of eight bits.
    #[inline]
    pub fn set(&mut self, cond: Cond, dst: impl Into<Rm<Gpr>>) {
        let opcode = Opcode::escaped(0x90 | cond.code()).byte_rm();
        self.emit(opcode, 0, dst.into().numbered(), Imm::NONE);
    }

    /// `cmovcc`, of 16 bits or more.
    #[inline]
    pub fn cmov(&mut self, cond: Cond, width: Width, dst: Gpr, src: impl Into<Rm<Gpr>>) {
        let opcode = Opcode::escaped(0x40 | cond.code()).width(width);
        self.register_first(opcode, dst, src);
    }

    /// `prefetcht0`.
    #[inline]
    pub fn prefetch(&mut self, mem: Mem) {
        self.emit(Opcode::escaped(0x18), 1, Rm::Mem(mem), Imm::NONE);
    }

    fixed! {
        cdq [0x99] "`cltd`: the sign of eax in all of edx.";
        cqo [0x48 0x99] "`cqto`: the sign of rax in all of rdx.";
        ret [0xc3] "`ret`.";
        ud2 [0x0f 0x0b] "`ud2`, which no processor ever executes.";
        int3 [0xcc] "`int3`.";
        endbr64 [0xf3 0x0f 0x1e 0xfa] "`endbr64`.";
    }

    /// `register` in ModRM.reg.
    #[inline]
    fn register_first(&mut self, opcode: Opcode, register: Gpr, rm: impl Into<Rm<Gpr>>) {
        self.emit(opcode, register.number(), rm.into().numbered(), Imm::NONE);
    }
}
