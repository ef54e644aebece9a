//! Calls: arguments to where the convention wants them, then the call; through a pointer, by the guarded sequence.

use super::asm::{Mem, Opcode, Rm};
use super::integer::{MOV_LOAD, MOV_STORE};
use super::{Encoder, R10, R11, R15, RAX};
use crate::allocate::{ARGS, Loc};
use crate::ir::{Ins, NONE};
use postern_verifier::window::INFO;

impl Encoder<'_> {
    pub(crate) fn call(&mut self, ins: &Ins) {
        let args = ins.b as usize..(ins.b + ins.c) as usize;
        let (mut general, mut vector, mut stack) = (0usize, 0usize, 0i32);
        let mut moves = [(0u8, 0u8); 8];
        let mut floats = [(0u8, 0u8); 8];
        let (mut count, mut float_count) = (0, 0);
        // What comes from memory or is constant goes last, when the registers are free.
        let mut late = [(0u8, 0usize); 16];
        let mut late_count = 0;
        for index in args {
            let arg = self.code.args[index];
            let float = arg.ty.is_float();
            let number = if float { &mut vector } else { &mut general };
            *number += 1;
            let limit = if float { 8 } else { 6 };
            if *number > limit {
                self.stack_argument(index, 8 * stack);
                stack += 1;
                continue;
            }
            let to = if float {
                *number as u8 - 1
            } else {
                ARGS[*number - 1]
            };
            match self.reg(arg.v) {
                Some(from) if float => {
                    floats[float_count] = (to, from);
                    float_count += 1;
                }
                Some(from) => {
                    moves[count] = (to, from);
                    count += 1;
                }
                None => {
                    late[late_count] = (to, index);
                    late_count += 1;
                }
            }
        }
        let target = self.reg(ins.a);
        if let Some(target) = target {
            moves[count] = (R10, target);
            count += 1;
        }
        self.shuffle(&mut moves[..count], false);
        self.shuffle(&mut floats[..float_count], true);
        for (to, index) in late.into_iter().take(late_count) {
            let arg = self.code.args[index];
            if arg.v == NONE {
                self.constant(
                    to,
                    if arg.ty == crate::ir::T::I32 {
                        i64::from(arg.imm as u32)
                    } else {
                        arg.imm
                    },
                    true,
                );
            } else if arg.ty.is_float() {
                self.move_float(Loc::Reg(to), self.location(arg.v), arg.ty);
            } else {
                self.move_int(Loc::Reg(to), self.location(arg.v), true);
            }
        }
        if ins.a != NONE && target.is_none() {
            self.fetch(R10, ins.a, true);
        }
        if ins.cc != 0 {
            self.constant(RAX, vector.min(8) as i64, true);
        }
        if ins.a == NONE {
            self.byte(0xe8);
            self.reference(ins.sym, 0, true);
            self.dword(0);
        } else {
            self.indirect();
        }
        if ins.dst != NONE {
            if ins.ty.is_float() {
                self.move_float(self.location(ins.dst), Loc::Reg(0), ins.ty);
            } else {
                self.move_int(self.location(ins.dst), Loc::Reg(RAX), true);
            }
        }
    }

    fn stack_argument(&mut self, index: usize, at: i32) {
        let arg = self.code.args[index];
        let to = Rm::M(Mem::at(R15, at));
        if arg.v == NONE {
            self.constant(R11, arg.imm, true);
            self.op(MOV_STORE, true, R11, to);
            return;
        }
        match self.location(arg.v) {
            Loc::Reg(from) if arg.ty.is_float() => {
                self.op(Opcode::with(0xf2, 0x0f11), false, from, to)
            }
            Loc::Reg(from) => self.op(MOV_STORE, true, from, to),
            Loc::Stack(slot) => {
                self.op(MOV_LOAD, true, R11, Rm::M(self.spill_slot(slot)));
                self.op(MOV_STORE, true, R11, to);
            }
            Loc::None => {}
        }
    }

    /// The guarded sequence over the target in r10.
    fn indirect(&mut self) {
        self.unit.text.extend_from_slice(&[0x45, 0x89, 0xd3]); // movl %r10d, %r11d
        self.unit
            .text
            .extend_from_slice(&[0x65, 0x67, 0x49, 0x81, 0x3b, 0x0f, 0x1f, 0x84, 0x20]);
        self.unit.text.extend_from_slice(&[0x0f, 0x85]);
        self.traps.push(self.unit.text.len() as u32);
        self.dword(0);
        self.unit
            .text
            .extend_from_slice(&[0x65, 0x67, 0x4c, 0x0b, 0x1c, 0x25]);
        self.unit.text.extend_from_slice(&INFO.to_le_bytes());
        self.unit.text.extend_from_slice(&[0x41, 0xff, 0xd3]);
    }
}
