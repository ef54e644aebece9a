//! Value numbering while code is made: an instruction whose result is already in a register is not
//! made again.
//!
//! Invariant: a remembered value is used only where its instruction dominates (its scope is open)
//! and where none of the registers and memory that it was made from has changed (versions);
//! [`crate::facts`] keeps count of both.

use crate::facts::{Remembered, SIZE};
use crate::ir::{Code, Inst, NONE, Op, Scalar, VReg, VRegInfo};

fn slot(ins: &Inst) -> usize {
    let mut hash = (ins.op as u32) << 8 | (ins.ty as u32) << 4 | u32::from(ins.detail.number());
    for word in [
        ins.a,
        ins.b,
        ins.c,
        ins.sym,
        ins.disp as u32,
        ins.imm as u32,
        u32::from(ins.scale),
    ] {
        hash = (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b1);
    }
    (hash >> 20) as usize % SIZE
}

fn alike(x: &Inst, y: &Inst) -> bool {
    (
        x.op, x.ty, x.detail, x.scale, x.a, x.b, x.c, x.sym, x.disp, x.imm,
    ) == (
        y.op, y.ty, y.detail, y.scale, y.a, y.b, y.c, y.sym, y.disp, y.imm,
    )
}

fn version(vregs: &[VRegInfo], v: VReg) -> u32 {
    vregs.get(v as usize).map_or(0, |info| info.version)
}

impl Code {
    /// The register that holds what `ins`, which has no effects, computes.
    pub fn pure(&mut self, ins: Inst) -> VReg {
        let index = slot(&ins);
        let entry = self.values.table[index];
        if let Some(old) = self.ins.get(entry.inst as usize)
            && alike(old, &ins)
            && old.dst != NONE
            && self.values.holds(entry.fact, version(&self.vregs, old.dst))
            && (entry.a, entry.b, entry.c)
                == (
                    version(&self.vregs, ins.a),
                    version(&self.vregs, ins.b),
                    version(&self.vregs, ins.c),
                )
            && (ins.op != Op::Load || entry.memory == self.values.memory)
        {
            return old.dst;
        }
        let float = match ins.op {
            Op::FSet | Op::ToInt => false,
            Op::ToFloat => true,
            _ => ins.ty.is_float(),
        };
        let dst = self.temp(float);
        self.push(Inst { dst, ..ins });
        self.remember(index, &ins, dst, self.ins.len().wrapping_sub(1));
        dst
    }

    fn remember(&mut self, index: usize, ins: &Inst, dst: VReg, at: usize) {
        self.values.table[index] = Remembered {
            inst: at as u32,
            fact: self.values.now(version(&self.vregs, dst)),
            a: version(&self.vregs, ins.a),
            b: version(&self.vregs, ins.b),
            c: version(&self.vregs, ins.c),
            memory: self.values.memory,
        };
    }

    /// `variable = value`. If the last instruction made the value, it writes the variable instead.
    pub fn assign(&mut self, variable: VReg, value: VReg, ty: Scalar, fresh: usize) {
        if variable == value {
            return;
        }
        let block = self.blocks[self.current as usize].first as usize;
        let count = self.ins.len();
        let info = self.vregs[value as usize];
        if let Some(last) = self.ins.last_mut()
            && count > block.max(fresh)
            && last.dst == value
            && info.temp
            && !matches!(last.op, Op::Select | Op::SelectTest)
        {
            let old = *last;
            last.dst = variable;
            let index = slot(&old);
            let uses_itself = [old.a, old.b, old.c].contains(&variable);
            let known = self.values.table[index].inst as usize == count - 1;
            self.vregs[variable as usize].version += 1;
            if known && !uses_itself {
                self.remember(index, &old, variable, count - 1);
            }
            return;
        }
        self.push(Inst {
            op: Op::Mov,
            ty,
            dst: variable,
            a: value,
            ..crate::ir::NOP
        });
    }

    /// Notes that the register holds a constant now.
    pub fn set_constant(&mut self, v: VReg, constant: i64) {
        let version = version(&self.vregs, v);
        let fact = self.values.now(version);
        let info = &mut self.vregs[v as usize];
        info.constant = constant;
        info.fact = fact;
    }

    /// The constant that the register is known to hold here.
    pub fn constant(&self, v: VReg) -> Option<i64> {
        let info = self.vregs.get(v as usize)?;
        (info.fact.epoch != 0 && self.values.holds(info.fact, info.version))
            .then_some(info.constant)
    }
}
