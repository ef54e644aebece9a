//! A function's frame on the data stack: outgoing arguments, spilled values, variables, saved
//! registers; and how it begins and ends.

use super::{Encoder, FLOAT_SCRATCH, SCRATCH, STACK};
use crate::allocate::{ARGS, Location, SAVED};
use crate::ir::{Inst, NONE, Op, Scalar, VReg};
use postern_x86::{Alu, Assembler, Gpr, Mem, Precision, Rm, Width, Xmm};

/// A register of one of the two classes.
pub(crate) trait Register: Copy + Eq {
    /// The one that no value is given.
    const SCRATCH: Self;
    /// Copies all of it.
    fn copy(asm: &mut Assembler, to: Self, from: Self);
    fn store(asm: &mut Assembler, to: Mem, from: Self);
}

impl Register for Gpr {
    const SCRATCH: Gpr = SCRATCH;
    fn copy(asm: &mut Assembler, to: Gpr, from: Gpr) {
        asm.mov(Width::Qword, to, from);
    }
    fn store(asm: &mut Assembler, to: Mem, from: Gpr) {
        asm.mov_mr(Width::Qword, to, from);
    }
}

impl Register for Xmm {
    const SCRATCH: Xmm = FLOAT_SCRATCH;
    fn copy(asm: &mut Assembler, to: Xmm, from: Xmm) {
        asm.movaps(to, from);
    }
    fn store(asm: &mut Assembler, to: Mem, from: Xmm) {
        asm.mov_scalar_mr(Precision::Double, to, from);
    }
}

/// Where a parameter goes from its register.
#[derive(Clone, Copy)]
enum Home<R> {
    Nowhere,
    Register(R),
    Spilled(u32),
}

