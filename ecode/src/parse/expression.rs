//! Expressions by precedence: comma, assignment, conditional, binary operators.

use alloc::format;

use super::Parser;
use crate::diagnostics::Rule;
use crate::lex::Tok;
use crate::tree::{K, N};
use crate::types::*;

/// Precedence of a binary operator, and its node; 0 if it is none.
fn binary(tok: Tok) -> (u8, K) {
    match tok {
        Tok::Star => (10, K::Mul),
        Tok::Slash => (10, K::Div),
        Tok::Percent => (10, K::Mod),
        Tok::Plus => (9, K::Add),
        Tok::Minus => (9, K::Sub),
        Tok::Shl => (8, K::Shl),
        Tok::Shr => (8, K::Shr),
        Tok::Less => (7, K::Less),
        Tok::Greater => (7, K::Greater),
        Tok::LessEqual => (7, K::LessEqual),
        Tok::GreaterEqual => (7, K::GreaterEqual),
        Tok::Equal => (6, K::Equal),
        Tok::NotEqual => (6, K::NotEqual),
        Tok::Amp => (5, K::And),
        Tok::Caret => (4, K::Xor),
        Tok::Pipe => (3, K::Or),
        Tok::AndAnd => (2, K::LogicalAnd),
        Tok::OrOr => (1, K::LogicalOr),
        _ => (0, K::Error),
    }
}

/// The operator of a compound assignment.
fn compound(tok: Tok) -> Option<K> {
    Some(match tok {
        Tok::StarAssign => K::Mul,
        Tok::SlashAssign => K::Div,
        Tok::PercentAssign => K::Mod,
        Tok::PlusAssign => K::Add,
        Tok::MinusAssign => K::Sub,
        Tok::ShlAssign => K::Shl,
        Tok::ShrAssign => K::Shr,
        Tok::AmpAssign => K::And,
        Tok::CaretAssign => K::Xor,
        Tok::PipeAssign => K::Or,
        _ => return None,
    })
}

