//! Jumps, all forward: first long ones, then short ones where the long ones showed that they reach.

use alloc::vec::Vec;

use super::is_accept;
use crate::program::NodeId;

/// A jump and where its distance stands in text.
#[derive(Clone, Copy, Debug)]
struct Jump {
    at: usize,
    to: NodeId,
    short: bool,
}

#[derive(Debug, Default)]
pub(super) struct Jumps {
    list: Vec<Jump>,
    nodes: Vec<usize>,
    accept: usize,
    reject: usize,
    /// Of a second run: which jumps may be short, in order.
    short: Vec<bool>,
}

impl Jumps {
    pub fn begin(&mut self, nodes: usize) {
        self.nodes = alloc::vec![0; nodes];
        self.list.clear();
    }

    pub fn node(&mut self, id: NodeId, at: usize) {
        self.nodes[id as usize] = at;
    }

    pub fn accepting(&mut self, at: usize) {
        self.accept = at;
    }

    pub fn rejecting(&mut self, at: usize) {
        self.reject = at;
    }

    /// Appends a jump, on a condition if there is one.
    pub fn add(&mut self, text: &mut Vec<u8>, condition: Option<u8>, to: NodeId) {
        let short = self.short.get(self.list.len()).copied().unwrap_or(false);
        match (condition, short) {
            (None, true) => text.push(0xeb),
            (None, false) => text.push(0xe9),
            (Some(condition), true) => text.push(0x70 | condition),
            (Some(condition), false) => text.extend_from_slice(&[0x0f, 0x80 | condition]),
        }
        let at = text.len();
        self.list.push(Jump { at, to, short });
        text.extend_from_slice(&[0; 4][..if short { 1 } else { 4 }]);
    }

    fn distance(&self, jump: &Jump) -> usize {
        let target = match self.nodes.get(jump.to as usize) {
            Some(at) => *at,
            None if is_accept(jump.to) => self.accept,
            None => self.reject,
        };
        target.saturating_sub(jump.at + if jump.short { 1 } else { 4 })
    }

    /// For the next run, which has no longer distances than this one, but for the frame that the first had not.
    pub fn shorter(&self) -> Jumps {
        Jumps {
            short: self
                .list
                .iter()
                .map(|jump| self.distance(jump) < 110)
                .collect(),
            ..Jumps::default()
        }
    }

    /// Writes the distances.
    pub fn patch(&self, text: &mut [u8]) {
        for jump in &self.list {
            let distance = self.distance(jump);
            if jump.short {
                text[jump.at] = distance as u8;
            } else {
                text[jump.at..jump.at + 4].copy_from_slice(&(distance as u32).to_le_bytes());
            }
        }
    }
}
