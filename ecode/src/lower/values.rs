//! Value numbering while code is made: an instruction whose result is already in a register is not made again.
//!
//! Invariant: a remembered value is used only where its instruction dominates (its scope is open) and where none of the
//! registers and memory that it was made from has changed (versions). Scopes follow C's structure: a branch of an `if` is a
//! scope; a loop's head and a label begin a new epoch, in which nothing is remembered.

use alloc::vec::Vec;

use crate::ir::{Code, Fact, Ins, NONE, Op, T, V, VInfo};

/// Remembered instructions.
#[derive(Debug, Default)]
pub(crate) struct Values {
    table: Vec<Entry>,
    epoch: u32,
    /// Whether each scope of this function is open.
    open: Vec<bool>,
    stack: Vec<u32>,
    memory: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    ins: u32,
    fact: Fact,
    a: u32,
    b: u32,
    c: u32,
    memory: u32,
}

const SIZE: usize = 256;

impl Values {
    pub fn reset(&mut self) {
        self.table.resize(SIZE, Entry::default());
        self.epoch += 1;
        self.open.clear();
        self.stack.clear();
        self.open.push(true);
        self.stack.push(0);
    }

    /// Forgets everything: control may come from anywhere.
    pub fn forget(&mut self) {
        self.epoch += 1;
    }

    /// Opens a scope: what is found out now holds until it is closed.
    pub fn enter(&mut self) {
        self.stack.push(self.open.len() as u32);
        self.open.push(true);
    }

    pub fn leave(&mut self) {
        if let Some(scope) = self.stack.pop() {
            self.open[scope as usize] = false;
        }
    }

    /// Memory may have changed.
    pub fn clobber(&mut self) {
        self.memory += 1;
    }

    fn now(&self, version: u32) -> Fact {
        Fact {
            epoch: self.epoch,
            scope: self.stack.last().copied().unwrap_or(0),
            version,
        }
    }

    fn holds(&self, fact: Fact, version: u32) -> bool {
        fact.epoch == self.epoch && fact.version == version && self.open[fact.scope as usize]
    }
}

fn slot(ins: &Ins) -> usize {
    let mut hash = (ins.op as u32) << 8 | (ins.ty as u32) << 4 | u32::from(ins.cc);
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

fn alike(x: &Ins, y: &Ins) -> bool {
    (
        x.op, x.ty, x.cc, x.scale, x.a, x.b, x.c, x.sym, x.disp, x.imm,
    ) == (
        y.op, y.ty, y.cc, y.scale, y.a, y.b, y.c, y.sym, y.disp, y.imm,
    )
}

fn version(vregs: &[VInfo], v: V) -> u32 {
    vregs.get(v as usize).map_or(0, |info| info.version)
}

impl Code {
    /// The register that holds what `ins`, which has no effects, computes.
    pub fn pure(&mut self, ins: Ins) -> V {
        let index = slot(&ins);
        let entry = self.values.table[index];
        if let Some(old) = self.ins.get(entry.ins as usize)
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
        self.push(Ins { dst, ..ins });
        self.remember(index, &ins, dst, self.ins.len().wrapping_sub(1));
        dst
    }

    fn remember(&mut self, index: usize, ins: &Ins, dst: V, at: usize) {
        self.values.table[index] = Entry {
            ins: at as u32,
            fact: self.values.now(version(&self.vregs, dst)),
            a: version(&self.vregs, ins.a),
            b: version(&self.vregs, ins.b),
            c: version(&self.vregs, ins.c),
            memory: self.values.memory,
        };
    }

    /// `variable = value`. If the last instruction made the value, it writes the variable instead.
    pub fn assign(&mut self, variable: V, value: V, ty: T, fresh: usize) {
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
            let known = self.values.table[index].ins as usize == count - 1;
            self.vregs[variable as usize].version += 1;
            if known && !uses_itself {
                self.remember(index, &old, variable, count - 1);
            }
            return;
        }
        self.push(Ins {
            op: Op::Mov,
            ty,
            dst: variable,
            a: value,
            ..crate::ir::NOP
        });
    }

    /// Notes that the register holds a constant now.
    pub fn set_constant(&mut self, v: V, constant: i64) {
        let version = version(&self.vregs, v);
        let fact = self.values.now(version);
        let info = &mut self.vregs[v as usize];
        info.constant = constant;
        info.fact = fact;
    }

    /// The constant that the register is known to hold here.
    pub fn constant(&self, v: V) -> Option<i64> {
        let info = self.vregs.get(v as usize)?;
        (info.fact.epoch != 0 && self.values.holds(info.fact, info.version))
            .then_some(info.constant)
    }
}
