//! Expressions by precedence: comma, assignment, conditional, binary operators.

use alloc::format;

use super::Parser;
use crate::diagnostics::Rule;
use crate::token::TokenKind;
use crate::tree::{Arithmetic, Comparison, Expression, NodeId};
use crate::types::*;

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Arithmetic(Arithmetic),
    Compare(Comparison),
    And,
    Or,
}

/// A binary operator and its precedence.
fn binary(tok: TokenKind) -> Option<(u8, Operator)> {
    use {Arithmetic as A, Comparison as C};
    Some(match tok {
        TokenKind::Star => (10, Operator::Arithmetic(A::Mul)),
        TokenKind::Slash => (10, Operator::Arithmetic(A::Div)),
        TokenKind::Percent => (10, Operator::Arithmetic(A::Rem)),
        TokenKind::Plus => (9, Operator::Arithmetic(A::Add)),
        TokenKind::Minus => (9, Operator::Arithmetic(A::Sub)),
        TokenKind::Shl => (8, Operator::Arithmetic(A::Shl)),
        TokenKind::Shr => (8, Operator::Arithmetic(A::Shr)),
        TokenKind::Less => (7, Operator::Compare(C::Less)),
        TokenKind::Greater => (7, Operator::Compare(C::Greater)),
        TokenKind::LessEqual => (7, Operator::Compare(C::LessEqual)),
        TokenKind::GreaterEqual => (7, Operator::Compare(C::GreaterEqual)),
        TokenKind::Equal => (6, Operator::Compare(C::Equal)),
        TokenKind::NotEqual => (6, Operator::Compare(C::NotEqual)),
        TokenKind::Amp => (5, Operator::Arithmetic(A::And)),
        TokenKind::Caret => (4, Operator::Arithmetic(A::Xor)),
        TokenKind::Pipe => (3, Operator::Arithmetic(A::Or)),
        TokenKind::AndAnd => (2, Operator::And),
        TokenKind::OrOr => (1, Operator::Or),
        _ => return None,
    })
}

/// The operator of a compound assignment.
fn compound(tok: TokenKind) -> Option<Arithmetic> {
    Some(match tok {
        TokenKind::StarAssign => Arithmetic::Mul,
        TokenKind::SlashAssign => Arithmetic::Div,
        TokenKind::PercentAssign => Arithmetic::Rem,
        TokenKind::PlusAssign => Arithmetic::Add,
        TokenKind::MinusAssign => Arithmetic::Sub,
        TokenKind::ShlAssign => Arithmetic::Shl,
        TokenKind::ShrAssign => Arithmetic::Shr,
        TokenKind::AmpAssign => Arithmetic::And,
        TokenKind::CaretAssign => Arithmetic::Xor,
        TokenKind::PipeAssign => Arithmetic::Or,
        _ => return None,
    })
}

