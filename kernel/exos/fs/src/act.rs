//! Operations: each is done whole or not at all.

use crate::cache::{CHANGED, key};
use crate::disk::Disk;
use crate::error::Error;
use crate::file_system::FileSystem;
use crate::layout::set;
use crate::owner::Owner;
use crate::policy::Policy;

impl<D: Disk, P: Policy, O: Owner> FileSystem<'_, D, P, O> {
    /// Does an operation whole or not at all. If there is no room for it now, but would be behind a
    /// commit, it is done behind one.
    pub(crate) fn act<T>(
        &mut self,
        mut operation: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.transaction.is_broken {
            return Err(Error::Broken);
        }
        if self.transaction.is_long() {
            self.commit()?;
        }
        let mut is_again = false;
        loop {
            self.begin();
            match operation(self) {
                Ok(value) => {
                    self.end();
                    return Ok(value);
                }
                Err(error) => {
                    self.undo();
                    let may_help = match error {
                        Error::NoSpace => self.room.has_pending(),
                        Error::Full => true,
                        _ => false,
                    };
                    if is_again || !may_help || self.transaction.is_broken {
                        return Err(error);
                    }
                    is_again = true;
                    self.commit()?;
                    if error == Error::Full {
                        self.checkpoint()?;
                    }
                }
            }
        }
    }

    fn begin(&mut self) {
        let transaction = &mut self.transaction;
        transaction.undo.clear();
        transaction.before.clear();
        transaction.born.clear();
        transaction.filled.clear();
        transaction.dying.clear();
        transaction.dropped.clear();
        transaction.freed.clear();
        transaction.touched.clear();
        transaction.changed_before = transaction.changed.len();
        transaction.revoked_before = transaction.revoked.len();
        transaction.counts_before = self.room.counts;
    }

    fn end(&mut self) {
        while let Some(block) = self.transaction.dying.pop() {
            let Some(frame) = self.cache.peek(key(0, block)) else {
                continue;
            };
            let flags = self.cache.frames[frame].flags;
            if flags & CHANGED != 0 {
                self.transaction.changed.retain(|changed| *changed != block);
            }
            self.cache.clear(frame);
        }
        while let Some(key) = self.transaction.dropped.pop() {
            if let Some(frame) = self.cache.peek(key) {
                self.cache.clear(frame);
            }
        }
        if self.transaction.since.is_none() && !self.transaction.undo.is_empty() {
            self.transaction.since = Some(self.owner.now());
        }
    }

    fn undo(&mut self) {
        while let Some(undo) = self.transaction.undo.pop() {
            let length = usize::from(undo.length);
            let from = self.transaction.before.len().saturating_sub(length);
            if let Some(frame) = self.cache.peek(key(0, undo.block)) {
                let before = &self.transaction.before[from..];
                set(
                    &mut self.cache.bytes[frame].0,
                    usize::from(undo.offset),
                    before,
                );
            }
            self.transaction.before.truncate(from);
        }
        while let Some(block) = self.transaction.born.pop() {
            if let Some(frame) = self.cache.peek(key(0, block)) {
                self.cache.clear(frame);
            }
        }
        let before = self
            .transaction
            .changed_before
            .min(self.transaction.changed.len());
        for block in self.transaction.changed.drain(before..) {
            if let Some(frame) = self.cache.peek(key(0, block)) {
                self.cache.frames[frame].flags &= !CHANGED;
            }
        }
        while let Some(key) = self.transaction.filled.pop() {
            if let Some(frame) = self.cache.peek(key) {
                self.cache.clear(frame);
            }
        }
        while let Some(block) = self.transaction.freed.pop() {
            self.room.unfree(block);
        }
        self.transaction
            .revoked
            .truncate(self.transaction.revoked_before);
        while let Some(index) = self.transaction.touched.pop() {
            self.nodes.forget(index);
        }
        self.room.counts = self.transaction.counts_before;
    }
}
