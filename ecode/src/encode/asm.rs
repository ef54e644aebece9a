//! One instruction as bytes: prefixes in the order that the verifier wants, ModRM, SIB, displacement.

use super::Encoder;
use crate::ir::sym;

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

/// An opcode: mandatory prefix or 0, bytes (the lowest comes last), and whether its register operands are bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opcode {
    pub prefix: u8,
    pub bytes: u32,
    pub byte_reg: bool,
    pub byte_rm: bool,
}

impl Opcode {
    pub const fn new(bytes: u32) -> Opcode {
        Opcode {
            prefix: 0,
            bytes,
            byte_reg: false,
            byte_rm: false,
        }
    }
    pub const fn with(prefix: u8, bytes: u32) -> Opcode {
        Opcode {
            prefix,
            bytes,
            byte_reg: false,
            byte_rm: false,
        }
    }
    /// The register in ModRM.reg, too, is one of 8 bits.
    pub const fn byte(bytes: u32) -> Opcode {
        Opcode {
            prefix: 0,
            bytes,
            byte_reg: true,
            byte_rm: true,
        }
    }
    /// Only the operand in ModRM.rm has 8 bits.
    pub const fn from_byte(bytes: u32) -> Opcode {
        Opcode {
            prefix: 0,
            bytes,
            byte_reg: false,
            byte_rm: true,
        }
    }
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
        let mut rex = if wide { 0x48 } else { 0 } | if reg >= 8 { 0x44 } else { 0 };
        if opcode.byte_reg && (4..8).contains(&reg) {
            rex |= 0x40;
        }
        match rm {
            Rm::R(register) => {
                if register >= 8 {
                    rex |= 0x41;
                }
                if opcode.byte_rm && (4..8).contains(&register) {
                    rex |= 0x40;
                }
            }
            Rm::M(mem) => {
                if access {
                    text.extend_from_slice(&[0x65, 0x67]);
                }
                if mem.base.is_some_and(|base| base >= 8) {
                    rex |= 0x41;
                }
                if mem.index.is_some_and(|index| index >= 8) {
                    rex |= 0x42;
                }
            }
        }
        if opcode.prefix != 0 {
            text.push(opcode.prefix);
        }
        if rex != 0 {
            text.push(rex);
        }
        let bytes = opcode.bytes.to_be_bytes();
        let skip = (opcode.bytes.leading_zeros() / 8).min(3) as usize;
        text.extend_from_slice(&bytes[skip..]);
        match rm {
            Rm::R(register) => text.push(0xc0 | (reg & 7) << 3 | register & 7),
            Rm::M(mem) => self.memory_bytes(reg & 7, mem),
        }
    }

    fn memory_bytes(&mut self, reg: u8, mem: Mem) {
        let reg = reg << 3;
        let scale = mem.scale.trailing_zeros() as u8;
        let text = &mut self.unit.text;
        let Some(base) = mem.base else {
            // Nothing, or an index alone: 32-bit displacement.
            let index = mem.index.map_or(4, |index| index & 7);
            text.extend_from_slice(&[reg | 4, scale << 6 | index << 3 | 5]);
            self.displacement(mem);
            return;
        };
        let long = mem.sym != sym::NONE || i8::try_from(mem.disp).is_err();
        let mode = match mem.disp {
            _ if long => 2,
            0 if base & 7 != 5 => 0,
            _ => 1,
        };
        match mem.index {
            Some(index) => text.extend_from_slice(&[
                mode << 6 | reg | 4,
                scale << 6 | (index & 7) << 3 | base & 7,
            ]),
            None if base & 7 == 4 => text.extend_from_slice(&[mode << 6 | reg | 4, 0x24]),
            None => text.push(mode << 6 | reg | base & 7),
        }
        match mode {
            0 => {}
            1 => text.push(mem.disp as u8),
            _ => self.displacement(mem),
        }
    }

    fn displacement(&mut self, mem: Mem) {
        if mem.sym != sym::NONE {
            self.reference(mem.sym, mem.disp, false);
        }
        self.dword(mem.disp);
    }

    pub(crate) fn dword(&mut self, value: i32) {
        self.unit.text.extend_from_slice(&value.to_le_bytes());
    }
}
