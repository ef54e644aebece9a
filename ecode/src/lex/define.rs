//! What `#define` says.

use alloc::vec::Vec;

use super::Lexer;
use super::macros::Macro;
use crate::diagnostics::Rule;
use crate::names::{self, Name};
use crate::token::TokenKind;

/// Most parameters of a macro.
const PARAMETERS: usize = 64;

impl Lexer<'_> {
    /// What `#define` says.
    pub(super) fn define(&mut self) {
        let Some(name) = self.macro_name() else {
            return;
        };
        let start = self.out.macros.tokens.len() as u32;
        let mut parameters: Vec<Name> = Vec::new();
        let (called, mut variadic) = (self.peek(0) == b'(', false);
        if called {
            match self.parameters() {
                Some((names, open)) => (parameters, variadic) = (names, open),
                None => return,
            }
        }
        let mut operators = false;
        loop {
            let mut token = self.token();
            match token.kind {
                TokenKind::End => break,
                TokenKind::Bad => continue,
                TokenKind::Hash | TokenKind::Paste => {
                    operators |= called || token.kind == TokenKind::Paste
                }
                TokenKind::Name => {
                    let name = Name(token.value);
                    if let Some(index) = parameters.iter().position(|other| *other == name) {
                        (token.kind, token.value) = (TokenKind::Parameter, index as u32);
                    }
                }
                _ => {}
            }
            self.out.macros.tokens.push(token);
        }
        let macros = &mut self.out.macros;
        macros.list.push(Macro {
            start,
            end: macros.tokens.len() as u32,
            parameters: called.then_some(parameters.len() as u8),
            variadic,
            operators,
        });
        self.names.get_mut(name).macro_ = macros.list.len() as u32;
    }

    /// The parameters of a macro, and whether the last one takes all that is left.
    fn parameters(&mut self) -> Option<(Vec<Name>, bool)> {
        let open = self.token().at;
        let (mut list, mut variadic) = (Vec::new(), false);
        loop {
            let token = self.token();
            match token.kind {
                TokenKind::Name if !variadic && list.len() < PARAMETERS => {
                    list.push(Name(token.value))
                }
                TokenKind::Ellipsis if !variadic && list.len() < PARAMETERS => {
                    list.push(names::VA_ARGS);
                    variadic = true;
                }
                TokenKind::RParen if list.is_empty() => return Some((list, false)),
                _ => break,
            }
            match self.token().kind {
                TokenKind::Comma => {}
                TokenKind::RParen => return Some((list, variadic)),
                // `name...`
                TokenKind::Ellipsis if !variadic && self.token().kind == TokenKind::RParen => {
                    return Some((list, true));
                }
                _ => break,
            }
        }
        let help = "they look like (a, b) or (a, ...)";
        let message = "these are no parameters of a macro";
        self.error(Rule::Directive, open as usize, 1, message, help);
        None
    }
}
