//! Arithmetic on constants, as the machine does it: for the parser, which needs values of constant
//! expressions, and for the lowering, which knows more of them.

use crate::ir::Op;
use crate::tree::Arithmetic;

/// The instruction of an arithmetic operator on integers.
pub(crate) fn operator(operator: Arithmetic, unsigned: bool) -> Op {
    match (operator, unsigned) {
        (Arithmetic::Add, _) => Op::Add,
        (Arithmetic::Sub, _) => Op::Sub,
        (Arithmetic::Mul, _) => Op::Mul,
        (Arithmetic::Div, false) => Op::Div,
        (Arithmetic::Div, true) => Op::UDiv,
        (Arithmetic::Rem, false) => Op::Mod,
        (Arithmetic::Rem, true) => Op::UMod,
        (Arithmetic::And, _) => Op::And,
        (Arithmetic::Or, _) => Op::Or,
        (Arithmetic::Xor, _) => Op::Xor,
        (Arithmetic::Shl, _) => Op::Shl,
        (Arithmetic::Shr, false) => Op::Sar,
        (Arithmetic::Shr, true) => Op::Shr,
    }
}

/// What the operation gives for constants, or `None` where it faults. Constants of 32 bits are
/// sign-extended.
pub(crate) fn compute(op: Op, wide: bool, a: i64, b: i64) -> Option<i64> {
    let bits = if wide { 63 } else { 31 };
    let (ua, ub) = if wide {
        (a as u64, b as u64)
    } else {
        (u64::from(a as u32), u64::from(b as u32))
    };
    let overflow = b == -1 && a == if wide { i64::MIN } else { i32::MIN.into() };
    let value = match op {
        Op::Add => a.wrapping_add(b),
        Op::Sub => a.wrapping_sub(b),
        Op::Mul => a.wrapping_mul(b),
        Op::And => a & b,
        Op::Or => a | b,
        Op::Xor => a ^ b,
        Op::Shl => a.wrapping_shl(b as u32 & bits),
        Op::Shr => (ua >> (b as u32 & bits)) as i64,
        Op::Sar => a >> (b as u32 & bits),
        Op::Div | Op::Mod if b == 0 || overflow => return None,
        Op::UDiv | Op::UMod if ub == 0 => return None,
        Op::Div => a / b,
        Op::Mod => a % b,
        Op::UDiv => (ua / ub) as i64,
        Op::UMod => (ua % ub) as i64,
        _ => return None,
    };
    Some(if wide { value } else { value as i32 as i64 })
}
