//! Macros that exist before the source, and tokens that the source does not have.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Lexer, Literal, Text, TextKind};
use crate::names::{self, Name};
use crate::token::{Token, TokenKind};

impl Lexer<'_> {
    /// A small number as a token.
    pub(super) fn small(&mut self, value: u64, at: u32) -> Token {
        let literal = Literal::Int {
            value,
            decimal: true,
            unsigned: false,
            long: false,
            ty: None,
        };
        let value = self.made_literal(literal, value.to_string().as_bytes());
        Token {
            kind: TokenKind::Number,
            at,
            value,
            space: true,
        }
    }

    /// Macros that exist before the source.
    pub(super) fn predefined(&mut self, name: Name, at: u32, to: &mut Vec<Token>) {
        let value = match name.0 - names::PREDEFINED.0 {
            0 => self.line_of(at).into(),
            1 => {
                let file = self
                    .files
                    .iter()
                    .find(|file| (file.start..file.end).contains(&at));
                let text = file.map_or(String::new(), |file| file.name.clone());
                let text = self.made_text(text.as_bytes());
                let kind = TokenKind::Text;
                return to.push(Token {
                    kind,
                    at,
                    value: text,
                    space: true,
                });
            }
            3 => {
                let literal = Literal::Int {
                    value: 201_112,
                    decimal: true,
                    unsigned: false,
                    long: true,
                    ty: None,
                };
                let value = self.made_literal(literal, b"201112L");
                return to.push(Token {
                    kind: TokenKind::Number,
                    at,
                    value,
                    space: true,
                });
            }
            4 => 0,
            _ => 1,
        };
        let token = self.small(value, at);
        to.push(token);
    }

    /// A string that is not in the source.
    pub(super) fn made_text(&mut self, bytes: &[u8]) -> u32 {
        let first = self.out.bytes.len() as u32;
        self.out.bytes.extend_from_slice(bytes);
        self.out.texts.push(Text {
            first,
            last: self.out.bytes.len() as u32,
            kind: TextKind::Plain,
            spot: (0, 0),
        });
        self.out.texts.len() as u32 - 1
    }
}
