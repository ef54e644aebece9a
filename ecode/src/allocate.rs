//! Registers for virtual registers: liveness, one interval each, linear scan.
//!
//! Invariant: two virtual registers whose intervals overlap never share a register, and none that
//! lives across a call, a division or a shift by a variable is in a register that it destroys. r11
//! and xmm15 are given to nobody: the encoder uses them within one instruction.

mod live;

pub(crate) use live::successors;

use alloc::vec::Vec;

use crate::ir::{Code, Inst, NONE, Op, VReg};
use postern_x86::{Gpr, Xmm};

/// Where a virtual register is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// Nobody uses it.
    None,
    /// A general register.
    Gpr(Gpr),
    /// A vector register.
    Xmm(Xmm),
    /// Spilled: number of an eight-byte slot.
    Stack(u32),
}

impl Location {
    /// The register's number in its class.
    fn number(self) -> Option<u8> {
        match self {
            Location::Gpr(register) => Some(register.number()),
            Location::Xmm(register) => Some(register.number()),
            Location::None | Location::Stack(_) => None,
        }
    }
}

/// Integer argument registers.
pub(crate) const ARGS: [Gpr; 6] = [Gpr::Rdi, Gpr::Rsi, Gpr::Rdx, Gpr::Rcx, Gpr::R8, Gpr::R9];
/// rbx rbp r12 r13 r14.
pub(crate) const SAVED: u32 = 1 << 3 | 1 << 5 | 1 << 12 | 1 << 13 | 1 << 14;
/// All but rsp, r11, r15.
const GENERAL: u32 = 0xffff & !(1 << 4 | 1 << 11 | 1 << 15);
/// rbp, which holds the frame's address where the stack's register does not.
pub(crate) const FRAME: u32 = 1 << 5;
/// All but xmm15.
const VECTOR: u32 = 0x7fff;
/// In this order registers are given out.
const ORDER: [u8; 13] = [0, 1, 2, 6, 7, 8, 9, 10, 3, 5, 12, 13, 14];

/// What is kept between functions, so that its memory is used again.
#[derive(Debug, Default)]
pub(crate) struct Allocator {
    pub locations: Vec<Location>,
    /// Slots that are used.
    pub spilled: u32,
    /// Callee-saved registers that are used.
    pub saved: u32,
    pub has_calls: bool,
    start: Vec<u32>,
    end: Vec<u32>,
    weight: Vec<u32>,
    hint: Vec<VReg>,
    fixed_hint: Vec<u8>,
    list: Vec<(u32, VReg)>,
    calls: Vec<u32>,
    divisions: Vec<u32>,
    shifts: Vec<u32>,
    live: live::LiveSets,
    /// Steps of finding out what is live, in all functions so far.
    pub steps: u64,
}

const NO_HINT: u8 = 0xff;

/// Gives every register of `code` its place. False if that takes more than `most` steps in all
/// functions together.
pub(crate) fn allocate(code: &mut Code, allocator: &mut Allocator, most: u32) -> bool {
    let count = code.vregs.len();
    allocator.start.clear();
    allocator.start.resize(count, u32::MAX);
    allocator.end.clear();
    allocator.end.resize(count, 0);
    allocator.weight.clear();
    allocator.weight.resize(count, 0);
    allocator.hint.clear();
    allocator.hint.resize(count, NONE);
    allocator.fixed_hint.clear();
    allocator.fixed_hint.resize(count, NO_HINT);
    allocator.locations.clear();
    allocator.locations.resize(count, Location::None);
    allocator.calls.clear();
    allocator.divisions.clear();
    allocator.shifts.clear();
    allocator.spilled = 0;
    allocator.saved = 0;
    if !live::intervals(code, allocator, most) {
        return false;
    }
    allocator.has_calls = !allocator.calls.is_empty();
    allocator.scan(code);
    if code.dynamic {
        allocator.saved |= FRAME;
    }
    true
}

impl Allocator {
    /// Notes one use or definition of `v` at a position.
    fn touch(&mut self, v: VReg, at: u32, depth: u32) {
        let v = v as usize;
        self.start[v] = self.start[v].min(at);
        self.end[v] = self.end[v].max(at);
        let weight = 1u32 << (3 * depth.min(7));
        self.weight[v] = self.weight[v].saturating_add(weight);
    }

    fn extend(&mut self, v: VReg, from: u32, to: u32) {
        let v = v as usize;
        self.start[v] = self.start[v].min(from);
        self.end[v] = self.end[v].max(to);
    }

