//! Between making and encoding: jumps to jumps, blocks that nothing reaches, and what a loop
//! computes again and again.

use alloc::vec::Vec;

use crate::allocate::successors;
use crate::ir::{Code, Detail, Inst, NONE, NOP, Op, sym};

/// Values of one kind that are moved out of one loop at most: each occupies a register all through
/// it.
const HOISTED: usize = 8;

/// All of it.
pub(crate) fn optimize(code: &mut Code) {
    drop_unreachable(code);
    // Inner loops come after those around them.
    let mut mark = alloc::vec![0; if code.loops.is_empty() { 0 } else { code.vregs.len() }];
    for index in (0..code.loops.len()).rev() {
        hoist(code, index, &mut mark);
    }
    thread_jumps(code);
    drop_unreachable(code);
}

/// Where a jump to `block` really goes.
fn final_target(code: &Code, mut block: u32) -> u32 {
    for _ in 0..16 {
        let b = &code.blocks[block as usize];
        if b.first != b.last || b.term.op != Op::Jump || b.t == block {
            break;
        }
        block = b.t;
    }
    block
}

/// Jumps to empty blocks go where those go.
fn thread_jumps(code: &mut Code) {
    for index in 0..code.order.len() {
        let block = code.order[index] as usize;
        let (t, f) = successors(&code.blocks[block]);
        let t = if t == NONE { t } else { final_target(code, t) };
        let f = if f == NONE { f } else { final_target(code, f) };
        let b = &mut code.blocks[block];
        (b.t, b.f) = (t, f);
        if t == f && t != NONE {
            b.term = Inst {
                op: Op::Jump,
                at: b.term.at,
                ..NOP
            };
        }
    }
}

/// Drops blocks that nothing reaches.
fn drop_unreachable(code: &mut Code) {
    let mut reached = alloc::vec![false; code.blocks.len()];
    let mut todo = alloc::vec![code.order[0]];
    while let Some(block) = todo.pop() {
        if core::mem::replace(&mut reached[block as usize], true) {
            continue;
        }
        let (t, f) = successors(&code.blocks[block as usize]);
        todo.extend([t, f].into_iter().filter(|next| *next != NONE));
    }
    code.order.retain(|block| reached[*block as usize]);
    for (block, _) in code
        .blocks
        .iter_mut()
        .zip(reached)
        .filter(|(_, reached)| !reached)
    {
        block.last = block.first;
        block.term.op = Op::Trap;
    }
}

/// Moves what does not change in a loop to before it. Only what has no effects and cannot fault is
/// moved, so it does not matter whether the loop would have come to it.
fn hoist(code: &mut Code, index: usize, mark: &mut [u32]) {
    let l = code.loops[index];
    if !l.natural {
        return;
    }
    let stamp = index as u32 + 1;
    let mut writes = false;
    for block in l.first..l.last {
        let b = &code.blocks[block as usize];
        code.steps += u64::from(b.last - b.first);
        for ins in &code.ins[b.first as usize..b.last as usize] {
            if ins.dst != NONE {
                mark[ins.dst as usize] = stamp;
            }
            writes |= matches!(ins.op, Op::Store | Op::Copy | Op::Zero | Op::Call)
                || ins.op == Op::Load && ins.detail == Detail::Volatile;
        }
    }
    if code.blocks[l.before as usize].term.op != Op::Jump {
        return;
    }
    let mut hoisted: Vec<Inst> = Vec::new();
    let mut counts = [0usize; 2];
    for block in l.first..l.last {
        let b = code.blocks[block as usize];
        for at in b.first as usize..b.last as usize {
            let ins = code.ins[at];
            let steady = |v: u32| v == NONE || mark[v as usize] != stamp;
            let fixed_load = ins.op == Op::Load
                && ins.detail != Detail::Volatile
                && ins.b == NONE
                && ins.c == NONE
                && (ins.sym == sym::RODATA || ins.sym != sym::NONE && !writes);
            let cheap =
                matches!(ins.op, Op::Mov) || ins.op == Op::Imm && i32::try_from(ins.imm).is_ok();
            if !(ins.is_pure() || fixed_load)
                || cheap
                || ins.dst == NONE
                || !code.vregs[ins.dst as usize].temp
                || ![ins.a, ins.b, ins.c].into_iter().all(steady)
            {
                continue;
            }
            let class = usize::from(code.vregs[ins.dst as usize].float);
            if counts[class] >= HOISTED {
                continue;
            }
            counts[class] += 1;
            mark[ins.dst as usize] = 0;
            hoisted.push(ins);
            code.ins[at] = NOP;
        }
    }
    if hoisted.is_empty() {
        return;
    }
    let before = code.blocks[l.before as usize];
    let first = code.ins.len() as u32;
    for at in before.first..before.last {
        let ins = code.ins[at as usize];
        code.ins.push(ins);
    }
    code.ins.extend_from_slice(&hoisted);
    let last = code.ins.len() as u32;
    let b = &mut code.blocks[l.before as usize];
    (b.first, b.last) = (first, last);
}
