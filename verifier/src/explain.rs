//! Names the rule that a refused instruction breaks.
//!
//! This runs only after [`crate::decode`] has refused, so a mistake here can make a message worse
//! but never accepts anything. It walks the bytes in the order in which a reader would: prefixes,
//! opcode, form, operand.

use crate::decode::CHUNK;
use crate::rule::Rule;
use crate::table::*;

/// The rule that the refused instruction at the start of `chunk` breaks.
#[cold]
pub(crate) fn explain(chunk: &[u8; CHUNK], segment: u8) -> Rule {
    let byte = |at: usize| chunk.get(at).copied().unwrap_or(0);
    let (mut at, mut gs, mut a32, mut p66, mut f, mut other) = (0, 0, 0, 0, 0, 0);
    let mut in_order = true;
    loop {
        match byte(at) {
            b if b == segment => {
                in_order &= a32 + p66 + f == 0;
                gs += 1;
            }
            0x67 => {
                in_order &= p66 + f == 0;
                a32 += 1;
            }
            0x66 => {
                in_order &= f == 0;
                p66 += 1;
            }
            0xf0 | 0xf2 | 0xf3 => f += 1,
            0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 => other += 1,
            _ => break,
        }
        at += 1;
        if at > 15 {
            return Rule::Prefix;
        }
    }
    let lock = (0..at).any(|i| byte(i) == 0xf0);
    let repeat = (0..at).rev().map(byte).find(|b| matches!(b, 0xf2 | 0xf3));

    let mut rex = 0;
    while byte(at) & 0xf0 == 0x40 {
        if rex != 0 {
            return Rule::Prefix;
        }
        rex = byte(at);
        at += 1;
    }
    let mut wrxb = u64::from(rex & 15);
    let (mut l, mut vvvv) = (0, 0);
    let (entries, vex): ([u64; 8], bool) = match byte(at) {
        first @ (0xc4 | 0xc5) => {
            let (p1, p2) = (
                byte(at + 1),
                if first == 0xc4 {
                    byte(at + 2)
                } else {
                    byte(at + 1) & 0x7f
                },
            );
            let map = if first == 0xc4 {
                usize::from(p1 & 31)
            } else {
                1
            };
            wrxb = u64::from(!p1 >> 5 & if first == 0xc4 { 7 } else { 4 } | p2 >> 4 & 8);
            (l, vvvv) = (p2 >> 2 & 1, !p2 >> 3 & 15);
            at += if first == 0xc4 { 3 } else { 2 };
            let mut entries = [0; 8];
            for (pp, entry) in entries.iter_mut().take(4).enumerate() {
                *entry = VEX
                    .get(map.wrapping_sub(1) << 10 | pp << 8 | usize::from(byte(at)))
                    .copied()
                    .unwrap_or(0);
            }
            entries.swap(0, usize::from(p2 & 3));
            if map == 0 || map > 3 {
                entries = [0; 8];
            }
            (entries, true)
        }
        _ => {
            let mut map = 0;
            if byte(at) == 0x0f {
                at += 1;
                map = match byte(at) {
                    0x38 => 2,
                    0x3a => 3,
                    _ => 1,
                };
                at += usize::from(map > 1);
            }
            let mut entries = [0; 8];
            for (prefix, entry) in entries.iter_mut().enumerate() {
                *entry = LEGACY
                    .get(map << 11 | prefix << 8 | usize::from(byte(at)))
                    .copied()
                    .unwrap_or(0);
            }
            let f = if lock {
                6
            } else {
                repeat.map_or(0, |b| if b == 0xf3 { 2 } else { 4 })
            };
            entries.swap(0, f | usize::from(p66 != 0));
            (entries, false)
        }
    };
    let entry = entries[0];
    if entries.iter().all(|&e| e == 0) {
        return Rule::NotAllowed;
    }
    if !in_order
        || gs > 1
        || a32 > 1
        || p66 > 1
        || f > 1
        || other > 0
        || (vex && (p66 + f > 0 || rex != 0))
    {
        return Rule::Prefix;
    }
    if entry == 0 {
        // The opcode exists with other prefixes.
        return if p66 + f > 0 && !vex {
            Rule::Prefix
        } else {
            Rule::NotAllowed
        };
    }

    let (modrm, sib) = (byte(at + 1), byte(at + 2));
    let has_modrm = entry & LENGTH != 0;
    let register = has_modrm && modrm >= 0xc0;
    let digit = modrm >> 3 & 7;
    let forms = entry >> if register { FORMS + 8 } else { FORMS };
    if has_modrm && forms >> digit & 1 == 0 {
        return if forms & 0xff == 0 {
            Rule::Form
        } else {
            Rule::NotAllowed
        };
    }
    if entry & (IMMEDIATE_WIDE | ABSOLUTE) == 0
        && entry >> REFUSED_WL >> (wrxb >> 2 & 2 | u64::from(l)) & 1 == 1
    {
        return Rule::Form;
    }
    let info = if has_modrm {
        u64::from(OPERAND[usize::from(modrm)])
    } else {
        0
    };
    let general = |bit: u32| entry >> bit & if rex != 0 { 3 } else { 1 } != 0;
    if general(REG) && digit == 4 && wrxb & 4 == 0
        || general(RM) && register && modrm & 7 == 4 && wrxb & 1 == 0
        || general(LOW) && wrxb & 1 == 0
        || entry & VVVV_GENERAL != 0 && vvvv == 4
        || info & BASE != 0 && sib & 7 == 4 && wrxb & 1 == 0
    {
        return Rule::StackPointer;
    }
    if info & RELATIVE != 0 {
        return Rule::RipRelative;
    }
    let no_access = entry & NO_ACCESS != 0;
    let accessed = !no_access && (info & MEMORY != 0 || entry & ABSOLUTE != 0);
    if accessed && (gs == 0 || a32 == 0) {
        return Rule::Unconfined;
    }
    if !accessed && gs + a32 > 0 {
        return Rule::NoMemoryOperand;
    }
    Rule::Form
}
