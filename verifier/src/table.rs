//! The allow list as dense tables, computed while the crate is compiled.
//!
//! An entry is a `u64`; zero refuses. The tables say exactly what the rows say: two rows may share
//! an opcode only where their forms (ModRM.reg, memory or register) differ and the rest agrees,
//! else the crate does not compile.

use crate::allow::SETS;
use crate::row::{Immediate, InstructionKind, Operand, Prefix, Row};

// An entry (what an opcode allows) and an operand (what a ModRM byte is) have the same layout in
// bits 0 to 25: one `&` of both, and of masks for SIB and REX, leaves the length and everything
// that is wrong.

/// Bits 0-2. Entry: all ones if a ModRM byte follows the opcode. Operand: bytes of ModRM, SIB and
/// displacement.
pub(crate) const LENGTH: u64 = 7;
/// Bit 6, so that the field of bits 4-6 is 4. Entry: there is ModRM. Operand: a SIB byte follows a
/// ModRM.mod of 0. What remains after [`BASES`]: four bytes of displacement follow.
pub(crate) const DISPLACEMENT: u64 = 1 << 6;
/// Entry: a memory operand is accessed. Operand: it is in memory. Lead: segment and 67h are there.
pub(crate) const MEMORY: u64 = 1 << 7;
/// Bits 8-10. Entry: bytes of the immediate. Operand: all set.
pub(crate) const IMMEDIATE: u32 = 8;
/// Entry: there is ModRM. Operand: a SIB byte follows. What remains after [`BASES`]: its base is
/// rsp's number.
pub(crate) const BASE: u64 = 1 << 11;
/// Bits 12-14. Entry: bytes of the immediate that only ModRM.reg 0 and 1 have (the group of
/// `test`). Operand: all set for these two.
pub(crate) const IMMEDIATE_OF_TEST: u32 = 12;
/// Entry: there is ModRM. Operand: it is relative to the instruction pointer.
pub(crate) const RELATIVE: u64 = 1 << 15;
/// Entry: ModRM.reg is a general register (the bit above: an 8-bit one). Operand: ModRM.reg is 4,
/// in both bits.
pub(crate) const REG: u32 = 16;
/// Entry: ModRM.rm is a general register (the bit above: an 8-bit one). Operand: it is a register
/// and 4, in both bits.
pub(crate) const RM: u32 = 18;
/// Entry: the opcode's low three bits are a general register (the bit above: an 8-bit one), and 4.
/// Operand: both bits set.
pub(crate) const LOW: u32 = 20;
/// Bits 22-25. Entry: refused (W, L): bit `2 * W + L`. Operand: all set.
pub(crate) const REFUSED_WL: u32 = 22;
/// What must be zero in the `&`, or equal to the lead ([`MEMORY`]).
pub(crate) const WRONG: u64 =
    MEMORY | BASE | RELATIVE | 3 << REG | 3 << RM | 3 << LOW | 15 << REFUSED_WL;
/// Multiplies the fields of bits 0-2, 4-6, 8-10 and 12-14 into their sum in bits 12-15.
pub(crate) const SUM: u64 = 0x1111;
/// The fields that [`SUM`] adds: the bytes after the opcode.
pub(crate) const BYTES: u64 = LENGTH | DISPLACEMENT | 7 << IMMEDIATE | 7 << IMMEDIATE_OF_TEST;
/// Entry: MXCSR governs the instruction, or it raises flags of it.
pub(crate) const FLOAT: u64 = 1 << 26;
/// Operand: from here on, the number of the bit of the entry that allows its form.
pub(crate) const FORM: u32 = 26;
/// Entry, bits 32-39: values of ModRM.reg that are allowed with a memory operand; bits 40-47: with
/// a register. All ones where there is no ModRM.
pub(crate) const FORMS: u32 = 32;
/// With REX.W the immediate has four bytes more.
pub(crate) const IMMEDIATE_WIDE: u64 = 1 << 48;
/// An absolute address follows the opcode. Such an entry refuses every W, so that only the full
/// grammar accepts it.
pub(crate) const ABSOLUTE: u64 = 1 << 49;
/// The instruction with an absolute address may have REX.W.
pub(crate) const ABSOLUTE_WIDE: u64 = 1 << 62;
/// The address is not accessed.
pub(crate) const NO_ACCESS: u64 = 1 << 50;
/// The instruction is `lea`.
pub(crate) const LEA: u64 = 1 << 51;
/// VEX.vvvv is a general register.
pub(crate) const VVVV_GENERAL: u64 = 1 << 52;
/// VEX.vvvv is used in the form with a memory operand; the bit above: in the form without.
pub(crate) const VVVV_USED: u32 = 53;
/// Vector registers are touched.
pub(crate) const XMM: u64 = 1 << 55;
/// x87 registers are touched.
pub(crate) const X87: u64 = 1 << 56;
/// Set in the entry of an accepted instruction with 256-bit vectors.
pub(crate) const YMM: u64 = 1 << 57;
/// The class is not [`CLASS_PLAIN`].
pub(crate) const ASIDE: u32 = 63;
/// The entry of an instruction that is accepted as a fixed string of bytes.
pub(crate) const FIXED_ENTRY: u64 = 1 << 58;
/// Bits 59-61: what follows the operand checks, one of the `CLASS_` numbers.
pub(crate) const CLASS: u32 = 59;

