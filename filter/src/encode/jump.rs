//! Jumps, all forward: first long ones, then short ones where the long ones showed that they reach.

use alloc::vec::Vec;

use postern_x86::{Assembler, Cond, Label, Reach};

use super::is_accept;
use crate::program::NodeId;

/// Labels are the nodes' numbers, and behind them those of the two ends.
#[derive(Debug, Default)]
pub(super) struct Jumps {
    nodes: NodeId,
    count: usize,
    /// Of a second run: which jumps may be short, in order.
    short: Vec<bool>,
}

impl Jumps {
    pub fn begin(&mut self, nodes: usize) {
        self.nodes = nodes as NodeId;
        self.count = 0;
    }

    pub fn node(&self, asm: &mut Assembler, id: NodeId) {
        asm.bind(Label(id));
    }

    pub fn accepting(&self, asm: &mut Assembler) {
        asm.bind(self.accept());
    }

    pub fn rejecting(&self, asm: &mut Assembler) {
        asm.bind(self.reject());
    }

    fn accept(&self) -> Label {
        Label(self.nodes)
    }

    fn reject(&self) -> Label {
        Label(self.nodes + 1)
    }

    /// Appends a jump, on a condition if there is one.
    pub fn add(&mut self, asm: &mut Assembler, condition: Option<Cond>, to: NodeId) {
        let short = self.short.get(self.count).copied().unwrap_or(false);
        self.count += 1;
        let reach = if short { Reach::Short } else { Reach::Near };
        let label = match to {
            to if to < self.nodes => Label(to),
            to if is_accept(to) => self.accept(),
            _ => self.reject(),
        };
        match condition {
            None => asm.jmp(label, reach),
            Some(condition) => asm.jcc(condition, label, reach),
        }
    }

    /// For the next run, which has no longer distances than this one, but for the frame that the
    /// first had not.
    pub fn shorter(&self, asm: &Assembler) -> Jumps {
        let reaches = |distance: Option<i64>| distance.is_some_and(|distance| distance < 110);
        Jumps {
            short: asm.distances().map(reaches).collect(),
            ..Jumps::default()
        }
    }

    /// The code with its distances.
    pub fn finish(&self, mut asm: Assembler) -> Vec<u8> {
        let linked = asm.link();
        debug_assert_eq!(linked, Ok(()), "each node that is jumped to was encoded");
        asm.take_code()
    }
}
