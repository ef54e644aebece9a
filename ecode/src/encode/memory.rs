//! Loads, stores, addresses, and blocks of bytes.

use super::asm::{Mem, Opcode, Rm};
use super::integer::{MOV_LOAD, MOV_STORE};
use super::{Encoder, R11, R15, X15};
use crate::allocate::Loc;
use crate::ir::{Ins, NONE, Op, T, V, sym};

/// Registers that may be borrowed for an instruction.
const LENDERS: [u8; 4] = [0, 1, 2, 6];
/// Bytes up to which a block is copied or cleared without a loop.
const UNROLLED: i64 = 256;

impl Encoder<'_> {
    /// The memory operand of an instruction with real registers. Uses r11 if it must.
    pub(crate) fn memory(&mut self, ins: &Ins) -> Mem {
        let mut mem = Mem {
            base: self.reg(ins.b),
            index: self.reg(ins.c),
            scale: ins.scale.max(1),
            disp: ins.disp,
            sym: ins.sym,
        };
        let frame = ins.sym & sym::FRAME != 0;
        if frame {
            let slot = self.code.slots[(ins.sym - sym::FRAME) as usize];
            mem.sym = sym::NONE;
            mem.disp = mem.disp.wrapping_add(slot.offset as i32);
        }
        // Addresses count by their low half; products by 3, 5 and 9 that are computed as addresses do not.
        let wide = ins.op == Op::Lea && super::wide(ins.ty);
        let base_spilled = ins.b != NONE && mem.base.is_none();
        let index_spilled = ins.c != NONE && mem.index.is_none();
        if index_spilled {
            // All of the registers' sum in r11.
            self.fetch(R11, ins.c, wide);
            if mem.scale > 1 {
                self.op(Opcode::new(0xc1), wide, 4, Rm::R(R11));
                self.byte(mem.scale.trailing_zeros() as u8);
            }
            if ins.b != NONE {
                let base = self.rm(ins.b);
                self.op(Opcode::new(0x03), wide, R11, base);
            }
            (mem.base, mem.index, mem.scale) = (Some(R11), None, 1);
        } else if base_spilled {
            self.fetch(R11, ins.b, wide);
            mem.base = Some(R11);
        }
        if !frame {
            return mem;
        }
        match (mem.base, mem.index) {
            (None, _) => mem.base = Some(R15),
            (Some(base), None) => (mem.base, mem.index, mem.scale) = (Some(R15), Some(base), 1),
            (Some(base), Some(_)) => {
                let sum = Mem {
                    base: Some(R15),
                    index: Some(base),
                    scale: 1,
                    disp: mem.disp,
                    sym: sym::NONE,
                };
                self.op_address(Opcode::new(0x8d), false, R11, sum);
                (mem.base, mem.disp) = (Some(R11), 0);
            }
        }
        mem
    }

    pub(crate) fn load(&mut self, ins: &Ins) {
        let mem = self.memory(ins);
        if ins.ty.is_float() {
            let target = self.reg(ins.dst).unwrap_or(X15);
            let prefix = if ins.ty == T::F32 { 0xf3 } else { 0xf2 };
            self.op(Opcode::with(prefix, 0x0f10), false, target, Rm::M(mem));
            self.move_float(self.location(ins.dst), Loc::Reg(target), ins.ty);
            return;
        }
        let target = self.target(ins.dst);
        let (opcode, wide) = match ins.ty {
            T::I8 => (Opcode::new(0x0fbe), false),
            T::U8 => (Opcode::new(0x0fb6), false),
            T::I16 => (Opcode::new(0x0fbf), false),
            T::U16 => (Opcode::new(0x0fb7), false),
            T::I32 => (MOV_LOAD, false),
            _ => (MOV_LOAD, true),
        };
        self.op(opcode, wide, target, Rm::M(mem));
        self.finish(ins.dst, target);
    }

    pub(crate) fn store(&mut self, ins: &Ins) {
        let mem = self.memory(ins);
        if ins.ty.is_float() {
            let from = self.reg(ins.a).unwrap_or(X15);
            self.move_float(Loc::Reg(from), self.location(ins.a), ins.ty);
            let prefix = if ins.ty == T::F32 { 0xf3 } else { 0xf2 };
            self.op(Opcode::with(prefix, 0x0f11), false, from, Rm::M(mem));
            return;
        }
        if ins.a == NONE {
            self.store_constant(ins, mem);
            return;
        }
        let busy = mem.base == Some(R11) || mem.index == Some(R11);
        match self.reg(ins.a) {
            Some(from) => self.store_register(ins.ty, from, mem),
            None if !busy => {
                self.fetch(R11, ins.a, true);
                self.store_register(ins.ty, R11, mem);
            }
            None => {
                let from = self.borrow(0, &[mem.base, mem.index]);
                self.fetch(from, ins.a, true);
                self.store_register(ins.ty, from, mem);
                self.give_back(0, from);
            }
        }
    }

    fn store_register(&mut self, ty: T, from: u8, mem: Mem) {
        match ty {
            T::I8 | T::U8 => self.op(
                Opcode {
                    byte_reg: true,
                    ..Opcode::new(0x88)
                },
                false,
                from,
                Rm::M(mem),
            ),
            T::I16 | T::U16 => self.op(Opcode::with(0x66, 0x89), false, from, Rm::M(mem)),
            T::I32 => self.op(MOV_STORE, false, from, Rm::M(mem)),
            _ => self.op(MOV_STORE, true, from, Rm::M(mem)),
        }
    }

    fn store_constant(&mut self, ins: &Ins, mem: Mem) {
        match ins.ty {
            T::I8 | T::U8 => {
                self.op(Opcode::new(0xc6), false, 0, Rm::M(mem));
                self.byte(ins.imm as u8);
            }
            T::I16 | T::U16 => {
                self.op(Opcode::with(0x66, 0xc7), false, 0, Rm::M(mem));
                self.unit
                    .text
                    .extend_from_slice(&(ins.imm as i16).to_le_bytes());
            }
            ty => {
                self.op(Opcode::new(0xc7), ty == T::I64, 0, Rm::M(mem));
                self.dword(ins.imm as i32);
            }
        }
    }

    pub(crate) fn lea(&mut self, ins: &Ins) {
        let mem = self.memory(ins);
        let target = self.target(ins.dst);
        if mem.base.is_none() && mem.index.is_none() {
            // The offset itself.
            if target >= 8 {
                self.byte(0x41);
            }
            self.byte(0xb8 | target & 7);
            if mem.sym != sym::NONE {
                self.reference(mem.sym, mem.disp, false);
            }
            self.dword(mem.disp);
        } else {
            self.op_address(Opcode::new(0x8d), super::wide(ins.ty), target, mem);
        }
        self.finish(ins.dst, target);
    }

    /// A general register that the instruction does not use, saved in the frame; `give_back` restores it.
    fn borrow(&mut self, place: u32, used: &[Option<u8>]) -> u8 {
        let register = LENDERS
            .into_iter()
            .find(|register| !used.contains(&Some(*register)))
            .unwrap_or(7);
        let slot = Mem::at(R15, (self.borrowed + 8 * place) as i32);
        self.op(MOV_STORE, true, register, Rm::M(slot));
        register
    }

    fn give_back(&mut self, place: u32, register: u8) {
        let slot = Mem::at(R15, (self.borrowed + 8 * place) as i32);
        self.op(MOV_LOAD, true, register, Rm::M(slot));
    }

    /// Copies or clears a block. `a` is where it goes, `b` where it comes from.
    pub(crate) fn block(&mut self, ins: &Ins) {
        let (mut to, mut from) = (self.reg(ins.a), self.reg(ins.b));
        let mut lent = [None; 2];
        let operands: [(V, &mut Option<u8>); 2] = [(ins.a, &mut to), (ins.b, &mut from)];
        let mut used = [self.reg(ins.a), self.reg(ins.b)];
        for (place, (v, register)) in operands.into_iter().enumerate() {
            if v != NONE && register.is_none() {
                let borrowed = self.borrow(place as u32, &used);
                used[place] = Some(borrowed);
                lent[place] = Some(borrowed);
                *register = Some(borrowed);
                self.fetch(borrowed, v, true);
            }
        }
        let (to, from) = (to.unwrap_or(R11), from.filter(|_| ins.op == Op::Copy));
        self.block_bytes(to, from, ins.imm);
        for (place, register) in lent.into_iter().enumerate() {
            if let Some(register) = register {
                self.give_back(place as u32, register);
            }
        }
    }

    fn block_bytes(&mut self, to: u8, from: Option<u8>, size: i64) {
        if from.is_none() {
            self.op(Opcode::new(0x0f57), false, X15, Rm::R(X15)); // xorps
        }
        let mut at = 0;
        if size > UNROLLED {
            at = size & !15;
            self.op(Opcode::new(0x33), false, R11, Rm::R(R11));
            let again = self.unit.text.len();
            let mem = |base| Mem {
                base: Some(base),
                index: Some(R11),
                scale: 1,
                disp: 0,
                sym: sym::NONE,
            };
            if let Some(from) = from {
                self.op(Opcode::new(0x0f10), false, X15, Rm::M(mem(from)));
            }
            self.op(Opcode::new(0x0f11), false, X15, Rm::M(mem(to)));
            self.group1(0, false, Rm::R(R11), 16);
            self.op(Opcode::new(0x81), false, 7, Rm::R(R11));
            self.dword(at as i32);
            self.byte(0x72); // jb
            let back = again as i64 - self.unit.text.len() as i64 - 1;
            self.byte(back as i8 as u8);
        }
        while at < size {
            let left = size - at;
            let (step, load, store) = match left {
                16.. => (16, Opcode::new(0x0f10), Opcode::new(0x0f11)),
                8.. => (8, Opcode::with(0xf3, 0x0f7e), Opcode::with(0x66, 0x0fd6)),
                4.. => (4, Opcode::with(0x66, 0x0f6e), Opcode::with(0x66, 0x0f7e)),
                2.. => (2, Opcode::new(0x0fb7), Opcode::with(0x66, 0x89)),
                _ => (
                    1,
                    Opcode::new(0x0fb6),
                    Opcode {
                        byte_reg: true,
                        ..Opcode::new(0x88)
                    },
                ),
            };
            let place = |base| Rm::M(Mem::at(base, at as i32));
            if step >= 4 {
                if let Some(from) = from {
                    self.op(load, false, X15, place(from));
                }
                self.op(store, false, X15, place(to));
            } else {
                match from {
                    Some(from) => self.op(load, false, R11, place(from)),
                    None => self.op(Opcode::new(0x33), false, R11, Rm::R(R11)),
                }
                self.op(store, false, R11, place(to));
            }
            at += step;
        }
    }
}