/// Nothing follows.
#[cfg(test)]
pub(crate) const CLASS_PLAIN: u64 = 0;
/// Conditional direct jump.
pub(crate) const CLASS_CONDITIONAL: u64 = 1;
/// Direct jump.
pub(crate) const CLASS_JUMP: u64 = 2;
/// Direct call.
pub(crate) const CLASS_CALL: u64 = 3;
/// Return.
pub(crate) const CLASS_RETURN: u64 = 4;
/// Trap.
pub(crate) const CLASS_TRAP: u64 = 5;
/// x87: a form without memory operand is looked up in [`SECOND`].
pub(crate) const CLASS_X87: u64 = 6;
/// Opcode FFh: `inc`, `dec`, or the end of a guarded sequence.
pub(crate) const CLASS_GROUP5: u64 = 7;

/// Legacy encodings: index `map << 11 | prefix << 8 | opcode`.
pub(crate) static LEGACY: [u64; 4 * 8 * 256] = legacy();
/// VEX encodings: index `(map - 1) << 10 | pp << 8 | opcode`.
pub(crate) static VEX: [u64; 3 * 4 * 256] = vex();
/// x87 forms without memory operand: word `opcode - D8h`, bit `ModRM - C0h`.
pub(crate) static SECOND: [u64; 8] = second();
/// What a ModRM byte says of its operand.
pub(crate) static OPERAND: [u32; 256] = operand();
/// The bits of an operand that the base in SIB (its low three bits) leaves.
pub(crate) static BASES: [u32; 8] = bases();
/// The bits of an operand that VEX leaves, by L, W, R, X, B (bits 4 to 0).
pub(crate) static VEX_EXTENSIONS: [u32; 32] = vex_extensions();

// What stands before the opcode is read in three steps, each a table that is indexed by a byte and
// says what it adds to the *lead*: in bits 0-5 the bits to skip (so that their sum is the length),
// in bits 28-30 the prefix, in bit 31 the map 0F, in bits 32 and up the bits of an operand that REX
// leaves.

/// What segment and 67h add to the lead.
pub(crate) const CONFINED: u64 = 16 | MEMORY;
/// The lead's bits that count what to skip.
pub(crate) const SKIP: u64 = 63;
/// The lead's prefix and map, shifted right by this, are an index of [`LEGACY`] without its opcode.
pub(crate) const INDEX: u32 = 20;
/// The lead's mask of operand bits.
pub(crate) const EXTENSIONS: u32 = 32;
/// First step: one of 66h, F3h, F2h, F0h.
pub(crate) static PREFIX: [u32; 256] = prefixes();
/// Second step: REX. (Other bytes add the mask of no REX.)
pub(crate) static REX: [u64; 256] = rex();
/// Third step: 0Fh.
pub(crate) static ESCAPE: [u32; 256] = escape();

