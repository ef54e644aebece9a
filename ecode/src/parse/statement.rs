//! Statements, lowered as they are parsed.

use alloc::format;

use super::{Around, Label, Parser};
use crate::diagnostics::Rule;
use crate::ir::{Ins, Loop, NONE, NOP, Op, T};
use crate::lex::Tok;
use crate::lower::Addr;
use crate::names::Name;
use crate::tree::N;
use crate::types::*;

/// Conditions up to this size are tested once before a loop and again at its end, so that the loop has one jump.
const TWICE: u16 = 16;

impl Parser<'_> {
    /// `{ … }`
    pub(crate) fn block(&mut self) {
        self.expect(Tok::LBrace, "`{`");
        let opened = self.pos.saturating_sub(1);
        if !self.nest() {
            self.nested -= 1;
            return;
        }
        while !matches!(self.peek(), Tok::RBrace | Tok::End) && !self.report.full() {
            let before = self.pos;
            if self.is_declaration() {
                self.local_declaration();
                self.tree_done();
            } else {
                self.statement();
            }
            if self.panic {
                self.synchronize(before);
            }
        }
        if self.peek() == Tok::End && !self.report.full() {
            let at = self.tokens.list[opened].at;
            self.fail(
                Rule::Expected,
                at,
                1,
                "this `{` is not closed".into(),
                "write `}` at the end of the block".into(),
            );
        }
        self.accept(Tok::RBrace);
        self.nested -= 1;
    }

    /// Forgets the trees of a finished statement, unless one around it still needs its own.
    fn tree_done(&mut self) {
        if self.around.is_empty() && self.switches.is_empty() {
            self.tree.clear();
        }
    }

    fn statement(&mut self) {
        if !self.nest() {
            self.nested -= 1;
            return;
        }
        self.code.at = self.at();
        self.statement_inner();
        self.tree_done();
        self.nested -= 1;
    }

    fn statement_inner(&mut self) {
        let token = self.token();
        match token.kind {
            Tok::LBrace => {
                let scope = self.open_scope();
                self.block();
                self.close_scope(scope);
            }
            Tok::Semi => {
                self.advance();
            }
            Tok::If => self.if_statement(),
            Tok::While => self.while_statement(),
            Tok::Do => self.do_statement(),
            Tok::For => self.for_statement(),
            Tok::Return => self.return_statement(),
            Tok::Break | Tok::Continue => self.leave_statement(token.kind == Tok::Continue),
            Tok::Switch => self.switch_statement(),
            Tok::Case | Tok::Default => self.case_label(),
            Tok::Goto => {
                self.advance();
                let name = self.token();
                if self.expect(Tok::Name, "a label") {
                    let label = self.label(Name(name.value), name.at);
                    self.code.jump(label);
                    self.dead();
                }
                self.expect(Tok::Semi, "`;`");
            }
            Tok::Name if self.peek_at(1) == Tok::Colon => self.label_statement(),
            Tok::Else => {
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
                self.expect(Tok::Semi, "`;`");
                self.evaluate(n);
            }
        }
    }

    /// Lowers an expression for its effects.
    fn evaluate(&mut self, n: N) {
        if !self.report.any() {
            self.discard(n);
        }
    }

    /// Lowers a condition.
    pub(crate) fn test(&mut self, n: N, t: u32, f: u32) {
        if self.report.any() {
            self.code.jump(t);
        } else {
            self.branch(n, t, f);
        }
    }

    /// After a jump nothing follows but labels.
    pub(crate) fn dead(&mut self) {
        let block = self.code.block();
        self.code.begin(block);
    }

    fn condition(&mut self) -> N {
        self.expect(Tok::LParen, "`(`");
        let n = self.expression();
        let n = self.condition_node(n);
        self.expect(Tok::RParen, "`)`");
        n
    }

    /// The statement that a condition or loop governs.
    fn body(&mut self) {
        if self.panic {
            return;
        }
        let before = self.pos;
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
        self.advance();
        let condition = self.condition();
        let (yes, no) = (self.code.block(), self.code.block());
        self.test(condition, yes, no);
        self.code.values.enter();
        self.code.begin(yes);
        self.body();
        self.code.values.leave();
        if !self.accept(Tok::Else) {
            self.code.jump(no);
            self.code.begin(no);
            return;
        }
        let end = self.code.block();
        self.code.jump(end);
        self.arm(no, end, Parser::body);
        self.code.begin(end);
    }

    /// Begins a loop: what is emitted until [`Parser::end_loop`] belongs to it.
    fn begin_loop(&mut self, before: u32, exit: u32, again: Option<u32>) {
        let first = self.code.blocks.len() as u32;
        self.loops.push(self.code.loops.len());
        self.code.loops.push(Loop {
            before,
            first,
            last: first,
            natural: true,
        });
        self.around.push(Around {
            exit,
            again,
            continued: false,
        });
        self.code.depth += 1;
        self.code.values.forget();
    }

    fn end_loop(&mut self) {
        let last = self.code.blocks.len() as u32;
        if let Some(index) = self.loops.pop() {
            self.code.loops[index].last = last;
        }
        let around = self.around.pop();
        self.code.depth -= 1;
        self.code.values.forget();
        if let Some(around) = around {
            self.code.begin(around.exit);
        }
    }

    /// Goes on where `continue` goes to, if anything does.
    fn begin_step(&mut self, step: u32) {
        if self.around.last().is_some_and(|around| around.continued) {
            self.code.jump(step);
            self.code.values.forget();
            self.code.begin(step);
        }
    }

    fn while_statement(&mut self) {
        self.advance();
        let condition = self.condition();
        self.loop_with(Some(condition), None);
    }

    /// A loop with its condition at both ends; parses the body.
    fn loop_with(&mut self, condition: Option<N>, step: Option<N>) {
        let (exit, before) = (self.code.block(), self.code.block());
        let twice = condition.is_none_or(|n| self.tree.get(n).weight <= TWICE);
        match condition {
            Some(condition) if twice => self.test(condition, before, exit),
            _ => self.code.jump(before),
        }
        self.code.begin(before);
        self.begin_loop(before, exit, None);
        let (body, next) = (self.code.block(), self.code.block());
        if let Some(around) = self.around.last_mut() {
            around.again = Some(next);
        }
        let check = if twice { body } else { self.code.block() };
        self.code.jump(check);
        self.code.begin(body);
        self.body();
        self.begin_step(next);
        if let Some(step) = step {
            self.evaluate(step);
        }
        if !twice {
            self.code.jump(check);
            self.code.values.forget();
            self.code.begin(check);
        }
        match condition {
            Some(condition) => self.test(condition, body, exit),
            None => self.code.jump(body),
        }
        self.end_loop();
    }

    fn do_statement(&mut self) {
        self.advance();
        let (exit, before) = (self.code.block(), self.code.block());
        self.code.jump(before);
        self.code.begin(before);
        self.begin_loop(before, exit, None);
        let (body, next) = (self.code.block(), self.code.block());
        if let Some(around) = self.around.last_mut() {
            around.again = Some(next);
        }
        self.code.jump(body);
        self.code.begin(body);
        self.body();
        self.begin_step(next);
        self.expect(Tok::While, "`while` after the body of `do`");
        let condition = self.condition();
        self.expect(Tok::Semi, "`;`");
        self.test(condition, body, exit);
        self.end_loop();
    }

    fn for_statement(&mut self) {
        self.advance();
        let scope = self.open_scope();
        self.expect(Tok::LParen, "`(`");
        if self.is_declaration() {
            self.local_declaration();
        } else if !self.accept(Tok::Semi) {
            let n = self.expression();
            self.expect(Tok::Semi, "`;`");
            self.evaluate(n);
        }
        let mut condition = None;
        if self.peek() != Tok::Semi && !self.panic {
            let n = self.expression();
            condition = Some(self.condition_node(n));
        }
        self.expect(Tok::Semi, "`;`");
        let step = (self.peek() != Tok::RParen && !self.panic).then(|| self.expression());
        self.expect(Tok::RParen, "`)`");
        if !self.panic {
            self.loop_with(condition, step);
        }
        self.close_scope(scope);
    }

    /// Ends the block with a return without a value.
    pub(crate) fn end_with_nothing(&mut self) {
        let nothing = Ins {
            op: Op::Return,
            ..NOP
        };
        self.code.end(nothing, 0, 0);
    }

    fn return_statement(&mut self) {
        let at = self.advance().at;
        let result = self.result;
        let void = self.types.kind(result) == Kind::Void;
        if self.accept(Tok::Semi) {
            if !void && result != ERROR {
                let message = format!("this function returns `{}`", self.spell(result));
                self.error(Rule::Return, at, message, "write the value behind `return`");
            }
            self.end_with_nothing();
            self.dead();
            return;
        }
        let n = self.expression();
        self.expect(Tok::Semi, "`;`");
        if void {
            if self.types.kind(self.tree.get(n).ty) != Kind::Void && self.tree.get(n).ty != ERROR {
                self.error(
                    Rule::Return,
                    at,
                    "a void function returns no value".into(),
                    "leave the value out",
                );
            }
            self.evaluate(n);
            self.end_with_nothing();
            self.dead();
            return;
        }
        let n = self.assigned(n, result, "this function's result");
        if self.report.any() {
            return;
        }
        let (ty, a) = if self.types.is_struct(result) {
            let from = self.address(n);
            let to = self.result_pointer;
            self.copy_bytes(Addr::at(to), from, self.types.size(result));
            (T::I64, to)
        } else {
            let value = self.lower(n);
            (self.register_type(result), self.register(value))
        };
        self.code.at = at;
        self.code.end(
            Ins {
                op: Op::Return,
                ty,
                a,
                b: NONE,
                ..NOP
            },
            0,
            0,
        );
        self.dead();
    }

    fn leave_statement(&mut self, again: bool) {
        let at = self.advance().at;
        let around = self
            .around
            .iter_mut()
            .rev()
            .find(|around| !again || around.again.is_some());
        match around {
            Some(around) => {
                around.continued |= again;
                let to = if again {
                    around.again.unwrap_or(around.exit)
                } else {
                    around.exit
                };
                self.code.jump(to);
                self.dead();
            }
            None => {
                let what = if again { "`continue`" } else { "`break`" };
                self.error(
                    Rule::Misplaced,
                    at,
                    format!(
                        "{what} stands in no loop{}",
                        if again { "" } else { " and no switch" }
                    ),
                    "",
                );
            }
        }
        self.expect(Tok::Semi, "`;`");
    }

    /// The block of a label, which may not have been seen yet.
    fn label(&mut self, name: Name, at: u32) -> u32 {
        let index = self.names.get(name).label;
        if let Some(label) = (index as usize)
            .checked_sub(1)
            .and_then(|index| self.labels.get(index))
        {
            return label.block;
        }
        let block = self.code.block();
        self.labels.push(Label {
            name,
            block,
            defined: false,
            at,
        });
        self.names.get_mut(name).label = self.labels.len() as u32;
        block
    }

    fn label_statement(&mut self) {
        let token = self.advance();
        self.advance();
        let name = Name(token.value);
        let block = self.label(name, token.at);
        let index = self.names.get(name).label as usize - 1;
        if core::mem::replace(&mut self.labels[index].defined, true) {
            let message = format!("the label `{}` is there twice", self.spelling(name));
            self.error(Rule::Label, token.at, message, "");
            return;
        }
        self.code.jump(block);
        self.enter_from_anywhere();
        self.code.begin(block);
        self.labelled();
    }

    /// Control may come here from outside the loops around: they are no places to move code out of.
    pub(crate) fn enter_from_anywhere(&mut self) {
        for index in &self.loops {
            self.code.loops[*index].natural = false;
        }
        self.code.values.forget();
    }

    /// The statement behind a label.
    pub(crate) fn labelled(&mut self) {
        if self.peek() == Tok::RBrace {
            return; // as C23 allows
        }
        if self.is_declaration() {
            return;
        }
        self.statement();
    }
}
