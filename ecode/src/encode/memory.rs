//! Loads, stores, addresses, and blocks of bytes.

use super::{Encoder, FLOAT_SCRATCH, SCRATCH, precision, width};
use crate::allocate::Location;
use crate::ir::{Inst, NONE, Op, Scalar, VReg, sym};
use postern_x86::{Cond, Gpr, Mem, Reach, Scale, Shift, Symbol, Width};

/// Registers that may be borrowed for an instruction.
const LENDERS: [Gpr; 4] = [Gpr::Rax, Gpr::Rcx, Gpr::Rdx, Gpr::Rsi];
/// Bytes up to which a block is copied or cleared without a loop.
const UNROLLED: i64 = 256;

/// A memory operand of the intermediate form, with real registers.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    base: Option<Gpr>,
    index: Option<Gpr>,
    scale: Scale,
    disp: i32,
    /// Added when the unit is placed; never a slot of the frame.
    symbol: Option<Symbol>,
}

impl Address {
    /// As an operand; of the window, if it is wrapped in [`Encoder::confined`].
    fn operand(&self) -> Mem {
        let mem = self.base.map_or(Mem::absolute(0), Mem::base);
        let mem = mem.disp(self.disp).symbol(self.symbol);
        match self.index {
            Some(index) => mem.index(index, self.scale),
            None => mem,
        }
    }
}