    fn hints(&mut self, code: &Code, ins: &Inst) {
        match ins.op {
            Op::Mov | Op::Select | Op::SelectTest => {
                let other = if ins.op == Op::Mov { ins.a } else { ins.c };
                self.hint[ins.dst as usize] = other;
                if other != NONE && self.hint[other as usize] == NONE {
                    self.hint[other as usize] = ins.dst;
                }
            }
            Op::Call => {
                let (mut general, mut vector) = (0, 0);
                for arg in &code.args[ins.b as usize..(ins.b + ins.c) as usize] {
                    let number = if arg.ty.is_float() {
                        &mut vector
                    } else {
                        &mut general
                    };
                    if arg.v != NONE && *number < if arg.ty.is_float() { 8 } else { 6 } {
                        self.fixed_hint[arg.v as usize] = if arg.ty.is_float() {
                            *number as u8
                        } else {
                            ARGS[*number].number()
                        };
                    }
                    *number += 1;
                }
                if ins.dst != NONE {
                    self.fixed_hint[ins.dst as usize] = 0;
                }
            }
            Op::Return if ins.a != NONE => self.fixed_hint[ins.a as usize] = 0,
            Op::Div | Op::UDiv if ins.dst != NONE => self.fixed_hint[ins.dst as usize] = 0,
            Op::Mod | Op::UMod | Op::MulHigh if ins.dst != NONE => {
                self.fixed_hint[ins.dst as usize] = 2
            }
            Op::Shl | Op::Shr | Op::Sar if ins.b != NONE => {
                self.fixed_hint[ins.b as usize] = 1;
                self.hint[ins.dst as usize] = ins.a;
            }
            Op::Load | Op::Store | Op::Imm => {}
            _ if ins.dst != NONE && ins.a != NONE && self.hint[ins.dst as usize] == NONE => {
                self.hint[ins.dst as usize] = ins.a;
            }
            _ => {}
        }
    }

    fn forbidden(&self, v: VReg, float: bool) -> u32 {
        let (start, end) = (self.start[v as usize], self.end[v as usize]);
        let crosses = |list: &[u32]| {
            let next = list.partition_point(|at| *at <= start);
            list.get(next).is_some_and(|at| *at < end)
        };
        if float {
            return if crosses(&self.calls) { VECTOR } else { 0 };
        }
        let mut mask = 0;
        if crosses(&self.calls) {
            mask |= !SAVED;
        }
        if crosses(&self.divisions) {
            mask |= 1 | 1 << 2;
        }
        if crosses(&self.shifts) {
            mask |= 1 << 1;
        }
        mask
    }

    /// How bad it is to have `v` in memory.
    fn cost(&self, v: VReg) -> u64 {
        let v = v as usize;
        (u64::from(self.weight[v]) << 16) / u64::from(self.end[v] - self.start[v] + 4)
    }

    fn scan(&mut self, code: &Code) {
        let mut list = core::mem::take(&mut self.list);
        list.clear();
        for v in 0..code.vregs.len() as u32 {
            if self.start[v as usize] != u32::MAX {
                list.push((self.start[v as usize], v));
            }
        }
        list.sort_unstable();
        // For general and vector registers: who has it, and until when.
        let mut owner = [[NONE; 16]; 2];
        let mut until = [[0u32; 16]; 2];
        for &(start, v) in &list {
            let float = code.vregs[v as usize].float;
            let class = usize::from(float);
            let general = if code.dynamic {
                GENERAL & !FRAME
            } else {
                GENERAL
            };
            let allowed = if float { VECTOR } else { general } & !self.forbidden(v, float);
            let mut free = 0;
            for (register, until) in until[class].iter().enumerate() {
                free |= u32::from(*until <= start) << register;
            }
            free &= allowed;
            let chosen = if free != 0 {
                Some(self.choose(v, free, float))
            } else {
                self.evict(v, allowed, &mut owner[class])
            };
            match chosen {
                Some(register) => {
                    self.locations[v as usize] = if float {
                        Location::Xmm(Xmm::from_number(register))
                    } else {
                        Location::Gpr(Gpr::from_number(register))
                    };
                    owner[class][register as usize] = v;
                    until[class][register as usize] = self.end[v as usize];
                    if !float {
                        self.saved |= 1 << register & SAVED;
                    }
                }
                None => self.spill(v),
            }
        }
        self.list = list;
    }

    fn choose(&self, v: VReg, free: u32, float: bool) -> u8 {
        let fixed = self.fixed_hint[v as usize];
        if fixed != NO_HINT && free >> fixed & 1 != 0 {
            return fixed;
        }
        let hint = self.hint[v as usize];
        if hint != NONE {
            let location = self.locations[hint as usize];
            if let Some(register) = location.number()
                && free >> register & 1 != 0
            {
                return register;
            }
            if location == Location::None {
                // Where that one would like to be.
                let fixed = self.fixed_hint[hint as usize];
                if fixed != NO_HINT && free >> fixed & 1 != 0 {
                    return fixed;
                }
            }
        }
        if float {
            return free.trailing_zeros() as u8;
        }
        ORDER
            .into_iter()
            .find(|register| free >> register & 1 != 0)
            .unwrap_or(0)
    }

    /// Takes a register from somebody who needs it less.
    fn evict(&mut self, v: VReg, allowed: u32, owner: &mut [VReg; 16]) -> Option<u8> {
        let mut best: Option<(u64, u8)> = None;
        for register in 0..16u8 {
            let holder = owner[register as usize];
            if allowed >> register & 1 != 0 && holder != NONE {
                let cost = self.cost(holder);
                if best.is_none_or(|(least, _)| cost < least) {
                    best = Some((cost, register));
                }
            }
        }
        let (cost, register) = best?;
        if cost >= self.cost(v) {
            return None;
        }
        self.spill(owner[register as usize]);
        Some(register)
    }

    fn spill(&mut self, v: VReg) {
        self.locations[v as usize] = Location::Stack(self.spilled);
        self.spilled += 1;
    }
}
