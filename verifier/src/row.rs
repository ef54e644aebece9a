//! A row of the allow list, and the notation that rows are written in.
//!
//! Rows are data: [`crate::table`] expands them into the tables that judge code, the reference page
//! is printed from them, and tests enumerate them. The notation is that of the manuals, and it is
//! read while the crate is compiled, so a mistake in it is a compile error.
//!
//! `code` is the encoding: optional `VEX` (both vector lengths), `VEX.128` or `VEX.256`; a
//! mandatory prefix or a choice of them (`66`, `NP/66/F3/F2`); the map (`0F`, `0F38`, `0F3A`); the
//! opcode or a range of opcodes (`40-4F`); `/r`, `/digit`, a range of digits (`/0-7`) or, for x87,
//! the second opcode byte (`C0-C7`); `W0`, `W1` or `WIG`; `LOCK` if the form with a memory
//! destination may be locked.
//!
//! `operands` uses the letters of the opcode maps in volume 2, appendix A of Intel's manual: `G`
//! general register in ModRM.reg, `E` general register or memory, `R` general register in ModRM.rm,
//! `M` memory, `V` vector register in ModRM.reg, `W` vector register or memory, `U` vector register
//! in ModRM.rm, `H` vector and `B` general register in VEX.vvvv, `Z` general register in the
//! opcode, `O` absolute address, `I` immediate, `L` vector register in an immediate, `J` branch
//! displacement, `X` (here) an address that is computed, not accessed. Sizes: `b` 8 bits, `w` 16,
//! `d` 32, `q` 64, `v` 16, 32 or 64, `y` 32 or 64, `z` 16 or 32.

/// One line of the allow list: an instruction, or a family of them, that code may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// Mnemonics, separated by spaces.
    pub name: &'static str,
    /// The encoding, in the notation above.
    pub code: &'static str,
    /// The operands, in the notation above.
    pub operands: &'static str,
    /// Legacy (with REX) or VEX encoding.
    pub vex: bool,
    /// Set of prefixes: bit `p` stands for [`Prefix`] number `p`.
    pub prefixes: u8,
    /// Opcode map: 0 one-byte, 1 `0F`, 2 `0F38`, 3 `0F3A`.
    pub map: u8,
    /// First opcode of the row.
    pub first: u8,
    /// Last opcode of the row.
    pub last: u8,
    /// Whether a ModRM byte follows the opcode.
    pub modrm: bool,
    /// Set of values of ModRM.reg (bit n: `/n`) that belong to the row.
    pub digits: u8,
    /// x87 only: first and last ModRM byte of a form without memory operand; (0, 0) for others.
    pub second: (u8, u8),
    /// What ModRM.reg is.
    pub reg: Operand,
    /// What ModRM.rm is when ModRM.mod = 3.
    pub rm: Operand,
    /// What VEX.vvvv is.
    pub vvvv: Operand,
    /// What the low three bits of the opcode are.
    pub low: Operand,
    /// Whether ModRM.rm may be memory.
    pub memory: bool,
    /// Whether ModRM.rm may be a register.
    pub register: bool,
    /// The immediate.
    pub immediate: Immediate,
    /// Set of (W, L): bit `2 * W + L`.
    pub wl: u8,
    /// Whether `lock` may stand before the form with a memory operand.
    pub lock: bool,
    /// What the verifier does besides checking operands.
    pub kind: InstructionKind,
    /// The vector registers are touched.
    pub xmm: bool,
    /// MXCSR governs what the instruction does, or the instruction raises flags of it. So is every
    /// one that touches vector registers, unless the list says that they are bits or integers to
    /// it.
    pub float: bool,
    /// The x87 stack is touched.
    pub x87: bool,
}

/// What a register field of an encoding stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operand {
    /// Nothing, or part of the opcode.
    None,
    /// A general register of 16, 32 or 64 bits.
    General,
    /// An 8-bit general register: number 4 is `ah` without REX, `spl` with it.
    Byte,
    /// A vector register.
    Vector,
}

/// The immediate of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Immediate {
    /// None.
    None,
    /// 8 bits.
    Byte,
    /// 32 bits, or 16 with 66h.
    Operand,
    /// As [`Immediate::Operand`], or 64 bits with REX.W.
    Full,
    /// 32 bits whatever the prefixes: a branch displacement or an absolute address under 67h.
    Double,
}

