//! Values of expressions in registers. Those that are needed again stay in one.

use super::*;

/// Counts the uses of an expression's parts, apart from fields that instructions read where they are.
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

/// The register of an argument.
fn argument(expr: Expr) -> Option<u8> {
    match expr {
        Expr::Len => Some(RSI),
        Expr::Captured => Some(RDX),
        _ => None,
    }
}

impl Encoder<'_> {
    /// The value in some register, which may be one that keeps it.
    pub(super) fn value(&mut self, id: ExprId) -> u8 {
        if let Some(index) = self.known.kept.iter().position(|kept| *kept == Some(id)) {
            return KEEP[index];
        }
        if let Some(register) = argument(self.program.exprs.get(id)) {
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
                self.compute(id, RAX);
                RAX
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
    pub(super) fn into(&mut self, id: ExprId, register: u8) {
        let known = self.is_kept(id) || register == RAX && self.worth(id);
        if known || argument(self.program.exprs.get(id)).is_some() {
            let from = self.value(id);
            if from != register {
                op(&mut self.text, MOV, false, register, Rm::R(from), true);
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

    /// `a` in a register and `b` where an instruction can read it; the slots to go back to afterwards.
    pub(super) fn pair(&mut self, a: ExprId, b: ExprId) -> (u8, Rm, u32) {
        let before = self.slots;
        if let Some(argument) = argument(self.program.exprs.get(a)) {
            let b = match self.program.exprs.get(b) {
                Expr::Var(var) => Rm::M(self.slot(var.into())),
                _ => Rm::R(self.value(b)),
            };
            return (argument, b, before);
        }
        let (b, pinned) = self.second(b);
        let a = self.value(a);
        self.pinned &= !pinned;
        (a, b, before)
    }

    /// A value that waits while another is computed: in a register that is pinned, or in a slot.
    fn second(&mut self, id: ExprId) -> (Rm, u8) {
        if let Expr::Var(var) = self.program.exprs.get(id) {
            return (Rm::M(self.slot(var.into())), 0);
        }
        let register = self.value(id);
        if let Some(index) = KEEP.iter().position(|keep| *keep == register) {
            let pin = !self.pinned & 1 << index;
            self.pinned |= pin;
            return (Rm::R(register), pin);
        }
        if register != RAX {
            return (Rm::R(register), 0);
        }
        let slot = self.slots;
        self.slots += 1;
        self.most_slots = self.most_slots.max(self.slots);
        let place = Rm::M(self.slot(slot));
        op(&mut self.text, STORE, true, register, place, true);
        (place, 0)
    }

    /// Computes the value in `register`, which is `eax` or one of [`KEEP`]; leaves the others' contents alone.
    fn compute(&mut self, id: ExprId, register: u8) {
        match self.program.exprs.get(id) {
            Expr::Const(value) => self.constant(register, value),
            Expr::Len => {
                op(&mut self.text, MOV, false, register, Rm::R(RSI), true);
            }
            Expr::Captured => {
                op(&mut self.text, MOV, false, register, Rm::R(RDX), true);
            }
            Expr::Var(var) => {
                let slot = Rm::M(self.slot(var.into()));
                op(&mut self.text, MOV, false, register, slot, true);
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
    fn swap(&mut self, register: u8, size: u8) {
        match size {
            2 => {
                op(
                    &mut self.text,
                    Opcode::with(0x66, 0xc1),
                    false,
                    0,
                    Rm::R(register),
                    true,
                );
                self.text.push(8);
            }
            4 => {
                if register >= 8 {
                    self.text.push(0x41);
                }
                self.text.extend_from_slice(&[0x0f, 0xc8 | register & 7]);
            }
            _ => {}
        }
    }

    /// A field whose place depends on the packet.
    fn load(&mut self, register: u8, size: u8, base: ExprId, off: u32) {
        self.moving(register, size, base, off);
        self.swap(register, size);
    }

    /// Loads a field whose place depends on the packet as the machine orders bytes. The sum that is compared has 64 bits and does not wrap.
    pub(super) fn moving(&mut self, register: u8, size: u8, base: ExprId, off: u32) {
        let inside = self.known.reach.is_some_and(|(place, bytes)| {
            place == base && off.checked_add(size.into()).is_some_and(|end| end <= bytes)
        });
        let base = self.value(base);
        if !inside {
            let end = u64::from(off) + u64::from(size);
            if let Ok(end) = i32::try_from(end) {
                let end = Rm::M(Mem::at(base, end));
                op(&mut self.text, LEA, true, R11, end, false);
            } else {
                self.text.extend_from_slice(&[0x49, 0xb8 | R11 & 7]);
                self.text.extend_from_slice(&end.to_le_bytes());
                let base = Rm::R(base);
                op(&mut self.text, Opcode::new(0x03), true, R11, base, true);
            }
            let captured = Rm::R(RDX);
            op(&mut self.text, Opcode::new(0x3b), true, R11, captured, true);
            self.reject_if(ABOVE);
        }
        let opcode = match size {
            1 => MOVZX8,
            2 => MOVZX16,
            _ => MOV,
        };
        let field = Mem {
            base: Some(RDI),
            index: Some(base),
            scale: 1,
            disp: off as i32,
            long: false,
        };
        op(&mut self.text, opcode, false, register, Rm::M(field), true);
    }

    fn operation(&mut self, register: u8, operation: Op, a: ExprId, b: ExprId) {
        if let (Op::Add, Some(more)) = (operation, self.program.exprs.constant(b))
            && let Some(more) = i32::try_from(more)
                .ok()
                .filter(|_| self.worth(a) || self.is_kept(a))
        {
            let a = Rm::M(Mem::at(self.value(a), more));
            op(&mut self.text, LEA, false, register, a, false);
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
        let opcode = match operation {
            Op::Add => Some(0x03),
            Op::Sub => Some(0x2b),
            Op::Mul => Some(0x0faf),
            Op::And => Some(0x23),
            Op::Or => Some(0x0b),
            Op::Xor => Some(0x33),
            Op::Div | Op::Mod => {
                op(&mut self.text, MOV, false, RCX, b, true);
                op(
                    &mut self.text,
                    Opcode::new(0x85),
                    false,
                    RCX,
                    Rm::R(RCX),
                    true,
                );
                self.reject_if(EQUAL);
                self.divide(register, operation);
                None
            }
            Op::Shl | Op::Shr => {
                op(&mut self.text, MOV, false, RCX, b, true);
                let digit = if operation == Op::Shl { 4 } else { 5 };
                op(
                    &mut self.text,
                    Opcode::new(0xd3),
                    false,
                    digit,
                    Rm::R(register),
                    true,
                );
                // The machine takes the count modulo 32.
                self.constant(R11, 0);
                self.immediate(7, Rm::R(RCX), 31);
                op(
                    &mut self.text,
                    Opcode::new(0x0f47),
                    false,
                    register,
                    Rm::R(R11),
                    true,
                );
                None
            }
        };
        if let Some(opcode) = opcode {
            op(
                &mut self.text,
                Opcode::new(opcode),
                false,
                register,
                b,
                true,
            );
        }
        self.pinned &= !pinned;
        self.slots = before;
    }

    fn with_constant(&mut self, register: u8, operation: Op, value: u32) {
        let rm = Rm::R(register);
        let power = value.is_power_of_two().then(|| value.trailing_zeros());
        let shift = |encoder: &mut Self, digit: u8, count: u32| {
            op(&mut encoder.text, Opcode::new(0xc1), false, digit, rm, true);
            encoder.text.push(count as u8);
        };
        match (operation, power) {
            (Op::Add, _) => self.immediate(0, rm, value),
            (Op::Or, _) => self.immediate(1, rm, value),
            (Op::And, _) => self.immediate(4, rm, value),
            (Op::Sub, _) => self.immediate(5, rm, value),
            (Op::Xor, _) => self.immediate(6, rm, value),
            (Op::Shl | Op::Shr, _) if value > 31 => self.constant(register, 0),
            (Op::Shl, _) => shift(self, 4, value),
            (Op::Shr, _) => shift(self, 5, value),
            (Op::Mul, Some(count)) => shift(self, 4, count),
            (Op::Div, Some(count)) => shift(self, 5, count),
            (Op::Mod, Some(_)) => self.immediate(4, rm, value - 1),
            (Op::Mul, None) => {
                op(&mut self.text, Opcode::new(0x69), false, register, rm, true);
                self.text.extend_from_slice(&value.to_le_bytes());
            }
            (Op::Div | Op::Mod, None) => {
                self.constant(RCX, value);
                self.divide(register, operation);
            }
        }
    }

    /// `register` divided by `ecx`, which is not 0. The captured length waits in r11.
    fn divide(&mut self, register: u8, operation: Op) {
        let text = &mut self.text;
        op(text, MOV, true, R11, Rm::R(RDX), true);
        if register != RAX {
            op(text, MOV, false, RAX, Rm::R(register), true);
        }
        op(text, Opcode::new(0x33), false, RDX, Rm::R(RDX), true);
        op(text, Opcode::new(0xf7), false, 6, Rm::R(RCX), true);
        let result = if operation == Op::Div { RAX } else { RDX };
        if result != register {
            op(text, MOV, false, register, Rm::R(result), true);
        }
        op(text, MOV, true, RDX, Rm::R(R11), true);
    }
}
