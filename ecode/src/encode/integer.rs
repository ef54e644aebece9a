//! Integer instructions. Whatever registers the operands and the result have, r11 makes them fit.

use super::asm::{Opcode, Rm};
use super::{Encoder, R11, RAX, RCX, RDX, wide};
use crate::allocate::Loc;
use crate::ir::{Ins, NONE, Op, T, V, cc};

pub(crate) const MOV_LOAD: Opcode = Opcode::new(0x8b);
pub(crate) const MOV_STORE: Opcode = Opcode::new(0x89);
const XOR: Opcode = Opcode::new(0x33);

impl Encoder<'_> {
    /// Copies a value between places; through r11 if both are memory.
    pub(crate) fn move_int(&mut self, to: Loc, from: Loc, wide: bool) {
        match (to, from) {
            (Loc::Reg(to), Loc::Reg(from)) if to != from => {
                self.op(MOV_LOAD, wide, to, Rm::R(from));
            }
            (Loc::Reg(to), Loc::Stack(slot)) => {
                self.op(MOV_LOAD, true, to, Rm::M(self.spill_slot(slot)))
            }
            (Loc::Stack(slot), Loc::Reg(from)) => {
                self.op(MOV_STORE, true, from, Rm::M(self.spill_slot(slot)))
            }
            (Loc::Stack(a), Loc::Stack(b)) if a != b => {
                self.op(MOV_LOAD, true, R11, Rm::M(self.spill_slot(b)));
                self.op(MOV_STORE, true, R11, Rm::M(self.spill_slot(a)));
            }
            _ => {}
        }
    }

    /// The register that a result is computed in: its own, or r11.
    pub(crate) fn target(&self, dst: V) -> u8 {
        self.reg(dst).unwrap_or(R11)
    }

    /// Puts what was computed in `register` where the result belongs.
    pub(crate) fn finish(&mut self, dst: V, register: u8) {
        self.move_int(self.location(dst), Loc::Reg(register), true);
    }

    /// `register = v`.
    pub(crate) fn fetch(&mut self, register: u8, v: V, wide: bool) {
        self.move_int(Loc::Reg(register), self.location(v), wide);
    }

    /// The register of `v`, which may be r11 holding a copy.
    pub(crate) fn in_register(&mut self, v: V) -> u8 {
        match self.location(v) {
            Loc::Reg(register) => register,
            other => {
                self.move_int(Loc::Reg(R11), other, true);
                R11
            }
        }
    }

    /// `register = constant`, flags untouched unless `flags` are free.
    pub(crate) fn constant(&mut self, register: u8, value: i64, flags_free: bool) {
        if value == 0 && flags_free {
            self.op(XOR, false, register, Rm::R(register));
        } else if let Ok(value) = u32::try_from(value) {
            if register >= 8 {
                self.byte(0x41);
            }
            self.byte(0xb8 | register & 7);
            self.dword(value as i32);
        } else if let Ok(value) = i32::try_from(value) {
            self.op(Opcode::new(0xc7), true, 0, Rm::R(register));
            self.dword(value);
        } else {
            self.byte(if register >= 8 { 0x49 } else { 0x48 });
            self.byte(0xb8 | register & 7);
            self.unit.text.extend_from_slice(&value.to_le_bytes());
        }
    }

    pub(crate) fn immediate(&mut self, ins: &Ins) {
        let value = if ins.ty == T::I32 {
            i64::from(ins.imm as u32)
        } else {
            ins.imm
        };
        match self.location(ins.dst) {
            Loc::Reg(register) => self.constant(register, value, true),
            Loc::Stack(slot) if i32::try_from(value).is_ok() => {
                self.op(Opcode::new(0xc7), true, 0, Rm::M(self.spill_slot(slot)));
                self.dword(value as i32);
            }
            _ => {
                self.constant(R11, value, true);
                self.finish(ins.dst, R11);
            }
        }
    }

    /// `op rm, imm` of the group 80h-83h; `digit` chooses the operation.
    pub(crate) fn group1(&mut self, digit: u8, wide: bool, rm: Rm, imm: i32) {
        if let Ok(short) = i8::try_from(imm) {
            self.op(Opcode::new(0x83), wide, digit, rm);
            self.byte(short as u8);
        } else {
            self.op(Opcode::new(0x81), wide, digit, rm);
            self.dword(imm);
        }
    }

    pub(crate) fn arithmetic(&mut self, ins: &Ins) {
        let wide = wide(ins.ty);
        let digit = match ins.op {
            Op::Add => 0,
            Op::Or => 1,
            Op::And => 4,
            Op::Sub => 5,
            _ => 6,
        };
        // In memory, both before and after: one instruction.
        if ins.op != Op::Mul
            && let (Loc::Stack(to), Loc::Stack(from)) =
                (self.location(ins.dst), self.location(ins.a))
            && to == from
            && wide
        {
            let slot = Rm::M(self.spill_slot(to));
            if ins.b == NONE {
                self.group1(digit, wide, slot, ins.imm as i32);
                return;
            }
            if let Some(b) = self.reg(ins.b) {
                self.op(Opcode::new(u32::from(digit) << 3 | 1), wide, b, slot);
                return;
            }
        }
        let target = self.target(ins.dst);
        if ins.b == NONE {
            self.with_constant(ins, digit, target, wide);
            self.finish(ins.dst, target);
            return;
        }
        let (mut a, mut b) = (ins.a, ins.b);
        let commutes = ins.op != Op::Sub;
        if commutes
            && (self.reg(b) == Some(target) || self.reg(a).is_none() && self.reg(b).is_some())
            && self.reg(a) != Some(target)
        {
            (a, b) = (b, a);
        }
        if let (Op::Add, Some(x), Some(y)) = (ins.op, self.reg(a), self.reg(b))
            && x != target
            && y != target
        {
            let sum = super::Mem {
                base: Some(x),
                index: Some(y),
                scale: 1,
                disp: 0,
                sym: 0,
            };
            self.op_address(Opcode::new(0x8d), wide, target, sum);
            self.finish(ins.dst, target);
            return;
        }
        let work = if self.reg(b) == Some(target) && self.reg(a) != Some(target) {
            R11
        } else {
            target
        };
        self.fetch(work, a, wide);
        let b = self.rm(b);
        match ins.op {
            Op::Mul => self.op(Opcode::new(0x0faf), wide, work, b),
            _ => self.op(Opcode::new(u32::from(digit) << 3 | 3), wide, work, b),
        }
        self.finish(ins.dst, work);
    }

    fn with_constant(&mut self, ins: &Ins, digit: u8, target: u8, wide: bool) {
        let imm = ins.imm as i32;
        if ins.op == Op::Mul {
            let from = self.rm(ins.a);
            let short = i8::try_from(imm).is_ok();
            self.op(
                Opcode::new(if short { 0x6b } else { 0x69 }),
                wide,
                target,
                from,
            );
            if short {
                self.byte(imm as u8);
            } else {
                self.dword(imm);
            }
            return;
        }
        if let (Op::Add, Some(a)) = (ins.op, self.reg(ins.a))
            && a != target
        {
            self.op_address(Opcode::new(0x8d), wide, target, super::Mem::at(a, imm));
            return;
        }
        // Masks that are moves.
        if ins.op == Op::And && imm == 0xff && ins.imm == 0xff {
            let from = self.rm(ins.a);
            self.op(Opcode::from_byte(0x0fb6), false, target, from);
            return;
        }
        if ins.op == Op::And && ins.imm == 0xffff {
            let from = self.rm(ins.a);
            self.op(Opcode::new(0x0fb7), false, target, from);
            return;
        }
        self.fetch(target, ins.a, wide);
        // A mask with zeros on top needs no 64-bit operation.
        let narrow = ins.op == Op::And && imm >= 0;
        self.group1(digit, wide && !narrow, Rm::R(target), imm);
    }

    pub(crate) fn shift(&mut self, ins: &Ins) {
        let wide = wide(ins.ty);
        let digit = match ins.op {
            Op::Rol => 0,
            Op::Shl => 4,
            Op::Shr => 5,
            _ => 7,
        };
        let target = self.target(ins.dst);
        if ins.b == NONE {
            if ins.op == Op::Shl
                && (1..=3).contains(&ins.imm)
                && let Some(a) = self.reg(ins.a)
                && a != target
            {
                let scaled = super::Mem {
                    base: if ins.imm == 1 { Some(a) } else { None },
                    index: Some(a),
                    scale: if ins.imm == 1 { 1 } else { 1 << ins.imm },
                    disp: 0,
                    sym: 0,
                };
                self.op_address(Opcode::new(0x8d), wide, target, scaled);
            } else {
                self.fetch(target, ins.a, wide);
                if ins.imm == 1 {
                    self.op(Opcode::new(0xd1), wide, digit, Rm::R(target));
                } else {
                    self.op(Opcode::new(0xc1), wide, digit, Rm::R(target));
                    self.byte(ins.imm as u8);
                }
            }
            self.finish(ins.dst, target);
            return;
        }
        let work = if target == RCX || self.reg(ins.b) == Some(target) {
            R11
        } else {
            target
        };
        self.fetch(work, ins.a, wide);
        self.fetch(RCX, ins.b, false);
        self.op(Opcode::new(0xd3), wide, digit, Rm::R(work));
        self.finish(ins.dst, work);
    }

    pub(crate) fn divide(&mut self, ins: &Ins) {
        let wide = wide(ins.ty);
        let mut divisor = self.rm(ins.b);
        if matches!(divisor, Rm::R(RAX | RDX)) {
            self.fetch(R11, ins.b, wide);
            divisor = Rm::R(R11);
        }
        self.fetch(RAX, ins.a, wide);
        let signed = matches!(ins.op, Op::Div | Op::Mod);
        match ins.op {
            Op::MulHigh => self.op(Opcode::new(0xf7), wide, 4, divisor),
            _ if signed => {
                if wide {
                    self.byte(0x48);
                }
                self.byte(0x99); // cdq, cqo
                self.op(Opcode::new(0xf7), wide, 7, divisor);
            }
            _ => {
                self.op(XOR, false, RDX, Rm::R(RDX));
                self.op(Opcode::new(0xf7), wide, 6, divisor);
            }
        }
        let result = if matches!(ins.op, Op::Div | Op::UDiv) {
            RAX
        } else {
            RDX
        };
        if ins.dst != NONE {
            self.finish(ins.dst, result);
        }
    }

    pub(crate) fn unary(&mut self, ins: &Ins) {
        let target = self.target(ins.dst);
        self.fetch(target, ins.a, wide(ins.ty));
        let digit = if ins.op == Op::Neg { 3 } else { 2 };
        self.op(Opcode::new(0xf7), wide(ins.ty), digit, Rm::R(target));
        self.finish(ins.dst, target);
    }

    pub(crate) fn extend(&mut self, ins: &Ins) {
        let target = self.target(ins.dst);
        let from = self.rm(ins.a);
        match (ins.ty, ins.cc) {
            (T::I8, _) => self.op(Opcode::from_byte(0x0fbe), false, target, from),
            (T::U8, _) => self.op(Opcode::from_byte(0x0fb6), false, target, from),
            (T::I16, _) => self.op(Opcode::new(0x0fbf), false, target, from),
            (T::U16, _) => self.op(Opcode::new(0x0fb7), false, target, from),
            (_, 0) => self.op(Opcode::new(0x63), true, target, from),
            _ => self.op(MOV_LOAD, false, target, from),
        }
        self.finish(ins.dst, target);
    }

    /// Compares or tests; returns the condition code to look at.
    pub(crate) fn compare(&mut self, ins: &Ins) -> u8 {
        let wide = wide(ins.ty);
        let bits = matches!(ins.op, Op::BranchTest | Op::SetTest | Op::SelectTest);
        if ins.b == NONE {
            let imm = ins.imm as i32;
            if bits {
                if let (Rm::R(register @ 0..4), 0..=0x7f) = (self.rm(ins.a), imm) {
                    self.op(Opcode::byte(0xf6), false, 0, Rm::R(register));
                    self.byte(imm as u8);
                    return ins.cc;
                }
                let rm = self.rm(ins.a);
                self.op(Opcode::new(0xf7), wide && imm < 0, 0, rm);
                self.dword(imm);
            } else if let (0, Some(a)) = (imm, self.reg(ins.a)) {
                self.op(Opcode::new(0x85), wide, a, Rm::R(a));
            } else {
                let rm = self.rm(ins.a);
                self.group1(7, wide, rm, imm);
            }
            return ins.cc;
        }
        let opcode = if bits { 0x85 } else { 0x3b };
        if bits && self.reg(ins.a).is_none() {
            let b = self.in_register(ins.b);
            let a = self.rm(ins.a);
            self.op(Opcode::new(opcode), wide, b, a);
            return ins.cc;
        }
        let a = self.in_register(ins.a);
        let b = self.rm(ins.b);
        self.op(Opcode::new(opcode), wide, a, b);
        ins.cc
    }

    pub(crate) fn set(&mut self, ins: &Ins) {
        let target = self.target(ins.dst);
        let overlaps =
            target == R11 || self.reg(ins.a) == Some(target) || self.reg(ins.b) == Some(target);
        if !overlaps {
            self.op(XOR, false, target, Rm::R(target));
        }
        let cc = self.compare(ins);
        self.op(
            Opcode::byte(0x0f90 | u32::from(cc)),
            false,
            0,
            Rm::R(target),
        );
        if overlaps {
            self.op(Opcode::from_byte(0x0fb6), false, target, Rm::R(target));
        }
        self.finish(ins.dst, target);
    }

    /// A conditional move over what the result holds already.
    pub(crate) fn select(&mut self, ins: &Ins) {
        let cc = self.compare(ins);
        let cmov = Opcode::new(0x0f40 | u32::from(cc));
        let target = self.target(ins.dst);
        self.fetch(target, ins.dst, true);
        let c = self.rm(ins.c);
        self.op(cmov, true, target, c);
        self.finish(ins.dst, target);
    }
}

/// Conditions of floats that need a second look at the parity flag.
pub(crate) fn is_equality(code: u8) -> bool {
    matches!(code, cc::E | cc::NE)
}
