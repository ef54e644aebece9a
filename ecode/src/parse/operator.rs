//! Types of binary operators: the usual arithmetic conversions, pointer arithmetic, comparisons.

use alloc::format;

use super::Parser;
use crate::diagnostics::Rule;
use crate::tree::{K, N};
use crate::types::*;

impl Parser<'_> {
    /// `left op right`, checked and converted.
    pub(crate) fn operator_node(&mut self, kind: K, left: N, right: N, at: u32) -> N {
        let (left, right) = (self.decay(left), self.decay(right));
        let (x, y) = (
            self.tree.get(left).ty.plain(),
            self.tree.get(right).ty.plain(),
        );
        if x == ERROR || y == ERROR {
            return self.error_node(at);
        }
        let types = &self.types;
        match kind {
            K::LogicalAnd | K::LogicalOr => return self.logical_node(kind, left, right, at),
            K::Shl | K::Shr if types.is_integer(x) && types.is_integer(y) => {
                let ty = types.promoted(x);
                let count = types.promoted(y);
                let (left, right) = (self.convert_node(left, ty), self.convert_node(right, count));
                return self.arithmetic(kind, ty, left, right, at);
            }
            K::Mod | K::And | K::Or | K::Xor if !types.is_integer(x) || !types.is_integer(y) => {}
            K::Shl | K::Shr => {}
            K::Less | K::Greater | K::LessEqual | K::GreaterEqual | K::Equal | K::NotEqual => {
                return self.comparison_node(kind, left, right, at);
            }
            _ if types.is_arithmetic(x) && types.is_arithmetic(y) => {
                let ty = types.usual(x, y);
                let (left, right) = (self.convert_node(left, ty), self.convert_node(right, ty));
                return self.arithmetic(kind, ty, left, right, at);
            }
            K::Add if types.is_pointer(x) && types.is_integer(y) => {
                return self.offset(K::PtrAdd, left, right, at);
            }
            K::Add if types.is_integer(x) && types.is_pointer(y) => {
                return self.offset(K::PtrAdd, right, left, at);
            }
            K::Sub if types.is_pointer(x) && types.is_integer(y) => {
                return self.offset(K::PtrSub, left, right, at);
            }
            K::Sub if types.is_pointer(x) && types.is_pointer(y) => {
                let (a, b) = (types.get(x).of.plain(), types.get(y).of.plain());
                if types.same(a, b)
                    && let Some(size) = self.element_size(x, at)
                {
                    return self.binary_node(K::PtrDiff, LONG, left, right, size.into(), at);
                }
            }
            _ => {}
        }
        self.bad_operands(x, y, at)
    }

    /// A pointer plus or minus an integer.
    pub(crate) fn offset(&mut self, kind: K, pointer: N, index: N, at: u32) -> N {
        let ty = self.tree.get(pointer).ty.plain();
        let Some(size) = self.element_size(ty, at) else {
            return self.error_node(at);
        };
        self.binary_node(kind, ty, pointer, index, size.into(), at)
    }

    /// The size of what a pointer points to.
    pub(crate) fn element_size(&mut self, ty: Type, at: u32) -> Option<u32> {
        let of = self.types.get(ty).of;
        if self.types.is_complete(of) {
            return Some(self.types.size(of));
        }
        if matches!(self.types.kind(of), Kind::Void | Kind::Function) {
            return Some(1); // as gcc does
        }
        let message = format!("the size of `{}` is not known here", self.spell(of.plain()));
        self.error(
            Rule::Incomplete,
            at,
            message,
            "define the structure before this",
        );
        None
    }

    fn logical_node(&mut self, kind: K, left: N, right: N, at: u32) -> N {
        let (left, right) = (self.condition_node(left), self.condition_node(right));
        let decides = |value: u64| (value != 0) == (kind == K::LogicalOr);
        match self.constant_of(left) {
            Some(value) if decides(value) => {
                return self.integer(INT, u64::from(kind == K::LogicalOr), at);
            }
            Some(_) => {
                if let Some(value) = self.constant_of(right) {
                    return self.integer(INT, u64::from(value != 0), at);
                }
            }
            None => {}
        }
        self.binary_node(kind, INT, left, right, 0, at)
    }

    fn comparison_node(&mut self, kind: K, left: N, right: N, at: u32) -> N {
        let (x, y) = (
            self.tree.get(left).ty.plain(),
            self.tree.get(right).ty.plain(),
        );
        let types = &self.types;
        if types.is_arithmetic(x) && types.is_arithmetic(y) {
            let ty = types.usual(x, y);
            let (left, right) = (self.convert_node(left, ty), self.convert_node(right, ty));
            return self.compare_nodes(kind, left, right, at);
        }
        if types.is_pointer(x) && types.is_pointer(y) {
            let (a, b) = (types.get(x).of.plain(), types.get(y).of.plain());
            let void = types.kind(a) == Kind::Void || types.kind(b) == Kind::Void;
            let null = [left, right]
                .iter()
                .any(|n| self.constant_of(*n) == Some(0));
            let sign_only =
                types.is_integer(a) && types.is_integer(b) && types.size(a) == types.size(b);
            if !void && !null && !sign_only && !types.same(a, b) {
                return self.bad_operands(x, y, at);
            }
            return self.compare_nodes(kind, left, right, at);
        }
        let (pointer, number) = if types.is_pointer(x) {
            (left, right)
        } else {
            (right, left)
        };
        let pointer_ty = self.tree.get(pointer).ty;
        if !types.is_pointer(pointer_ty) || self.constant_of(number) != Some(0) {
            return self.bad_operands(x, y, at);
        }
        let (left, right) = (
            self.convert_node(left, pointer_ty),
            self.convert_node(right, pointer_ty),
        );
        self.compare_nodes(kind, left, right, at)
    }
}