const fn entry(row: &Row, prefix: u8, opcode: usize) -> u64 {
    let locked = prefix >= Prefix::Lock as u8 && !row.vex;
    let digits = row.digits as u64;
    let mut e = 0;
    if row.modrm {
        e |= LENGTH | BASE | DISPLACEMENT | RELATIVE;
        if !matches!(row.kind, InstructionKind::Address | InstructionKind::Nop) {
            e |= MEMORY;
        }
        if row.memory {
            e |= digits << FORMS;
        }
        if row.register && !locked {
            e |= match row.kind {
                InstructionKind::IndirectCall => 1 << 2,
                InstructionKind::IndirectJump => 1 << 4,
                _ => digits,
            } << (FORMS + 8);
        }
    } else {
        e |= 0xffff << FORMS;
    }
    let operand_size = !row.vex && prefix & 1 == 1;
    let wl = if operand_size && row.prefixes & 1 << (prefix & 1 ^ prefix) != 0 {
        row.wl & 0b0001
    } else {
        row.wl
    };
    let wl = if operand_size && locked {
        row.wl & 0b0001
    } else {
        wl
    };
    e |= (!wl as u64 & 15) << REFUSED_WL;
    e |= match row.immediate {
        Immediate::None => 0,
        Immediate::Byte => 1 << IMMEDIATE,
        Immediate::Double => 4 << IMMEDIATE,
        Immediate::Operand if operand_size => 2 << IMMEDIATE,
        Immediate::Operand => 4 << IMMEDIATE,
        Immediate::Full if operand_size => 2 << IMMEDIATE,
        // The form with REX.W is left to the full grammar.
        Immediate::Full => 4 << IMMEDIATE | IMMEDIATE_WIDE | 0b0100 << REFUSED_WL,
    };
    e |= general(row.reg, REG) | general(row.rm, RM);
    if opcode & 7 == 4 {
        e |= general(row.low, LOW);
    }
    if !matches!(row.vvvv, Operand::None) {
        if row.memory || !row.modrm {
            e |= 1 << VVVV_USED;
        }
        if row.register || !row.modrm {
            e |= 2 << VVVV_USED;
        }
        if matches!(row.vvvv, Operand::General) {
            e |= VVVV_GENERAL;
        }
    }
    if row.memory && !row.modrm {
        e |= ABSOLUTE | 15 << REFUSED_WL | if wl & 0b0100 != 0 { ABSOLUTE_WIDE } else { 0 };
    }
    e |= match row.kind {
        InstructionKind::Plain if row.x87 && row.modrm => CLASS_X87 << CLASS,
        InstructionKind::Plain if row.map == 0 && row.first == 0xff && !row.vex => {
            CLASS_GROUP5 << CLASS
        }
        InstructionKind::Plain => 0,
        InstructionKind::Address => NO_ACCESS | LEA,
        InstructionKind::Nop => NO_ACCESS,
        InstructionKind::Conditional => CLASS_CONDITIONAL << CLASS,
        InstructionKind::Jump => CLASS_JUMP << CLASS,
        InstructionKind::Call => CLASS_CALL << CLASS,
        InstructionKind::Return => CLASS_RETURN << CLASS,
        InstructionKind::Trap => CLASS_TRAP << CLASS,
        InstructionKind::IndirectJump | InstructionKind::IndirectCall => {
            CLASS_GROUP5 << CLASS | 1 << RM
        }
    };
    if row.xmm {
        e |= XMM;
    }
    if row.float {
        e |= FLOAT;
    }
    if row.x87 {
        e |= X87;
    }
    if e >> CLASS & 7 != 0 {
        e |= 1 << ASIDE;
    }
    e
}

const fn general(operand: Operand, bit: u32) -> u64 {
    match operand {
        Operand::General => 1 << bit,
        Operand::Byte => 2 << bit,
        Operand::None | Operand::Vector => 0,
    }
}

/// Bits that belong to a single form, so that rows sharing an opcode may differ in them.
const PER_FORM: u64 = 0xffff << FORMS | 3 << VVVV_USED;

