//! Floating-point instructions (SSE2), with xmm15 for what does not fit.

use super::asm::{Opcode, Rm};
use super::integer::is_equality;
use super::{Encoder, R11, X15};
use crate::allocate::Loc;
use crate::ir::{Ins, Op, T, V, cc};

fn prefix(ty: T) -> u8 {
    if ty == T::F32 { 0xf3 } else { 0xf2 }
}

impl Encoder<'_> {
    pub(crate) fn move_float(&mut self, to: Loc, from: Loc, ty: T) {
        let (load, store) = (
            Opcode::with(prefix(ty), 0x0f10),
            Opcode::with(prefix(ty), 0x0f11),
        );
        match (to, from) {
            (Loc::Reg(to), Loc::Reg(from)) if to != from => {
                self.op(Opcode::new(0x0f28), false, to, Rm::R(from)); // movaps
            }
            (Loc::Reg(to), Loc::Stack(slot)) => {
                self.op(load, false, to, Rm::M(self.spill_slot(slot)))
            }
            (Loc::Stack(slot), Loc::Reg(from)) => {
                self.op(store, false, from, Rm::M(self.spill_slot(slot)))
            }
            (Loc::Stack(a), Loc::Stack(b)) if a != b => {
                self.op(load, false, X15, Rm::M(self.spill_slot(b)));
                self.op(store, false, X15, Rm::M(self.spill_slot(a)));
            }
            _ => {}
        }
    }

    fn float_target(&self, dst: V) -> u8 {
        self.reg(dst).unwrap_or(X15)
    }

    fn float_finish(&mut self, dst: V, register: u8, ty: T) {
        self.move_float(self.location(dst), Loc::Reg(register), ty);
    }

    pub(crate) fn float_arithmetic(&mut self, ins: &Ins) {
        let opcode = Opcode::with(
            prefix(ins.ty),
            match ins.op {
                Op::FAdd => 0x0f58,
                Op::FMul => 0x0f59,
                Op::FSub => 0x0f5c,
                _ => 0x0f5e,
            },
        );
        let target = self.float_target(ins.dst);
        let (mut a, mut b) = (ins.a, ins.b);
        if matches!(ins.op, Op::FAdd | Op::FMul) && self.reg(b) == Some(target) {
            (a, b) = (b, a);
        }
        let work = if self.reg(b) == Some(target) && self.reg(a) != Some(target) {
            X15
        } else {
            target
        };
        self.move_float(Loc::Reg(work), self.location(a), ins.ty);
        let b = self.rm(b);
        self.op(opcode, false, work, b);
        self.float_finish(ins.dst, work, ins.ty);
    }

    pub(crate) fn float_negate(&mut self, ins: &Ins) {
        // The sign bit, by way of r11.
        let wide = ins.ty == T::F64;
        self.constant(R11, if wide { i64::MIN } else { 1 << 31 }, true);
        let target = self.float_target(ins.dst);
        self.op(Opcode::with(0x66, 0x0f6e), wide, X15, Rm::R(R11));
        if target == X15 {
            // In memory: the bits are turned there.
            match self.rm(ins.a) {
                Rm::R(a) => self.op(Opcode::new(0x0f57), false, X15, Rm::R(a)),
                Rm::M(mem) => {
                    self.op(Opcode::new(0x33), wide, R11, Rm::M(mem));
                    self.op(Opcode::with(0x66, 0x0f6e), wide, X15, Rm::R(R11));
                }
            }
        } else {
            self.move_float(Loc::Reg(target), self.location(ins.a), ins.ty);
            self.op(Opcode::new(0x0f57), false, target, Rm::R(X15));
        }
        self.float_finish(ins.dst, target, ins.ty);
    }

    pub(crate) fn float_convert(&mut self, ins: &Ins) {
        let wide = ins.cc == 8;
        match ins.op {
            Op::FCvt => {
                let target = self.float_target(ins.dst);
                let from = self.rm(ins.a);
                // From the other type; cvtsd2ss or cvtss2sd.
                let prefix = if ins.ty == T::F32 { 0xf2 } else { 0xf3 };
                self.op(Opcode::with(prefix, 0x0f5a), false, target, from);
                self.float_finish(ins.dst, target, ins.ty);
            }
            Op::ToFloat => {
                let target = self.float_target(ins.dst);
                let from = self.rm(ins.a);
                self.op(Opcode::new(0x0f57), false, target, Rm::R(target)); // no waiting for what was in it
                self.op(Opcode::with(prefix(ins.ty), 0x0f2a), wide, target, from);
                self.float_finish(ins.dst, target, ins.ty);
            }
            _ => {
                let target = self.target(ins.dst);
                let from = self.rm(ins.a);
                self.op(Opcode::with(prefix(ins.ty), 0x0f2c), wide, target, from);
                self.finish(ins.dst, target);
            }
        }
    }

    fn float_compare(&mut self, ins: &Ins) {
        let a = match self.location(ins.a) {
            Loc::Reg(register) => register,
            other => {
                self.move_float(Loc::Reg(X15), other, ins.ty);
                X15
            }
        };
        let b = self.rm(ins.b);
        let prefix = if ins.ty == T::F32 { 0 } else { 0x66 };
        self.op(Opcode::with(prefix, 0x0f2e), false, a, b); // ucomis
    }

    pub(crate) fn float_set(&mut self, ins: &Ins) {
        let target = self.target(ins.dst);
        self.float_compare(ins);
        let set = |code: u8| Opcode::byte(0x0f90 | u32::from(code));
        if !is_equality(ins.cc) {
            self.op(set(ins.cc), false, 0, Rm::R(target));
        } else {
            // Not a number: neither equal nor anything else. r11 holds parity.
            let other = if target == R11 { super::R10 } else { R11 };
            if target == R11 {
                // r10 keeps its value.
                self.op(Opcode::with(0x66, 0x0f6e), true, X15, Rm::R(other));
            }
            let (parity, combine) = if ins.cc == cc::E {
                (11, 0x23)
            } else {
                (10, 0x0b)
            };
            self.op(set(ins.cc), false, 0, Rm::R(target));
            self.op(set(parity), false, 0, Rm::R(other));
            self.op(Opcode::new(combine), false, target, Rm::R(other));
            if target == R11 {
                self.op(Opcode::with(0x66, 0x0f7e), true, X15, Rm::R(other));
            }
        }
        self.op(Opcode::from_byte(0x0fb6), false, target, Rm::R(target));
        self.finish(ins.dst, target);
    }

    pub(crate) fn float_branch(&mut self, ins: &Ins, t: u32, f: u32, next: u32) {
        self.float_compare(ins);
        match ins.cc {
            cc::E => {
                self.jump(Some(cc::NE), f);
                self.jump(Some(10), f);
                if t != next {
                    self.jump(None, t);
                }
            }
            cc::NE => {
                self.jump(Some(cc::NE), t);
                self.jump(Some(10), t);
                if f != next {
                    self.jump(None, f);
                }
            }
            // Above, or above or equal: neither holds without order.
            code => self.branch(code, t, f, next),
        }
    }
}
