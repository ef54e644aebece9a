//! `asm` without instructions: a barrier for compilers that move code, which this one does not
//! need, and another name for a function.

use super::Parser;
use crate::diagnostics::Rule;
use crate::names::Name;
use crate::token::TokenKind;
use crate::tree::{Expression, NodeId, Statement};
use alloc::vec::Vec;

impl Parser<'_> {
    /// `asm("" : outputs : inputs : changes);`, where an output may be in the place of an input.
    pub(crate) fn asm_statement(&mut self) {
        let at = self.advance().at;
        while matches!(self.peek(), TokenKind::Volatile | TokenKind::Inline) {
            self.advance();
        }
        self.expect(TokenKind::LParen, "`(`");
        if !self.empty_text() {
            let message = "E-code has no instructions in `asm`".into();
            self.fail(Rule::Unsupported, at, 3, message, "write it in C".into());
            return;
        }
        let mut outputs: Vec<NodeId> = Vec::new();
        for part in 0..3 {
            if !self.accept(TokenKind::Colon) {
                break;
            }
            while !matches!(
                self.peek(),
                TokenKind::Colon | TokenKind::RParen | TokenKind::End
            ) && !self.panic
            {
                self.operand(part, &mut outputs, at);
                if !self.accept(TokenKind::Comma) {
                    break;
                }
            }
        }
        self.expect(TokenKind::RParen, "`)`");
        self.expect(TokenKind::Semi, "`;`");
    }

    /// Whether the template that is read here is empty.
    fn empty_text(&mut self) -> bool {
        let mut empty = self.peek() == TokenKind::Text;
        while self.peek() == TokenKind::Text {
            let text = self.tokens.texts[self.token().value as usize];
            empty &= text.first == text.last;
            self.advance();
        }
        empty
    }

    fn operand(&mut self, part: u32, outputs: &mut Vec<NodeId>, at: u32) {
        if self.accept(TokenKind::LBracket) {
            self.expect(TokenKind::Name, "a name");
            self.expect(TokenKind::RBracket, "`]`");
        }
        let constraint = self.token();
        if !self.expect(TokenKind::Text, "a string") || part == 2 {
            return;
        }
        let text = self.tokens.texts[constraint.value as usize];
        // Only that is looked at: a macro may repeat a long string for the price of a token.
        let matched = self.tokens.bytes[text.first as usize..text.last as usize].first();
        let digit = matched.and_then(|byte| (*byte as char).to_digit(10));
        self.expect(TokenKind::LParen, "`(`");
        let n = self.expression();
        self.expect(TokenKind::RParen, "`)`");
        if part == 0 {
            if self.assignable(n, at) {
                outputs.push(n);
            }
            return;
        }
        let output = digit.and_then(|digit| outputs.get(digit as usize)).copied();
        let statement = match output {
            Some(to) => {
                let ty = self.tree.get(to).ty.plain();
                let value = self.assigned(n, ty, "this operand");
                self.binary(Expression::Assign { to, value }, ty, (to, value), at)
            }
            None => n,
        };
        self.tree.add(Statement::Expression(statement), at);
    }

    /// `asm("name")` behind a declarator.
    pub(crate) fn asm_name(&mut self) -> Option<Name> {
        let at = self.advance().at;
        self.expect(TokenKind::LParen, "`(`");
        let mut bytes = Vec::new();
        while self.peek() == TokenKind::Text {
            let token = self.advance();
            let text = self.tokens.texts[token.value as usize];
            if bytes.len() + (text.last - text.first) as usize > self.limits.data as usize {
                self.limit(at, "bytes of constants", "data");
                return None;
            }
            bytes.extend_from_slice(&self.tokens.bytes[text.first as usize..text.last as usize]);
        }
        self.expect(TokenKind::RParen, "`)`");
        if bytes.is_empty()
            || !bytes.iter().all(|byte| crate::names::is_name(*byte))
            || self.depth > 1
        {
            let message = "E-code has no registers by name".into();
            self.fail(Rule::Unsupported, at, 3, message, "remove it".into());
            return None;
        }
        Some(self.names.make(self.source, &bytes))
    }
}