const fn merge(old: u64, new: u64) -> u64 {
    if old == 0 {
        return new;
    }
    let (of, nf) = (old >> FORMS & 0xffff, new >> FORMS & 0xffff);
    // x87 forms without memory operand share ModRM.reg; `second` tells them apart.
    let forms = if old >> CLASS & 7 == CLASS_X87 {
        0xff
    } else {
        0xffff
    };
    let apart = of & nf & forms == 0;
    let rest = !(PER_FORM | 3 << RM | 7 << IMMEDIATE | 7 << IMMEDIATE_OF_TEST);
    // A row with memory operands only says nothing of registers.
    let rm = old & 3 << RM == new & 3 << RM || of & 0xff00 == 0 || nf & 0xff00 == 0;
    let (oi, ni) = (old >> IMMEDIATE & 7, new >> IMMEDIATE & 7);
    let test = if oi == ni {
        (old | new) & 7 << IMMEDIATE_OF_TEST
    } else {
        // One of both is `test`, /0; the others have no immediate.
        let (forms, without) = if oi != 0 { (of, nf) } else { (nf, of) };
        if (oi != 0 && ni != 0) || forms & 0xfefe != 0 || without & 0x0303 != 0 {
            panic!("rows with one opcode differ in the immediate");
        }
        (oi | ni) << IMMEDIATE_OF_TEST
    };
    let immediate = if oi == ni { oi << IMMEDIATE } else { 0 };
    if !apart || old & rest != new & rest || !rm {
        panic!("rows with one opcode disagree");
    }
    (old | new) & !(7 << IMMEDIATE) | immediate | test
}

const fn legacy() -> [u64; 4 * 8 * 256] {
    let mut table = [0; 4 * 8 * 256];
    let mut set = 0;
    while set < SETS.len() {
        let mut i = 0;
        while i < SETS[set].1.len() {
            let row = &SETS[set].1[i];
            let mut prefixes = row.prefixes;
            if row.lock {
                // `lock`, and with 66h where that changes the operand size.
                prefixes |= 1 << Prefix::Lock as u8 | (prefixes >> 1 & 1) << Prefix::P66Lock as u8;
            }
            let mut prefix = 0;
            while prefix < 8 && !row.vex {
                if prefixes & 1 << prefix != 0 {
                    let mut opcode = row.first as usize;
                    while opcode <= row.last as usize {
                        let at = (row.map as usize) << 11 | (prefix as usize) << 8 | opcode;
                        table[at] = merge(table[at], entry(row, prefix, opcode));
                        opcode += 1;
                    }
                }
                prefix += 1;
            }
            i += 1;
        }
        set += 1;
    }
    table
}

const fn vex() -> [u64; 3 * 4 * 256] {
    let mut table = [0; 3 * 4 * 256];
    let mut set = 0;
    while set < SETS.len() {
        let mut i = 0;
        while i < SETS[set].1.len() {
            let row = &SETS[set].1[i];
            let mut pp = 0;
            while pp < 4 && row.vex {
                // VEX.pp: 0 none, 1 66h, 2 F3h, 3 F2h.
                let prefix = [
                    Prefix::None as u8,
                    Prefix::P66 as u8,
                    Prefix::F3 as u8,
                    Prefix::F2 as u8,
                ][pp];
                if row.prefixes & 1 << prefix != 0 {
                    let mut opcode = row.first as usize;
                    while opcode <= row.last as usize {
                        let at = (row.map as usize - 1) << 10 | pp << 8 | opcode;
                        table[at] = merge(table[at], entry(row, prefix, opcode));
                        opcode += 1;
                    }
                }
                pp += 1;
            }
            i += 1;
        }
        set += 1;
    }
    table
}

const fn second() -> [u64; 8] {
    let mut table = [0; 8];
    let mut set = 0;
    while set < SETS.len() {
        let mut i = 0;
        while i < SETS[set].1.len() {
            let row = &SETS[set].1[i];
            if row.x87 && row.second.0 != 0 {
                let mut byte = row.second.0 as usize;
                while byte <= row.second.1 as usize {
                    if table[row.first as usize - 0xd8] >> (byte - 0xc0) & 1 == 1 {
                        panic!("two x87 rows for one encoding");
                    }
                    table[row.first as usize - 0xd8] |= 1 << (byte - 0xc0);
                    byte += 1;
                }
            }
            i += 1;
        }
        set += 1;
    }
    table
}