/// What an instruction is to the verifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InstructionKind {
    /// Goes on to the next instruction; memory operands are confined.
    Plain,
    /// Computes an address without accessing it (`lea`).
    Address,
    /// A NOP whose operand is not accessed.
    Nop,
    /// A conditional direct jump.
    Conditional,
    /// An unconditional direct jump.
    Jump,
    /// A direct call.
    Call,
    /// A near return.
    Return,
    /// Raises a trap and never goes on (`int3`, `ud2`).
    Trap,
    /// `jmp *%r11`, the end of a guarded sequence.
    IndirectJump,
    /// `call *%r11`, the end of a guarded sequence.
    IndirectCall,
}

/// The prefix that selects an instruction or its operand size, in the order of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Prefix {
    /// No prefix.
    None = 0,
    /// 66h.
    P66 = 1,
    /// F3h.
    F3 = 2,
    /// 66h F3h.
    P66F3 = 3,
    /// F2h.
    F2 = 4,
    /// 66h F2h.
    P66F2 = 5,
    /// F0h (`lock`).
    Lock = 6,
    /// 66h F0h.
    P66Lock = 7,
}

/// An instruction that is accepted as one fixed string of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// The mnemonic.
    pub name: &'static str,
    /// All its bytes.
    pub bytes: &'static [u8],
    /// What it is to the verifier.
    pub kind: InstructionKind,
}

/// Reads one row. Panics, at compile time, where the notation is wrong.
pub(crate) const fn row(name: &'static str, code: &'static str, operands: &'static str) -> Row {
    let mut row = Row {
        name,
        code,
        operands,
        vex: false,
        prefixes: 0,
        map: 0,
        first: 0,
        last: 0,
        modrm: false,
        digits: 0xff,
        second: (0, 0),
        reg: Operand::None,
        rm: Operand::None,
        vvvv: Operand::None,
        low: Operand::None,
        memory: false,
        register: false,
        immediate: Immediate::None,
        wl: 0,
        lock: false,
        kind: InstructionKind::Plain,
        xmm: false,
        float: false,
        x87: false,
    };
    let sizes = read_operands(&mut row, operands.as_bytes());
    read_code(&mut row, code.as_bytes());
    if row.prefixes == 0 {
        row.prefixes = 1;
    }
    if sizes.operand {
        row.prefixes |= row.prefixes << 1; // the same with 66h
    }
    if row.wl & 0xf0 == 0 {
        row.wl |= 0b0001 | if sizes.wide { 0b0100 } else { 0 };
    } else {
        row.wl &= 0x0f;
    }
    if row.vex && row.wl & 0b1010 == 0 {
        // `VEX` alone stands for both lengths.
        if !has(code.as_bytes(), b"VEX.128") {
            row.wl |= row.wl << 1;
        }
        if has(code.as_bytes(), b"VEX.256") {
            row.wl &= 0b1010;
        }
    }
    if row.modrm && !row.memory && !row.register {
        panic!("ModRM without an operand that says what it is");
    }
    row.float = row.xmm;
    row
}

/// The row of an instruction to which vector registers are bits or integers: it has no rounding, no
/// denormal numbers and no exceptions of floating point, so MXCSR is nothing to it. Moves, logic,
/// shuffles and blends are such, whatever type their names say.
pub(crate) const fn bits(name: &'static str, code: &'static str, operands: &'static str) -> Row {
    let mut row = row(name, code, operands);
    if !row.xmm {
        panic!("no vector register");
    }
    row.float = false;
    row
}

/// The row as another kind than [`InstructionKind::Plain`].
pub(crate) const fn kind(kind: InstructionKind, mut row: Row) -> Row {
    row.kind = kind;
    row
}

/// The row as one of x87.
pub(crate) const fn x87(name: &'static str, code: &'static str, operands: &'static str) -> Row {
    let mut row = row(name, code, operands);
    row.x87 = true;
    row
}

struct Sizes {
    /// 66h changes the operand size.
    operand: bool,
    /// REX.W or VEX.W changes the operand size.
    wide: bool,
}

