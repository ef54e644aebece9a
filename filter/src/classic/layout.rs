//! Instructions with symbolic targets, laid out: from the last to the first, so that every distance
//! is known when its jump is written.
//!
//! A conditional jump reaches 255 instructions; behind one that has to go further stands a jump
//! that goes there.

use alloc::vec::Vec;

use super::{Instruction, op};

/// Where it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Next,
    Label(u32),
    Accept,
    Reject,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    Label(u32),
    Plain(u16, u32),
    Branch(u16, u32, Target, Target),
    Goto(Target),
}

struct Layout {
    /// The last one first.
    list: Vec<Instruction>,
    /// By label, the place in `list` of the instruction behind it.
    labels: Vec<Option<usize>>,
    accept: u32,
}

/// The places of the two ends in the list.
const REJECTING: usize = 0;
const ACCEPTING: usize = 1;
/// Distances that a conditional jump has, less those that two more instructions may add.
const NEAR: usize = 253;

/// The program of the items; where it accepts it returns `accept`. Every label stands behind all
/// that go to it.
pub(super) fn layout(items: &[Item], labels: u32, accept: u32) -> Vec<Instruction> {
    let mut layout = Layout {
        list: Vec::with_capacity(items.len() + 2),
        labels: alloc::vec![None; labels as usize],
        accept,
    };
    layout.push(op::RETURN, 0, 0, 0);
    layout.push(op::RETURN, 0, 0, accept);
    for item in items.iter().rev() {
        match *item {
            Item::Label(label) => {
                let behind = layout.list.len() - 1;
                if let Some(place) = layout.labels.get_mut(label as usize) {
                    *place = Some(behind);
                }
            }
            Item::Plain(code, k) => layout.push(code, 0, 0, k),
            Item::Goto(target) => {
                let to = layout.place(target);
                if to + 1 != layout.list.len() {
                    layout.far(to);
                }
            }
            Item::Branch(code, k, yes, no) => layout.branch(code, k, yes, no),
        }
    }
    layout.list.reverse();
    layout.list
}

impl Layout {
    fn push(&mut self, code: u16, jt: u8, jf: u8, k: u32) {
        self.list.push(Instruction { code, jt, jf, k });
    }

    fn place(&self, target: Target) -> usize {
        let place = match target {
            Target::Next => Some(self.list.len() - 1),
            Target::Accept => Some(ACCEPTING),
            Target::Reject => Some(REJECTING),
            Target::Label(label) => self.labels.get(label as usize).copied().flatten(),
        };
        // No node leads to one that is not written.
        place.unwrap_or(ACCEPTING)
    }

    /// An unconditional jump, or the end itself. Returns its place.
    fn far(&mut self, to: usize) -> usize {
        match to {
            REJECTING => self.push(op::RETURN, 0, 0, 0),
            ACCEPTING => self.push(op::RETURN, 0, 0, self.accept),
            _ => {
                let distance = self.list.len() - to - 1;
                self.push(op::JUMP, 0, 0, distance as u32);
            }
        }
        self.list.len() - 1
    }

    fn branch(&mut self, code: u16, k: u32, yes: Target, no: Target) {
        let mut places = [self.place(yes), self.place(no)];
        let before = self.list.len();
        for place in &mut places {
            if before - *place > NEAR {
                *place = self.far(*place);
            }
        }
        let [jt, jf] = places.map(|place| (self.list.len() - place - 1) as u8);
        self.push(code, jt, jf, k);
    }
}
