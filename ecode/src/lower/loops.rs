//! Loops, and the jumps out of them.

use super::{BreakTargets, Lowering};
use crate::ir::Loop;
use crate::tree::{Body, NodeId};

/// Conditions up to this size are tested once before a loop and again at its end, so that the loop
/// has one jump.
const TWICE: u16 = 16;

impl Lowering<'_> {
    /// Begins a loop: what is emitted until [`Lowering::end_loop`] belongs to it. Returns its first
    /// block and the one that `continue` goes to.
    fn begin_loop(&mut self, before: u32, exit: u32) -> (u32, u32) {
        let first = self.code.blocks.len() as u32;
        self.scratch.loops.push(self.code.loops.len());
        self.code.loops.push(Loop {
            before,
            first,
            last: first,
            natural: true,
        });
        self.code.depth += 1;
        self.code.values.forget();
        let (body, next) = (self.code.block(), self.code.block());
        self.scratch.targets.push(BreakTargets {
            exit,
            again: Some(next),
            continued: false,
        });
        (body, next)
    }

    fn end_loop(&mut self) {
        let last = self.code.blocks.len() as u32;
        if let Some(index) = self.scratch.loops.pop() {
            self.code.loops[index].last = last;
        }
        let targets = self.scratch.targets.pop();
        self.code.depth -= 1;
        self.code.values.forget();
        if let Some(targets) = targets {
            self.code.begin(targets.exit);
        }
    }

    /// Goes on where `continue` goes to, if anything does.
    fn begin_step(&mut self, step: u32) {
        let targets = self.scratch.targets.last();
        if targets.is_some_and(|targets| targets.continued) {
            self.code.jump(step);
            self.code.values.forget();
            self.code.begin(step);
        }
    }

    /// A loop with its condition at both ends.
    pub(crate) fn loop_statement(
        &mut self,
        condition: Option<NodeId>,
        step: Option<NodeId>,
        inner: Body,
    ) {
        let (exit, before) = (self.code.block(), self.code.block());
        let twice = condition.is_none_or(|n| self.tree.get(n).weight <= TWICE);
        match condition {
            Some(condition) if twice => self.test(condition, before, exit),
            _ => self.code.jump(before),
        }
        self.code.begin(before);
        let (body, next) = self.begin_loop(before, exit);
        let check = if twice { body } else { self.code.block() };
        self.code.jump(check);
        self.code.begin(body);
        self.body(inner);
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

    pub(crate) fn do_statement(&mut self, inner: Body, condition: NodeId) {
        let (exit, before) = (self.code.block(), self.code.block());
        self.code.jump(before);
        self.code.begin(before);
        let (body, next) = self.begin_loop(before, exit);
        self.code.jump(body);
        self.code.begin(body);
        self.body(inner);
        self.begin_step(next);
        self.test(condition, body, exit);
        self.end_loop();
    }

    /// `break`, and `continue` if `again`.
    pub(crate) fn leave_statement(&mut self, again: bool) {
        let mut around = self.scratch.targets.iter_mut().rev();
        let Some(targets) = around.find(|targets| !again || targets.again.is_some()) else {
            return; // the parser has refused it
        };
        targets.continued |= again;
        let to = targets.again.filter(|_| again).unwrap_or(targets.exit);
        self.code.jump(to);
        self.dead();
    }
}
