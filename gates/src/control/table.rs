//! The table of control blocks: reserved once, never unmapped, opened as far as there are domains
//! and threads.

use super::{BLOCK, Control, FIRST, LAYER, NEXT, OPENED};
use crate::map::{self, MapError, Mapping};
use crate::sync::{Mutex, MutexGuard};
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

/// The reserved table and its free list.
pub(crate) struct Table {
    pub(crate) memory: Mapping,
    /// How many layers can be touched, and how many bytes of each: so much is charged where the
    /// system promises no more memory than it has.
    pub(crate) layers: usize,
    pub(crate) open: usize,
    pub(crate) next: usize,
    /// The last domain's.
    pub(crate) generation: u32,
    pub(crate) free: Vec<usize>,
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

/// The table, locked.
pub(crate) fn lock() -> MutexGuard<'static, Option<Table>> {
    TABLE.lock().unwrap_or_else(|e| e.into_inner())
}

/// Holds the table, for a thread that forks. Of what is held nothing can be touched.
pub fn table() -> impl Sized + 'static {
    lock()
}

impl Table {
    /// Lets the block with this number be touched, in all layers that are open.
    pub(crate) fn open_block(&mut self, number: usize) -> Result<(), MapError> {
        /// Bytes of a layer that are opened first.
        const LEAST: usize = 64 << 10;
        if (number + 1) * BLOCK <= self.open {
            return Ok(());
        }
        map::room(self.layers as i64 + 1)?;
        let open = (2 * self.open).clamp(LEAST, LAYER);
        for layer in 0..self.layers {
            self.open_part(layer, open)?;
        }
        self.open = open;
        Ok(())
    }

    fn open_part(&self, layer: usize, bytes: usize) -> Result<(), MapError> {
        self.memory.open(layer * LAYER..layer * LAYER + bytes)
    }
}

/// Lets the slots of the thread with this index be touched in every block. The caller holds the
/// registry, and nobody else knows of the thread yet.
pub(crate) fn open_slots(index: usize) -> Result<(), MapError> {
    let layers = match index.checked_sub(FIRST) {
        None => 1,
        Some(k) => 2 + k / NEXT,
    };
    OPENED.fetch_max(index + 1, Ordering::SeqCst);
    let mut guard = lock();
    let Some(table) = guard.as_mut() else {
        return Ok(());
    };
    while table.layers < layers {
        map::room(2)?;
        table.open_part(table.layers, table.open)?;
        table.layers += 1;
    }
    Ok(())
}

impl Control {
    /// Forgets the former domain, into which threads with indices below `threads` may have gone,
    /// but not its generation, and not that it is closed.
    pub(crate) fn wipe(&self, threads: usize) {
        let words = [
            &self.base,
            &self.deadline,
            &self.call_depth,
            &self.time_inside,
            &self.time_hot,
            &self.owner,
            &self.code_slots,
            &self.inside,
        ];
        for word in words {
            word.store(0, Ordering::Relaxed);
        }
        self.services
            .store(core::ptr::null_mut(), Ordering::Relaxed);
        self.facts.store(0, Ordering::Relaxed);
        self.stack_log2.store(0, Ordering::Relaxed);
        self.stacks_given.store(0, Ordering::Relaxed);
        for slot in (0..threads).map(|index| self.slot(index)) {
            // What was never written costs no page, and shall not.
            let halves = [&slot.stack, &slot.waiting].map(|half| half.load(Ordering::Relaxed));
            if halves != [0, 0] || slot.calls.load(Ordering::Relaxed) != 0 {
                slot.stack.store(0, Ordering::Relaxed);
                slot.waiting.store(0, Ordering::Relaxed);
                slot.calls.store(0, Ordering::Relaxed);
            }
        }
    }
}
