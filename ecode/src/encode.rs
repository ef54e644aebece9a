//! Machine code of a function, directly in the confined form: every memory operand is gs-relative
//! (fs-relative for the kernel) with a 32-bit address, r15 is the data stack, indirect calls are
//! guarded sequences. Nothing here is trusted: the verifier judges the result.

mod call;
mod float;
mod frame;
mod integer;
mod memory;

use alloc::vec::Vec;

use crate::allocate::{Allocator, Location};
use crate::building::Building;
use crate::ir::{Code, Inst, NONE, Op, Scalar, VReg};
use postern_verifier::window::{FILL, PAD};
use postern_x86::{Assembler, Cond, Gpr, Label, Mem, Precision, Reach, Rm, Width, Xmm};

/// What no value is given: for use within one instruction of the intermediate form.
const SCRATCH: Gpr = Gpr::R11;
const FLOAT_SCRATCH: Xmm = Xmm::Xmm15;
/// The data stack.
const STACK: Gpr = Gpr::R15;

/// The bytes that an instruction of the intermediate form takes as a guess, for choosing short
/// jumps.
const GUESS: u32 = 11;

pub(crate) struct Encoder<'a> {
    code: &'a mut Code,
    allocator: &'a Allocator,
    /// Labels are the numbers of blocks, then [`Encoder::trap`], then those inside an instruction
    /// of the intermediate form.
    asm: &'a mut Assembler,
    labels: u32,
    /// Positions in text and in the source.
    lines: &'a mut Vec<(u32, u32)>,
    /// How far each block is by guess, and where we are.
    guess: Vec<u32>,
    here: u32,
    /// Whether short forward jumps are tried.
    short: bool,
    /// Bytes of the frame, and where its parts begin.
    frame: u32,
    spills: u32,
    saves: u32,
    borrowed: u32,
    outgoing: u32,
}

/// Appends the function's machine code to the unit; returns where it begins, and its size.
pub(crate) fn encode(code: &mut Code, allocator: &Allocator, unit: &mut Building) -> (u32, u32) {
    unit.asm.align(16, FILL);
    let (start, lines) = (unit.asm.mark(), unit.lines.len());
    let offset = unit.asm.position();
    let blocks = code.blocks.len();
    let mut encoder = Encoder {
        code,
        allocator,
        asm: &mut unit.asm,
        labels: 0,
        lines: &mut unit.lines,
        guess: alloc::vec![0; blocks],
        here: 0,
        short: true,
        frame: 0,
        spills: 0,
        saves: 0,
        borrowed: 0,
        outgoing: 0,
    };
    encoder.lay_out_frame();
    for short in [true, false] {
        encoder.short = short;
        encoder.asm.rewind(start);
        encoder.lines.truncate(lines);
        encoder.code.steps += encoder.code.ins.len() as u64;
        if encoder.function() {
            break;
        }
    }
    (offset, encoder.asm.position() - offset)
}

