//! Comparisons and arithmetic.

use super::{Inherited, Parser};
use crate::error::Error;
use crate::expression::{Op, Rel};
use crate::keyword::{Keyword, Proto};
use crate::token::Token;
use crate::tree::{Arith, Leaf, Sum};

impl Parser<'_> {
    pub(super) fn relation(&mut self, from: usize) -> Result<Inherited, Error> {
        let mut a = Sum::new();
        self.sum(&mut a, 0)?;
        let (rel, not) = match self.peek() {
            Token::Sign("=") => (Rel::Eq, false),
            Token::Sign("!=") => (Rel::Eq, true),
            Token::Sign(">") => (Rel::Gt, false),
            Token::Sign("<=") => (Rel::Gt, true),
            Token::Sign(">=") => (Rel::Ge, false),
            Token::Sign("<") => (Rel::Ge, true),
            _ => return Err(self.unexpected("a comparison")),
        };
        self.at += 1;
        let mut b = Sum::new();
        self.sum(&mut b, 0)?;
        self.leaf(Leaf::Relation { a, rel, not, b }, from);
        Ok(None)
    }

    /// Arithmetic whose operators bind more closely than `least`.
    fn sum(&mut self, out: &mut Sum, least: u8) -> Result<(), Error> {
        match self.peek().clone() {
            Token::Sign("-") => {
                self.at += 1;
                self.deeper(|p| p.sum(out, 6))?;
                out.push(Arith::Neg);
            }
            Token::Sign("(") => {
                self.at += 1;
                self.deeper(|p| p.sum(out, 0))?;
                if !self.sign(")") {
                    return Err(self.unexpected("an operator or `)`"));
                }
            }
            Token::Number(value) => {
                self.at += 1;
                out.push(Arith::Number(value));
                if !self.in_index && self.sign(":") {
                    out.push(Arith::Packet(self.size()?));
                }
            }
            Token::Keyword(Keyword::Len) => {
                self.at += 1;
                out.push(Arith::Len);
            }
            Token::Keyword(Keyword::Proto(proto)) => {
                self.at += 1;
                self.index(out, proto)?;
            }
            _ => return Err(self.unexpected("a number, `len` or a field such as `ip[9]`")),
        }
        loop {
            let (op, level) = match self.peek() {
                Token::Sign("%") => (Op::Mod, None),
                Token::Sign("^") => (Op::Xor, None),
                Token::Sign("|") => (Op::Or, Some(1)),
                Token::Sign("&") => (Op::And, Some(2)),
                Token::Sign("<<") => (Op::Shl, Some(3)),
                Token::Sign(">>") => (Op::Shr, Some(3)),
                Token::Sign("+") => (Op::Add, Some(4)),
                Token::Sign("-") => (Op::Sub, Some(4)),
                Token::Sign("*") => (Op::Mul, Some(5)),
                Token::Sign("/") => (Op::Div, Some(5)),
                _ => return Ok(()),
            };
            if level.is_some_and(|level| level <= least) {
                return Ok(());
            }
            self.at += 1;
            self.deeper(|p| p.sum(out, level.unwrap_or(0)))?;
            out.push(Arith::Bin(op));
        }
    }

    fn size(&mut self) -> Result<u32, Error> {
        let at = self.here();
        let size = self.plain_number("the size, 1, 2 or 4")?;
        if ![1, 2, 4].contains(&size) {
            return Err(Error::new(at, "a field has 1, 2 or 4 bytes"));
        }
        Ok(size)
    }

    fn index(&mut self, out: &mut Sum, proto: Proto) -> Result<(), Error> {
        if !self.sign("[") {
            return Err(self.unexpected("`[`"));
        }
        let outer = core::mem::replace(&mut self.in_index, true);
        self.deeper(|p| p.sum(out, 0))?;
        self.in_index = outer;
        let size = if self.sign(":") { self.size()? } else { 1 };
        if !self.sign("]") {
            return Err(self.unexpected("an operator, `:` or `]`"));
        }
        out.push(Arith::Load(proto, size));
        Ok(())
    }
}