const fn operand() -> [u32; 256] {
    let mut table = [0; 256];
    let mut modrm = 0;
    while modrm < 256 {
        let (mode, reg, rm) = (modrm as u64 >> 6, modrm as u64 >> 3 & 7, modrm as u64 & 7);
        let mut o = 7 << IMMEDIATE | 3 << LOW | 15 << REFUSED_WL | (FORMS as u64 + reg) << FORM;
        if reg == 4 {
            o |= 3 << REG;
        }
        if reg < 2 {
            o |= 7 << IMMEDIATE_OF_TEST;
        }
        if mode == 3 {
            o |= 1 | 8 << FORM;
            if rm == 4 {
                o |= 3 << RM;
            }
        } else {
            let sib = rm == 4;
            let displacement = match mode {
                0 if rm == 5 => 4,
                0 => 0,
                1 => 1,
                _ => 4,
            };
            o |= (1 + sib as u64 + displacement) | MEMORY;
            if sib {
                o |= BASE | if mode == 0 { DISPLACEMENT } else { 0 };
            }
            if mode == 0 && rm == 5 {
                o |= RELATIVE;
            }
        }
        table[modrm] = o as u32;
        modrm += 1;
    }
    table
}

const fn bases() -> [u32; 8] {
    let mut table = [!(BASE | DISPLACEMENT) as u32; 8];
    table[4] |= BASE as u32;
    table[5] |= DISPLACEMENT as u32;
    table
}

/// The bits of an operand that the extension bits leave.
const fn extensions(wrxb: usize, l: usize, rex: bool) -> u32 {
    let mut mask = !(15 << REFUSED_WL);
    if wrxb & 4 != 0 {
        mask &= !(3 << REG);
    }
    if wrxb & 1 != 0 {
        mask &= !(BASE as u32 | 3 << RM | 3 << LOW);
    }
    if !rex {
        // 8-bit register 4 is ah.
        mask &= !(2 << REG | 2 << RM | 2 << LOW);
    }
    mask | 1 << (REFUSED_WL as usize + 2 * (wrxb >> 3) + l)
}

const fn vex_extensions() -> [u32; 32] {
    let mut table = [0; 32];
    let mut i = 0;
    while i < 32 {
        table[i] = extensions(i & 15, i >> 4, false);
        i += 1;
    }
    table
}

const fn prefixes() -> [u32; 256] {
    let mut table = [0; 256];
    table[0x66] = 8 | (Prefix::P66 as u32) << 28;
    table[0xf3] = 8 | (Prefix::F3 as u32) << 28;
    table[0xf2] = 8 | (Prefix::F2 as u32) << 28;
    table[0xf0] = 8 | (Prefix::Lock as u32) << 28;
    table
}

const fn rex() -> [u64; 256] {
    let mut table = [(extensions(0, 0, false) as u64) << EXTENSIONS; 256];
    let mut i = 0;
    while i < 16 {
        table[0x40 | i] = 8 | (extensions(i, 0, true) as u64) << EXTENSIONS;
        i += 1;
    }
    table
}

const fn escape() -> [u32; 256] {
    let mut table = [0; 256];
    table[0x0f] = 8 | 1 << 31;
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_say_what_rows_say() {
        let forms = |entry: u64| entry >> FORMS & 0xffff;
        let add = LEGACY[0x01];
        assert_eq!(forms(add), 0xffff);
        assert_eq!(add >> CLASS & 7, CLASS_PLAIN);
        assert_eq!(add >> IMMEDIATE & 7, 0);
        let add_imm16 = LEGACY[1 << 8 | 0x81];
        assert_eq!(add_imm16 >> IMMEDIATE & 7, 2);
        assert_eq!(add_imm16 >> REFUSED_WL & 15, 0b1110, "no REX.W beside 66h");
        let lock_cmp = LEGACY[6 << 8 | 0x83];
        assert_eq!(
            forms(lock_cmp),
            0x7f,
            "cmp cannot be locked, and nothing on registers"
        );
        let group3 = LEGACY[0xf7];
        assert_eq!(forms(group3), 0xfdfd);
        assert_eq!(
            (group3 >> IMMEDIATE_OF_TEST & 7, group3 >> IMMEDIATE & 7),
            (4, 0)
        );
        assert_eq!(forms(LEGACY[0xff]), 0x1703);
        assert_eq!(LEGACY[0x50], 0, "push");
        assert_eq!(LEGACY[1 << 11 | 0x05], 0, "syscall");
        assert_eq!(SECOND[1] >> (0xe5 - 0xc0) & 1, 0, "fxam");
    }
}
