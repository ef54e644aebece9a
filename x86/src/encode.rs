//! How an instruction with a ModRM byte becomes bytes. Everything in this crate that has such a
//! byte comes through [`Assembler::emit`].
//!
//! ```text
//! segment · 67h · 66h, F2h or F3h · REX · 0Fh · opcode · ModRM · SIB · displacement · immediate
//! ```

use crate::assembler::{Assembler, ReferenceKind};
use crate::operand::{Base, Mem, Rm, Segment};
use crate::register::Width;

/// No instruction is longer.
const LONGEST: usize = 15;

/// An opcode with what belongs to it.
#[derive(Clone, Copy)]
pub(crate) struct Opcode {
    /// 66h, F2h, F3h or 0.
    prefix: u8,
    /// 0Fh stands before it.
    escape: bool,
    byte: u8,
    /// REX.W: 64 bits.
    wide: bool,
    /// Registers 4 to 7 in ModRM.reg and ModRM.rm are spl, bpl, sil and dil, which takes a REX, be
    /// it an empty one.
    byte_reg: bool,
    byte_rm: bool,
}

impl Opcode {
    /// An opcode of one byte, without a width.
    pub const fn new(byte: u8) -> Opcode {
        Opcode {
            prefix: 0,
            escape: false,
            byte,
            wide: false,
            byte_reg: false,
            byte_rm: false,
        }
    }

    /// One whose lowest bit says that its operands are not bytes.
    pub const fn sized(byte: u8, width: Width) -> Opcode {
        match width {
            Width::Byte => Opcode {
                byte_reg: true,
                byte_rm: true,
                ..Opcode::new(byte & !1)
            },
            _ => Opcode::new(byte).width(width),
        }
    }

    /// The same of a group, where ModRM.reg is a part of the opcode.
    pub const fn group(byte: u8, width: Width) -> Opcode {
        Opcode {
            byte_reg: false,
            ..Opcode::sized(byte, width)
        }
    }

    /// Behind 0Fh.
    pub const fn escaped(byte: u8) -> Opcode {
        Opcode {
            escape: true,
            ..Opcode::new(byte)
        }
    }

    pub const fn prefix(self, prefix: u8) -> Opcode {
        Opcode { prefix, ..self }
    }

    /// For operands of 16, 32 or 64 bits.
    pub const fn width(self, width: Width) -> Opcode {
        debug_assert!(!matches!(width, Width::Byte));
        match width {
            Width::Word => self.prefix(0x66),
            _ => Opcode {
                wide: matches!(width, Width::Qword),
                ..self
            },
        }
    }

    /// The operand in ModRM.rm has 8 bits.
    pub const fn byte_rm(self) -> Opcode {
        Opcode {
            byte_rm: true,
            ..self
        }
    }
}

/// A constant behind the instruction: its bytes, and how many of them count.
#[derive(Clone, Copy)]
pub(crate) struct Imm(u32, u8);

impl Imm {
    pub const NONE: Imm = Imm(0, 0);

    pub const fn byte(value: u8) -> Imm {
        Imm(value as u32, 1)
    }

    /// As long as constants of this width are; those of 64 bits have 32, sign-extended.
    pub const fn sized(value: i32, width: Width) -> Imm {
        let bytes = match width {
            Width::Byte => 1,
            Width::Word => 2,
            Width::Dword | Width::Qword => 4,
        };
        Imm(value as u32, bytes)
    }
}

/// One instruction in the making: appended to the code in one go, which is faster than byte by
/// byte.
struct Instruction {
    bytes: [u8; 16],
    length: usize,
}

impl Instruction {
    #[inline]
    fn push(&mut self, byte: u8) {
        // The mask spares the check of bounds; no instruction comes that far.
        debug_assert!(self.length < LONGEST);
        self.bytes[self.length & 15] = byte;
        self.length += 1;
    }

    #[inline]
    fn push_four(&mut self, value: u32) {
        for byte in value.to_le_bytes() {
            self.push(byte);
        }
    }

    /// ModRM, SIB and displacement. Returns where a displacement of four bytes begins.
    #[inline]
    fn memory(&mut self, reg: u8, mem: &Mem) -> Option<usize> {
        let reg = (reg & 7) << 3;
        let scale = mem.scale.shift() << 6;
        let base = match mem.base {
            Base::Rip => {
                self.push(reg | 5);
                return Some(self.displacement(mem.disp));
            }
            Base::Nothing => {
                // A SIB byte with neither base nor index, since ModRM alone would be relative to
                // rip.
                let index = mem.index.map_or(4, |index| index.number() & 7) << 3;
                self.push(reg | 4);
                self.push(scale | index | 5);
                return Some(self.displacement(mem.disp));
            }
            Base::Register(base) => base.number() & 7,
        };
        let mode = if mem.symbol.is_some() || i8::try_from(mem.disp).is_err() {
            0x80
        } else if mem.disp == 0 && base != 5 {
            0
        } else {
            0x40
        };
        match mem.index {
            Some(index) => {
                self.push(mode | reg | 4);
                self.push(scale | (index.number() & 7) << 3 | base);
            }
            // rsp and r12 as a base need a SIB byte: their place in ModRM says that there is one.
            None if base == 4 => {
                self.push(mode | reg | 4);
                self.push(0x24);
            }
            None => self.push(mode | reg | base),
        }
        match mode {
            0 => None,
            0x40 => {
                self.push(mem.disp as u8);
                None
            }
            _ => Some(self.displacement(mem.disp)),
        }
    }

    fn displacement(&mut self, disp: i32) -> usize {
        let at = self.length;
        self.push_four(disp as u32);
        at
    }
}

impl Assembler {
    /// Appends `opcode reg, rm` with a constant behind it. `reg` is a register's number or the
    /// digit of a group.
    pub(crate) fn emit(&mut self, opcode: Opcode, reg: u8, rm: Rm<u8>, imm: Imm) {
        let mut instruction = Instruction {
            bytes: [0; 16],
            length: 0,
        };
        let mut rex = u8::from(opcode.wide) << 3 | (reg & 8) >> 1;
        let mut needs_rex = opcode.byte_reg && matches!(reg, 4..8);
        match &rm {
            Rm::Reg(register) => {
                rex |= register >> 3;
                needs_rex |= opcode.byte_rm && matches!(register, 4..8);
            }
            Rm::Mem(mem) => {
                match mem.segment {
                    None => {}
                    Some(Segment::Fs) => instruction.push(0x64),
                    Some(Segment::Gs) => instruction.push(0x65),
                }
                if mem.addr32 {
                    instruction.push(0x67);
                }
                if let Base::Register(base) = mem.base {
                    rex |= base.number() >> 3;
                }
                if let Some(index) = mem.index {
                    rex |= (index.number() & 8) >> 2;
                }
            }
        }
        if opcode.prefix != 0 {
            instruction.push(opcode.prefix);
        }
        if rex != 0 || needs_rex {
            instruction.push(0x40 | rex);
        }
        if opcode.escape {
            instruction.push(0x0f);
        }
        instruction.push(opcode.byte);
        match &rm {
            Rm::Reg(register) => instruction.push(0xc0 | (reg & 7) << 3 | register & 7),
            Rm::Mem(mem) => {
                let at = instruction.memory(reg, mem);
                if let (Some(symbol), Some(at)) = (mem.symbol, at) {
                    self.refer(at as u32, symbol, mem.disp, ReferenceKind::Absolute);
                }
            }
        }
        for byte in &imm.0.to_le_bytes()[..usize::from(imm.1 & 7).min(4)] {
            instruction.push(*byte);
        }
        self.append(&instruction.bytes, instruction.length);
    }
}
