//! Casts, unary operators, postfix operators, and what expressions begin with.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Meaning, Parser};
use crate::diagnostics::Rule;
use crate::float;
use crate::lex::{Literal, TextKind};
use crate::names::Name;
use crate::token::TokenKind;
use crate::tree::{Expression, NodeId};
use crate::types::*;

impl Parser<'_> {
    /// Whether a type name begins `ahead` tokens from here.
    pub(crate) fn is_type_at(&self, ahead: usize) -> bool {
        match self.peek_at(ahead) {
            TokenKind::Void
            | TokenKind::Char
            | TokenKind::Short
            | TokenKind::Int
            | TokenKind::Long
            | TokenKind::Float
            | TokenKind::Double
            | TokenKind::Signed
            | TokenKind::Unsigned
            | TokenKind::Bool
            | TokenKind::Struct
            | TokenKind::Union
            | TokenKind::Enum
            | TokenKind::Const
            | TokenKind::Volatile
            | TokenKind::Attribute
            | TokenKind::Typeof
            | TokenKind::VaList
            | TokenKind::Alignas => true,
            TokenKind::Extension => self.is_type_at(ahead + 1),
            TokenKind::Name => {
                let name = Name(self.tokens.list[self.pos + ahead].value);
                self.lookup(name)
                    .is_some_and(|symbol| symbol.meaning == Meaning::Typedef)
            }
            _ => false,
        }
    }

    pub(crate) fn cast_expression(&mut self) -> NodeId {
        if self.peek() != TokenKind::LParen || !self.is_type_at(1) {
            return self.unary_expression();
        }
        let at = self.advance().at;
        let ty = self.type_name();
        self.expect(TokenKind::RParen, "`)`");
        if self.peek() == TokenKind::LBrace {
            let literal = self.compound_literal(ty, at);
            return self.postfix(literal);
        }
        if !self.nest() {
            self.nested -= 1;
            return self.error_node(at);
        }
        let n = self.cast_expression();
        self.nested -= 1;
        let n = self.decay(n);
        let from = self.tree.get(n).ty;
        if ty == ERROR || from == ERROR {
            return self.error_node(at);
        }
        let types = &self.types;
        let void = types.kind(ty) == TypeKind::Void;
        let pointer_and_float = types.is_pointer(ty) && types.is_float(from)
            || types.is_float(ty) && types.is_pointer(from);
        if !void && (!types.is_scalar(ty) || !types.is_scalar(from) || pointer_and_float) {
            let message = format!(
                "`{}` cannot be cast to `{}`",
                self.spell(from.plain()),
                self.spell(ty.plain())
            );
            self.error(Rule::Operands, at, message, "");
            return self.error_node(at);
        }
        if self.tree.get(n).ty.plain() == ty.plain() {
            // Not an lvalue any more.
            let at = self.tree.get(n).at;
            return if self.is_lvalue(n) {
                self.unary(Expression::Cast(n), ty.plain(), n, at)
            } else {
                n
            };
        }
        self.convert_node(n, ty)
    }

    fn unary_expression(&mut self) -> NodeId {
        let token = self.token();
        let at = token.at;
        match token.kind {
            TokenKind::PlusPlus | TokenKind::MinusMinus => {
                self.advance();
                let n = self.nested_unary();
                self.step(false, n, token.kind == TokenKind::PlusPlus, at)
            }
            TokenKind::Amp => {
                self.advance();
                let n = self.nested_cast();
                self.address_node(n, at)
            }
            TokenKind::Star => {
                self.advance();
                let n = self.nested_cast();
                self.deref_node(n, at)
            }
            TokenKind::Plus | TokenKind::Minus | TokenKind::Tilde => {
                self.advance();
                let n = self.nested_cast();
                self.sign(token.kind, n, at)
            }
            TokenKind::Bang => {
                self.advance();
                let n = self.nested_cast();
                let n = self.condition_node(n);
                match self.constant_of(n) {
                    Some(value) => self.integer(INT, u64::from(value == 0), at),
                    None => self.unary(Expression::Not(n), INT, n, at),
                }
            }
            TokenKind::AndAnd => {
                self.advance();
                self.label_address(at)
            }
            TokenKind::Extension => {
                self.advance();
                self.nested_cast()
            }
            TokenKind::Sizeof | TokenKind::Alignof => {
                self.size_of(token.kind == TokenKind::Alignof)
            }
            _ => {
                let n = self.primary();
                self.postfix(n)
            }
        }
    }

    fn nested_cast(&mut self) -> NodeId {
        let n = if self.nest() {
            self.cast_expression()
        } else {
            self.error_node(self.at())
        };
        self.nested -= 1;
        n
    }

    fn nested_unary(&mut self) -> NodeId {
        let n = if self.nest() {
            self.unary_expression()
        } else {
            self.error_node(self.at())
        };
        self.nested -= 1;
        n
    }

    fn sign(&mut self, kind: TokenKind, n: NodeId, at: u32) -> NodeId {
        let n = self.decay(n);
        let ty = self.tree.get(n).ty.plain();
        if ty == ERROR {
            return n;
        }
        let good = if kind == TokenKind::Tilde {
            self.types.is_integer(ty)
        } else {
            self.types.is_arithmetic(ty)
        };
        if !good {
            let message = format!("this operator wants a number, not `{}`", self.spell(ty));
            self.error(Rule::Operands, at, message, "");
            return self.error_node(at);
        }
        let ty = self.types.promoted(ty);
        let n = self.convert_node(n, ty);
        use Expression::{Cast, Float, Integer, Invert, Negate};
        match (kind, self.tree.get(n).expression) {
            // Not an lvalue, and promoted.
            (TokenKind::Plus, _) if self.is_lvalue(n) => self.unary(Cast(n), ty, n, at),
            (TokenKind::Plus, _) => n,
            (TokenKind::Minus, Integer(value)) => self.integer(ty, value.wrapping_neg(), at),
            (TokenKind::Minus, Float(bits)) => self.float(ty, float::negated(bits), at),
            (TokenKind::Minus, _) => self.unary(Negate(n), ty, n, at),
            (_, Integer(value)) => self.integer(ty, !value, at),
            _ => self.unary(Invert(n), ty, n, at),
        }
    }

    /// `++`, if `up`, and `--`.
    pub(super) fn step(&mut self, post: bool, n: NodeId, up: bool, at: u32) -> NodeId {
        if !self.assignable(n, at) {
            return self.error_node(at);
        }
        let ty = self.tree.get(n).ty.plain();
        let size = if self.types.is_pointer(ty) {
            self.element_size(ty, at).unwrap_or(1)
        } else {
            1
        };
        if !self.types.is_scalar(ty) {
            let message = format!("`{}` cannot be counted", self.spell(ty));
            self.error(Rule::Operands, at, message, "");
            return self.error_node(at);
        }
        let delta = if up { size } else { -size };
        self.unary(Expression::Step { to: n, delta, post }, ty, n, at)
    }

    pub(crate) fn address_node(&mut self, n: NodeId, at: u32) -> NodeId {
        let node = *self.tree.get(n);
        match node.expression {
            Expression::Error => return n,
            Expression::Deref(pointer) if self.types.kind(node.ty) != TypeKind::Function => {
                return pointer;
            }
            Expression::Register(_) => {
                let help = "write the operand of & in parentheses with it, as in (&x)";
                self.error(
                    Rule::NotLvalue,
                    at,
                    "the address of this variable cannot be taken here".into(),
                    help,
                );
                return self.error_node(at);
            }
            _ => {}
        }
        if node.ty == ERROR {
            return n;
        }
        if let Expression::Member { bits, .. } = node.expression
            && bits.any()
        {
            let message = "a bit-field has no size and no address".into();
            self.error(Rule::NotLvalue, at, message, "");
            return self.error_node(at);
        }
        if !self.is_lvalue(n) {
            self.error(
                Rule::NotLvalue,
                at,
                "only objects and functions have addresses".into(),
                "",
            );
            return self.error_node(at);
        }
        let ty = self.types.pointer(node.ty);
        self.unary(Expression::Address(n), ty, n, at)
    }

    pub(crate) fn deref_node(&mut self, n: NodeId, at: u32) -> NodeId {
        let n = self.decay(n);
        let node = *self.tree.get(n);
        if node.ty == ERROR {
            return n;
        }
        if !self.types.is_pointer(node.ty) {
            let message = format!(
                "only pointers can be dereferenced, this is `{}`",
                self.spell(node.ty.plain())
            );
            self.error(Rule::Operands, at, message, "");
            return self.error_node(at);
        }
        let of = self.types.get(node.ty).of;
        if self.types.kind(of) == TypeKind::Void {
            self.error(
                Rule::Operands,
                at,
                "a void pointer points to no value".into(),
                "cast it to the pointer that it is",
            );
            return self.error_node(at);
        }
        // `*&x` is x.
        if let Expression::Address(object) = node.expression
            && self.tree.get(object).ty.plain() == of.plain()
        {
            return object;
        }
        if !self.types.is_complete(of)
            && self.types.is_struct(of)
            && self.peek() != TokenKind::RParen
        {
            let message = format!(
                "the members of `{}` are not known here",
                self.spell(of.plain())
            );
            self.error(
                Rule::Incomplete,
                at,
                message,
                "define the structure before this",
            );
            return self.error_node(at);
        }
        self.unary(Expression::Deref(n), of, n, at)
    }

    fn size_of(&mut self, align: bool) -> NodeId {
        let at = self.advance().at;
        let mut bits = Bits::NONE;
        let ty = if self.peek() == TokenKind::LParen && self.is_type_at(1) {
            self.advance();
            let (ty, least) = self.aligned_type_name();
            self.expect(TokenKind::RParen, "`)`");
            if align && least > 0 && ty != ERROR {
                return self.integer(ULONG, least.into(), at);
            }
            if self.peek() == TokenKind::LBrace {
                let literal = self.compound_literal(ty, at);
                let n = self.postfix(literal);
                self.tree.get(n).ty
            } else {
                ty
            }
        } else {
            self.unevaluated += 1;
            let n = self.nested_unary();
            self.unevaluated -= 1;
            let node = *self.tree.get(n);
            if let Expression::Deref(pointer) = node.expression
                && let Some(size) = self.variable_size(pointer)
                && !align
            {
                return self.leaf(Expression::Register(size), ULONG, at);
            }
            if let Expression::Member { bits: of, .. } = node.expression {
                bits = of;
            }
            if align && let Some(least) = self.least_alignment(n) {
                return self.integer(ULONG, least.into(), at);
            }
            node.ty
        };
        if bits.any() {
            let message = "a bit-field has no size and no address".into();
            self.error(Rule::Operands, at, message, "");
            return self.error_node(at);
        }
        if ty == ERROR {
            return self.error_node(at);
        }
        let info = *self.types.get(ty);
        if !self.types.is_complete(ty) && !matches!(info.kind, TypeKind::Void | TypeKind::Function)
        {
            let message = format!("the size of `{}` is not known here", self.spell(ty.plain()));
            self.error(Rule::Incomplete, at, message, "");
            return self.error_node(at);
        }
        let size = if info.kind == TypeKind::Function {
            1
        } else {
            info.size
        };
        self.integer(ULONG, u64::from(if align { info.align } else { size }), at)
    }

    fn primary(&mut self) -> NodeId {
        let token = self.token();
        let at = token.at;
        match token.kind {
            TokenKind::Name => {
                self.advance();
                self.name_node(Name(token.value), at)
            }
            TokenKind::Number => {
                self.advance();
                match self.tokens.literals[token.value as usize] {
                    Literal::Float { bits, single } => {
                        self.float(if single { FLOAT } else { DOUBLE }, bits, at)
                    }
                    Literal::Int {
                        value,
                        ty: Some(ty),
                        ..
                    } => self.integer(ty, value, at),
                    Literal::Int {
                        value,
                        decimal,
                        unsigned,
                        long,
                        ..
                    } => {
                        let ty = literal_type(value, decimal, unsigned, long);
                        self.integer(ty, value, at)
                    }
                }
            }
            TokenKind::Text => self.text_node(),
            TokenKind::LParen => {
                self.advance();
                let n = if !self.nest() {
                    self.error_node(at)
                } else if self.peek() == TokenKind::LBrace {
                    self.statement_expression(at)
                } else {
                    self.expression()
                };
                self.nested -= 1;
                self.expect(TokenKind::RParen, "`)`");
                n
            }
            TokenKind::Unsupported => {
                let message = format!("E-code does not have {}", self.found());
                self.fail(
                    Rule::Unsupported,
                    at,
                    self.length(token),
                    message,
                    String::new(),
                );
                self.error_node(at)
            }
            _ => {
                if !self.panic {
                    let message = format!("expected an expression, found {}", self.found());
                    self.fail(
                        Rule::Expected,
                        at,
                        self.length(token).max(1),
                        message,
                        String::new(),
                    );
                }
                self.error_node(at)
            }
        }
    }

    fn name_node(&mut self, name: Name, at: u32) -> NodeId {
        let Some(symbol) = self.lookup(name) else {
            if let Some(n) = self.builtin_name(name, at) {
                return n;
            }
            let call = self.peek() == TokenKind::LParen;
            self.unknown_name(name, at, call);
            return self.error_node(at);
        };
        let Symbol { meaning, ty, .. } = *symbol;
        match meaning {
            Meaning::Constant(_) if ty == ERROR => self.error_node(at),
            Meaning::Constant(value) => self.integer(ty, value as u64, at),
            Meaning::Register(local) => self.leaf(Expression::Register(local), ty, at),
            Meaning::Memory(local) => self.leaf(Expression::Memory(local), ty, at),
            Meaning::Global(global) => {
                if self.unevaluated == 0 {
                    self.unit.globals[global as usize].used = true;
                }
                self.leaf(Expression::Global(global), ty, at)
            }
            Meaning::Indirect(local) => {
                let pointer = self.types.pointer(ty);
                let n = self.leaf(Expression::Register(local), pointer, at);
                self.unary(Expression::Deref(n), ty, n, at)
            }
            Meaning::Variable(pointer) => {
                let to = self.types.pointer(ty);
                let n = self.leaf(Expression::Register(pointer), to, at);
                self.unary(Expression::Deref(n), ty, n, at)
            }
            Meaning::Typedef => {
                let message = format!(
                    "expected an expression, `{}` is a type",
                    self.spelling(name)
                );
                self.fail(Rule::Expected, at, 1, message, String::new());
                self.error_node(at)
            }
        }
    }

    /// Strings beside each other are one, which is wide if one of them is.
    fn text_node(&mut self) -> NodeId {
        let at = self.at();
        let (first, mut kind) = (self.pos, TextKind::Plain);
        let mut length = 0usize;
        while self.peek() == TokenKind::Text {
            let token = self.advance();
            let text = self.tokens.texts[token.value as usize];
            length = length.saturating_add((text.last - text.first) as usize);
            if kind != TextKind::Plain && text.kind != TextKind::Plain && kind != text.kind {
                let message = "these strings have different types".into();
                self.error(Rule::Operands, at, message, "");
            }
            if text.kind != TextKind::Plain {
                kind = text.kind;
            }
        }
        // Before they are copied: macros repeat a long string for the price of a token.
        if length > self.limits.data as usize {
            self.limit(at, "bytes of constants", "data");
            return self.error_node(at);
        }
        let mut bytes = Vec::new();
        for index in first..self.pos {
            let text = self.tokens.texts[self.tokens.list[index].value as usize];
            let part = &self.tokens.bytes[text.first as usize..text.last as usize];
            if text.kind == kind {
                bytes.extend_from_slice(part);
                continue;
            }
            for character in String::from_utf8_lossy(part).chars() {
                match kind {
                    TextKind::Char16 => {
                        for unit in character.encode_utf16(&mut [0; 2]) {
                            bytes.extend_from_slice(&unit.to_le_bytes());
                        }
                    }
                    _ => bytes.extend_from_slice(&(character as u32).to_le_bytes()),
                }
            }
        }
        let unit = usize::from(kind.unit());
        bytes.resize(bytes.len() + unit, 0);
        self.bytes_node(&bytes, kind.element(), at)
    }

    /// A constant array of these bytes.
    pub(crate) fn bytes_node(&mut self, bytes: &[u8], element: Type, at: u32) -> NodeId {
        if self.unit.rodata.len() + bytes.len() > self.limits.data as usize {
            self.limit(at, "bytes of constants", "data");
            return self.error_node(at);
        }
        let unit = self.types.size(element);
        let offset = self.unit.text_constant(bytes, unit);
        let ty = self.types.array(element, bytes.len() as u32 / unit);
        self.leaf(Expression::Text(offset), ty.unwrap_or(ERROR), at)
    }
}

use super::Symbol;

/// The first type in C's list that holds the number.
fn literal_type(value: u64, decimal: bool, unsigned: bool, long: bool) -> Type {
    let fits_int = value <= i32::MAX as u64 && !long;
    let fits_uint = value <= u32::MAX.into() && !long;
    let fits_long = value <= i64::MAX as u64;
    match (unsigned, decimal) {
        (false, _) if fits_int => INT,
        (false, false) if fits_uint => UINT,
        (false, _) if fits_long => LONG,
        (true, _) if fits_uint => UINT,
        _ => ULONG,
    }
}
