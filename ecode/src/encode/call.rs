//! Calls: arguments to where the convention wants them, then the call; through a pointer, by the
//! guarded sequence.

use super::{Encoder, SCRATCH};
use crate::allocate::{ARGS, Location};
use crate::ir::{Arg, Detail, Inst, NONE, Scalar};
use postern_verifier::window::{INFO, PAD};
use postern_x86::{Cond, Gpr, Mem, Precision, Reach, Symbol, Width, Xmm};

/// The target of an indirect call.
const TARGET: Gpr = Gpr::R10;
/// The first four bytes of a landing pad, which say that it is one.
const PAD_WORD: i32 = i32::from_le_bytes([PAD[0], PAD[1], PAD[2], PAD[3]]);

impl Encoder<'_> {
    pub(crate) fn call(&mut self, ins: &Inst) {
        let args = ins.b as usize..(ins.b + ins.c) as usize;
        let (mut general, mut vector, mut stack) = (0usize, 0usize, 0u32);
        let mut moves = [(TARGET, TARGET); ARGS.len() + 1];
        let mut floats = [(Xmm::Xmm0, Xmm::Xmm0); 8];
        let (mut count, mut float_count) = (0, 0);
        // What comes from memory or is constant goes last, when the registers are free.
        let mut late = [(Location::None, 0usize); 16];
        let mut late_count = 0;
        for index in args {
            let arg = self.code.args[index];
            let to = if arg.ty.is_float() {
                vector += 1;
                let register = Xmm::ALL.get(vector - 1).filter(|_| vector <= floats.len());
                register.map(|register| Location::Xmm(*register))
            } else {
                general += 1;
                ARGS.get(general - 1)
                    .map(|register| Location::Gpr(*register))
            };
            let Some(to) = to else {
                self.stack_argument(arg, stack);
                stack += 1;
                continue;
            };
            match (to, self.gpr(arg.v), self.xmm(arg.v)) {
                (Location::Xmm(to), _, Some(from)) => {
                    floats[float_count] = (to, from);
                    float_count += 1;
                }
                (Location::Gpr(to), Some(from), _) => {
                    moves[count] = (to, from);
                    count += 1;
                }
                _ => {
                    late[late_count] = (to, index);
                    late_count += 1;
                }
            }
        }
        let target = self.gpr(ins.a);
        if let Some(target) = target {
            moves[count] = (TARGET, target);
            count += 1;
        }
        self.shuffle(&mut moves[..count]);
        self.shuffle(&mut floats[..float_count]);
        for (to, index) in late.into_iter().take(late_count) {
            self.late_argument(to, self.code.args[index]);
        }
        if ins.a != NONE && target.is_none() {
            self.fetch(TARGET, ins.a, Width::Qword);
        }
        if ins.detail == Detail::Variadic {
            self.constant(Gpr::Rax, vector.min(floats.len()) as i64);
        }
        match Symbol::new(ins.sym).filter(|_| ins.a == NONE) {
            Some(symbol) => self.asm.call_symbol(symbol),
            None => self.indirect(),
        }
        if ins.dst != NONE {
            if ins.ty.is_float() {
                self.move_float(self.location(ins.dst), Location::Xmm(Xmm::Xmm0), ins.ty);
            } else {
                self.finish(ins.dst, Gpr::Rax);
            }
        }
    }

    /// An argument that is constant or in memory, to its register.
    fn late_argument(&mut self, to: Location, arg: Arg) {
        match to {
            Location::Gpr(to) if arg.v == NONE => {
                let narrow = arg.ty == Scalar::I32;
                self.constant(
                    to,
                    if narrow {
                        i64::from(arg.imm as u32)
                    } else {
                        arg.imm
                    },
                );
            }
            Location::Gpr(to) => self.fetch(to, arg.v, Width::Qword),
            to => self.move_float(to, self.location(arg.v), arg.ty),
        }
    }

    fn stack_argument(&mut self, arg: Arg, number: u32) {
        let to = self.on_stack(8 * number);
        if arg.v == NONE {
            self.constant(SCRATCH, arg.imm);
            self.asm.mov_mr(Width::Qword, to, SCRATCH);
            return;
        }
        match self.location(arg.v) {
            Location::Xmm(from) => self.asm.mov_scalar_mr(Precision::Double, to, from),
            Location::Gpr(from) => self.asm.mov_mr(Width::Qword, to, from),
            Location::Stack(slot) => {
                self.asm.mov(Width::Qword, SCRATCH, self.spill_slot(slot));
                self.asm.mov_mr(Width::Qword, to, SCRATCH);
            }
            Location::None => {}
        }
    }

    /// The guarded sequence, which the verifier wants as it is: away unless there is a landing pad
    /// at the target.
    fn indirect(&mut self) {
        let trap = self.trap();
        let pad = self.confined(Mem::base(Gpr::R11));
        let info = self.confined(Mem::absolute(INFO as i32));
        self.asm.mov_mr(Width::Dword, Gpr::R11, TARGET);
        self.asm.cmp_mi(Width::Qword, pad, PAD_WORD);
        self.asm.jcc(Cond::NotEqual, trap, Reach::Near);
        self.asm.or(Width::Qword, Gpr::R11, info);
        self.asm.call_rm(Gpr::R11);
    }
}
