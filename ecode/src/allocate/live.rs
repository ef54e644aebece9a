//! Liveness: which registers hold a value that is still wanted, where. Instructions whose result
//! nobody wants are removed on the way.

use alloc::vec::Vec;

use super::Allocator;
use crate::ir::{Code, Inst, NONE, NOP, Op, VReg};

/// Sets of registers for each block; only registers that occur in more than one block are in them.
#[derive(Debug, Default)]
pub(crate) struct LiveSets {
    /// Each register's number in the sets, or NOWHERE; before that, the block in which it occurs.
    number: Vec<u32>,
    members: Vec<VReg>,
    uses: Vec<u64>,
    defines: Vec<u64>,
    live_in: Vec<u64>,
    live: Vec<u64>,
    /// The block in whose walk the register was last seen used.
    wanted: Vec<u32>,
    starts: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;
const MANY: u32 = u32::MAX - 1;

/// Calls `f` with every register that an instruction reads.
#[inline]
pub(crate) fn each_use(code: &Code, ins: &Inst, mut f: impl FnMut(VReg)) {
    if ins.op == Op::Call {
        if ins.a != NONE {
            f(ins.a);
        }
        for arg in &code.args[ins.b as usize..(ins.b + ins.c) as usize] {
            if arg.v != NONE {
                f(arg.v);
            }
        }
        return;
    }
    for v in [ins.a, ins.b, ins.c] {
        if v != NONE {
            f(v);
        }
    }
    if matches!(ins.op, Op::Select | Op::SelectTest) {
        f(ins.dst);
    }
}

/// Computes the interval of every register. False if that would take too much time or memory.
pub(crate) fn intervals(code: &mut Code, allocator: &mut Allocator, most: u32) -> bool {
    let mut sets = core::mem::take(&mut allocator.live);
    let words = sets.find_members(code);
    let size = words as u64 * code.blocks.len() as u64;
    let fits = size <= u64::from(most / 8) && sets.solve(code, words, &mut allocator.steps, most);
    if fits {
        sets.walk(code, allocator, words);
    }
    allocator.live = sets;
    fits
}

/// Members of sets that are visited in about the time of one step.
const VISITS: u64 = 4;

impl LiveSets {
    /// Finds the registers that occur in more than one block; returns the words of a set.
    fn find_members(&mut self, code: &Code) -> usize {
        self.number.clear();
        self.number.resize(code.vregs.len(), NOWHERE);
        self.members.clear();
        for (v, _) in &code.params {
            self.number[*v as usize] = code.order.first().copied().unwrap_or(0);
        }
        for &block in &code.order {
            let b = &code.blocks[block as usize];
            let number = &mut self.number;
            let mut seen = |v: VReg| {
                let entry = &mut number[v as usize];
                *entry = if *entry == NOWHERE || *entry == block {
                    block
                } else {
                    MANY
                };
            };
            for ins in code.ins[b.first as usize..b.last as usize]
                .iter()
                .chain([&b.term])
            {
                each_use(code, ins, &mut seen);
                if ins.dst != NONE {
                    seen(ins.dst);
                }
            }
        }
        for (v, entry) in self.number.iter_mut().enumerate() {
            if *entry == MANY {
                *entry = self.members.len() as u32;
                self.members.push(v as u32);
            } else {
                *entry = NOWHERE;
            }
        }
        self.members.len().div_ceil(64)
    }

    /// What is live where each block begins. False if it takes more than `most` steps in all.
    fn solve(&mut self, code: &Code, words: usize, steps: &mut u64, most: u32) -> bool {
        let total = words * code.blocks.len();
        for set in [&mut self.uses, &mut self.defines, &mut self.live_in] {
            set.clear();
            set.resize(total, 0);
        }
        for &block in &code.order {
            let b = &code.blocks[block as usize];
            let range = block as usize * words..(block as usize + 1) * words;
            let (uses, defines) = (&mut self.uses[range.clone()], &mut self.defines[range]);
            let number = &self.number;
            for ins in code.ins[b.first as usize..b.last as usize]
                .iter()
                .chain([&b.term])
            {
                each_use(code, ins, |v| {
                    let n = number[v as usize];
                    if n != NOWHERE && !has(defines, n) {
                        set(uses, n);
                    }
                });
                if ins.dst != NONE && number[ins.dst as usize] != NOWHERE {
                    set(defines, number[ins.dst as usize]);
                }
            }
        }
        let mut changed = words > 0;
        while changed {
            changed = false;
            *steps += (words * code.order.len()) as u64;
            if *steps > most.into() {
                return false;
            }
            for &block in code.order.iter().rev() {
                let (t, f) = successors(&code.blocks[block as usize]);
                for word in 0..words {
                    let mut out = 0;
                    for next in [t, f] {
                        if next != NONE {
                            out |= self.live_in[next as usize * words + word];
                        }
                    }
                    let at = block as usize * words + word;
                    let new = self.uses[at] | out & !self.defines[at];
                    changed |= new != self.live_in[at];
                    self.live_in[at] = new;
                }
            }
        }
        // Each of these is looked at where a block begins and ends.
        let members: u64 = self
            .live_in
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum();
        *steps += members / VISITS;
        *steps <= most.into()
    }

