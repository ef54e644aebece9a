//! Values of expressions in registers. Those that are needed again stay in one.

use postern_x86::{Scale, Shift};

use super::*;

/// Counts the uses of an expression's parts, apart from fields that instructions read where they
/// are.
pub(super) fn count(program: &Program, uses: &mut [u32], id: ExprId) {
    let times = &mut uses[id as usize];
    *times += 1;
    if *times > 1 {
        // Its parts are needed for the first use only.
        return;
    }
    match program.exprs.get(id) {
        Expr::Load {
            base: Some(base), ..
        } => count(program, uses, base),
        Expr::Bin(_, a, b) => {
            count(program, uses, a);
            count(program, uses, b);
        }
        _ => {}
    }
}

impl Encoder<'_> {
    /// The register of an argument.
    fn argument(&self, expr: Expr) -> Option<Gpr> {
        match expr {
            Expr::Len => Some(self.wire()),
            Expr::Captured => Some(self.captured()),
            _ => None,
        }
    }

    /// The value in some register, which may be one that keeps it.
    pub(super) fn value(&mut self, id: ExprId) -> Gpr {
        if let Some(index) = self.known.kept.iter().position(|kept| *kept == Some(id)) {
            return KEEP[index];
        }
        if let Some(register) = self.argument(self.program.exprs.get(id)) {
            return register;
        }
        let worth = self.worth(id);
        match self.vacant().filter(|_| worth) {
            Some(index) => {
                self.known.kept[index] = None;
                self.pinned |= 1 << index;
                self.compute(id, KEEP[index]);
                self.pinned &= !(1 << index);
                self.known.kept[index] = Some(id);
                KEEP[index]
            }
            None => {
                self.compute(id, Gpr::Rax);
                Gpr::Rax
            }
        }
    }

    /// Whether a register has it already.
    pub(super) fn is_kept(&self, id: ExprId) -> bool {
        self.known.kept.contains(&Some(id))
    }

    /// Whether a register should keep it.
    fn worth(&self, id: ExprId) -> bool {
        let uses = self.uses[id as usize];
        match self.program.exprs.get(id) {
            Expr::Bin(..) => uses > 1,
            // Comparisons for equality read a fixed field where it is.
            Expr::Load { base, .. } => uses > if base.is_some() { 1 } else { 3 },
            _ => false,
        }
    }

    /// The value in this register.
    pub(super) fn into(&mut self, id: ExprId, register: Gpr) {
        let known = self.is_kept(id) || register == Gpr::Rax && self.worth(id);
        if known || self.argument(self.program.exprs.get(id)).is_some() {
            let from = self.value(id);
            if from != register {
                self.asm.mov(Width::Dword, register, from);
            }
        } else {
            self.compute(id, register);
        }
    }

    /// A register of [`KEEP`] that may be used.
    fn vacant(&mut self) -> Option<usize> {
        let free = |index: &usize| self.pinned & 1 << index == 0;
        let empty = (0..KEEP.len())
            .filter(free)
            .find(|index| self.known.kept[*index].is_none());
        let taken = empty.or_else(|| {
            (self.turn..self.turn + KEEP.len())
                .map(|i| i % KEEP.len())
                .find(free)
        });
        self.turn = self.turn.wrapping_add(1) % KEEP.len();
        taken
    }

    /// Values that depend on variables are not what they were.
    pub(super) fn forget_variables(&mut self) {
        for kept in &mut self.known.kept {
            if kept.is_some_and(|id| crate::flow::has_variable(&self.program.exprs, id)) {
                *kept = None;
            }
        }
    }

    /// `a` in a register and `b` where an instruction can read it; the slots to go back to
    /// afterwards.
    pub(super) fn pair(&mut self, a: ExprId, b: ExprId) -> (Gpr, Rm<Gpr>, u32) {
        let before = self.slots;
        if let Some(argument) = self.argument(self.program.exprs.get(a)) {
            let b = match self.program.exprs.get(b) {
                Expr::Var(var) => Rm::Mem(self.slot(var.into())),
                _ => Rm::Reg(self.value(b)),
            };
            return (argument, b, before);
        }
        let (b, pinned) = self.second(b);
        let a = self.value(a);
        self.pinned &= !pinned;
        (a, b, before)
    }

    /// A value that waits while another is computed: in a register that is pinned, or in a slot.
    fn second(&mut self, id: ExprId) -> (Rm<Gpr>, u8) {
        if let Expr::Var(var) = self.program.exprs.get(id) {
            return (Rm::Mem(self.slot(var.into())), 0);
        }
        let register = self.value(id);
        if let Some(index) = KEEP.iter().position(|keep| *keep == register) {
            let pin = !self.pinned & 1 << index;
            self.pinned |= pin;
            return (Rm::Reg(register), pin);
        }
        if register != Gpr::Rax {
            return (Rm::Reg(register), 0);
        }
        let slot = self.slots;
        self.slots += 1;
        self.most_slots = self.most_slots.max(self.slots);
        let place = self.slot(slot);
        self.asm.mov_mr(Width::Qword, place, register);
        (Rm::Mem(place), 0)
    }

    /// Computes the value in `register`, which is `eax` or one of [`KEEP`]; leaves the others'
    /// contents alone.
    fn compute(&mut self, id: ExprId, register: Gpr) {
        match self.program.exprs.get(id) {
            Expr::Const(value) => self.constant(register, value),
            Expr::Len => self.asm.mov(Width::Dword, register, self.wire()),
            Expr::Captured => self.asm.mov(Width::Dword, register, self.captured()),
            Expr::Var(var) => {
                let slot = self.slot(var.into());
                self.asm.mov(Width::Dword, register, slot);
            }
            Expr::Load {
                size,
                base: None,
                off,
            } => {
                self.at_least(off.saturating_add(size.into()));
                self.fetch(register, off, size);
                self.swap(register, size);
            }
            Expr::Load {
                size,
                base: Some(base),
                off,
            } => self.load(register, size, base, off),
            Expr::Bin(operation, a, b) => self.operation(register, operation, a, b),
        }
    }

    /// Turns bytes of the packet's order around.
    fn swap(&mut self, register: Gpr, size: u8) {
        match size {
            2 => self.asm.shift(Shift::Rol, Width::Word, register, 8),
            4 => self.asm.bswap(Width::Dword, register),
            _ => {}
        }
    }

    /// A field whose place depends on the packet.
    fn load(&mut self, register: Gpr, size: u8, base: ExprId, off: u32) {
        self.moving(register, size, base, off);
        self.swap(register, size);
    }

    /// Loads a field whose place depends on the packet as the machine orders bytes. The sum that is
    /// compared has 64 bits and does not wrap.
    pub(super) fn moving(&mut self, register: Gpr, size: u8, base: ExprId, off: u32) {
        let inside = self.known.reach.is_some_and(|(place, bytes)| {
            place == base && off.checked_add(size.into()).is_some_and(|end| end <= bytes)
        });
        let base = self.value(base);
        if !inside {
            let end = u64::from(off) + u64::from(size);
            if let Ok(end) = i32::try_from(end) {
                let end = Mem::base(base).disp(end);
                self.asm.lea(Width::Qword, Gpr::R11, end);
            } else {
                self.asm.mov_imm64(Gpr::R11, end);
                self.asm.add(Width::Qword, Gpr::R11, base);
            }
            self.asm.cmp(Width::Qword, Gpr::R11, self.captured());
            self.reject_if(Cond::Above);
        }
        self.load_bytes(register, self.field(off).index(base, Scale::One), size);
    }

    fn operation(&mut self, register: Gpr, operation: Op, a: ExprId, b: ExprId) {
        if let (Op::Add, Some(more)) = (operation, self.program.exprs.constant(b))
            && let Some(more) = i32::try_from(more)
                .ok()
                .filter(|_| self.worth(a) || self.is_kept(a))
        {
            let a = Mem::base(self.value(a)).disp(more);
            self.asm.lea(Width::Dword, register, a);
            return;
        }
        if let Some(value) = self.program.exprs.constant(b)
            && !(value == 0 && matches!(operation, Op::Div | Op::Mod))
        {
            self.into(a, register);
            self.with_constant(register, operation, value);
            return;
        }
        let before = self.slots;
        let (b, pinned) = self.second(b);
        self.into(a, register);
        self.with_value(register, operation, b);
        self.pinned &= !pinned;
        self.slots = before;
    }

    fn with_value(&mut self, register: Gpr, operation: Op, b: Rm<Gpr>) {
        let asm = &mut self.asm;
        match operation {
            Op::Add => asm.add(Width::Dword, register, b),
            Op::Sub => asm.sub(Width::Dword, register, b),
            Op::Mul => asm.imul(Width::Dword, register, b),
            Op::And => asm.and(Width::Dword, register, b),
            Op::Or => asm.or(Width::Dword, register, b),
            Op::Xor => asm.xor(Width::Dword, register, b),
            Op::Div | Op::Mod => {
                asm.mov(Width::Dword, Gpr::Rcx, b);
                asm.test(Width::Dword, Gpr::Rcx, Gpr::Rcx);
                self.reject_if(Cond::Equal);
                self.divide(register, operation);
            }
            Op::Shl | Op::Shr => {
                asm.mov(Width::Dword, Gpr::Rcx, b);
                let shift = if operation == Op::Shl {
                    Shift::Shl
                } else {
                    Shift::Shr
                };
                asm.shift_cl(shift, Width::Dword, register);
                // The machine takes the count modulo 32.
                self.constant(Gpr::R11, 0);
                self.immediate(Alu::Cmp, Gpr::Rcx, 31);
                self.asm.cmov(Cond::Above, Width::Dword, register, Gpr::R11);
            }
        }
    }

    fn with_constant(&mut self, register: Gpr, operation: Op, value: u32) {
        let power = value.is_power_of_two().then(|| value.trailing_zeros());
        let shift = |encoder: &mut Self, op: Shift, count: u32| {
            encoder.asm.shift(op, Width::Dword, register, count as u8);
        };
        match (operation, power) {
            (Op::Add, _) => self.immediate(Alu::Add, register, value),
            (Op::Or, _) => self.immediate(Alu::Or, register, value),
            (Op::And, _) => self.immediate(Alu::And, register, value),
            (Op::Sub, _) => self.immediate(Alu::Sub, register, value),
            (Op::Xor, _) => self.immediate(Alu::Xor, register, value),
            (Op::Shl | Op::Shr, _) if value > 31 => self.constant(register, 0),
            (Op::Shl, _) => shift(self, Shift::Shl, value),
            (Op::Shr, _) => shift(self, Shift::Shr, value),
            (Op::Mul, Some(count)) => shift(self, Shift::Shl, count),
            (Op::Div, Some(count)) => shift(self, Shift::Shr, count),
            (Op::Mod, Some(_)) => self.immediate(Alu::And, register, value - 1),
            (Op::Mul, None) => {
                self.asm
                    .imul_imm32(Width::Dword, register, register, value as i32);
            }
            (Op::Div | Op::Mod, None) => {
                self.constant(Gpr::Rcx, value);
                self.divide(register, operation);
            }
        }
    }

    /// `register` divided by `ecx`, which is not 0. The argument in `edx` waits in r11.
    fn divide(&mut self, register: Gpr, operation: Op) {
        let asm = &mut self.asm;
        asm.mov(Width::Qword, Gpr::R11, Gpr::Rdx);
        if register != Gpr::Rax {
            asm.mov(Width::Dword, Gpr::Rax, register);
        }
        asm.xor(Width::Dword, Gpr::Rdx, Gpr::Rdx);
        asm.div(Width::Dword, Gpr::Rcx);
        let result = if operation == Op::Div {
            Gpr::Rax
        } else {
            Gpr::Rdx
        };
        if result != register {
            asm.mov(Width::Dword, register, result);
        }
        asm.mov(Width::Qword, Gpr::Rdx, Gpr::R11);
    }
}
