//! Statements, but for loops and `switch`.

use super::{Lowering, MemoryOperand};
use crate::ir::{Inst, NONE, NOP, Op, Scalar};
use crate::tree::{Body, LabelId, NodeId, Statement};

impl Lowering<'_> {
    /// Statements in a row.
    pub(crate) fn body(&mut self, body: Body) {
        let tree = self.tree;
        for (statement, at) in tree.statements(body) {
            if self.stopped() {
                return;
            }
            if at != 0 {
                self.code.at = at;
            }
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: Statement) {
        match statement {
            Statement::Empty => {}
            Statement::Expression(n) => self.evaluate(n),
            Statement::Declare(local) => self.declare(local),
            Statement::Initialize {
                local,
                first,
                count,
            } => self.initialize(local, first, count),
            Statement::Block(body) => self.body(body),
            Statement::If { condition, yes, no } => self.if_statement(condition, yes, no),
            Statement::Loop {
                condition,
                step,
                body,
            } => self.loop_statement(condition, step, body),
            Statement::DoWhile { body, condition } => self.do_statement(body, condition),
            Statement::Switch { value, body } => self.switch_statement(value, body),
            Statement::Case(value) => self.case_label(Some(value)),
            Statement::Default => self.case_label(None),
            Statement::Label(label) => self.label_statement(label),
            Statement::Goto(label) => {
                let block = self.label(label);
                self.code.jump(block);
                self.dead();
            }
            Statement::GotoAddress(n) => self.goto_address(n),
            Statement::Allocate {
                pointer,
                size,
                before,
            } => self.variable_array(pointer, size, before),
            Statement::Break => self.leave_statement(false),
            Statement::Continue => self.leave_statement(true),
            Statement::Return(None) => {
                self.end_with_nothing();
                self.dead();
            }
            Statement::Return(Some(value)) => self.return_statement(value),
        }
    }

    /// Whether a limit was met, so that no code will come of this.
    pub(crate) fn stopped(&self) -> bool {
        !self.scratch.exceeded.is_empty()
    }

    /// Lowers an expression for its effects.
    pub(crate) fn evaluate(&mut self, n: NodeId) {
        if !self.stopped() {
            self.discard(n);
        }
    }

    /// Lowers a condition.
    pub(crate) fn test(&mut self, n: NodeId, t: u32, f: u32) {
        if self.stopped() {
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

    fn if_statement(&mut self, condition: NodeId, yes: Body, no: Option<Body>) {
        let (then, otherwise) = (self.code.block(), self.code.block());
        self.test(condition, then, otherwise);
        self.code.values.enter();
        self.code.begin(then);
        self.body(yes);
        self.code.values.leave();
        let Some(no) = no else {
            self.code.jump(otherwise);
            self.code.begin(otherwise);
            return;
        };
        let end = self.code.block();
        self.code.jump(end);
        self.arm(otherwise, end, |lower| lower.body(no));
        self.code.begin(end);
    }

    fn return_statement(&mut self, n: NodeId) {
        let (at, result) = (self.code.at, self.result);
        let (ty, a) = if self.types.is_struct(result) {
            let from = self.address(n);
            let to = self.result_pointer;
            self.copy_bytes(MemoryOperand::at(to), from, self.types.size(result));
            (Scalar::I64, to)
        } else {
            let value = self.lower(n);
            (self.register_type(result), self.register(value))
        };
        self.code.at = at;
        let result = Inst {
            op: Op::Return,
            ty,
            a,
            b: NONE,
            ..NOP
        };
        self.code.end(result, 0, 0);
        self.dead();
    }

    /// The block of a label, which may not have been placed yet.
    pub(crate) fn label(&mut self, label: LabelId) -> u32 {
        let block = self.scratch.labels[label as usize];
        if block != NONE {
            return block;
        }
        let block = self.code.block();
        self.scratch.labels[label as usize] = block;
        block
    }

    fn label_statement(&mut self, label: LabelId) {
        let block = self.label(label);
        self.code.jump(block);
        self.enter_from_anywhere(0);
        self.code.begin(block);
    }

    /// Control may come here from outside the loops around, but for the outermost `but`: they are
    /// no places to move code out of.
    pub(crate) fn enter_from_anywhere(&mut self, but: usize) {
        for index in &self.scratch.loops[but..] {
            self.code.loops[*index].natural = false;
        }
        self.code.values.forget();
    }
}
