//! Floating-point instructions (SSE2), with xmm15 for what does not fit.

use super::{Encoder, FLOAT_SCRATCH, SCRATCH, precision};
use crate::allocate::Location;
use crate::ir::{Detail, Inst, Op, Scalar, VReg};
use postern_x86::{Cond, FloatOp, Gpr, Rm, Width, Xmm};

impl Encoder<'_> {
    pub(crate) fn move_float(&mut self, to: Location, from: Location, ty: Scalar) {
        let precision = precision(ty);
        match (to, from) {
            (Location::Xmm(to), Location::Xmm(from)) if to != from => self.asm.movaps(to, from),
            (Location::Xmm(to), Location::Stack(slot)) => {
                self.asm.mov_scalar(precision, to, self.spill_slot(slot));
            }
            (Location::Stack(slot), Location::Xmm(from)) => {
                self.asm
                    .mov_scalar_mr(precision, self.spill_slot(slot), from);
            }
            (Location::Stack(a), Location::Stack(b)) if a != b => {
                self.asm
                    .mov_scalar(precision, FLOAT_SCRATCH, self.spill_slot(b));
                self.asm
                    .mov_scalar_mr(precision, self.spill_slot(a), FLOAT_SCRATCH);
            }
            _ => {}
        }
    }

    fn float_target(&self, dst: VReg) -> Xmm {
        self.xmm(dst).unwrap_or(FLOAT_SCRATCH)
    }

    fn float_fetch(&mut self, register: Xmm, v: VReg, ty: Scalar) {
        self.move_float(Location::Xmm(register), self.location(v), ty);
    }

    fn float_finish(&mut self, dst: VReg, register: Xmm, ty: Scalar) {
        self.move_float(self.location(dst), Location::Xmm(register), ty);
    }

    pub(crate) fn float_arithmetic(&mut self, ins: &Inst) {
        let op = match ins.op {
            Op::FAdd => FloatOp::Add,
            Op::FMul => FloatOp::Mul,
            Op::FSub => FloatOp::Sub,
            _ => FloatOp::Div,
        };
        let target = self.float_target(ins.dst);
        let (mut a, mut b) = (ins.a, ins.b);
        if matches!(ins.op, Op::FAdd | Op::FMul) && self.xmm(b) == Some(target) {
            (a, b) = (b, a);
        }
        let work = if self.xmm(b) == Some(target) && self.xmm(a) != Some(target) {
            FLOAT_SCRATCH
        } else {
            target
        };
        self.float_fetch(work, a, ins.ty);
        let b = self.xmm_rm(b);
        self.asm.float(op, precision(ins.ty), work, b);
        self.float_finish(ins.dst, work, ins.ty);
    }

    pub(crate) fn float_negate(&mut self, ins: &Inst) {
        // The sign bit, by way of r11.
        let (width, sign) = match ins.ty {
            Scalar::F64 => (Width::Qword, i64::MIN),
            _ => (Width::Dword, 1 << 31),
        };
        self.constant(SCRATCH, sign);
        let target = self.float_target(ins.dst);
        self.asm.mov_from_int(width, FLOAT_SCRATCH, SCRATCH);
        if target == FLOAT_SCRATCH {
            // In memory: the bits are turned there.
            match self.xmm_rm(ins.a) {
                Rm::Reg(a) => self.asm.xorps(FLOAT_SCRATCH, a),
                Rm::Mem(mem) => {
                    self.asm.xor(width, SCRATCH, mem);
                    self.asm.mov_from_int(width, FLOAT_SCRATCH, SCRATCH);
                }
            }
        } else {
            self.float_fetch(target, ins.a, ins.ty);
            self.asm.xorps(target, FLOAT_SCRATCH);
        }
        self.float_finish(ins.dst, target, ins.ty);
    }

    pub(crate) fn float_convert(&mut self, ins: &Inst) {
        let width = if ins.detail == Detail::Integer64 {
            Width::Qword
        } else {
            Width::Dword
        };
        match ins.op {
            Op::FCvt => {
                let target = self.float_target(ins.dst);
                let from = self.xmm_rm(ins.a);
                self.asm.convert(precision(ins.ty), target, from);
                self.float_finish(ins.dst, target, ins.ty);
            }
            Op::ToFloat => {
                let target = self.float_target(ins.dst);
                let from = self.rm(ins.a);
                self.asm.xorps(target, target); // no waiting for what was in it
                self.asm
                    .convert_from_int(precision(ins.ty), width, target, from);
                self.float_finish(ins.dst, target, ins.ty);
            }
            _ => {
                let target = self.target(ins.dst);
                let from = self.xmm_rm(ins.a);
                self.asm
                    .truncate_to_int(precision(ins.ty), width, target, from);
                self.finish(ins.dst, target);
            }
        }
    }

    fn float_compare(&mut self, ins: &Inst) {
        let a = match self.location(ins.a) {
            Location::Xmm(register) => register,
            _ => {
                self.float_fetch(FLOAT_SCRATCH, ins.a, ins.ty);
                FLOAT_SCRATCH
            }
        };
        let b = self.xmm_rm(ins.b);
        self.asm.ucomis(precision(ins.ty), a, b);
    }

    pub(crate) fn float_set(&mut self, ins: &Inst) {
        let target = self.target(ins.dst);
        self.float_compare(ins);
        match ins.detail.cond() {
            // Not a number: neither equal nor anything else. The other register holds parity.
            cond @ (Cond::Equal | Cond::NotEqual) => {
                let other = if target == SCRATCH { Gpr::R10 } else { SCRATCH };
                if target == SCRATCH {
                    // r10 keeps its value.
                    self.asm.mov_from_int(Width::Qword, FLOAT_SCRATCH, other);
                }
                self.asm.set(cond, target);
                if cond == Cond::Equal {
                    self.asm.set(Cond::NotParity, other);
                    self.asm.and(Width::Dword, target, other);
                } else {
                    self.asm.set(Cond::Parity, other);
                    self.asm.or(Width::Dword, target, other);
                }
                if target == SCRATCH {
                    self.asm.mov_to_int(Width::Qword, other, FLOAT_SCRATCH);
                }
            }
            cond => self.asm.set(cond, target),
        }
        self.asm.movzx8(Width::Dword, target, target);
        self.finish(ins.dst, target);
    }

    pub(crate) fn float_branch(&mut self, ins: &Inst, t: u32, f: u32, next: u32) {
        self.float_compare(ins);
        match ins.detail.cond() {
            Cond::Equal => {
                self.jump(Some(Cond::NotEqual), f);
                self.jump(Some(Cond::Parity), f);
                if t != next {
                    self.jump(None, t);
                }
            }
            Cond::NotEqual => {
                self.jump(Some(Cond::NotEqual), t);
                self.jump(Some(Cond::Parity), t);
                if f != next {
                    self.jump(None, f);
                }
            }
            // Above, or above or equal: neither holds without order.
            cond => self.branch(cond, t, f, next),
        }
    }
}
