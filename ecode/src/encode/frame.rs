//! A function's frame on the data stack: outgoing arguments, spilled values, variables, saved registers; and how it begins
//! and ends.

use super::asm::{Mem, Opcode, Rm};
use super::integer::{MOV_LOAD, MOV_STORE};
use super::{Encoder, R11, R15};
use crate::allocate::{ARGS, Loc, SAVED};
use crate::ir::{Op, T};

impl Encoder<'_> {
    /// Gives everything in the frame its offset from r15.
    pub(crate) fn lay_out_frame(&mut self) {
        let mut outgoing = 0;
        let mut borrows = self.work.spilled > 0;
        for &block in &self.code.order {
            let b = &self.code.blocks[block as usize];
            for ins in &self.code.ins[b.first as usize..b.last as usize] {
                if ins.op == Op::Call {
                    let args = &self.code.args[ins.b as usize..(ins.b + ins.c) as usize];
                    outgoing = outgoing.max(on_stack(args.iter().map(|arg| arg.ty)));
                }
            }
        }
        borrows |= self.code.slots.iter().any(|slot| slot.size > 0);
        let mut at = outgoing * 8;
        self.spills = at;
        at += self.work.spilled * 8;
        self.borrowed = at;
        if borrows && self.work.spilled > 0 {
            at += 16;
        }
        for slot in &mut self.code.slots {
            at = at.next_multiple_of(slot.align.max(1));
            slot.offset = at;
            at += slot.size;
        }
        at = at.next_multiple_of(8);
        self.saves = at;
        at += self.work.saved.count_ones() * 8;
        self.frame = at.next_multiple_of(16);
    }

    fn saved(&self) -> impl Iterator<Item = (u8, i32)> + use<> {
        let (mask, saves) = (self.work.saved & SAVED, self.saves);
        (0..16u8)
            .filter(move |register| mask >> register & 1 != 0)
            .enumerate()
            .map(move |(n, register)| (register, (saves + 8 * n as u32) as i32))
    }

    pub(crate) fn prologue(&mut self) {
        if self.frame > 0 {
            self.op_address(
                Opcode::new(0x8d),
                true,
                R15,
                Mem::at(R15, -(self.frame as i32)),
            );
        }
        for (register, at) in self.saved() {
            self.op(MOV_STORE, true, register, Rm::M(Mem::at(R15, at)));
        }
        self.receive();
    }

    pub(crate) fn epilogue(&mut self) {
        for (register, at) in self.saved() {
            self.op(MOV_LOAD, true, register, Rm::M(Mem::at(R15, at)));
        }
        if self.frame > 0 {
            self.op_address(
                Opcode::new(0x8d),
                true,
                R15,
                Mem::at(R15, self.frame as i32),
            );
        }
        self.byte(0xc3);
    }

    /// Takes the parameters from where callers put them.
    fn receive(&mut self) {
        let (mut general, mut vector, mut stack) = (0, 0, 0);
        let mut moves = [(Loc::None, 0u8); 6];
        let mut floats = [(Loc::None, 0u8); 8];
        let params = core::mem::take(&mut self.code.params);
        let mut late = [(Loc::None, T::I32, 0i32); 17];
        let mut late_count = 0;
        for (v, ty) in &params {
            let to = self.location(*v);
            let number = if ty.is_float() {
                &mut vector
            } else {
                &mut general
            };
            if ty.is_float() && *number < 8 {
                floats[*number] = (to, *number as u8);
                *number += 1;
            } else if !ty.is_float() && *number < 6 {
                moves[*number] = (to, ARGS[*number]);
                *number += 1;
            } else {
                if let Some(entry) = late.get_mut(late_count) {
                    *entry = (to, *ty, (self.frame + 8 * stack) as i32);
                    late_count += 1;
                }
                stack += 1;
            }
        }
        self.code.params = params;
        self.parallel(&mut moves, false);
        self.parallel(&mut floats, true);
        for (to, ty, at) in late.into_iter().take(late_count) {
            let from = Rm::M(Mem::at(R15, at));
            match (to, ty.is_float()) {
                (Loc::None, _) => {}
                (Loc::Reg(to), false) => self.op(MOV_LOAD, true, to, from),
                (Loc::Reg(to), true) => self.op(Opcode::with(0xf2, 0x0f10), false, to, from),
                (Loc::Stack(slot), _) => {
                    self.op(MOV_LOAD, true, R11, from);
                    self.op(MOV_STORE, true, R11, Rm::M(self.spill_slot(slot)));
                }
            }
        }
    }

    /// Moves registers to places, all at once: (place, register). Memory first, then registers in an order that loses nothing.
    fn parallel(&mut self, moves: &mut [(Loc, u8)], float: bool) {
        for (to, from) in moves.iter_mut() {
            if let Loc::Stack(slot) = *to {
                let slot = Rm::M(self.spill_slot(slot));
                if float {
                    self.op(Opcode::with(0xf2, 0x0f11), false, *from, slot);
                } else {
                    self.op(MOV_STORE, true, *from, slot);
                }
                *to = Loc::None;
            }
        }
        let mut pending = [(0u8, 0u8); 16];
        let mut count = 0;
        for (to, from) in moves.iter() {
            if let Loc::Reg(to) = *to {
                pending[count] = (to, *from);
                count += 1;
            }
        }
        self.shuffle(&mut pending[..count], float);
    }

    /// Moves registers to registers, all at once: (to, from).
    pub(crate) fn shuffle(&mut self, moves: &mut [(u8, u8)], float: bool) {
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
                    self.move_register(to, from, float);
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
                let scratch = if float { super::X15 } else { R11 };
                let from = moves[0].1;
                self.move_register(scratch, from, float);
                for entry in moves[..left].iter_mut().filter(|entry| entry.1 == from) {
                    entry.1 = scratch;
                }
            }
        }
    }

    fn move_register(&mut self, to: u8, from: u8, float: bool) {
        if float {
            self.op(Opcode::new(0x0f28), false, to, Rm::R(from));
        } else {
            self.op(MOV_LOAD, true, to, Rm::R(from));
        }
    }
}

/// How many arguments of these types lie on the stack.
pub(crate) fn on_stack(types: impl Iterator<Item = T>) -> u32 {
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
