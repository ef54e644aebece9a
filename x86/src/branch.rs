//! Jumps and calls, and the labels that they lead to.

use crate::assembler::{Assembler, ReferenceKind};
use crate::condition::Cond;
use crate::encode::{Imm, Opcode};
use crate::label::{Branch, Label, LinkError, Reach, UNBOUND};
use crate::operand::{Rm, Symbol};
use crate::register::{Gpr, Width};

impl Assembler {
    /// The label is here.
    pub fn bind(&mut self, label: Label) {
        let number = label.0 as usize;
        if self.labels.len() <= number {
            self.labels.resize(number + 1, UNBOUND);
        }
        self.labels[number] = self.position();
    }

    /// Where a label is, if it is bound.
    #[inline]
    pub fn position_of(&self, label: Label) -> Option<u32> {
        let at = self.labels.get(label.0 as usize).copied();
        at.filter(|at| *at != UNBOUND)
    }

    /// `jmp`.
    #[inline]
    pub fn jmp(&mut self, to: Label, reach: Reach) {
        match reach {
            Reach::Short => self.branch(&[0xeb], to, reach),
            Reach::Near => self.branch(&[0xe9], to, reach),
        }
    }

    /// `jcc`.
    #[inline]
    pub fn jcc(&mut self, cond: Cond, to: Label, reach: Reach) {
        match reach {
            Reach::Short => self.branch(&[0x70 | cond.code()], to, reach),
            Reach::Near => self.branch(&[0x0f, 0x80 | cond.code()], to, reach),
        }
    }

    /// `call` of a label.
    #[inline]
    pub fn call(&mut self, to: Label) {
        self.branch(&[0xe8], to, Reach::Near);
    }

    /// `call` of a symbol.
    #[inline]
    pub fn call_symbol(&mut self, symbol: Symbol) {
        self.refer(1, symbol, 0, ReferenceKind::Relative);
        self.bytes(&[0xe8, 0, 0, 0, 0]);
    }

    /// `call *rm`.
    #[inline]
    pub fn call_rm(&mut self, target: impl Into<Rm<Gpr>>) {
        // 64 bits are what it has in any case.
        let opcode = Opcode::new(0xff).width(Width::Dword);
        self.emit(opcode, 2, target.into().numbered(), Imm::NONE);
    }

    /// `jmp *rm`.
    #[inline]
    pub fn jmp_rm(&mut self, target: impl Into<Rm<Gpr>>) {
        let opcode = Opcode::new(0xff).width(Width::Dword);
        self.emit(opcode, 4, target.into().numbered(), Imm::NONE);
    }

    #[inline]
    fn branch(&mut self, opcode: &[u8], to: Label, reach: Reach) {
        self.bytes(opcode);
        let at = self.position();
        self.branches.push(Branch { at, to, reach });
        match reach {
            Reach::Short => self.bytes(&[0]),
            Reach::Near => self.bytes(&[0; 4]),
        }
    }

    /// How far each branch to a label leads, in the order in which they were written; nothing where
    /// the label is not bound.
    pub fn distances(&self) -> impl Iterator<Item = Option<i64>> + '_ {
        self.branches.iter().map(|branch| {
            let target = self.position_of(branch.to)?;
            Some(i64::from(target) - i64::from(branch.end()))
        })
    }

    /// Writes the distances of all branches since the last time. Labels stay where they are.
    ///
    /// # Errors
    /// If a label is not bound or too far away; the code is of no use then, but for
    /// [`Assembler::rewind`].
    pub fn link(&mut self) -> Result<(), LinkError> {
        for index in 0..self.branches.len() {
            let branch = self.branches[index];
            let target = self.position_of(branch.to);
            let target = target.ok_or(LinkError::Unbound(branch.to))?;
            match branch.reach {
                Reach::Near => self.patch(branch.at, target.wrapping_sub(branch.end())),
                Reach::Short => {
                    let distance = i64::from(target) - i64::from(branch.end());
                    let distance =
                        i8::try_from(distance).map_err(|_| LinkError::TooFar(branch.at))?;
                    self.code_mut()[branch.at as usize] = distance as u8;
                }
            }
        }
        self.branches.clear();
        Ok(())
    }

    /// Forgets all labels, and branches to them that are not linked.
    pub fn clear_labels(&mut self) {
        self.labels.clear();
        self.branches.clear();
    }
}