impl Encoder<'_> {
    /// The memory operand of an instruction with real registers. Uses r11 if it must.
    pub(crate) fn address(&mut self, ins: &Inst) -> Address {
        let frame = ins.sym & sym::FRAME != 0;
        let mut address = Address {
            base: self.gpr(ins.b),
            index: self.gpr(ins.c),
            scale: Scale::of(ins.scale).unwrap_or(Scale::One),
            disp: ins.disp,
            symbol: Symbol::new(ins.sym).filter(|_| !frame),
        };
        if frame {
            let slot = self.code.slots[(ins.sym - sym::FRAME) as usize];
            address.disp = address.disp.wrapping_add(slot.offset as i32);
        }
        // Addresses count by their low half; products by 3, 5 and 9 that are computed as addresses
        // do not.
        let width = match ins.op {
            Op::Lea => width(ins.ty),
            _ => Width::Dword,
        };
        if ins.c != NONE && address.index.is_none() {
            // All of the registers' sum in r11.
            self.fetch(SCRATCH, ins.c, width);
            if address.scale != Scale::One {
                self.asm
                    .shift(Shift::Shl, width, SCRATCH, address.scale.shift());
            }
            if ins.b != NONE {
                let base = self.rm(ins.b);
                self.asm.add(width, SCRATCH, base);
            }
            (address.base, address.index) = (Some(SCRATCH), None);
        } else if ins.b != NONE && address.base.is_none() {
            self.fetch(SCRATCH, ins.b, width);
            address.base = Some(SCRATCH);
        }
        if frame {
            self.in_frame(address)
        } else {
            address
        }
    }

    /// The same with the stack's register added.
    fn in_frame(&mut self, mut address: Address) -> Address {
        match (address.base, address.index) {
            (None, _) => address.base = Some(self.frame_base()),
            (Some(base), None) => {
                (address.base, address.index) = (Some(self.frame_base()), Some(base));
                address.scale = Scale::One;
            }
            (Some(base), Some(_)) => {
                let frame = Mem::base(self.frame_base());
                let sum = frame.index(base, Scale::One).disp(address.disp);
                self.asm.lea(Width::Dword, SCRATCH, sum);
                (address.base, address.disp) = (Some(SCRATCH), 0);
            }
        }
        address
    }

    pub(crate) fn load(&mut self, ins: &Inst) {
        let address = self.address(ins);
        let mem = self.confined(address.operand());
        if ins.ty.is_float() {
            let target = self.xmm(ins.dst).unwrap_or(FLOAT_SCRATCH);
            self.asm.mov_scalar(precision(ins.ty), target, mem);
            self.move_float(self.location(ins.dst), Location::Xmm(target), ins.ty);
            return;
        }
        let target = self.target(ins.dst);
        match ins.ty {
            Scalar::I8 => self.asm.movsx8(Width::Dword, target, mem),
            Scalar::U8 => self.asm.movzx8(Width::Dword, target, mem),
            Scalar::I16 => self.asm.movsx16(Width::Dword, target, mem),
            Scalar::U16 => self.asm.movzx16(Width::Dword, target, mem),
            Scalar::I32 => self.asm.mov(Width::Dword, target, mem),
            _ => self.asm.mov(Width::Qword, target, mem),
        }
        self.finish(ins.dst, target);
    }

    pub(crate) fn store(&mut self, ins: &Inst) {
        let address = self.address(ins);
        let mem = self.confined(address.operand());
        if ins.ty.is_float() {
            let from = self.xmm(ins.a).unwrap_or(FLOAT_SCRATCH);
            self.move_float(Location::Xmm(from), self.location(ins.a), ins.ty);
            self.asm.mov_scalar_mr(precision(ins.ty), mem, from);
            return;
        }
        let width = stored(ins.ty);
        if ins.a == NONE {
            self.asm.mov_mi(width, mem, ins.imm as i32);
            return;
        }
        let busy = address.base == Some(SCRATCH) || address.index == Some(SCRATCH);
        match self.gpr(ins.a) {
            Some(from) => self.asm.mov_mr(width, mem, from),
            None if !busy => {
                self.fetch(SCRATCH, ins.a, Width::Qword);
                self.asm.mov_mr(width, mem, SCRATCH);
            }
            None => {
                let from = self.borrow(0, &[address.base, address.index]);
                self.fetch(from, ins.a, Width::Qword);
                self.asm.mov_mr(width, mem, from);
                self.give_back(0, from);
            }
        }
    }

    pub(crate) fn lea(&mut self, ins: &Inst) {
        let address = self.address(ins);
        let target = self.target(ins.dst);
        match (address.base, address.index, address.symbol) {
            // The offset itself.
            (None, None, Some(symbol)) => self.asm.mov_symbol(target, symbol, address.disp),
            (None, None, None) => self.asm.mov_imm32(target, address.disp as u32),
            _ => self.asm.lea(width(ins.ty), target, address.operand()),
        }
        self.finish(ins.dst, target);
    }

    /// A general register that the instruction does not use, saved in the frame; `give_back`
    /// restores it.
    fn borrow(&mut self, place: u32, used: &[Option<Gpr>]) -> Gpr {
        let register = LENDERS
            .into_iter()
            .find(|register| !used.contains(&Some(*register)))
            .unwrap_or(Gpr::Rdi);
        let slot = self.frame_at(self.borrowed + 8 * place);
        self.asm.mov_mr(Width::Qword, slot, register);
        register
    }

    fn give_back(&mut self, place: u32, register: Gpr) {
        let slot = self.frame_at(self.borrowed + 8 * place);
        self.asm.mov(Width::Qword, register, slot);
    }

    /// Copies or clears a block. `a` is where it goes, `b` where it comes from.
    pub(crate) fn block(&mut self, ins: &Inst) {
        let (mut to, mut from) = (self.gpr(ins.a), self.gpr(ins.b));
        let mut lent = [None; 2];
        let operands: [(VReg, &mut Option<Gpr>); 2] = [(ins.a, &mut to), (ins.b, &mut from)];
        let mut used = [self.gpr(ins.a), self.gpr(ins.b)];
        for (place, (v, register)) in operands.into_iter().enumerate() {
            if v != NONE && register.is_none() {
                let borrowed = self.borrow(place as u32, &used);
                used[place] = Some(borrowed);
                lent[place] = Some(borrowed);
                *register = Some(borrowed);
                self.fetch(borrowed, v, Width::Qword);
            }
        }
        let (to, from) = (to.unwrap_or(SCRATCH), from.filter(|_| ins.op == Op::Copy));
        self.block_bytes(to, from, ins.imm);
        for (place, register) in lent.into_iter().enumerate() {
            if let Some(register) = register {
                self.give_back(place as u32, register);
            }
        }
    }

    fn block_bytes(&mut self, to: Gpr, from: Option<Gpr>, size: i64) {
        let vectors = !self.code.kernel;
        if from.is_none() && vectors {
            self.asm.xorps(FLOAT_SCRATCH, FLOAT_SCRATCH);
        }
        let mut at = 0;
        if size > UNROLLED {
            at = size & !15;
            self.block_loop(to, from, at as i32);
        }
        while at < size {
            let place = |base| Mem::base(base).disp(at as i32);
            let source = from.map(|from| self.confined(place(from)));
            let goal = self.confined(place(to));
            at += match size - at {
                16.. if vectors => self.copy_16(source, goal),
                8.. if vectors => self.copy_8(source, goal),
                4.. if vectors => self.copy_4(source, goal),
                8.. => self.copy_through(Width::Qword, SCRATCH, source, goal),
                4.. => self.copy_through(Width::Dword, SCRATCH, source, goal),
                2.. => self.copy_2(source, goal),
                _ => self.copy_1(source, goal),
            };
        }
    }

    /// 16 bytes at a time; r11 counts.
    fn block_loop(&mut self, to: Gpr, from: Option<Gpr>, size: i32) {
        let place = |base| Mem::base(base).index(SCRATCH, Scale::One);
        let source = from.map(|from| self.confined(place(from)));
        let goal = self.confined(place(to));
        let lent = (self.code.kernel && from.is_some()).then(|| self.borrow(2, &[Some(to), from]));
        self.asm.xor(Width::Dword, SCRATCH, SCRATCH);
        let again = self.new_label();
        self.asm.bind(again);
        if self.code.kernel {
            for at in [0, 8] {
                let through = lent.unwrap_or(SCRATCH);
                let source = source.map(|source| source.disp(at));
                self.copy_through(Width::Qword, through, source, goal.disp(at));
            }
        } else {
            self.copy_16(source, goal);
        }
        self.asm.add_mi(Width::Dword, SCRATCH, 16);
        self.asm.cmp_mi(Width::Dword, SCRATCH, size);
        self.asm.jcc(Cond::Below, again, Reach::Short);
        if let Some(lent) = lent {
            self.give_back(2, lent);
        }
    }

    /// Copies through a general register, or stores zeros if there is no source.
    fn copy_through(&mut self, width: Width, through: Gpr, source: Option<Mem>, goal: Mem) -> i64 {
        match source {
            Some(source) => {
                self.asm.mov(width, through, source);
                self.asm.mov_mr(width, goal, through);
            }
            None => self.asm.mov_mi(width, goal, 0),
        }
        if width == Width::Qword { 8 } else { 4 }
    }

    /// Copies through xmm15, which holds zeros if there is no source. Returns the number of bytes,
    /// as those below.
    fn copy_16(&mut self, source: Option<Mem>, goal: Mem) -> i64 {
        if let Some(source) = source {
            self.asm.movups(FLOAT_SCRATCH, source);
        }
        self.asm.movups_mr(goal, FLOAT_SCRATCH);
        16
    }

    fn copy_8(&mut self, source: Option<Mem>, goal: Mem) -> i64 {
        if let Some(source) = source {
            self.asm.movq(FLOAT_SCRATCH, source);
        }
        self.asm.movq_mr(goal, FLOAT_SCRATCH);
        8
    }

    fn copy_4(&mut self, source: Option<Mem>, goal: Mem) -> i64 {
        if let Some(source) = source {
            self.asm.mov_from_int(Width::Dword, FLOAT_SCRATCH, source);
        }
        self.asm.mov_to_int(Width::Dword, goal, FLOAT_SCRATCH);
        4
    }

    fn copy_2(&mut self, source: Option<Mem>, goal: Mem) -> i64 {
        match source {
            Some(source) => self.asm.movzx16(Width::Dword, SCRATCH, source),
            None => self.asm.xor(Width::Dword, SCRATCH, SCRATCH),
        }
        self.asm.mov_mr(Width::Word, goal, SCRATCH);
        2
    }

    fn copy_1(&mut self, source: Option<Mem>, goal: Mem) -> i64 {
        match source {
            Some(source) => self.asm.movzx8(Width::Dword, SCRATCH, source),
            None => self.asm.xor(Width::Dword, SCRATCH, SCRATCH),
        }
        self.asm.mov_mr(Width::Byte, goal, SCRATCH);
        1
    }
}

/// How much of a value is stored.
fn stored(ty: Scalar) -> Width {
    match ty {
        Scalar::I8 | Scalar::U8 => Width::Byte,
        Scalar::I16 | Scalar::U16 => Width::Word,
        Scalar::I32 => Width::Dword,
        _ => Width::Qword,
    }
}
