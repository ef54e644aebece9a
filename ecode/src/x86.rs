//! Bytes of one instruction in the form that the verifier accepts: prefixes in its order, memory operands relative to gs with
//! 32-bit addresses. What registers and values mean is the caller's business; other makers of code use this, too.

use alloc::vec::Vec;

/// A memory operand with real registers.
#[derive(Clone, Copy, Debug)]
pub struct Mem {
    /// Register that is added.
    pub base: Option<u8>,
    /// Register that is multiplied and added.
    pub index: Option<u8>,
    /// 1, 2, 4 or 8.
    pub scale: u8,
    /// Added, modulo 2^32.
    pub disp: i32,
    /// The displacement has four bytes even if fewer would do, for it will be changed.
    pub long: bool,
}

impl Mem {
    /// `disp(base)`.
    pub fn at(base: u8, disp: i32) -> Mem {
        Mem {
            base: Some(base),
            index: None,
            scale: 1,
            disp,
            long: false,
        }
    }
}

/// Register or memory.
#[derive(Clone, Copy, Debug)]
pub enum Rm {
    /// A register.
    R(u8),
    /// Memory.
    M(Mem),
}

/// An opcode: mandatory prefix or 0, bytes (the lowest comes last), and whether its register operands are bytes.
#[derive(Clone, Copy, Debug)]
pub struct Opcode {
    /// 66h, F2h, F3h or 0.
    pub prefix: u8,
    /// Up to three bytes.
    pub bytes: u32,
    /// The operand in ModRM.reg has 8 bits.
    pub byte_reg: bool,
    /// The operand in ModRM.rm has 8 bits.
    pub byte_rm: bool,
}

impl Opcode {
    /// One without a prefix.
    pub const fn new(bytes: u32) -> Opcode {
        Opcode::with(0, bytes)
    }
    /// One with a prefix.
    pub const fn with(prefix: u8, bytes: u32) -> Opcode {
        Opcode {
            prefix,
            bytes,
            byte_reg: false,
            byte_rm: false,
        }
    }
    /// Both operands have 8 bits.
    pub const fn byte(bytes: u32) -> Opcode {
        Opcode {
            byte_reg: true,
            ..Opcode::from_byte(bytes)
        }
    }
    /// Only the operand in ModRM.rm has 8 bits.
    pub const fn from_byte(bytes: u32) -> Opcode {
        Opcode {
            byte_rm: true,
            ..Opcode::new(bytes)
        }
    }
}

/// Appends `op reg, rm` with everything that belongs to it but an immediate. `access` says that memory is accessed, not only
/// an address computed. Returns where a displacement of four bytes begins, if there is one.
pub fn op(
    text: &mut Vec<u8>,
    opcode: Opcode,
    wide: bool,
    reg: u8,
    rm: Rm,
    access: bool,
) -> Option<u32> {
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
        Rm::R(register) => {
            text.push(0xc0 | (reg & 7) << 3 | register & 7);
            None
        }
        Rm::M(mem) => memory(text, reg & 7, mem),
    }
}

fn memory(text: &mut Vec<u8>, reg: u8, mem: Mem) -> Option<u32> {
    let reg = reg << 3;
    let scale = mem.scale.trailing_zeros() as u8;
    let mode = match (mem.base, mem.disp) {
        // Nothing, or an index alone: 32-bit displacement.
        (None, _) => {
            let index = mem.index.map_or(4, |index| index & 7);
            text.extend_from_slice(&[reg | 4, scale << 6 | index << 3 | 5]);
            2
        }
        (Some(base), disp) => {
            let mode = match disp {
                _ if mem.long || i8::try_from(disp).is_err() => 2,
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
            mode
        }
    };
    match mode {
        0 => None,
        1 => {
            text.push(mem.disp as u8);
            None
        }
        _ => {
            let at = text.len() as u32;
            text.extend_from_slice(&mem.disp.to_le_bytes());
            Some(at)
        }
    }
}
