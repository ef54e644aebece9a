//! Machine code of a function, directly in the confined form: every memory operand is gs-relative with a 32-bit address, r15
//! is the data stack, indirect calls are guarded sequences. Nothing here is trusted: the verifier judges the result.

mod asm;
mod call;
mod float;
mod frame;
mod integer;
mod memory;

use alloc::vec::Vec;

use crate::allocate::{Loc, Work};
use crate::ir::{Code, Ins, NONE, Op, T, V};
use crate::unit::{Building, TextReference};
use postern_verifier::window::{FILL, PAD};

use asm::{Mem, Rm};

/// Registers with a part to play.
pub(crate) const RAX: u8 = 0;
pub(crate) const RCX: u8 = 1;
pub(crate) const RDX: u8 = 2;
pub(crate) const R10: u8 = 10;
pub(crate) const R11: u8 = 11;
pub(crate) const R15: u8 = 15;
pub(crate) const X15: u8 = 15;

/// The bytes that an instruction of the intermediate form takes as a guess, for choosing short jumps.
const GUESS: u32 = 11;

pub(crate) struct Encoder<'a> {
    code: &'a mut Code,
    work: &'a Work,
    unit: &'a mut Building,
    /// Position in text of each block, and how far it is by guess.
    blocks: Vec<u32>,
    guess: Vec<u32>,
    here: u32,
    jumps: Vec<Jump>,
    /// Whether short forward jumps are tried.
    short: bool,
    /// Bytes of the frame, and where its parts begin.
    frame: u32,
    spills: u32,
    saves: u32,
    borrowed: u32,
    /// A guarded sequence wants the trap at the end.
    traps: Vec<u32>,
}

struct Jump {
    /// Position of the displacement.
    at: u32,
    to: u32,
    short: bool,
}

/// Appends the function's machine code to the unit; returns where it begins, and its size.
pub(crate) fn encode(code: &mut Code, work: &Work, unit: &mut Building) -> (u32, u32) {
    while unit.text.len() % 16 != 0 {
        unit.text.push(FILL);
    }
    let start = unit.text.len();
    let (references, lines) = (unit.references.len(), unit.lines.len());
    let blocks = code.blocks.len();
    let mut encoder = Encoder {
        code,
        work,
        unit,
        blocks: alloc::vec![0; blocks],
        guess: alloc::vec![0; blocks],
        here: 0,
        jumps: Vec::new(),
        short: true,
        frame: 0,
        spills: 0,
        saves: 0,
        borrowed: 0,
        traps: Vec::new(),
    };
    encoder.lay_out_frame();
    for short in [true, false] {
        encoder.short = short;
        encoder.unit.text.truncate(start);
        encoder.unit.references.truncate(references);
        encoder.unit.lines.truncate(lines);
        encoder.jumps.clear();
        encoder.traps.clear();
        encoder.code.steps += encoder.code.ins.len() as u64;
        if encoder.function() {
            break;
        }
    }
    (start as u32, (encoder.unit.text.len() - start) as u32)
}

