//! One instruction as bytes, with a note of each symbol whose address it holds.

use super::Encoder;
use crate::ir::sym;
use crate::x86;
pub(crate) use crate::x86::Opcode;

/// A memory operand with real registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mem {
    pub base: Option<u8>,
    pub index: Option<u8>,
    pub scale: u8,
    pub disp: i32,
    /// Added when the unit is placed; never a slot of the frame.
    pub sym: u32,
}

impl Mem {
    pub fn at(base: u8, disp: i32) -> Mem {
        Mem {
            base: Some(base),
            index: None,
            scale: 1,
            disp,
            sym: sym::NONE,
        }
    }
}

/// Register or memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rm {
    R(u8),
    M(Mem),
}

impl Encoder<'_> {
    /// `op reg, rm` with everything that belongs to it but an immediate.
    pub(crate) fn op(&mut self, opcode: Opcode, wide: bool, reg: u8, rm: Rm) {
        self.op_with(opcode, wide, reg, rm, true);
    }

    /// The same for `lea`, which accesses no memory.
    pub(crate) fn op_address(&mut self, opcode: Opcode, wide: bool, reg: u8, mem: Mem) {
        self.op_with(opcode, wide, reg, Rm::M(mem), false);
    }

    fn op_with(&mut self, opcode: Opcode, wide: bool, reg: u8, rm: Rm, access: bool) {
        let text = &mut self.unit.text;
        let mem = match rm {
            Rm::R(register) => {
                x86::op(text, opcode, wide, reg, x86::Rm::R(register), access);
                return;
            }
            Rm::M(mem) => mem,
        };
        let operand = x86::Mem {
            base: mem.base,
            index: mem.index,
            scale: mem.scale,
            disp: mem.disp,
            long: mem.sym != sym::NONE,
        };
        let at = x86::op(text, opcode, wide, reg, x86::Rm::M(operand), access);
        if let (true, Some(at)) = (operand.long, at) {
            self.reference_at(at, mem.sym, mem.disp, false);
        }
    }

    pub(crate) fn dword(&mut self, value: i32) {
        self.unit.text.extend_from_slice(&value.to_le_bytes());
    }
}
