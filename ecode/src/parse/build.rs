//! Making nodes: constants are computed, conversions inserted.

use alloc::format;

use super::Parser;
use crate::diagnostics::Rule;
use crate::fold::{compute, operator};
use crate::tree::{K, N, Node};
use crate::types::*;

impl Parser<'_> {
    pub(crate) fn node(&mut self, kind: K, ty: Type, a: u32, b: u32, at: u32) -> N {
        self.leaf(kind, ty, (a, b), 0, at)
    }

    /// A node without operands.
    fn leaf(&mut self, kind: K, ty: Type, (a, b): (u32, u32), value: u64, at: u32) -> N {
        self.tree.push(Node {
            kind,
            effects: false,
            weight: 1,
            depth: 0,
            ty,
            a,
            b,
            c: 0,
            at,
            value,
        })
    }

    pub(crate) fn unary_node(&mut self, kind: K, ty: Type, a: N, value: u64, at: u32) -> N {
        let inner = self.tree.get(a);
        let (effects, weight) = (inner.effects, inner.weight.saturating_add(1));
        let depth = inner.depth.saturating_add(1);
        self.tree.push(Node {
            kind,
            effects,
            weight,
            depth,
            ty,
            a,
            b: 0,
            c: 0,
            at,
            value,
        })
    }

    pub(crate) fn binary_node(&mut self, kind: K, ty: Type, a: N, b: N, value: u64, at: u32) -> N {
        let (x, y) = (self.tree.get(a), self.tree.get(b));
        let effects = x.effects || y.effects || matches!(kind, K::Assign | K::Compound);
        let weight = x.weight.saturating_add(y.weight).saturating_add(1);
        let depth = x.depth.max(y.depth).saturating_add(1);
        self.tree.push(Node {
            kind,
            effects,
            weight,
            depth,
            ty,
            a,
            b,
            c: 0,
            at,
            value,
        })
    }

    pub(crate) fn integer(&mut self, ty: Type, value: u64, at: u32) -> N {
        let value = self.wrapped(ty, value);
        self.leaf(K::Int, ty, (0, 0), value, at)
    }

    pub(crate) fn float(&mut self, ty: Type, value: f64, at: u32) -> N {
        let value = if ty.plain() == FLOAT {
            f64::from(value as f32)
        } else {
            value
        }
        .to_bits();
        self.leaf(K::Float, ty, (0, 0), value, at)
    }

    pub(crate) fn error_node(&mut self, at: u32) -> N {
        self.node(K::Error, ERROR, 0, 0, at)
    }

    /// `value` as the integer type holds it, extended to 64 bits by its sign.
    pub(crate) fn wrapped(&self, ty: Type, value: u64) -> u64 {
        let info = self.types.get(ty);
        match (info.kind, info.size) {
            (Kind::Bool, _) => u64::from(value != 0),
            (Kind::Int, 1) => value as i8 as u64,
            (Kind::Int, 2) => value as i16 as u64,
            (Kind::Int, 4) => value as i32 as u64,
            (Kind::Unsigned, 1) => value & 0xff,
            (Kind::Unsigned, 2) => value & 0xffff,
            (Kind::Unsigned, 4) => value & 0xffff_ffff,
            _ => value,
        }
    }

    pub(crate) fn constant_of(&self, n: N) -> Option<u64> {
        let node = self.tree.get(n);
        (node.kind == K::Int).then_some(node.value)
    }

    fn float_of(&self, n: N) -> Option<f64> {
        let node = self.tree.get(n);
        (node.kind == K::Float).then(|| f64::from_bits(node.value))
    }

    /// Arrays and functions as pointers; everything else as it is.
    pub(crate) fn decay(&mut self, n: N) -> N {
        let node = *self.tree.get(n);
        let info = *self.types.get(node.ty);
        match info.kind {
            Kind::Array => {
                let of = info.of.with(node.ty.qualifiers());
                let ty = self.types.pointer(of);
                self.unary_node(K::Address, ty, n, 0, node.at)
            }
            Kind::Function => {
                let ty = self.types.pointer(node.ty.plain());
                // A pointer that is called through is a function already.
                if node.kind == K::Deref {
                    node.a
                } else {
                    self.unary_node(K::Address, ty, n, 0, node.at)
                }
            }
            _ => n,
        }
    }

    /// A conversion that the source asks for, or that is known to be allowed.
    pub(crate) fn convert_node(&mut self, n: N, to: Type) -> N {
        let node = *self.tree.get(n);
        let to = to.plain();
        if node.ty.plain() == to || node.ty == ERROR || to == ERROR {
            return n;
        }
        let to_kind = self.types.kind(to);
        if to_kind == Kind::Void {
            return self.unary_node(K::Cast, to, n, 0, node.at);
        }
        match node.kind {
            K::Int if to_kind == Kind::Float => {
                let unsigned = self.types.is_unsigned(node.ty);
                let value = match (to, unsigned) {
                    (FLOAT, true) => f64::from(node.value as f32),
                    (FLOAT, false) => f64::from(node.value as i64 as f32),
                    (_, true) => node.value as f64,
                    (_, false) => node.value as i64 as f64,
                };
                return self.float(to, value, node.at);
            }
            K::Int => return self.integer(to, node.value, node.at),
            K::Float if to_kind == Kind::Float => {
                return self.float(to, f64::from_bits(node.value), node.at);
            }
            K::Float if to_kind == Kind::Bool => {
                return self.integer(to, u64::from(f64::from_bits(node.value) != 0.0), node.at);
            }
            K::Float => {
                let value = f64::from_bits(node.value);
                let in_range = value > -2147483649.0 && value < 2147483648.0;
                if in_range
                    || to_kind == Kind::Unsigned && (0.0..18446744073709551616.0).contains(&value)
                {
                    let whole = if value < 0.0 {
                        value as i64 as u64
                    } else {
                        value as u64
                    };
                    return self.integer(to, whole, node.at);
                }
            }
            _ => {}
        }
        self.unary_node(K::Cast, to, n, 0, node.at)
    }

    /// An arithmetic operator on operands of one type.
    pub(crate) fn arithmetic(&mut self, kind: K, ty: Type, a: N, b: N, at: u32) -> N {
        if let (Some(x), Some(y)) = (self.float_of(a), self.float_of(b)) {
            let (x32, y32) = (x as f32, y as f32);
            let value = match (kind, ty == FLOAT) {
                (K::Add, false) => x + y,
                (K::Sub, false) => x - y,
                (K::Mul, false) => x * y,
                (_, false) => x / y,
                (K::Add, true) => (x32 + y32).into(),
                (K::Sub, true) => (x32 - y32).into(),
                (K::Mul, true) => (x32 * y32).into(),
                (_, true) => (x32 / y32).into(),
            };
            if !value.is_nan() {
                return self.float(ty, value, at);
            }
        }
        if let (Some(x), Some(y)) = (self.constant_of(a), self.constant_of(b)) {
            let wide = self.types.size(ty) == 8;
            let op = operator(kind, self.types.is_unsigned(ty));
            let (x, y) = if wide {
                (x as i64, y as i64)
            } else {
                (x as i32 as i64, y as i32 as i64)
            };
            if let Some(value) = compute(op, wide, x, y) {
                return self.integer(ty, value as u64, at);
            }
        }
        self.binary_node(kind, ty, a, b, 0, at)
    }

    /// A comparison of operands of one type, with the result 0 or 1.
    pub(crate) fn compare_nodes(&mut self, kind: K, a: N, b: N, at: u32) -> N {
        if let (Some(x), Some(y)) = (self.constant_of(a), self.constant_of(b)) {
            let unsigned = self.types.is_unsigned(self.tree.get(a).ty);
            let order = if unsigned {
                x.cmp(&y)
            } else {
                (x as i64).cmp(&(y as i64))
            };
            let value = match kind {
                K::Less => order.is_lt(),
                K::Greater => order.is_gt(),
                K::LessEqual => order.is_le(),
                K::GreaterEqual => order.is_ge(),
                K::Equal => order.is_eq(),
                _ => order.is_ne(),
            };
            return self.integer(INT, value.into(), at);
        }
        if let (Some(x), Some(y)) = (self.float_of(a), self.float_of(b)) {
            let value = match kind {
                K::Less => x < y,
                K::Greater => x > y,
                K::LessEqual => x <= y,
                K::GreaterEqual => x >= y,
                K::Equal => x == y,
                _ => x != y,
            };
            return self.integer(INT, value.into(), at);
        }
        self.binary_node(kind, INT, a, b, 0, at)
    }

    /// Whether a constant is true, if the node is one.
    pub(crate) fn known_truth(&self, n: N) -> Option<bool> {
        let text = matches!(self.tree.get(n).kind, K::Address)
            && matches!(
                self.tree.get(self.tree.get(n).a).kind,
                K::Text | K::Slot | K::Global
            );
        if text {
            return Some(true);
        }
        self.constant_of(n)
            .map(|value| value != 0)
            .or(self.float_of(n).map(|value| value != 0.0))
    }

    /// A condition: a scalar.
    pub(crate) fn condition_node(&mut self, n: N) -> N {
        let n = self.decay(n);
        let node = *self.tree.get(n);
        if !self.types.is_scalar(node.ty) && node.ty != ERROR {
            let message = format!(
                "a condition is a number or pointer, not `{}`",
                self.spell(node.ty)
            );
            self.error(Rule::Operands, node.at, message, "");
            return self.error_node(node.at);
        }
        match self.known_truth(n) {
            Some(known) => self.integer(INT, known.into(), node.at),
            None => n,
        }
    }

    /// The value of `n` as it is stored in an object of type `to`: for assignments, arguments, initialisers and returns.
    pub(crate) fn assigned(&mut self, n: N, to: Type, what: &str) -> N {
        let n = self.decay(n);
        let node = *self.tree.get(n);
        let from = node.ty;
        if from == ERROR || to == ERROR {
            return n;
        }
        let types = &self.types;
        let truth = types.kind(to) == Kind::Bool && types.is_pointer(from);
        let good = if truth || types.is_arithmetic(to) && types.is_arithmetic(from) {
            true
        } else if types.is_pointer(to) && types.is_pointer(from) {
            return self.assigned_pointer(n, to, what);
        } else if types.is_pointer(to) && types.is_integer(from) {
            node.kind == K::Int && node.value == 0
        } else {
            types.is_struct(to) && types.same(to, from)
        };
        if !good {
            let message = format!(
                "{what} needs `{}`, this is `{}`",
                self.spell(to.plain()),
                self.spell(from.plain())
            );
            let scalars = self.types.is_scalar(to) && self.types.is_scalar(from);
            self.error(
                Rule::Mismatch,
                node.at,
                message,
                if scalars {
                    "write a cast if that is meant"
                } else {
                    ""
                },
            );
            return self.error_node(node.at);
        }
        self.convert_node(n, to)
    }

    fn assigned_pointer(&mut self, n: N, to: Type, what: &str) -> N {
        let node = *self.tree.get(n);
        let (x, y) = (self.types.get(to).of, self.types.get(node.ty).of);
        let void = self.types.kind(x) == Kind::Void || self.types.kind(y) == Kind::Void;
        let sign_only = self.types.is_integer(x)
            && self.types.is_integer(y)
            && self.types.size(x) == self.types.size(y);
        let null = node.kind == K::Int && node.value == 0;
        if !void && !self.types.same(x, y) && !sign_only && !null {
            let message = format!(
                "{what} needs `{}`, this is `{}`",
                self.spell(to.plain()),
                self.spell(node.ty.plain())
            );
            self.error(
                Rule::Mismatch,
                node.at,
                message,
                "write a cast if that is meant",
            );
        } else if y.is_const() && !x.is_const() {
            let message = format!(
                "{what} needs `{}`, this points to something const",
                self.spell(to.plain())
            );
            self.error(
                Rule::Constant,
                node.at,
                message,
                "make the target const, too, or write a cast",
            );
        }
        self.convert_node(n, to)
    }
}