impl Encoder<'_> {
    /// What follows comes from this place in the source.
    fn line(&mut self, at: u32) {
        let here = self.asm.position();
        match self.lines.last_mut() {
            Some((from, line)) if *from == here => *line = at,
            _ => self.lines.push((here, at)),
        }
    }

    /// Where a guarded sequence goes whose target has no landing pad.
    fn trap(&self) -> Label {
        Label(self.code.blocks.len() as u32)
    }

    fn new_label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// The whole function. False if a short jump does not reach.
    fn function(&mut self) -> bool {
        // Nothing calls through pointers in ring 0.
        if !self.code.kernel {
            self.asm.bytes(&PAD);
        }
        self.labels = self.code.blocks.len() as u32 + 1;
        self.guess_blocks();
        let mut line = self.code.from;
        self.line(line);
        self.prologue();
        for index in 0..self.code.order.len() {
            let block = self.code.order[index];
            let b = self.code.blocks[block as usize];
            self.asm.bind(Label(block));
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
        self.asm.bind(self.trap());
        self.asm.bytes(&[FILL]);
        self.asm.link().is_ok()
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
    }

    /// A jump to a block, on a condition if there is one.
    fn jump(&mut self, cond: Option<Cond>, to: u32) {
        let label = Label(to);
        let short = match self.asm.position_of(label) {
            Some(known) => self.asm.position() - known < 120,
            None => self.short && self.guess[to as usize].saturating_sub(self.here) < 110,
        };
        let reach = if short { Reach::Short } else { Reach::Near };
        match cond {
            None => self.asm.jmp(label, reach),
            Some(cond) => self.asm.jcc(cond, label, reach),
        }
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
                let cond = self.compare(ins);
                self.branch(cond, b.t, b.f, next);
            }
            Op::FBranch => self.float_branch(ins, b.t, b.f, next),
            Op::Return => {
                if ins.a != NONE {
                    if ins.ty.is_float() {
                        self.move_float(Location::Xmm(Xmm::Xmm0), self.location(ins.a), ins.ty);
                    } else {
                        self.fetch(Gpr::Rax, ins.a, width(ins.ty));
                    }
                }
                self.epilogue();
            }
            _ => self.asm.ud2(),
        }
    }

    fn branch(&mut self, cond: Cond, t: u32, f: u32, next: u32) {
        if t == next {
            self.jump(Some(cond.negated()), f);
        } else {
            self.jump(Some(cond), t);
            if f != next {
                self.jump(None, f);
            }
        }
    }

    fn location(&self, v: VReg) -> Location {
        self.allocator.locations[v as usize]
    }

    fn gpr(&self, v: VReg) -> Option<Gpr> {
        match self.allocator.locations.get(v as usize) {
            Some(Location::Gpr(register)) => Some(*register),
            _ => None,
        }
    }

    fn xmm(&self, v: VReg) -> Option<Xmm> {
        match self.allocator.locations.get(v as usize) {
            Some(Location::Xmm(register)) => Some(*register),
            _ => None,
        }
    }

    /// The register or memory of an integer.
    fn rm(&self, v: VReg) -> Rm<Gpr> {
        match self.location(v) {
            Location::Gpr(register) => Rm::Reg(register),
            Location::Stack(slot) => Rm::Mem(self.spill_slot(slot)),
            Location::Xmm(_) | Location::None => Rm::Reg(SCRATCH),
        }
    }

    /// The register or memory of a float.
    fn xmm_rm(&self, v: VReg) -> Rm<Xmm> {
        match self.location(v) {
            Location::Xmm(register) => Rm::Reg(register),
            Location::Stack(slot) => Rm::Mem(self.spill_slot(slot)),
            Location::Gpr(_) | Location::None => Rm::Reg(FLOAT_SCRATCH),
        }
    }

    fn spill_slot(&self, slot: u32) -> Mem {
        self.frame_at(self.spills + 8 * slot)
    }

    /// The register that the frame is found by.
    fn frame_base(&self) -> Gpr {
        if self.code.dynamic { Gpr::Rbp } else { STACK }
    }

    /// Memory of the frame, so many bytes above its lowest.
    fn frame_at(&self, at: u32) -> Mem {
        self.confined(Mem::base(self.frame_base()).disp(at as i32))
    }

    /// Memory of the stack, so many bytes above its lowest.
    fn on_stack(&self, at: u32) -> Mem {
        self.confined(Mem::base(STACK).disp(at as i32))
    }

    /// Memory as a window's code sees it: relative to the window's segment, with 32-bit addresses.
    fn confined(&self, mem: Mem) -> Mem {
        match self.code.kernel {
            false => mem.gs().addr32(),
            true => mem.fs().addr32(),
        }
    }

    fn instruction(&mut self, ins: &Inst) {
        match ins.op {
            Op::Nop => {}
            Op::Mov if ins.ty.is_float() => {
                self.move_float(self.location(ins.dst), self.location(ins.a), ins.ty)
            }
            Op::Mov => self.move_int(self.location(ins.dst), self.location(ins.a), width(ins.ty)),
            Op::Imm => self.immediate(ins),
            Op::Add | Op::Sub | Op::Mul | Op::And | Op::Or | Op::Xor => self.arithmetic(ins),
            Op::Shl | Op::Shr | Op::Sar | Op::Rol => self.shift(ins),
            Op::Div | Op::Mod | Op::UDiv | Op::UMod | Op::MulHigh => self.divide(ins),
            Op::Neg | Op::Not => self.unary(ins),
            Op::Popcount | Op::LowestBit | Op::HighestBit | Op::SwapBytes => self.bits(ins),
            Op::Incoming => self.incoming(ins),
            Op::Allocate => self.allocate(ins),
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
}

fn weight(ins: &Inst) -> u32 {
    match ins.op {
        Op::Nop => 0,
        Op::Call | Op::Copy | Op::Zero => 120,
        Op::Div | Op::Mod | Op::UDiv | Op::UMod => 20,
        Op::Allocate => 40,
        _ => GUESS,
    }
}

/// The width of an operation on integers: those of less than 32 bits are done with 32.
fn width(ty: Scalar) -> Width {
    if ty == Scalar::I64 {
        Width::Qword
    } else {
        Width::Dword
    }
}

fn precision(ty: Scalar) -> Precision {
    if ty == Scalar::F32 {
        Precision::Single
    } else {
        Precision::Double
    }
}
