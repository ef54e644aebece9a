//! Types of binary operators: the usual arithmetic conversions, pointer arithmetic, comparisons.

use alloc::format;

use super::Parser;
use super::expression::Operator;
use crate::diagnostics::Rule;
use crate::tree::{Arithmetic, Comparison, Expression, NodeId};
use crate::types::*;

impl Parser<'_> {
    /// `left op right`, checked and converted.
    pub(crate) fn operator_node(
        &mut self,
        operator: Operator,
        left: NodeId,
        right: NodeId,
        at: u32,
    ) -> NodeId {
        let (left, right) = (self.decay(left), self.decay(right));
        let (x, y) = (
            self.tree.get(left).ty.plain(),
            self.tree.get(right).ty.plain(),
        );
        if x == ERROR || y == ERROR {
            return self.error_node(at);
        }
        match operator {
            Operator::Arithmetic(kind) => self.arithmetic_node(kind, (left, right), (x, y), at),
            Operator::Compare(kind) => self.comparison_node(kind, left, right, at),
            Operator::And | Operator::Or => {
                self.logical_node(operator == Operator::Or, left, right, at)
            }
        }
    }

    fn arithmetic_node(
        &mut self,
        kind: Arithmetic,
        (left, right): (NodeId, NodeId),
        (x, y): (Type, Type),
        at: u32,
    ) -> NodeId {
        let types = &self.types;
        match kind {
            Arithmetic::Shl | Arithmetic::Shr if types.is_integer(x) && types.is_integer(y) => {
                let ty = types.promoted(x);
                let count = types.promoted(y);
                let operands = (self.convert_node(left, ty), self.convert_node(right, count));
                return self.arithmetic(kind, ty, operands, at);
            }
            Arithmetic::Shl | Arithmetic::Shr => {}
            _ if kind.is_for_integers() && !(types.is_integer(x) && types.is_integer(y)) => {}
            _ if types.is_arithmetic(x) && types.is_arithmetic(y) => {
                let ty = types.usual(x, y);
                let operands = (self.convert_node(left, ty), self.convert_node(right, ty));
                return self.arithmetic(kind, ty, operands, at);
            }
            Arithmetic::Add if types.is_pointer(x) && types.is_integer(y) => {
                return self.offset(left, right, false, at);
            }
            Arithmetic::Add if types.is_integer(x) && types.is_pointer(y) => {
                return self.offset(right, left, false, at);
            }
            Arithmetic::Sub if types.is_pointer(x) && types.is_integer(y) => {
                return self.offset(left, right, true, at);
            }
            Arithmetic::Sub if types.is_pointer(x) && types.is_pointer(y) => {
                let (a, b) = (types.get(x).of.plain(), types.get(y).of.plain());
                if types.same(a, b)
                    && let Some(size) = self.element_size(x, at)
                {
                    let size = size as u32;
                    let difference = Expression::PointerDifference { left, right, size };
                    return self.binary(difference, LONG, (left, right), at);
                }
            }
            _ => {}
        }
        self.bad_operands(x, y, at)
    }

    /// A pointer plus, or minus, an integer.
    pub(crate) fn offset(
        &mut self,
        pointer: NodeId,
        index: NodeId,
        minus: bool,
        at: u32,
    ) -> NodeId {
        let ty = self.tree.get(pointer).ty.plain();
        let Some(size) = self.element_size(ty, at) else {
            return self.error_node(at);
        };
        let sum = Expression::PointerAdd {
            pointer,
            index,
            size: if minus { -size } else { size },
        };
        self.binary(sum, ty, (pointer, index), at)
    }

    /// The size of what a pointer points to.
    pub(crate) fn element_size(&mut self, ty: Type, at: u32) -> Option<i32> {
        let of = self.types.get(ty).of;
        if self.types.is_complete(of) {
            return Some(self.types.size(of) as i32); // less than 2^30
        }
        if matches!(self.types.kind(of), TypeKind::Void | TypeKind::Function) {
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

    /// `||` if `or`, else `&&`.
    fn logical_node(&mut self, or: bool, left: NodeId, right: NodeId, at: u32) -> NodeId {
        let (left, right) = (self.condition_node(left), self.condition_node(right));
        let decides = |value: u64| (value != 0) == or;
        match self.constant_of(left) {
            Some(value) if decides(value) => {
                return self.integer(INT, u64::from(or), at);
            }
            Some(_) => {
                if let Some(value) = self.constant_of(right) {
                    return self.integer(INT, u64::from(value != 0), at);
                }
            }
            None => {}
        }
        let logical = if or {
            Expression::LogicalOr(left, right)
        } else {
            Expression::LogicalAnd(left, right)
        };
        self.binary(logical, INT, (left, right), at)
    }

    fn comparison_node(
        &mut self,
        kind: Comparison,
        left: NodeId,
        right: NodeId,
        at: u32,
    ) -> NodeId {
        let (x, y) = (
            self.tree.get(left).ty.plain(),
            self.tree.get(right).ty.plain(),
        );
        let types = &self.types;
        if types.is_arithmetic(x) && types.is_arithmetic(y) {
            let ty = types.usual(x, y);
            let (left, right) = (self.convert_node(left, ty), self.convert_node(right, ty));
            return self.compare(kind, (left, right), at);
        }
        if types.is_pointer(x) && types.is_pointer(y) {
            let (a, b) = (types.get(x).of.plain(), types.get(y).of.plain());
            let void = types.kind(a) == TypeKind::Void || types.kind(b) == TypeKind::Void;
            let null = [left, right]
                .iter()
                .any(|n| self.constant_of(*n) == Some(0));
            let sign_only =
                types.is_integer(a) && types.is_integer(b) && types.size(a) == types.size(b);
            if !void && !null && !sign_only && !types.same(a, b) {
                return self.bad_operands(x, y, at);
            }
            return self.compare(kind, (left, right), at);
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
        self.compare(kind, (left, right), at)
    }
}