impl Parser<'_> {
    /// A full expression, commas included.
    pub(crate) fn expression(&mut self) -> NodeId {
        let mut left = self.assignment_expression();
        while self.peek() == TokenKind::Comma && !self.panic {
            let at = self.advance().at;
            let right = self.assignment_expression();
            let right = self.decay(right);
            let ty = self.tree.get(right).ty.plain();
            left = self.binary(Expression::Comma(left, right), ty, (left, right), at);
            if self.too_deep(left, at) {
                break;
            }
        }
        left
    }

    pub(crate) fn assignment_expression(&mut self) -> NodeId {
        if !self.nest() {
            self.nested -= 1;
            return self.error_node(self.at());
        }
        let n = self.assignment_inner();
        self.nested -= 1;
        n
    }

    fn assignment_inner(&mut self) -> NodeId {
        let left = self.conditional_expression();
        let tok = self.peek();
        if tok < TokenKind::Assign || tok > TokenKind::PipeAssign {
            return left;
        }
        let at = self.advance().at;
        let right = self.assignment_expression();
        let right = self.decay(right);
        if !self.assignable(left, at) {
            return self.error_node(at);
        }
        let ty = self.tree.get(left).ty.plain();
        match compound(tok) {
            None => {
                let right = self.assigned(right, ty, "this assignment");
                let assign = Expression::Assign {
                    to: left,
                    value: right,
                };
                self.binary(assign, ty, (left, right), at)
            }
            Some(kind) => self.compound_node(kind, left, right, at),
        }
    }

    fn compound_node(&mut self, kind: Arithmetic, left: NodeId, right: NodeId, at: u32) -> NodeId {
        let ty = self.tree.get(left).ty.plain();
        let right_ty = self.tree.get(right).ty;
        if ty == ERROR || right_ty == ERROR {
            return self.error_node(at);
        }
        if self.types.is_pointer(ty)
            && matches!(kind, Arithmetic::Add | Arithmetic::Sub)
            && self.types.is_integer(right_ty)
        {
            let Some(size) = self.element_size(ty, at) else {
                return self.error_node(at);
            };
            let compound = Expression::CompoundPointer {
                to: left,
                index: right,
                size: if kind == Arithmetic::Add { size } else { -size },
            };
            return self.binary(compound, ty, (left, right), at);
        }
        let integers = kind.is_for_integers();
        let fits = |ty| {
            if integers {
                self.types.is_integer(ty)
            } else {
                self.types.is_arithmetic(ty)
            }
        };
        if !fits(ty) || !fits(right_ty) {
            return self.bad_operands(ty, right_ty, at);
        }
        let shift = matches!(kind, Arithmetic::Shl | Arithmetic::Shr);
        let old = match self.tree.get(left).expression {
            Expression::Member { bits, .. } => self.types.promoted_bits(ty, bits),
            _ => ty,
        };
        let compute = if shift {
            self.types.promoted(old)
        } else {
            self.types.usual(old, right_ty)
        };
        let wanted = if shift {
            self.types.promoted(right_ty)
        } else {
            compute
        };
        let right = self.convert_node(right, wanted);
        let compound = Expression::Compound {
            operator: kind,
            to: left,
            value: right,
            computed: compute,
        };
        self.binary(compound, ty, (left, right), at)
    }

    /// Whether something can be assigned to `n`; says so if not.
    pub(crate) fn assignable(&mut self, n: NodeId, at: u32) -> bool {
        let node = *self.tree.get(n);
        let error = node.expression == Expression::Error;
        if node.ty == ERROR || error {
            return !error;
        }
        if !self.is_lvalue(n)
            || matches!(
                self.types.kind(node.ty),
                TypeKind::Array | TypeKind::Function | TypeKind::Void
            )
        {
            let comparison = matches!(node.expression, Expression::Compare(Comparison::Equal, ..));
            let help = if comparison {
                "`==` compares; is `=` meant?"
            } else {
                ""
            };
            let message = match self.types.kind(node.ty) {
                TypeKind::Array => "an array cannot be assigned to".into(),
                _ => "this cannot be assigned to".into(),
            };
            self.error(
                Rule::NotLvalue,
                if help.is_empty() { node.at } else { at },
                message,
                help,
            );
            return false;
        }
        if node.ty.is_const() {
            let message = "this is const and cannot be changed".into();
            self.error(
                Rule::Constant,
                node.at,
                message,
                "remove const from its declaration, or use another object",
            );
            return false;
        }
        true
    }

    pub(crate) fn is_lvalue(&self, n: NodeId) -> bool {
        use Expression::*;
        match self.tree.get(n).expression {
            Register(_) | Memory(_) | Global(_) | Deref(_) | Text(_) | Literal { .. } => true,
            Member { of, .. } => self.is_lvalue(of),
            _ => false,
        }
    }

    pub(crate) fn conditional_expression(&mut self) -> NodeId {
        let condition = self.binary_expression(1);
        if self.peek() != TokenKind::Question {
            return condition;
        }
        let at = self.advance().at;
        let value = condition;
        let condition = self.condition_node(condition);
        if !self.nest() {
            self.nested -= 1;
            return self.error_node(at);
        }
        // `a ?: b` is `a ? a : b`.
        let yes = if self.peek() == TokenKind::Colon {
            if self.tree.get(value).effects {
                let message =
                    "E-code has `?:` without a value in between for what changes nothing".into();
                self.error(
                    Rule::Unsupported,
                    at,
                    message,
                    "keep the value in a variable",
                );
            }
            value
        } else {
            self.expression()
        };
        self.expect(TokenKind::Colon, "`:` and the other value");
        let no = self.conditional_expression();
        self.nested -= 1;
        let (yes, no) = (self.decay(yes), self.decay(no));
        let Some((yes, no, ty)) = self.common(yes, no, at) else {
            return self.error_node(at);
        };
        if let Some(known) = self.constant_of(condition) {
            let chosen = if known != 0 { yes } else { no };
            use Expression::{Address, Float, Integer};
            if let Integer(_) | Float(_) | Address(_) = self.tree.get(chosen).expression {
                return chosen;
            }
        }
        let conditional = Expression::Conditional { condition, yes, no };
        let n = self.binary(conditional, ty, (condition, yes), at);
        let other = *self.tree.get(no);
        let node = self.tree.get_mut(n);
        node.effects |= other.effects;
        node.weight = node.weight.saturating_add(other.weight);
        node.depth = node.depth.max(other.depth.saturating_add(1));
        n
    }

    /// Both values of a conditional in their common type.
    fn common(&mut self, yes: NodeId, no: NodeId, at: u32) -> Option<(NodeId, NodeId, Type)> {
        let (x, y) = (self.tree.get(yes).ty.plain(), self.tree.get(no).ty.plain());
        if x == ERROR || y == ERROR {
            return None;
        }
        if self.types.is_arithmetic(x) && self.types.is_arithmetic(y) {
            let ty = self.types.usual(x, y);
            return Some((self.convert_node(yes, ty), self.convert_node(no, ty), ty));
        }
        let null =
            |n: NodeId| self.constant_of(n) == Some(0) && !self.types.is_float(self.tree.get(n).ty);
        let ty = if self.types.is_pointer(x) && self.types.is_pointer(y) {
            let (a, b) = (self.types.get(x).of, self.types.get(y).of);
            if self.types.same(a, b) || null(no) {
                if b.is_const() { y } else { x }
            } else if null(yes)
                || self.types.kind(a) != TypeKind::Void && self.types.kind(b) == TypeKind::Void
            {
                y
            } else if self.types.kind(a) == TypeKind::Void {
                x
            } else {
                self.bad_operands(x, y, at);
                return None;
            }
        } else if self.types.is_pointer(x) && null(no) {
            x
        } else if self.types.is_pointer(y) && null(yes) {
            y
        } else if self.types.kind(x) == TypeKind::Void || self.types.kind(y) == TypeKind::Void {
            VOID
        } else if self.types.is_struct(x) && self.types.same(x, y) {
            x
        } else {
            self.bad_operands(x, y, at);
            return None;
        };
        if self.types.is_struct(ty) {
            return Some((yes, no, ty));
        }
        Some((self.convert_node(yes, ty), self.convert_node(no, ty), ty))
    }

    #[cold]
    pub(crate) fn bad_operands(&mut self, x: Type, y: Type, at: u32) -> NodeId {
        let message = format!(
            "`{}` and `{}` do not go together here",
            self.spell(x.plain()),
            self.spell(y.plain())
        );
        self.error(Rule::Operands, at, message, "");
        self.error_node(at)
    }

    /// Whether operators that follow each other have made a tree deeper than the compiler wants to
    /// descend.
    pub(crate) fn too_deep(&mut self, n: NodeId, at: u32) -> bool {
        let deep = u32::from(self.tree.get(n).depth) > 2 * self.limits.nesting;
        if deep {
            self.limit(at, "operators in one expression", "nesting");
        }
        deep
    }

    fn binary_expression(&mut self, lowest: u8) -> NodeId {
        let mut left = self.cast_expression();
        loop {
            let Some((precedence, operator)) = binary(self.peek()) else {
                return left;
            };
            if precedence < lowest || self.panic {
                return left;
            }
            let at = self.advance().at;
            if !self.nest() {
                self.nested -= 1;
                return left;
            }
            let right = self.binary_expression(precedence + 1);
            self.nested -= 1;
            left = self.operator_node(operator, left, right, at);
            if self.too_deep(left, at) {
                return left;
            }
        }
    }
}