impl Encoder<'_> {
    /// What follows comes from this place in the source.
    fn line(&mut self, at: u32) {
        let here = self.unit.text.len() as u32;
        match self.unit.lines.last_mut() {
            Some((from, line)) if *from == here => *line = at,
            _ => self.unit.lines.push((here, at)),
        }
    }

    fn function(&mut self) -> bool {
        self.unit.text.extend_from_slice(&PAD);
        self.guess_blocks();
        let mut line = self.code.from;
        self.line(line);
        self.prologue();
        for index in 0..self.code.order.len() {
            let block = self.code.order[index];
            let b = self.code.blocks[block as usize];
            self.blocks[block as usize] = self.unit.text.len() as u32;
            self.here = self.guess[block as usize];
            for at in b.first..b.last {
                let ins = self.code.ins[at as usize];
                if ins.op == Op::Nop {
                    continue;
                }
                if ins.at != line {
                    line = ins.at;
                    self.line(line);
                }
                self.instruction(&ins);
                self.here += weight(&ins);
            }
            let next = self.code.order.get(index + 1).copied().unwrap_or(NONE);
            let falls = b.term.op == Op::Jump && b.t == next;
            if b.term.at != line && !falls {
                line = b.term.at;
                self.line(line);
            }
            self.terminator(&b, next);
        }
        let trap = self.unit.text.len() as u32;
        self.byte(FILL);
        for at in core::mem::take(&mut self.traps) {
            let distance = trap.wrapping_sub(at + 4);
            self.patch(at, distance);
        }
        for jump in core::mem::take(&mut self.jumps) {
            let target = self.blocks[jump.to as usize];
            if jump.short {
                let distance = i64::from(target) - i64::from(jump.at) - 1;
                let Ok(distance) = i8::try_from(distance) else {
                    return false;
                };
                self.unit.text[jump.at as usize] = distance as u8;
            } else {
                self.patch(jump.at, target.wrapping_sub(jump.at + 4));
            }
        }
        true
    }

    fn patch(&mut self, at: u32, value: u32) {
        self.unit.text[at as usize..at as usize + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn guess_blocks(&mut self) {
        let mut at = 0;
        for &block in &self.code.order {
            self.guess[block as usize] = at;
            let b = &self.code.blocks[block as usize];
            for ins in &self.code.ins[b.first as usize..b.last as usize] {
                at += weight(ins);
            }
            at += 16;
        }
        self.blocks.fill(u32::MAX);
    }

    /// A jump, on condition `cc` if there is one.
    fn jump(&mut self, cc: Option<u8>, to: u32) {
        let here = self.unit.text.len() as u32;
        let known = self.blocks[to as usize];
        let short = if known != u32::MAX {
            here - known < 120
        } else {
            self.short && self.guess[to as usize].saturating_sub(self.here) < 110
        };
        match (cc, short) {
            (None, true) => self.byte(0xeb),
            (None, false) => self.byte(0xe9),
            (Some(cc), true) => self.byte(0x70 | cc),
            (Some(cc), false) => {
                self.byte(0x0f);
                self.byte(0x80 | cc);
            }
        }
        let at = self.unit.text.len() as u32;
        self.jumps.push(Jump { at, to, short });
        self.unit
            .text
            .extend_from_slice(if short { &[0][..] } else { &[0; 4] });
    }

    fn terminator(&mut self, b: &crate::ir::Block, next: u32) {
        let ins = &b.term;
        match ins.op {
            Op::Jump => {
                if b.t != next {
                    self.jump(None, b.t);
                }
            }
            Op::Branch | Op::BranchTest => {
                let cc = self.compare(ins);
                self.branch(cc, b.t, b.f, next);
            }
            Op::FBranch => self.float_branch(ins, b.t, b.f, next),
            Op::Return => {
                if ins.a != NONE {
                    if ins.ty.is_float() {
                        self.move_float(Loc::Reg(0), self.location(ins.a), ins.ty);
                    } else {
                        self.move_int(Loc::Reg(RAX), self.location(ins.a), ins.ty.wide());
                    }
                }
                self.epilogue();
            }
            _ => {
                self.byte(0x0f);
                self.byte(0x0b); // ud2
            }
        }
    }

    fn branch(&mut self, cc: u8, t: u32, f: u32, next: u32) {
        if t == next {
            self.jump(Some(cc ^ 1), f);
        } else {
            self.jump(Some(cc), t);
            if f != next {
                self.jump(None, f);
            }
        }
    }

    fn location(&self, v: V) -> Loc {
        self.work.locations[v as usize]
    }

    fn reg(&self, v: V) -> Option<u8> {
        match self.work.locations.get(v as usize) {
            Some(Loc::Reg(register)) => Some(*register),
            _ => None,
        }
    }

    /// The register or memory of a value.
    fn rm(&self, v: V) -> Rm {
        match self.location(v) {
            Loc::Reg(register) => Rm::R(register),
            Loc::Stack(slot) => Rm::M(self.spill_slot(slot)),
            Loc::None => Rm::R(R11),
        }
    }

    fn spill_slot(&self, slot: u32) -> Mem {
        Mem::at(R15, (self.spills + 8 * slot) as i32)
    }

    fn instruction(&mut self, ins: &Ins) {
        match ins.op {
            Op::Nop => {}
            Op::Mov if ins.ty.is_float() => {
                self.move_float(self.location(ins.dst), self.location(ins.a), ins.ty)
            }
            Op::Mov => self.move_int(self.location(ins.dst), self.location(ins.a), ins.ty.wide()),
            Op::Imm => self.immediate(ins),
            Op::Add | Op::Sub | Op::Mul | Op::And | Op::Or | Op::Xor => self.arithmetic(ins),
            Op::Shl | Op::Shr | Op::Sar | Op::Rol => self.shift(ins),
            Op::Div | Op::Mod | Op::UDiv | Op::UMod | Op::MulHigh => self.divide(ins),
            Op::Neg | Op::Not => self.unary(ins),
            Op::Extend => self.extend(ins),
            Op::Set | Op::SetTest => self.set(ins),
            Op::Select | Op::SelectTest => self.select(ins),
            Op::Load => self.load(ins),
            Op::Store => self.store(ins),
            Op::Lea => self.lea(ins),
            Op::Copy | Op::Zero => self.block(ins),
            Op::Call => self.call(ins),
            Op::FSet => self.float_set(ins),
            Op::FAdd | Op::FSub | Op::FMul | Op::FDiv => self.float_arithmetic(ins),
            Op::FNeg => self.float_negate(ins),
            Op::FCvt | Op::ToFloat | Op::ToInt => self.float_convert(ins),
            Op::Jump | Op::Branch | Op::BranchTest | Op::FBranch | Op::Return | Op::Trap => {}
        }
    }

    fn byte(&mut self, byte: u8) {
        self.unit.text.push(byte);
    }

    fn reference(&mut self, symbol: u32, addend: i32, relative: bool) {
        let at = self.unit.text.len() as u32;
        self.reference_at(at, symbol, addend, relative);
    }

    fn reference_at(&mut self, at: u32, symbol: u32, addend: i32, relative: bool) {
        self.unit.references.push(TextReference {
            at,
            symbol,
            addend,
            relative,
        });
    }
}

fn weight(ins: &Ins) -> u32 {
    match ins.op {
        Op::Nop => 0,
        Op::Call | Op::Copy | Op::Zero => 120,
        Op::Div | Op::Mod | Op::UDiv | Op::UMod => 20,
        _ => GUESS,
    }
}

/// Whether the operation is one on 64 bits.
fn wide(ty: T) -> bool {
    ty == T::I64
}