impl Encoder<'_> {
    /// Gives everything in the frame its offset from r15.
    pub(crate) fn lay_out_frame(&mut self) {
        let mut outgoing = 0;
        let mut borrows = self.allocator.spilled > 0;
        let mut blocks = false;
        for &block in &self.code.order {
            let b = &self.code.blocks[block as usize];
            for ins in &self.code.ins[b.first as usize..b.last as usize] {
                blocks |= matches!(ins.op, Op::Copy | Op::Zero);
                if ins.op == Op::Call {
                    let args = &self.code.args[ins.b as usize..(ins.b + ins.c) as usize];
                    outgoing = outgoing.max(stack_words(args.iter().map(|arg| arg.ty)));
                }
            }
        }
        borrows |= self.code.slots.iter().any(|slot| slot.size > 0);
        if self.code.dynamic {
            outgoing = outgoing.next_multiple_of(2); // what is taken off the stack begins above them
        }
        self.outgoing = outgoing * 8;
        let mut at = self.outgoing;
        self.spills = at;
        at += self.allocator.spilled * 8;
        self.borrowed = at;
        if blocks && self.code.kernel {
            at += 24; // one more, that blocks are copied through
        } else if borrows && self.allocator.spilled > 0 {
            at += 16;
        }
        for slot in &mut self.code.slots {
            at = at.next_multiple_of(slot.align.max(1));
            slot.offset = at;
            at += slot.size;
        }
        at = at.next_multiple_of(8);
        self.saves = at;
        at += self.allocator.saved.count_ones() * 8;
        self.frame = at.next_multiple_of(16);
    }

    /// Registers of the caller that are used, and where they wait.
    fn saved(&self, base: Gpr) -> impl Iterator<Item = (Gpr, Mem)> + use<> {
        let (mask, saves) = (self.allocator.saved & SAVED, self.saves);
        let lowest = self.confined(Mem::base(base));
        Gpr::ALL
            .into_iter()
            .filter(move |register| mask >> register.number() & 1 != 0)
            .enumerate()
            .map(move |(n, register)| (register, lowest.disp((saves + 8 * n as u32) as i32)))
    }

    fn move_stack(&mut self, by: i32) {
        if by != 0 {
            self.asm.lea(Width::Qword, STACK, Mem::base(STACK).disp(by));
        }
    }

    pub(crate) fn prologue(&mut self) {
        self.move_stack(-(self.frame as i32));
        for (register, place) in self.saved(STACK) {
            self.asm.mov_mr(Width::Qword, place, register);
        }
        if self.code.dynamic {
            self.asm.mov(Width::Qword, Gpr::Rbp, STACK);
        }
        if let Some(slot) = self.code.variadic {
            let at = self.code.slots[slot as usize].offset;
            for (n, register) in ARGS.into_iter().enumerate() {
                self.asm
                    .mov_mr(Width::Qword, self.frame_at(at + 8 * n as u32), register);
            }
            // Vector registers are the interrupted program's in ring 0.
            let vectors = if self.code.kernel { 0 } else { 8 };
            for n in 0..vectors {
                let place = self.frame_at(at + 48 + 16 * u32::from(n));
                self.asm
                    .mov_scalar_mr(Precision::Double, place, Xmm::from_number(n));
            }
        }
        self.receive();
    }

    pub(crate) fn epilogue(&mut self) {
        if self.code.dynamic {
            self.asm.mov(Width::Qword, STACK, Gpr::Rbp);
        }
        for (register, place) in self.saved(STACK) {
            self.asm.mov(Width::Qword, register, place);
        }
        self.move_stack(self.frame as i32);
        self.asm.ret();
    }

    /// The arguments in memory are above the frame.
    pub(crate) fn incoming(&mut self, ins: &Inst) {
        let target = self.target(ins.dst);
        let at = self.frame as i32 + 8 * ins.imm as i32;
        self.asm
            .lea(Width::Dword, target, Mem::base(self.frame_base()).disp(at));
        self.finish(ins.dst, target);
    }

    /// Moves the stack down; what was asked for lies above outgoing arguments.
    pub(crate) fn allocate(&mut self, ins: &Inst) {
        self.fetch(SCRATCH, ins.a, Width::Qword);
        self.asm.alu_mi(Alu::Add, Width::Qword, SCRATCH, 15);
        self.asm.alu_mi(Alu::And, Width::Qword, SCRATCH, -16);
        self.asm.neg(Width::Qword, SCRATCH);
        let above = match (ins.imm, ins.b) {
            (1, _) => Rm::Reg(STACK),
            (_, NONE) => Rm::Reg(Gpr::Rbp),
            (_, before) => self.rm(before),
        };
        self.asm.alu(Alu::Add, Width::Qword, SCRATCH, above);
        let outgoing = self.outgoing as i32;
        let below = if ins.imm == 0 && ins.b != NONE {
            -outgoing
        } else {
            0
        };
        self.asm
            .lea(Width::Qword, STACK, Mem::base(SCRATCH).disp(below));
        let target = self.target(ins.dst);
        self.asm
            .lea(Width::Dword, target, Mem::base(STACK).disp(outgoing));
        self.finish(ins.dst, target);
    }

    /// Takes the parameters from where callers put them.
    fn receive(&mut self) {
        let mut moves = [(Home::Nowhere, Gpr::Rax); ARGS.len()];
        let mut floats = [(Home::Nowhere, Xmm::Xmm0); 8];
        let (mut general, mut vector, mut on_stack) = (0, 0, 0);
        let params = core::mem::take(&mut self.code.params);
        for (v, ty) in &params {
            let to = self.location(*v);
            if ty.is_float() && vector < floats.len() {
                floats[vector] = (to.into(), Xmm::from_number(vector as u8));
                vector += 1;
            } else if !ty.is_float() && general < moves.len() {
                moves[general] = (to.into(), ARGS[general]);
                general += 1;
            } else {
                on_stack += 1;
            }
        }
        self.parallel(&moves);
        self.parallel(&floats);
        if on_stack > 0 {
            self.receive_from_stack(&params);
        }
        self.code.params = params;
    }

    /// Those for which the registers do not suffice; these are where they shall be by now.
    fn receive_from_stack(&mut self, params: &[(VReg, Scalar)]) {
        let (mut general, mut vector, mut at) = (0, 0, self.frame);
        for (v, ty) in params {
            let (taken, most) = match ty.is_float() {
                true => (&mut vector, 8),
                false => (&mut general, ARGS.len()),
            };
            *taken += 1;
            if *taken <= most {
                continue;
            }
            let from = self.frame_at(at);
            at += 8;
            match self.location(*v) {
                Location::None => {}
                Location::Gpr(to) => self.asm.mov(Width::Qword, to, from),
                Location::Xmm(to) => self.asm.mov_scalar(Precision::Double, to, from),
                Location::Stack(slot) => {
                    self.asm.mov(Width::Qword, SCRATCH, from);
                    self.asm
                        .mov_mr(Width::Qword, self.spill_slot(slot), SCRATCH);
                }
            }
        }
    }

    /// Moves registers to places, all at once: (place, register). Memory first, then registers in
    /// an order that loses nothing.
    fn parallel<R: Register>(&mut self, moves: &[(Home<R>, R)]) {
        let mut pending = [(R::SCRATCH, R::SCRATCH); 16];
        let mut count = 0;
        for (to, from) in moves {
            match *to {
                Home::Nowhere => {}
                Home::Spilled(slot) => R::store(self.asm, self.spill_slot(slot), *from),
                Home::Register(to) => {
                    pending[count] = (to, *from);
                    count += 1;
                }
            }
        }
        self.shuffle(&mut pending[..count]);
    }

    /// Moves registers to registers, all at once: (to, from).
    pub(crate) fn shuffle<R: Register>(&mut self, moves: &mut [(R, R)]) {
        let mut left = moves.len();
        loop {
            let mut i = 0;
            let mut progress = false;
            while i < left {
                let (to, from) = moves[i];
                let waits = moves[..left]
                    .iter()
                    .enumerate()
                    .any(|(j, (_, other))| j != i && *other == to);
                if to != from && waits {
                    i += 1;
                    continue;
                }
                if to != from {
                    R::copy(self.asm, to, from);
                }
                left -= 1;
                moves.swap(i, left);
                progress = true;
            }
            if left == 0 {
                return;
            }
            if !progress {
                // A circle: the scratch register opens it.
                let from = moves[0].1;
                R::copy(self.asm, R::SCRATCH, from);
                for entry in moves[..left].iter_mut().filter(|entry| entry.1 == from) {
                    entry.1 = R::SCRATCH;
                }
            }
        }
    }
}

impl From<Location> for Home<Gpr> {
    fn from(location: Location) -> Home<Gpr> {
        match location {
            Location::Gpr(register) => Home::Register(register),
            Location::Stack(slot) => Home::Spilled(slot),
            Location::Xmm(_) | Location::None => Home::Nowhere,
        }
    }
}

impl From<Location> for Home<Xmm> {
    fn from(location: Location) -> Home<Xmm> {
        match location {
            Location::Xmm(register) => Home::Register(register),
            Location::Stack(slot) => Home::Spilled(slot),
            Location::Gpr(_) | Location::None => Home::Nowhere,
        }
    }
}

/// How many arguments of these types lie on the stack.
pub(crate) fn stack_words(types: impl Iterator<Item = Scalar>) -> u32 {
    let (mut general, mut vector) = (0u32, 0u32);
    for ty in types {
        if ty.is_float() {
            vector += 1;
        } else {
            general += 1;
        }
    }
    general.saturating_sub(6) + vector.saturating_sub(8)
}
