//! Conditions of `#if`: constant expressions of 64 bits, in which names that are no macros are 0.

use alloc::vec::Vec;

use super::{Lexer, Literal};
use crate::diagnostics::Rule;
use crate::names::{self, Name};
use crate::token::{Token, TokenKind};

/// A number, and whether it is unsigned.
type Number = (i64, bool);

/// Reads the tokens of one condition.
struct Reader<'a> {
    tokens: &'a [Token],
    literals: &'a [Literal],
    at: usize,
    depth: u32,
    most: u32,
    /// Parts around this one that are read and not computed: a division by zero there is none.
    idle: u32,
}

impl Lexer<'_> {
    /// Whether the condition that the rest of the line is holds.
    pub(super) fn condition(&mut self, at: u32) -> bool {
        let mut tokens = Vec::new();
        while !self.report.full() {
            let token = self.token();
            match token.kind {
                TokenKind::End => break,
                TokenKind::Name if Name(token.value) == names::DEFINED => {
                    let next = self.token();
                    let parenthesis = next.kind == TokenKind::LParen;
                    let name = if parenthesis { self.token() } else { next };
                    if parenthesis {
                        self.token();
                    }
                    let known = name.kind == TokenKind::Name
                        && self.names.get(Name(name.value)).macro_ != 0;
                    let value = self.small(known.into(), token.at);
                    tokens.push(value);
                }
                TokenKind::Name if self.names.get(Name(token.value)).macro_ != 0 => {
                    self.expand(token, &mut tokens);
                }
                _ => tokens.push(token),
            }
        }
        let mut reader = Reader {
            tokens: &tokens,
            literals: &self.out.literals,
            at: 0,
            depth: 0,
            most: self.limits.nesting,
            idle: 0,
        };
        let value = reader.conditional().filter(|_| reader.at == tokens.len());
        if value.is_none() {
            let message = "this is no condition that is known before the program is compiled";
            let help = "write numbers, macros, `defined` and operators";
            self.error(Rule::Directive, at as usize, 1, message, help);
        }
        value.is_some_and(|(value, _)| value != 0)
    }
}

/// Precedence of a binary operator.
fn precedence(kind: TokenKind) -> Option<u8> {
    Some(match kind {
        TokenKind::Star | TokenKind::Slash | TokenKind::Percent => 10,
        TokenKind::Plus | TokenKind::Minus => 9,
        TokenKind::Shl | TokenKind::Shr => 8,
        TokenKind::Less | TokenKind::Greater | TokenKind::LessEqual | TokenKind::GreaterEqual => 7,
        TokenKind::Equal | TokenKind::NotEqual => 6,
        TokenKind::Amp => 5,
        TokenKind::Caret => 4,
        TokenKind::Pipe => 3,
        TokenKind::AndAnd => 2,
        TokenKind::OrOr => 1,
        _ => return None,
    })
}

