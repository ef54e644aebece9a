//! Instructions with symbolic targets, laid out: from the last to the first, so that every distance
//! is known when its jump is written.
//!
//! A conditional jump reaches 255 instructions; behind one that has to go further stands a jump
//! that goes there, or the program's end once more, which those before it share.

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
    /// Where the packet is rejected and accepted: the places nearest to what comes next, or the
    /// last ones if the ends inside the program are not shared.
    rejecting: usize,
    accepting: usize,
    shared: bool,
}

/// Distances that a conditional jump has, less those that two more instructions may add.
const NEAR: usize = 253;

/// The program of the items; where it accepts it returns `accept`. Every label stands behind all
/// that go to it.
pub(super) fn layout(items: &[Item], labels: u32, accept: u32) -> Vec<Instruction> {
    let mut layout = Layout {
        list: Vec::with_capacity(items.len() + 2),
        labels: alloc::vec![None; labels as usize],
        accept,
        rejecting: 0,
        accepting: 0,
        shared: true,
    };
    layout.far(Target::Reject);
    layout.far(Target::Accept);
    // To the kernel a return goes on to the next instruction, which would then have less memory
    // that was written on every way: those of all who share it.
    layout.shared = !items
        .iter()
        .any(|item| matches!(item, Item::Plain(op::STORE, _)));
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
                if layout.place(target) + 1 != layout.list.len() {
                    layout.far(target);
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
            Target::Accept => Some(self.accepting),
            Target::Reject => Some(self.rejecting),
            Target::Label(label) => self.labels.get(label as usize).copied().flatten(),
        };
        // No node leads to one that is not written.
        place.unwrap_or(self.accepting)
    }

    /// An unconditional jump, or the end itself. Returns its place.
    fn far(&mut self, target: Target) -> usize {
        let here = self.list.len();
        match target {
            Target::Reject => {
                self.push(op::RETURN, 0, 0, 0);
                if self.shared {
                    self.rejecting = here;
                }
            }
            Target::Accept => {
                self.push(op::RETURN, 0, 0, self.accept);
                if self.shared {
                    self.accepting = here;
                }
            }
            Target::Next | Target::Label(_) => {
                let distance = here - self.place(target) - 1;
                self.push(op::JUMP, 0, 0, distance as u32);
            }
        }
        here
    }

    fn branch(&mut self, code: u16, k: u32, yes: Target, no: Target) {
        let before = self.list.len();
        // First all places: what is put between them and the branch moves what comes next.
        let places = [yes, no].map(|target| (target, self.place(target)));
        let places = places.map(|(target, place)| match before - place > NEAR {
            true => self.far(target),
            false => place,
        });
        let [jt, jf] = places.map(|place| (self.list.len() - place - 1) as u8);
        self.push(code, jt, jf, k);
    }
}
