//! What is known while code is made, and until when: scopes, epochs and versions.
//!
//! Scopes follow C's structure: a branch of an `if` is a scope; a loop's head and a label begin a
//! new epoch, in which nothing is remembered. A register's version counts its definitions.

use alloc::vec::Vec;

/// When something that was found out while code was made still holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fact {
    pub epoch: u32,
    pub scope: u32,
    pub version: u32,
}

/// Remembered instructions.
#[derive(Debug, Default)]
pub(crate) struct Values {
    pub table: Vec<Remembered>,
    epoch: u32,
    /// Whether each scope of this function is open.
    open: Vec<bool>,
    stack: Vec<u32>,
    /// Version of what is in memory.
    pub memory: u32,
}

/// Where an instruction is, and the versions of what it wrote and read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Remembered {
    pub inst: u32,
    pub fact: Fact,
    pub a: u32,
    pub b: u32,
    pub c: u32,
    pub memory: u32,
}

/// Entries of the table.
pub(crate) const SIZE: usize = 256;

impl Values {
    /// Begins a function.
    pub fn reset(&mut self) {
        self.table.resize(SIZE, Remembered::default());
        self.epoch += 1;
        self.open.clear();
        self.stack.clear();
        self.open.push(true);
        self.stack.push(0);
    }

    /// Forgets everything: control may come from anywhere.
    pub fn forget(&mut self) {
        self.epoch += 1;
    }

    /// Opens a scope: what is found out now holds until it is closed.
    pub fn enter(&mut self) {
        self.stack.push(self.open.len() as u32);
        self.open.push(true);
    }

    /// Closes the innermost scope.
    pub fn leave(&mut self) {
        if let Some(scope) = self.stack.pop() {
            self.open[scope as usize] = false;
        }
    }

    /// Memory may have changed.
    pub fn clobber(&mut self) {
        self.memory += 1;
    }

    /// What is found out now.
    pub fn now(&self, version: u32) -> Fact {
        Fact {
            epoch: self.epoch,
            scope: self.stack.last().copied().unwrap_or(0),
            version,
        }
    }

    /// Whether it still holds, of a register whose version is this now.
    pub fn holds(&self, fact: Fact, version: u32) -> bool {
        fact.epoch == self.epoch && fact.version == version && self.open[fact.scope as usize]
    }
}