impl Reader<'_> {
    fn peek(&self) -> TokenKind {
        self.tokens
            .get(self.at)
            .map_or(TokenKind::End, |token| token.kind)
    }

    fn accept(&mut self, kind: TokenKind) -> bool {
        let yes = self.peek() == kind;
        self.at += usize::from(yes);
        yes
    }

    fn conditional(&mut self) -> Option<Number> {
        self.depth += 1;
        if self.depth > self.most {
            return None;
        }
        let condition = self.binary(1)?;
        let value = if self.accept(TokenKind::Question) {
            let yes = self.part(condition.0 != 0, Self::conditional)?;
            if !self.accept(TokenKind::Colon) {
                return None;
            }
            let no = self.part(condition.0 == 0, Self::conditional)?;
            let chosen = if condition.0 != 0 { yes } else { no };
            (chosen.0, yes.1 || no.1)
        } else {
            condition
        };
        self.depth -= 1;
        Some(value)
    }

    fn binary(&mut self, lowest: u8) -> Option<Number> {
        let mut left = self.unary()?;
        while let Some(level) = precedence(self.peek()).filter(|level| *level >= lowest) {
            let kind = self.peek();
            self.at += 1;
            let counts = match kind {
                TokenKind::AndAnd => left.0 != 0,
                TokenKind::OrOr => left.0 == 0,
                _ => true,
            };
            let right = self.part(counts, |reader| reader.binary(level + 1))?;
            let value = operate(kind, left, right);
            left = match value {
                None if self.idle > 0 => (0, left.1 || right.1),
                value => value?,
            };
        }
        Some(left)
    }

    /// A part that is computed, or only read.
    fn part(
        &mut self,
        counts: bool,
        read: impl FnOnce(&mut Self) -> Option<Number>,
    ) -> Option<Number> {
        self.idle += u32::from(!counts);
        let value = read(self);
        self.idle -= u32::from(!counts);
        value
    }

    fn unary(&mut self) -> Option<Number> {
        let token = *self.tokens.get(self.at)?;
        self.at += 1;
        self.depth += 1;
        if self.depth > self.most {
            return None;
        }
        let value = match token.kind {
            TokenKind::Plus => self.unary()?,
            TokenKind::Minus => {
                let (value, unsigned) = self.unary()?;
                (value.wrapping_neg(), unsigned)
            }
            TokenKind::Tilde => {
                let (value, unsigned) = self.unary()?;
                (!value, unsigned)
            }
            TokenKind::Bang => (i64::from(self.unary()?.0 == 0), false),
            TokenKind::LParen => {
                let value = self.conditional()?;
                if !self.accept(TokenKind::RParen) {
                    return None;
                }
                value
            }
            TokenKind::Number => match self.literals.get(token.value as usize)? {
                Literal::Int {
                    value,
                    decimal,
                    unsigned,
                    ..
                } => (
                    *value as i64,
                    *unsigned || !decimal && *value > i64::MAX as u64,
                ),
                Literal::Float { .. } => return None,
            },
            TokenKind::Name | TokenKind::Painted => (0, false),
            _ => return None,
        };
        self.depth -= 1;
        Some(value)
    }
}

/// To the left; as gcc has it, by less than 0 to the right, and nothing is left of 64 bits.
fn shift((a, unsigned): Number, (by, by_unsigned): Number, left: bool) -> i64 {
    let back = by < 0 && !by_unsigned;
    let by = u32::try_from(if back { by.unsigned_abs() } else { by as u64 }).unwrap_or(u32::MAX);
    match (left != back, unsigned) {
        (true, _) => a.checked_shl(by).unwrap_or(0),
        (false, true) => (a as u64).checked_shr(by).unwrap_or(0) as i64,
        (false, false) => a >> by.min(63),
    }
}

/// `None` of a division by zero.
fn operate(kind: TokenKind, (a, x): Number, (b, y): Number) -> Option<Number> {
    let unsigned = x || y;
    let (ua, ub) = (a as u64, b as u64);
    let order = if unsigned { ua.cmp(&ub) } else { a.cmp(&b) };
    let truth = |value: bool| (i64::from(value), false);
    Some(match kind {
        TokenKind::Star => (a.wrapping_mul(b), unsigned),
        TokenKind::Slash if unsigned => (ua.checked_div(ub)? as i64, true),
        TokenKind::Slash | TokenKind::Percent if b == 0 => return None,
        TokenKind::Slash => (a.wrapping_div(b), false),
        TokenKind::Percent if unsigned => (ua.checked_rem(ub)? as i64, true),
        TokenKind::Percent => (a.wrapping_rem(b), false),
        TokenKind::Plus => (a.wrapping_add(b), unsigned),
        TokenKind::Minus => (a.wrapping_sub(b), unsigned),
        TokenKind::Shl => (shift((a, x), (b, y), true), x),
        TokenKind::Shr => (shift((a, x), (b, y), false), x),
        TokenKind::Less => truth(order.is_lt()),
        TokenKind::Greater => truth(order.is_gt()),
        TokenKind::LessEqual => truth(order.is_le()),
        TokenKind::GreaterEqual => truth(order.is_ge()),
        TokenKind::Equal => truth(a == b),
        TokenKind::NotEqual => truth(a != b),
        TokenKind::Amp => (a & b, unsigned),
        TokenKind::Caret => (a ^ b, unsigned),
        TokenKind::Pipe => (a | b, unsigned),
        TokenKind::AndAnd => truth(a != 0 && b != 0),
        TokenKind::OrOr => truth(a != 0 || b != 0),
        _ => return None,
    })
}