const fn read_operands(row: &mut Row, text: &[u8]) -> Sizes {
    let mut sizes = Sizes {
        operand: false,
        wide: false,
    };
    let mut at = 0;
    while at < text.len() {
        let end = token_end(text, at);
        let letter = text[at];
        let size = if at + 1 < end { text[at + 1] } else { b' ' };
        let general = if size == b'b' {
            Operand::Byte
        } else {
            Operand::General
        };
        match letter {
            b'G' => row.reg = general,
            b'V' => row.reg = Operand::Vector,
            b'E' | b'R' => {
                row.rm = general;
                row.register = true;
                row.memory = letter == b'E';
            }
            b'W' | b'U' => {
                row.rm = Operand::Vector;
                row.register = true;
                row.memory = letter == b'W';
            }
            b'M' | b'X' => row.memory = true,
            b'H' => row.vvvv = Operand::Vector,
            b'B' => row.vvvv = Operand::General,
            b'Z' => row.low = general,
            b'O' => {
                row.memory = true;
                row.immediate = Immediate::Double;
            }
            b'L' => row.immediate = Immediate::Byte,
            b'I' | b'J' => {
                row.immediate = match size {
                    b'b' => Immediate::Byte,
                    b'z' => Immediate::Operand,
                    b'v' => Immediate::Full,
                    b'd' => Immediate::Double,
                    _ => panic!("unknown immediate"),
                }
            }
            b'S' => row.register = true,    // an x87 stack register
            b'a' | b'c' | b'1' | b'x' => {} // implied: ax, cl, 1, xmm0
            _ => panic!("unknown operand"),
        }
        if matches!(letter, b'V' | b'W' | b'U' | b'H' | b'x') {
            row.xmm = true;
        }
        sizes.operand |= size == b'v';
        sizes.wide |= size == b'v' || size == b'y';
        at = end + 1;
    }
    sizes
}

const fn read_code(row: &mut Row, text: &[u8]) {
    let mut at = 0;
    let mut opcode = false;
    while at < text.len() {
        let end = token_end(text, at);
        let first = text[at];
        if first == b'V' {
            row.vex = true;
        } else if first == b'L' {
            row.lock = true;
        } else if first == b'W' {
            row.wl = match text[at + 1] {
                b'0' => 0xf1,
                b'1' => 0xf4,
                _ => 0xf5,
            };
        } else if first == b'/' {
            row.modrm = true;
            if text[at + 1] != b'r' {
                let low = text[at + 1] - b'0';
                let high = if end - at == 4 {
                    text[at + 3] - b'0'
                } else {
                    low
                };
                let digits = (0xff >> (7 - high)) & (0xff << low);
                row.digits = if row.digits == 0xff {
                    digits
                } else {
                    row.digits | digits
                };
            }
        } else if first == b'N'
            || end - at > 5
            || (!opcode && row.map == 0 && is_prefix(text, at, end))
        {
            let mut item = at;
            while item < end {
                row.prefixes |= match (text[item], text[item + 1]) {
                    (b'N', b'P') => 1 << Prefix::None as u8,
                    (b'6', b'6') => 1 << Prefix::P66 as u8,
                    (b'F', b'3') => 1 << Prefix::F3 as u8,
                    (b'F', b'2') => 1 << Prefix::F2 as u8,
                    _ => panic!("unknown prefix"),
                };
                item += 3;
            }
        } else if !opcode && row.map == 0 && first == b'0' && text[at + 1] == b'F' {
            row.map = match end - at {
                2 => 1,
                4 if text[at + 3] == b'8' => 2,
                4 if text[at + 3] == b'A' => 3,
                _ => panic!("unknown map"),
            };
        } else {
            let low = hex(text, at);
            let high = if end - at == 5 {
                hex(text, at + 3)
            } else {
                low
            };
            if opcode {
                row.modrm = true;
                row.second = (low, high);
            } else {
                opcode = true;
                row.first = low;
                row.last = high;
            }
        }
        at = end + 1;
    }
    if !opcode {
        panic!("no opcode");
    }
}

/// Whether the token is a prefix or a choice of prefixes rather than an opcode: opcodes 66h, F2h,
/// F3h of the one-byte map are prefixes.
const fn is_prefix(text: &[u8], at: usize, end: usize) -> bool {
    let byte = hex(text, at);
    (end - at == 2 || text[at + 2] == b'/') && (byte == 0x66 || byte == 0xf2 || byte == 0xf3)
}

const fn token_end(text: &[u8], at: usize) -> usize {
    let mut end = at;
    while end < text.len() && text[end] != b' ' {
        end += 1;
    }
    end
}

const fn has(text: &[u8], word: &[u8]) -> bool {
    let mut i = 0;
    while i < word.len() {
        if i >= text.len() || text[i] != word[i] {
            return false;
        }
        i += 1;
    }
    true
}

const fn hex(text: &[u8], at: usize) -> u8 {
    digit(text[at]) << 4 | digit(text[at + 1])
}

const fn digit(c: u8) -> u8 {
    match c {
        b'0'..=b'9' => c - b'0',
        b'A'..=b'F' => c - b'A' + 10,
        _ => panic!("not a hexadecimal digit"),
    }
}
