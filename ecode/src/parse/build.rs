//! Making nodes: constants are computed, conversions inserted.

use alloc::format;

use super::Parser;
use crate::diagnostics::Rule;
use crate::float;
use crate::fold::{compute, operator};
use crate::tree::{Arithmetic, Comparison, Expression, Node, NodeId};
use crate::types::*;

impl Parser<'_> {
    /// A node without operands.
    pub(crate) fn leaf(&mut self, expression: Expression, ty: Type, at: u32) -> NodeId {
        self.tree.push(Node {
            expression,
            ty,
            at,
            weight: 1,
            depth: 0,
            effects: false,
        })
    }

    /// A node with this operand, which `expression` names, too.
    pub(crate) fn unary(
        &mut self,
        expression: Expression,
        ty: Type,
        operand: NodeId,
        at: u32,
    ) -> NodeId {
        let inner = self.tree.get(operand);
        let node = Node {
            expression,
            ty,
            at,
            weight: inner.weight.saturating_add(1),
            depth: inner.depth.saturating_add(1),
            effects: inner.effects || matches!(expression, Expression::Step { .. }),
        };
        self.tree.push(node)
    }

    /// A node with these operands, which `expression` names, too.
    pub(crate) fn binary(
        &mut self,
        expression: Expression,
        ty: Type,
        (left, right): (NodeId, NodeId),
        at: u32,
    ) -> NodeId {
        use Expression::{Assign, Compound, CompoundPointer};
        let (x, y) = (self.tree.get(left), self.tree.get(right));
        let writes = matches!(
            expression,
            Assign { .. } | Compound { .. } | CompoundPointer { .. }
        );
        let node = Node {
            expression,
            ty,
            at,
            weight: x.weight.saturating_add(y.weight).saturating_add(1),
            depth: x.depth.max(y.depth).saturating_add(1),
            effects: x.effects || y.effects || writes,
        };
        self.tree.push(node)
    }

    pub(crate) fn integer(&mut self, ty: Type, value: u64, at: u32) -> NodeId {
        let value = self.wrapped(ty, value);
        self.leaf(Expression::Integer(value), ty, at)
    }

    /// A floating constant of these bits, which become those of the type.
    pub(crate) fn float(&mut self, ty: Type, bits: u64, at: u32) -> NodeId {
        self.no_float(at);
        let value = if ty.plain() == FLOAT {
            float::rounded(bits)
        } else {
            bits
        };
        self.leaf(Expression::Float(value), ty, at)
    }

    /// Reports floating point where it is not known.
    pub(crate) fn no_float(&mut self, at: u32) {
        if !float::KNOWN {
            let message = "floating point where the compiler has none".into();
            self.error(Rule::Unsupported, at, message, "compute in whole numbers");
        }
    }

    pub(crate) fn error_node(&mut self, at: u32) -> NodeId {
        self.leaf(Expression::Error, ERROR, at)
    }

    /// `value` as the integer type holds it, extended to 64 bits by its sign.
    pub(crate) fn wrapped(&self, ty: Type, value: u64) -> u64 {
        let info = self.types.get(ty);
        match (info.kind, info.size) {
            (TypeKind::Bool, _) => u64::from(value != 0),
            (TypeKind::Int, 1) => value as i8 as u64,
            (TypeKind::Int, 2) => value as i16 as u64,
            (TypeKind::Int, 4) => value as i32 as u64,
            (TypeKind::Unsigned, 1) => value & 0xff,
            (TypeKind::Unsigned, 2) => value & 0xffff,
            (TypeKind::Unsigned, 4) => value & 0xffff_ffff,
            _ => value,
        }
    }

    pub(crate) fn constant_of(&self, n: NodeId) -> Option<u64> {
        match self.tree.get(n).expression {
            Expression::Integer(value) => Some(value),
            _ => None,
        }
    }

    fn float_of(&self, n: NodeId) -> Option<u64> {
        match self.tree.get(n).expression {
            Expression::Float(bits) => Some(bits),
            _ => None,
        }
    }

    /// The bits of a bit-field whose value an expression is: what is assigned to one has its type.
    fn bits_of(&self, n: NodeId) -> Bits {
        use Expression::{Assign, Compound, Member, Step};
        let place = match self.tree.get(n).expression {
            Assign { to, .. } | Compound { to, .. } | Step { to, .. } => to,
            _ => n,
        };
        match self.tree.get(place).expression {
            Member { bits, .. } => bits,
            _ => Bits::NONE,
        }
    }

    /// Arrays and functions as pointers, bit-fields as `int` where that holds them; everything else
    /// as it is.
    pub(crate) fn decay(&mut self, n: NodeId) -> NodeId {
        let node = *self.tree.get(n);
        let info = *self.types.get(node.ty);
        let bits = self.bits_of(n);
        if bits.any() {
            let ty = self.types.promoted_bits(node.ty, bits);
            return match node.ty.plain() == ty {
                true => n,
                false => self.unary(Expression::Cast(n), ty, n, node.at),
            };
        }
        match info.kind {
            TypeKind::Array => {
                let of = info.of.with(node.ty.qualifiers());
                let ty = self.types.pointer(of);
                self.unary(Expression::Address(n), ty, n, node.at)
            }
            TypeKind::Function => {
                let ty = self.types.pointer(node.ty.plain());
                // A pointer that is called through is a function already.
                match node.expression {
                    Expression::Deref(pointer) => pointer,
                    _ => self.unary(Expression::Address(n), ty, n, node.at),
                }
            }
            _ => n,
        }
    }

    /// A conversion that the source asks for, or that is known to be allowed.
    pub(crate) fn convert_node(&mut self, n: NodeId, to: Type) -> NodeId {
        let node = *self.tree.get(n);
        let to = to.plain();
        if node.ty.plain() == to || node.ty == ERROR || to == ERROR {
            return n;
        }
        let to_kind = self.types.kind(to);
        if to_kind == TypeKind::Void {
            return self.unary(Expression::Cast(n), to, n, node.at);
        }
        match node.expression {
            Expression::Integer(value) if to_kind == TypeKind::Float => {
                let unsigned = self.types.is_unsigned(node.ty);
                let value = match unsigned {
                    true => float::of_unsigned(value, to == FLOAT),
                    false => float::of_signed(value as i64, to == FLOAT),
                };
                return self.float(to, value, node.at);
            }
            Expression::Integer(value) => return self.integer(to, value, node.at),
            Expression::Float(bits) if to_kind == TypeKind::Float => {
                return self.float(to, bits, node.at);
            }
            Expression::Float(bits) if to_kind == TypeKind::Bool => {
                return self.integer(to, float::truth(bits).into(), node.at);
            }
            Expression::Float(bits) => {
                if let Some(whole) = float::whole(bits, to_kind == TypeKind::Unsigned) {
                    return self.integer(to, whole, node.at);
                }
            }
            _ => {}
        }
        self.unary(Expression::Cast(n), to, n, node.at)
    }

    /// An arithmetic operator on operands of one type.
    pub(crate) fn arithmetic(
        &mut self,
        kind: Arithmetic,
        ty: Type,
        (a, b): (NodeId, NodeId),
        at: u32,
    ) -> NodeId {
        if let (Some(x), Some(y)) = (self.float_of(a), self.float_of(b))
            && let Some(value) = float::compute(kind, ty == FLOAT, x, y)
        {
            return self.float(ty, value, at);
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
        self.binary(Expression::Arithmetic(kind, a, b), ty, (a, b), at)
    }

    /// A comparison of operands of one type, with the result 0 or 1.
    pub(crate) fn compare(
        &mut self,
        kind: Comparison,
        (a, b): (NodeId, NodeId),
        at: u32,
    ) -> NodeId {
        use Comparison::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
        if let (Some(x), Some(y)) = (self.constant_of(a), self.constant_of(b)) {
            let unsigned = self.types.is_unsigned(self.tree.get(a).ty);
            let order = if unsigned {
                x.cmp(&y)
            } else {
                (x as i64).cmp(&(y as i64))
            };
            let value = match kind {
                Less => order.is_lt(),
                Greater => order.is_gt(),
                LessEqual => order.is_le(),
                GreaterEqual => order.is_ge(),
                Equal => order.is_eq(),
                NotEqual => order.is_ne(),
            };
            return self.integer(INT, value.into(), at);
        }
        if let (Some(x), Some(y)) = (self.float_of(a), self.float_of(b)) {
            return self.integer(INT, float::compare(kind, x, y).into(), at);
        }
        self.binary(Expression::Compare(kind, a, b), INT, (a, b), at)
    }

    /// Whether a constant is true, if the node is one.
    pub(crate) fn known_truth(&self, n: NodeId) -> Option<bool> {
        if let Expression::Address(of) = self.tree.get(n).expression
            && let Expression::Text(_) | Expression::Memory(_) | Expression::Global(_) =
                self.tree.get(of).expression
        {
            return Some(true);
        }
        self.constant_of(n)
            .map(|value| value != 0)
            .or(self.float_of(n).map(float::truth))
    }

    /// A condition: a scalar.
    pub(crate) fn condition_node(&mut self, n: NodeId) -> NodeId {
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

    /// The value of `n` as it is stored in an object of type `to`: for assignments, arguments,
    /// initialisers and returns.
    pub(crate) fn assigned(&mut self, n: NodeId, to: Type, what: &str) -> NodeId {
        let n = self.decay(n);
        let node = *self.tree.get(n);
        let from = node.ty;
        if from == ERROR || to == ERROR {
            return n;
        }
        let types = &self.types;
        let truth = types.kind(to) == TypeKind::Bool && types.is_pointer(from);
        let good = if truth || types.is_arithmetic(to) && types.is_arithmetic(from) {
            true
        } else if types.is_pointer(to) && types.is_pointer(from) {
            return self.assigned_pointer(n, to, what);
        } else if types.is_pointer(to) && types.is_integer(from) {
            node.expression == Expression::Integer(0)
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

    fn assigned_pointer(&mut self, n: NodeId, to: Type, what: &str) -> NodeId {
        let node = *self.tree.get(n);
        let (x, y) = (self.types.get(to).of, self.types.get(node.ty).of);
        let void = self.types.kind(x) == TypeKind::Void || self.types.kind(y) == TypeKind::Void;
        let sign_only = self.types.is_integer(x)
            && self.types.is_integer(y)
            && self.types.size(x) == self.types.size(y);
        let null = node.expression == Expression::Integer(0);
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
