//! Values that a filter computes from a packet: expressions over its bytes, each kept once.
//!
//! An expression is evaluated whole. A load that reaches beyond the captured bytes, or a division
//! by zero, rejects the packet, whatever the rest of the filter would say; so evaluation is an
//! effect, and no pass drops it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// An expression's number in its program; equal numbers are equal expressions.
pub(crate) type ExprId = u32;

/// How deep expressions may nest.
pub(crate) const MAX_DEPTH: u8 = 60;
/// How many operations an expression may have, counted as often as they are needed.
pub(crate) const MAX_SIZE: u16 = 400;
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    And,
    Or,
    Xor,
    Shl,
    Shr,
}

/// A value of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Expr {
    Const(u32),
    /// The length on the wire.
    Len,
    /// The captured bytes.
    Captured,
    Var(u8),
    /// 1, 2 or 4 bytes, the most significant first, at `base` + `off` (not modulo 2^32).
    Load {
        size: u8,
        base: Option<ExprId>,
        off: u32,
    },
    Bin(Op, ExprId, ExprId),
}

impl Expr {
    /// The same of other parts.
    pub fn rebuilt(self, mut part: impl FnMut(ExprId) -> Option<ExprId>) -> Option<Expr> {
        Some(match self {
            Expr::Load {
                size,
                base: Some(base),
                off,
            } => Expr::Load {
                size,
                base: Some(part(base)?),
                off,
            },
            Expr::Bin(op, a, b) => Expr::Bin(op, part(a)?, part(b)?),
            other => other,
        })
    }
}

/// How a test compares; all without sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Rel {
    Eq,
    Gt,
    Ge,
    /// They have a one bit in common.
    Set,
}

/// Expressions, each once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exprs {
    /// With depth and size.
    list: Vec<(Expr, u8, u16)>,
    known: BTreeMap<Expr, ExprId>,
}

/// An expression is nested too deeply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TooDeep;

impl Exprs {
    pub fn get(&self, id: ExprId) -> Expr {
        self.list[id as usize].0
    }

    pub fn constant(&self, id: ExprId) -> Option<u32> {
        match self.get(id) {
            Expr::Const(value) => Some(value),
            _ => None,
        }
    }

    pub fn add(&mut self, expr: Expr) -> Result<ExprId, TooDeep> {
        let expr = self.fold(expr);
        if let Some(id) = self.known.get(&expr) {
            return Ok(*id);
        }
        let of = |id: ExprId| (self.list[id as usize].1, self.list[id as usize].2);
        let (depth, size) = match expr {
            Expr::Load {
                base: Some(base), ..
            } => (of(base).0 + 1, of(base).1 + 1),
            Expr::Bin(_, a, b) => (of(a).0.max(of(b).0) + 1, of(a).1 + of(b).1 + 1),
            _ => (0, 1),
        };
        if depth > MAX_DEPTH || size > MAX_SIZE {
            return Err(TooDeep);
        }
        let id = self.list.len() as ExprId;
        self.list.push((expr, depth, size));
        self.known.insert(expr, id);
        Ok(id)
    }

    /// The same value more simply. What could reject stays.
    fn fold(&self, expr: Expr) -> Expr {
        match expr {
            Expr::Bin(op, a, b) => match (self.constant(a), self.constant(b)) {
                (Some(a), Some(b)) => apply(op, a, b).map_or(expr, Expr::Const),
                _ => expr,
            },
            Expr::Load {
                size,
                base: Some(base),
                off,
            } => match self.constant(base).and_then(|base| off.checked_add(base)) {
                Some(off) => Expr::Load {
                    size,
                    base: None,
                    off,
                },
                None => expr,
            },
            other => other,
        }
    }

    /// How many there are; all numbers are below.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn number(&mut self, value: u32) -> ExprId {
        // A constant has no depth.
        self.add(Expr::Const(value)).unwrap_or(0)
    }
}

/// The operation, or nothing for a division by zero.
pub(crate) fn apply(op: Op, a: u32, b: u32) -> Option<u32> {
    Some(match op {
        Op::Add => a.wrapping_add(b),
        Op::Sub => a.wrapping_sub(b),
        Op::Mul => a.wrapping_mul(b),
        Op::Div => a.checked_div(b)?,
        Op::Mod => a.checked_rem(b)?,
        Op::And => a & b,
        Op::Or => a | b,
        Op::Xor => a ^ b,
        Op::Shl => a.checked_shl(b).unwrap_or(0),
        Op::Shr => a.checked_shr(b).unwrap_or(0),
    })
}

pub(crate) fn holds(rel: Rel, a: u32, b: u32) -> bool {
    match rel {
        Rel::Eq => a == b,
        Rel::Gt => a > b,
        Rel::Ge => a >= b,
        Rel::Set => a & b != 0,
    }
}
