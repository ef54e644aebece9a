//! Statements: what is said in parentheses is checked, the rest is a matter of the lowering.

use alloc::format;
use alloc::vec::Vec;

use super::attribute::Attributes;
use super::{Label, Parser};
use crate::diagnostics::Rule;
use crate::names::Name;
use crate::token::TokenKind;
use crate::tree::{Body, LabelId, NodeId, Statement};
use crate::types::*;

impl Parser<'_> {
    /// `{ … }`
    pub(crate) fn block(&mut self) {
        self.expect(TokenKind::LBrace, "`{`");
        let opened = self.pos.saturating_sub(1);
        if !self.nest() {
            self.nested -= 1;
            return;
        }
        let hidden = self.local_labels();
        while !matches!(self.peek(), TokenKind::RBrace | TokenKind::End) && !self.report.full() {
            let before = self.pos;
            if self.is_declaration() {
                self.local_declaration();
            } else {
                self.statement();
            }
            if self.panic {
                self.synchronize(before);
            }
        }
        if self.peek() == TokenKind::End && !self.report.full() {
            let at = self.tokens.list[opened].at;
            self.fail(
                Rule::Expected,
                at,
                1,
                "this `{` is not closed".into(),
                "write `}` at the end of the block".into(),
            );
        }
        self.accept(TokenKind::RBrace);
        for (name, label) in hidden.into_iter().rev() {
            self.names.get_mut(name).label = label;
        }
        self.nested -= 1;
    }

    /// `__label__ a, b;` at the beginning of a block: labels that only this block has. Returns what
    /// their names mean around it.
    fn local_labels(&mut self) -> Vec<(Name, u32)> {
        let mut hidden = Vec::new();
        while self.accept(TokenKind::LocalLabel) {
            loop {
                let token = self.token();
                if !self.expect(TokenKind::Name, "a label") {
                    break;
                }
                let name = Name(token.value);
                let around = core::mem::take(&mut self.names.get_mut(name).label);
                hidden.push((name, around));
                self.label(name, token.at);
                if !self.accept(TokenKind::Comma) {
                    break;
                }
            }
            self.expect(TokenKind::Semi, "`;`");
        }
        hidden
    }

    pub(crate) fn statement(&mut self) {
        if !self.nest() {
            self.nested -= 1;
            return;
        }
        self.reached = self.at();
        self.statement_inner();
        self.nested -= 1;
    }

    fn statement_inner(&mut self) {
        let token = self.token();
        match token.kind {
            TokenKind::LBrace => {
                let scope = self.open_scope();
                let body = self.body_of(Parser::block);
                self.close_scope(scope);
                self.tree.add(Statement::Block(body), token.at);
            }
            TokenKind::Semi => {
                self.advance();
                self.tree.add(Statement::Empty, token.at);
            }
            TokenKind::Asm => self.asm_statement(),
            TokenKind::If => self.if_statement(),
            TokenKind::While => self.while_statement(),
            TokenKind::Do => self.do_statement(),
            TokenKind::For => self.for_statement(),
            TokenKind::Return => self.return_statement(),
            TokenKind::Break | TokenKind::Continue => {
                self.leave_statement(token.kind == TokenKind::Continue)
            }
            TokenKind::Switch => self.switch_statement(),
            TokenKind::Case | TokenKind::Default => self.case_label(),
            TokenKind::Goto if self.peek_at(1) == TokenKind::Star => {
                self.pos += 2;
                let n = self.expression();
                let n = self.decay(n);
                let pointer = self.types.pointer(VOID.with(CONST));
                let n = self.assigned(n, pointer, "this jump");
                self.expect(TokenKind::Semi, "`;`");
                self.tree.add(Statement::GotoAddress(n), token.at);
            }
            TokenKind::Goto => {
                self.advance();
                let name = self.token();
                if self.expect(TokenKind::Name, "a label") {
                    let label = self.label(Name(name.value), name.at);
                    self.tree.add(Statement::Goto(label), token.at);
                }
                self.expect(TokenKind::Semi, "`;`");
            }
            TokenKind::Name if self.peek_at(1) == TokenKind::Colon => self.label_statement(),
            TokenKind::Else => {
                self.fail(
                    Rule::Misplaced,
                    token.at,
                    4,
                    "this `else` belongs to no `if`".into(),
                    "an `if` with two statements needs braces".into(),
                );
            }
            _ => {
                let n = self.expression();
                self.expect(TokenKind::Semi, "`;`");
                self.reach(n);
                self.tree.add(Statement::Expression(n), token.at);
            }
        }
    }

    /// Notes that an expression was read, for errors about the statement around it.
    fn reach(&mut self, n: NodeId) {
        if !self.report.any() {
            self.reached = self.tree.get(n).at;
        }
    }

    /// The statements that `parse` reads.
    pub(crate) fn body_of(&mut self, parse: impl FnOnce(&mut Self)) -> Body {
        let around = self.tree.open();
        parse(self);
        self.tree.close(around)
    }

    fn condition(&mut self) -> NodeId {
        self.expect(TokenKind::LParen, "`(`");
        let n = self.expression();
        let n = self.condition_node(n);
        self.expect(TokenKind::RParen, "`)`");
        n
    }

    /// The statement that a condition or loop governs.
    fn body(&mut self) {
        if self.panic {
            return;
        }
        let before = self.pos;
        while self.peek() == TokenKind::Attribute && !self.panic {
            self.attributes(&mut Attributes::default());
        }
        if self.is_declaration() {
            let message = "a declaration cannot stand here".into();
            self.fail(
                Rule::Expected,
                self.at(),
                1,
                message,
                "put it in braces".into(),
            );
        } else {
            self.statement();
        }
        if self.panic {
            self.synchronize(before);
        }
    }

    fn if_statement(&mut self) {
        let at = self.advance().at;
        let condition = self.condition();
        let yes = self.body_of(Parser::body);
        let no = self
            .accept(TokenKind::Else)
            .then(|| self.body_of(Parser::body));
        self.tree.add(Statement::If { condition, yes, no }, at);
    }

    fn while_statement(&mut self) {
        let at = self.advance().at;
        let condition = self.condition();
        self.loop_with(Some(condition), None, at);
    }

    /// A loop whose head has been read.
    fn loop_with(&mut self, condition: Option<NodeId>, step: Option<NodeId>, at: u32) {
        self.loops += 1;
        let body = self.body_of(Parser::body);
        self.loops -= 1;
        if let Some(last) = condition.or(step) {
            self.reach(last);
        }
        let statement = Statement::Loop {
            condition,
            step,
            body,
        };
        self.tree.add(statement, at);
    }

    fn do_statement(&mut self) {
        let at = self.advance().at;
        let around = self.tree.open();
        self.loops += 1;
        self.body();
        self.expect(TokenKind::While, "`while` after the body of `do`");
        let condition = self.condition();
        self.loops -= 1;
        let body = self.tree.close(around);
        self.expect(TokenKind::Semi, "`;`");
        self.reach(condition);
        self.tree.add(Statement::DoWhile { body, condition }, at);
    }

    fn for_statement(&mut self) {
        let at = self.advance().at;
        let scope = self.open_scope();
        let body = self.body_of(Parser::for_parts);
        self.close_scope(scope);
        self.tree.add(Statement::Block(body), at);
    }

    /// What is behind `for`: the first part stands before the loop.
    fn for_parts(&mut self) {
        self.expect(TokenKind::LParen, "`(`");
        if self.is_declaration() {
            self.local_declaration();
        } else if !self.accept(TokenKind::Semi) {
            let n = self.expression();
            self.expect(TokenKind::Semi, "`;`");
            self.tree.add(Statement::Expression(n), 0);
        }
        let mut condition = None;
        if self.peek() != TokenKind::Semi && !self.panic {
            let n = self.expression();
            condition = Some(self.condition_node(n));
        }
        self.expect(TokenKind::Semi, "`;`");
        let step = (self.peek() != TokenKind::RParen && !self.panic).then(|| self.expression());
        self.expect(TokenKind::RParen, "`)`");
        if !self.panic {
            self.loop_with(condition, step, 0);
        }
    }

    fn return_statement(&mut self) {
        let at = self.advance().at;
        let result = self.result;
        let void = self.types.kind(result) == TypeKind::Void;
        if self.accept(TokenKind::Semi) {
            if !void && result != ERROR {
                let message = format!("this function returns `{}`", self.spell(result));
                self.error(Rule::Return, at, message, "write the value behind `return`");
            }
            self.tree.add(Statement::Return(None), at);
            return;
        }
        let n = self.expression();
        self.expect(TokenKind::Semi, "`;`");
        if void {
            if self.types.kind(self.tree.get(n).ty) != TypeKind::Void
                && self.tree.get(n).ty != ERROR
            {
                self.error(
                    Rule::Return,
                    at,
                    "a void function returns no value".into(),
                    "leave the value out",
                );
            }
            self.tree.add(Statement::Expression(n), at);
            self.tree.add(Statement::Return(None), 0);
            return;
        }
        let n = self.assigned(n, result, "this function's result");
        self.tree.add(Statement::Return(Some(n)), at);
    }

    /// `break` and `continue`.
    fn leave_statement(&mut self, again: bool) {
        let at = self.advance().at;
        if self.loops > 0 || !again && !self.switches.is_empty() {
            let statement = if again {
                Statement::Continue
            } else {
                Statement::Break
            };
            self.tree.add(statement, at);
        } else {
            let what = if again { "`continue`" } else { "`break`" };
            let message = format!(
                "{what} stands in no loop{}",
                if again { "" } else { " and no switch" }
            );
            self.error(Rule::Misplaced, at, message, "");
        }
        self.expect(TokenKind::Semi, "`;`");
    }

    /// The number of a label, which may not have been seen yet.
    pub(crate) fn label(&mut self, name: Name, at: u32) -> LabelId {
        if let Some(label) = self.names.get(name).label.checked_sub(1) {
            return label;
        }
        self.labels.push(Label {
            name,
            defined: false,
            at,
        });
        self.names.get_mut(name).label = self.labels.len() as u32;
        self.labels.len() as u32 - 1
    }

    fn label_statement(&mut self) {
        let token = self.advance();
        self.advance();
        let name = Name(token.value);
        let label = self.label(name, token.at);
        if core::mem::replace(&mut self.labels[label as usize].defined, true) {
            let message = format!("the label `{}` is there twice", self.spelling(name));
            self.error(Rule::Label, token.at, message, "");
            return;
        }
        self.tree.add(Statement::Label(label), token.at);
        while self.peek() == TokenKind::Attribute {
            self.attributes(&mut Attributes::default());
        }
        self.labelled();
    }

    /// The statement behind a label.
    pub(crate) fn labelled(&mut self) {
        if self.peek() == TokenKind::RBrace {
            return; // as C23 allows
        }
        if self.is_declaration() {
            return;
        }
        self.statement();
    }
}