    /// Walks every block backwards: intervals, weights, hints, and what can go.
    fn walk(&mut self, code: &mut Code, allocator: &mut Allocator, words: usize) {
        let mut position = 2;
        self.starts.clear();
        for &block in &code.order {
            self.starts.push(position);
            let b = &code.blocks[block as usize];
            position += 2 * (b.last - b.first + 2);
        }
        self.wanted.clear();
        self.wanted.resize(code.vregs.len(), NOWHERE);
        for index in (0..code.order.len()).rev() {
            let block = code.order[index];
            let b = code.blocks[block as usize];
            let first = self.starts[index];
            let end = first + 2 * (b.last - b.first + 2);
            let (t, f) = successors(&b);
            self.live.clear();
            self.live.resize(words, 0);
            for next in [t, f] {
                if next != NONE {
                    let from = next as usize * words;
                    for (word, other) in self.live.iter_mut().zip(&self.live_in[from..from + words])
                    {
                        *word |= other;
                    }
                }
            }
            self.extend_live(allocator, end - 1, end);
            let mut at = end - 2;
            self.read(code, allocator, &b.term, block, b.depth, at);
            for index in (b.first..b.last).rev() {
                at -= 2;
                let ins = code.ins[index as usize];
                if ins.op != Op::Nop && !self.written(code, allocator, index, block, b.depth, at) {
                    let ins = code.ins[index as usize];
                    self.read(code, allocator, &ins, block, b.depth, at);
                }
            }
            self.extend_live(allocator, first, first);
        }
        self.parameters(code, allocator);
        for list in [
            &mut allocator.calls,
            &mut allocator.divisions,
            &mut allocator.shifts,
        ] {
            list.sort_unstable();
        }
    }

    fn extend_live(&self, allocator: &mut Allocator, from: u32, to: u32) {
        for (word, bits) in self.live.iter().enumerate() {
            let mut bits = *bits;
            while bits != 0 {
                let v = self.members[word * 64 + bits.trailing_zeros() as usize];
                allocator.extend(v, from, to);
                bits &= bits - 1;
            }
        }
    }

    /// The definition that an instruction makes; true if nobody wants it and the instruction is
    /// gone.
    fn written(
        &mut self,
        code: &mut Code,
        allocator: &mut Allocator,
        index: u32,
        block: u32,
        depth: u32,
        at: u32,
    ) -> bool {
        let ins = code.ins[index as usize];
        let dst = ins.dst;
        if dst == NONE {
            return false;
        }
        let n = self.number[dst as usize];
        let alive = if n != NOWHERE {
            has(&self.live, n)
        } else {
            self.wanted[dst as usize] == block
        };
        if !alive && ins.is_removable() {
            code.ins[index as usize] = NOP;
            return true;
        }
        if !alive && ins.op == Op::Call {
            code.ins[index as usize].dst = NONE;
        } else {
            allocator.touch(dst, at + 1, depth);
            // Even if it is never read, its register is written here.
            allocator.extend(dst, at + 1, at + 2);
        }
        if !matches!(ins.op, Op::Select | Op::SelectTest) {
            match n {
                NOWHERE => self.wanted[dst as usize] = NOWHERE,
                n => self.live[n as usize / 64] &= !(1 << (n % 64)),
            }
        }
        false
    }

    /// The uses of one instruction.
    fn read(
        &mut self,
        code: &Code,
        allocator: &mut Allocator,
        ins: &Inst,
        block: u32,
        depth: u32,
        at: u32,
    ) {
        match ins.op {
            Op::Call => allocator.calls.push(at),
            Op::Div | Op::Mod | Op::UDiv | Op::UMod | Op::MulHigh => allocator.divisions.push(at),
            Op::Shl | Op::Shr | Op::Sar if ins.b != NONE => allocator.shifts.push(at),
            _ => {}
        }
        let (number, live, wanted) = (&self.number, &mut self.live, &mut self.wanted);
        each_use(code, ins, |v| {
            allocator.touch(v, at, depth);
            match number[v as usize] {
                NOWHERE => wanted[v as usize] = block,
                n => set(live, n),
            }
        });
        allocator.hints(code, ins);
    }

    /// Parameters are written before anything else.
    fn parameters(&self, code: &Code, allocator: &mut Allocator) {
        let mut counts = [0; 2];
        for (v, ty) in &code.params {
            let float = ty.is_float();
            let number = counts[usize::from(float)];
            counts[usize::from(float)] += 1;
            allocator.extend(*v, 0, 1);
            if number < if float { 8 } else { 6 } {
                allocator.fixed_hint[*v as usize] = if float {
                    number as u8
                } else {
                    super::ARGS[number].number()
                };
            }
        }
    }
}

/// Where a block goes on to.
pub(crate) fn successors(block: &crate::ir::Block) -> (u32, u32) {
    match block.term.op {
        Op::Jump => (block.t, NONE),
        Op::Branch | Op::BranchTest | Op::FBranch => (block.t, block.f),
        _ => (NONE, NONE),
    }
}

fn has(set: &[u64], n: u32) -> bool {
    set[n as usize / 64] >> (n % 64) & 1 != 0
}

fn set(set: &mut [u64], n: u32) {
    set[n as usize / 64] |= 1 << (n % 64);
}
