//! `switch`: the type of its value, and the values of its cases.

use alloc::format;

use super::{Parser, Switch};
use crate::diagnostics::Rule;
use crate::token::TokenKind;
use crate::tree::Statement;
use crate::types::*;

impl Parser<'_> {
    pub(crate) fn switch_statement(&mut self) {
        let at = self.advance().at;
        self.expect(TokenKind::LParen, "`(`");
        let n = self.expression();
        let n = self.decay(n);
        self.expect(TokenKind::RParen, "`)`");
        let ty = self.tree.get(n).ty.plain();
        if !self.types.is_integer(ty) && ty != ERROR {
            let message = format!("a switch wants an integer, not `{}`", self.spell(ty));
            self.error(Rule::Operands, at, message, "");
        }
        let ty = self.types.promoted(ty);
        let value = self.convert_node(n, ty);
        let first_case = self.cases.len();
        self.switches.push(Switch {
            ty,
            has_default: false,
        });
        let body = self.body_of(Parser::labelled);
        self.switches.pop();
        self.check_cases(first_case);
        self.tree.add(Statement::Switch { value, body }, at);
    }

    /// Forgets the cases of a switch; no two may have the same value.
    fn check_cases(&mut self, first: usize) {
        self.cases[first..].sort_unstable();
        for pair in first + 1..self.cases.len() {
            if self.cases[pair - 1] == self.cases[pair] {
                let message = format!("the case {} is there twice", self.cases[pair]);
                self.error(Rule::Misplaced, self.reached, message, "");
            }
        }
        self.cases.truncate(first);
    }

    pub(crate) fn case_label(&mut self) {
        let token = self.advance();
        let mut value = None;
        if token.kind == TokenKind::Case {
            value = self.constant_expression();
            if self.peek() == TokenKind::Ellipsis {
                self.advance();
                return self.case_range(value, token.at);
            }
        }
        self.expect(TokenKind::Colon, "`:`");
        let Some(switch) = self.switches.last().copied() else {
            self.error(
                Rule::Misplaced,
                token.at,
                "this stands in no switch".into(),
                "",
            );
            return;
        };
        match value {
            Some(value) => {
                let value = self.wrapped(switch.ty, value as u64) as i64;
                let value = if self.types.size(switch.ty) == 4 {
                    value as i32 as i64
                } else {
                    value
                };
                self.cases.push(value);
                self.tree.add(Statement::Case(value), token.at);
            }
            None if token.kind == TokenKind::Default => {
                if switch.has_default {
                    self.error(
                        Rule::Misplaced,
                        token.at,
                        "there are two defaults in this switch".into(),
                        "",
                    );
                }
                if let Some(switch) = self.switches.last_mut() {
                    switch.has_default = true;
                }
                self.tree.add(Statement::Default, token.at);
            }
            None => {}
        }
        self.labelled();
    }

    /// `case 1 ... 3:` as the cases that it stands for.
    fn case_range(&mut self, first: Option<i64>, at: u32) {
        let last = self.constant_expression();
        self.expect(TokenKind::Colon, "`:`");
        let (Some(first), Some(last), Some(switch)) = (first, last, self.switches.last().copied())
        else {
            self.error(Rule::Misplaced, at, "this stands in no switch".into(), "");
            return;
        };
        let unsigned = self.types.is_unsigned(switch.ty);
        let backward = if unsigned {
            (last as u64) < first as u64
        } else {
            last < first
        };
        if !backward && last.wrapping_sub(first) as u64 > 1024 {
            let message = "E-code has ranges of at most 1024 cases".into();
            self.error(Rule::Unsupported, at, message, "compare before the switch");
            return;
        }
        // An empty range stands for no case.
        let count = if backward {
            0
        } else {
            last.wrapping_sub(first) + 1
        };
        for value in (0..count).map(|k| first.wrapping_add(k)) {
            let value = self.wrapped(switch.ty, value as u64) as i64;
            let narrow = self.types.size(switch.ty) == 4;
            let value = if narrow { value as i32 as i64 } else { value };
            self.cases.push(value);
            self.tree.add(Statement::Case(value), at);
        }
        self.labelled();
    }
}
