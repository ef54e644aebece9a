//! Integer instructions. Whatever registers the operands and the result have, r11 makes them fit.

use super::{Encoder, SCRATCH, width};
use crate::allocate::Location;
use crate::ir::{Detail, Inst, NONE, Op, Scalar, VReg};
use postern_x86::{Alu, Cond, Gpr, Mem, Rm, Scale, Shift, Width};

impl Encoder<'_> {
    /// Copies a value between places; through r11 if both are memory.
    pub(crate) fn move_int(&mut self, to: Location, from: Location, width: Width) {
        match (to, from) {
            (Location::Gpr(to), Location::Gpr(from)) if to != from => self.asm.mov(width, to, from),
            (Location::Gpr(to), Location::Stack(slot)) => {
                self.asm.mov(Width::Qword, to, self.spill_slot(slot));
            }
            (Location::Stack(slot), Location::Gpr(from)) => {
                self.asm.mov_mr(Width::Qword, self.spill_slot(slot), from);
            }
            (Location::Stack(a), Location::Stack(b)) if a != b => {
                self.asm.mov(Width::Qword, SCRATCH, self.spill_slot(b));
                self.asm.mov_mr(Width::Qword, self.spill_slot(a), SCRATCH);
            }
            _ => {}
        }
    }

    /// The register that a result is computed in: its own, or r11.
    pub(crate) fn target(&self, dst: VReg) -> Gpr {
        self.gpr(dst).unwrap_or(SCRATCH)
    }

    /// Puts what was computed in `register` where the result belongs.
    pub(crate) fn finish(&mut self, dst: VReg, register: Gpr) {
        self.move_int(self.location(dst), Location::Gpr(register), Width::Qword);
    }

    /// `register = v`.
    pub(crate) fn fetch(&mut self, register: Gpr, v: VReg, width: Width) {
        self.move_int(Location::Gpr(register), self.location(v), width);
    }

    /// The register of `v`, which may be r11 holding a copy.
    pub(crate) fn in_register(&mut self, v: VReg) -> Gpr {
        match self.location(v) {
            Location::Gpr(register) => register,
            other => {
                self.move_int(Location::Gpr(SCRATCH), other, Width::Qword);
                SCRATCH
            }
        }
    }

    /// `register = constant`. Changes the flags.
    pub(crate) fn constant(&mut self, register: Gpr, value: i64) {
        if value == 0 {
            self.asm.xor(Width::Dword, register, register);
        } else {
            self.asm.mov_imm(register, value);
        }
    }

    pub(crate) fn immediate(&mut self, ins: &Inst) {
        let value = if ins.ty == Scalar::I32 {
            i64::from(ins.imm as u32)
        } else {
            ins.imm
        };
        match (self.location(ins.dst), i32::try_from(value)) {
            (Location::Gpr(register), _) => self.constant(register, value),
            (Location::Stack(slot), Ok(value)) => {
                self.asm.mov_mi(Width::Qword, self.spill_slot(slot), value);
            }
            _ => {
                self.constant(SCRATCH, value);
                self.finish(ins.dst, SCRATCH);
            }
        }
    }

    pub(crate) fn arithmetic(&mut self, ins: &Inst) {
        let width = width(ins.ty);
        let op = alu(ins.op);
        // In memory, both before and after: one instruction.
        if let (Some(op), Location::Stack(to), Location::Stack(from)) =
            (op, self.location(ins.dst), self.location(ins.a))
            && to == from
            && width == Width::Qword
        {
            let slot = self.spill_slot(to);
            if ins.b == NONE {
                self.asm.alu_mi(op, width, slot, ins.imm as i32);
                return;
            }
            if let Some(b) = self.gpr(ins.b) {
                self.asm.alu_mr(op, width, slot, b);
                return;
            }
        }
        let target = self.target(ins.dst);
        if ins.b == NONE {
            match op {
                Some(op) => self.with_constant(ins, op, target, width),
                None => {
                    let from = self.rm(ins.a);
                    self.asm.imul_imm(width, target, from, ins.imm as i32);
                }
            }
            self.finish(ins.dst, target);
            return;
        }
        let (mut a, mut b) = (ins.a, ins.b);
        let commutes = ins.op != Op::Sub;
        if commutes
            && (self.gpr(b) == Some(target) || self.gpr(a).is_none() && self.gpr(b).is_some())
            && self.gpr(a) != Some(target)
        {
            (a, b) = (b, a);
        }
        if let (Op::Add, Some(x), Some(y)) = (ins.op, self.gpr(a), self.gpr(b))
            && x != target
            && y != target
        {
            let sum = Mem::base(x).index(y, Scale::One);
            self.asm.lea(width, target, sum);
            self.finish(ins.dst, target);
            return;
        }
        let work = if self.gpr(b) == Some(target) && self.gpr(a) != Some(target) {
            SCRATCH
        } else {
            target
        };
        self.fetch(work, a, width);
        let b = self.rm(b);
        match op {
            Some(op) => self.asm.alu(op, width, work, b),
            None => self.asm.imul(width, work, b),
        }
        self.finish(ins.dst, work);
    }

    fn with_constant(&mut self, ins: &Inst, op: Alu, target: Gpr, width: Width) {
        let imm = ins.imm as i32;
        if let (Op::Add, Some(a)) = (ins.op, self.gpr(ins.a))
            && a != target
        {
            self.asm.lea(width, target, Mem::base(a).disp(imm));
            return;
        }
        // Masks that are moves.
        if ins.op == Op::And && ins.imm == 0xff {
            let from = self.rm(ins.a);
            self.asm.movzx8(Width::Dword, target, from);
            return;
        }
        if ins.op == Op::And && ins.imm == 0xffff {
            let from = self.rm(ins.a);
            self.asm.movzx16(Width::Dword, target, from);
            return;
        }
        self.fetch(target, ins.a, width);
        // A mask with zeros on top needs no 64-bit operation.
        let width = match ins.op {
            Op::And if imm >= 0 => Width::Dword,
            _ => width,
        };
        self.asm.alu_mi(op, width, target, imm);
    }

    pub(crate) fn shift(&mut self, ins: &Inst) {
        let width = width(ins.ty);
        let op = match ins.op {
            Op::Rol => Shift::Rol,
            Op::Shl => Shift::Shl,
            Op::Shr => Shift::Shr,
            _ => Shift::Sar,
        };
        let target = self.target(ins.dst);
        if ins.b == NONE {
            let scaled = match (self.gpr(ins.a), ins.imm) {
                (Some(a), 1) => Some((a, Mem::base(a).index(a, Scale::One))),
                (Some(a), 2) => Some((a, Mem::absolute(0).index(a, Scale::Four))),
                (Some(a), 3) => Some((a, Mem::absolute(0).index(a, Scale::Eight))),
                _ => None,
            };
            match scaled.filter(|(a, _)| ins.op == Op::Shl && *a != target) {
                Some((_, scaled)) => self.asm.lea(width, target, scaled),
                None => {
                    self.fetch(target, ins.a, width);
                    match ins.imm {
                        1 => self.asm.shift_1(op, width, target),
                        count => self.asm.shift(op, width, target, count as u8),
                    }
                }
            }
            self.finish(ins.dst, target);
            return;
        }
        let work = if target == Gpr::Rcx || self.gpr(ins.b) == Some(target) {
            SCRATCH
        } else {
            target
        };
        self.fetch(work, ins.a, width);
        self.fetch(Gpr::Rcx, ins.b, Width::Dword);
        self.asm.shift_cl(op, width, work);
        self.finish(ins.dst, work);
    }

    pub(crate) fn divide(&mut self, ins: &Inst) {
        let width = width(ins.ty);
        let mut divisor = self.rm(ins.b);
        if matches!(divisor, Rm::Reg(Gpr::Rax | Gpr::Rdx)) {
            self.fetch(SCRATCH, ins.b, width);
            divisor = Rm::Reg(SCRATCH);
        }
        self.fetch(Gpr::Rax, ins.a, width);
        match (ins.op, width) {
            (Op::MulHigh, _) => self.asm.mul(width, divisor),
            (Op::Div | Op::Mod, _) => {
                match width {
                    Width::Qword => self.asm.cqo(),
                    _ => self.asm.cdq(),
                }
                self.asm.idiv(width, divisor);
            }
            _ => {
                self.asm.xor(Width::Dword, Gpr::Rdx, Gpr::Rdx);
                self.asm.div(width, divisor);
            }
        }
        let result = if matches!(ins.op, Op::Div | Op::UDiv) {
            Gpr::Rax
        } else {
            Gpr::Rdx
        };
        if ins.dst != NONE {
            self.finish(ins.dst, result);
        }
    }

    pub(crate) fn unary(&mut self, ins: &Inst) {
        let (target, width) = (self.target(ins.dst), width(ins.ty));
        self.fetch(target, ins.a, width);
        match ins.op {
            Op::Neg => self.asm.neg(width, target),
            _ => self.asm.not(width, target),
        }
        self.finish(ins.dst, target);
    }

    pub(crate) fn bits(&mut self, ins: &Inst) {
        let (target, width) = (self.target(ins.dst), width(ins.ty));
        if ins.op == Op::SwapBytes {
            self.fetch(target, ins.a, width);
            self.asm.bswap(width, target);
        } else {
            let from = self.rm(ins.a);
            match ins.op {
                Op::Popcount => self.asm.popcnt(width, target, from),
                Op::LowestBit => self.asm.bsf(width, target, from),
                _ => self.asm.bsr(width, target, from),
            }
        }
        self.finish(ins.dst, target);
    }

    pub(crate) fn extend(&mut self, ins: &Inst) {
        let target = self.target(ins.dst);
        let from = self.rm(ins.a);
        match (ins.ty, ins.detail) {
            (Scalar::I8, _) => self.asm.movsx8(Width::Dword, target, from),
            (Scalar::U8, _) => self.asm.movzx8(Width::Dword, target, from),
            (Scalar::I16, _) => self.asm.movsx16(Width::Dword, target, from),
            (Scalar::U16, _) => self.asm.movzx16(Width::Dword, target, from),
            (_, Detail::ZeroExtend) => self.asm.mov(Width::Dword, target, from),
            _ => self.asm.movsxd(target, from),
        }
        self.finish(ins.dst, target);
    }

    /// Compares or tests; returns the condition to look at.
    pub(crate) fn compare(&mut self, ins: &Inst) -> Cond {
        let bits = matches!(ins.op, Op::BranchTest | Op::SetTest | Op::SelectTest);
        match (bits, ins.b) {
            (true, NONE) => self.test_constant(ins, ins.imm as i32),
            (false, NONE) => self.compare_constant(ins, ins.imm as i32),
            (true, b) if self.gpr(ins.a).is_none() => {
                let b = self.in_register(b);
                let a = self.rm(ins.a);
                self.asm.test(width(ins.ty), a, b);
            }
            (_, b) => {
                let a = self.in_register(ins.a);
                let b = self.rm(b);
                match bits {
                    true => self.asm.test(width(ins.ty), b, a),
                    false => self.asm.cmp(width(ins.ty), a, b),
                }
            }
        }
        ins.detail.cond()
    }

    fn compare_constant(&mut self, ins: &Inst, imm: i32) {
        let width = width(ins.ty);
        match (imm, self.gpr(ins.a)) {
            (0, Some(a)) => self.asm.test(width, a, a),
            _ => {
                let a = self.rm(ins.a);
                self.asm.cmp_mi(width, a, imm);
            }
        }
    }

    fn test_constant(&mut self, ins: &Inst, imm: i32) {
        let a = self.rm(ins.a);
        let has_byte = matches!(a, Rm::Reg(Gpr::Rax | Gpr::Rcx | Gpr::Rdx | Gpr::Rbx));
        let width = match width(ins.ty) {
            _ if has_byte && (0..=0x7f).contains(&imm) => Width::Byte,
            Width::Qword if imm < 0 => Width::Qword,
            _ => Width::Dword,
        };
        self.asm.test_mi(width, a, imm);
    }

    pub(crate) fn set(&mut self, ins: &Inst) {
        let target = self.target(ins.dst);
        let overlaps =
            target == SCRATCH || self.gpr(ins.a) == Some(target) || self.gpr(ins.b) == Some(target);
        if !overlaps {
            self.asm.xor(Width::Dword, target, target);
        }
        let cond = self.compare(ins);
        self.asm.set(cond, target);
        if overlaps {
            self.asm.movzx8(Width::Dword, target, target);
        }
        self.finish(ins.dst, target);
    }

    /// A conditional move over what the result holds already.
    pub(crate) fn select(&mut self, ins: &Inst) {
        let cond = self.compare(ins);
        let target = self.target(ins.dst);
        self.fetch(target, ins.dst, Width::Qword);
        let c = self.rm(ins.c);
        self.asm.cmov(cond, Width::Qword, target, c);
        self.finish(ins.dst, target);
    }
}

/// The operation, if it is one of those that `add` is among.
fn alu(op: Op) -> Option<Alu> {
    Some(match op {
        Op::Add => Alu::Add,
        Op::Or => Alu::Or,
        Op::And => Alu::And,
        Op::Sub => Alu::Sub,
        Op::Xor => Alu::Xor,
        _ => return None,
    })
}