impl Parser<'_> {
    /// A full expression, commas included.
    pub(crate) fn expression(&mut self) -> N {
        let mut left = self.assignment_expression();
        while self.peek() == Tok::Comma && !self.panic {
            let at = self.advance().at;
            let right = self.assignment_expression();
            let right = self.decay(right);
            let ty = self.tree.get(right).ty.plain();
            left = self.binary_node(K::Comma, ty, left, right, 0, at);
            if self.too_deep(left, at) {
                break;
            }
        }
        left
    }

    pub(crate) fn assignment_expression(&mut self) -> N {
        if !self.nest() {
            self.nested -= 1;
            return self.error_node(self.at());
        }
        let n = self.assignment_inner();
        self.nested -= 1;
        n
    }

    fn assignment_inner(&mut self) -> N {
        let left = self.conditional_expression();
        let tok = self.peek();
        if tok < Tok::Assign || tok > Tok::PipeAssign {
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
                self.binary_node(K::Assign, ty, left, right, 0, at)
            }
            Some(kind) => self.compound_node(kind, left, right, at),
        }
    }

    fn compound_node(&mut self, kind: K, left: N, right: N, at: u32) -> N {
        let ty = self.tree.get(left).ty.plain();
        let right_ty = self.tree.get(right).ty;
        if ty == ERROR || right_ty == ERROR {
            return self.error_node(at);
        }
        if self.types.is_pointer(ty)
            && matches!(kind, K::Add | K::Sub)
            && self.types.is_integer(right_ty)
        {
            let Some(size) = self.element_size(ty, at) else {
                return self.error_node(at);
            };
            let op = if kind == K::Add { K::PtrAdd } else { K::PtrSub };
            return self.binary_node(
                K::Compound,
                ty,
                left,
                right,
                op as u64 | u64::from(size) << 8,
                at,
            );
        }
        let integers = matches!(kind, K::Mod | K::Shl | K::Shr | K::And | K::Or | K::Xor);
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
        let shift = matches!(kind, K::Shl | K::Shr);
        let compute = if shift {
            self.types.promoted(ty)
        } else {
            self.types.usual(ty, right_ty)
        };
        let wanted = if shift {
            self.types.promoted(right_ty)
        } else {
            compute
        };
        let right = self.convert_node(right, wanted);
        let n = self.binary_node(K::Compound, ty, left, right, kind as u64, at);
        self.tree.nodes[n as usize].c = compute.0;
        n
    }

    /// Whether something can be assigned to `n`; says so if not.
    pub(crate) fn assignable(&mut self, n: N, at: u32) -> bool {
        let node = *self.tree.get(n);
        if node.ty == ERROR || node.kind == K::Error {
            return node.kind != K::Error;
        }
        if !self.is_lvalue(n)
            || matches!(
                self.types.kind(node.ty),
                Kind::Array | Kind::Function | Kind::Void
            )
        {
            let help = if node.kind == K::Equal {
                "`==` compares; is `=` meant?"
            } else {
                ""
            };
            let message = match self.types.kind(node.ty) {
                Kind::Array => "an array cannot be assigned to".into(),
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

    pub(crate) fn is_lvalue(&self, n: N) -> bool {
        let node = self.tree.get(n);
        match node.kind {
            K::Register | K::Slot | K::Global | K::Deref | K::Text | K::Literal => true,
            K::Member => self.is_lvalue(node.a),
            _ => false,
        }
    }

    pub(crate) fn conditional_expression(&mut self) -> N {
        let condition = self.binary_expression(1);
        if self.peek() != Tok::Question {
            return condition;
        }
        let at = self.advance().at;
        let condition = self.condition_node(condition);
        if !self.nest() {
            self.nested -= 1;
            return self.error_node(at);
        }
        let yes = self.expression();
        self.expect(Tok::Colon, "`:` and the other value");
        let no = self.conditional_expression();
        self.nested -= 1;
        let (yes, no) = (self.decay(yes), self.decay(no));
        let Some((yes, no, ty)) = self.common(yes, no, at) else {
            return self.error_node(at);
        };
        if let Some(known) = self.constant_of(condition) {
            let chosen = if known != 0 { yes } else { no };
            let kind = self.tree.get(chosen).kind;
            if matches!(kind, K::Int | K::Float | K::Address) {
                return chosen;
            }
        }
        let n = self.binary_node(K::Cond, ty, condition, yes, 0, at);
        let other = *self.tree.get(no);
        let node = &mut self.tree.nodes[n as usize];
        node.c = no;
        node.effects |= other.effects;
        node.weight = node.weight.saturating_add(other.weight);
        node.depth = node.depth.max(other.depth.saturating_add(1));
        n
    }

    /// Both values of a conditional in their common type.
    fn common(&mut self, yes: N, no: N, at: u32) -> Option<(N, N, Type)> {
        let (x, y) = (self.tree.get(yes).ty.plain(), self.tree.get(no).ty.plain());
        if x == ERROR || y == ERROR {
            return None;
        }
        if self.types.is_arithmetic(x) && self.types.is_arithmetic(y) {
            let ty = self.types.usual(x, y);
            return Some((self.convert_node(yes, ty), self.convert_node(no, ty), ty));
        }
        let null =
            |n: N| self.constant_of(n) == Some(0) && !self.types.is_float(self.tree.get(n).ty);
        let ty = if self.types.is_pointer(x) && self.types.is_pointer(y) {
            let (a, b) = (self.types.get(x).of, self.types.get(y).of);
            if self.types.same(a, b) || null(no) {
                if b.is_const() { y } else { x }
            } else if null(yes)
                || self.types.kind(a) != Kind::Void && self.types.kind(b) == Kind::Void
            {
                y
            } else if self.types.kind(a) == Kind::Void {
                x
            } else {
                self.bad_operands(x, y, at);
                return None;
            }
        } else if self.types.is_pointer(x) && null(no) {
            x
        } else if self.types.is_pointer(y) && null(yes) {
            y
        } else if self.types.kind(x) == Kind::Void || self.types.kind(y) == Kind::Void {
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
    pub(crate) fn bad_operands(&mut self, x: Type, y: Type, at: u32) -> N {
        let message = format!(
            "`{}` and `{}` do not go together here",
            self.spell(x.plain()),
            self.spell(y.plain())
        );
        self.error(Rule::Operands, at, message, "");
        self.error_node(at)
    }

    /// Whether operators that follow each other have made a tree deeper than the compiler wants to descend.
    pub(crate) fn too_deep(&mut self, n: N, at: u32) -> bool {
        let deep = u32::from(self.tree.get(n).depth) > 2 * self.limits.nesting;
        if deep {
            self.limit(at, "operators in one expression");
        }
        deep
    }

    fn binary_expression(&mut self, lowest: u8) -> N {
        let mut left = self.cast_expression();
        loop {
            let (precedence, kind) = binary(self.peek());
            if precedence < lowest || precedence == 0 || self.panic {
                return left;
            }
            let at = self.advance().at;
            if !self.nest() {
                self.nested -= 1;
                return left;
            }
            let right = self.binary_expression(precedence + 1);
            self.nested -= 1;
            left = self.operator_node(kind, left, right, at);
            if self.too_deep(left, at) {
                return left;
            }
        }
    }
}
