//! A control block in use, and what keeps alive what gates read through it.

use super::table::{Table, table};
use super::{BLOCK, Control, LAYER, LAYERS, MAX_DOMAINS, ServiceEntry};
use crate::map::{MapError, Mapping};
use crate::text::Text;
use crate::thread;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// A control block in use; returned to the table on drop, closed.
pub struct Block {
    control: &'static Control,
    /// The text in its window, and what the text's gate slots lead to.
    made_of: OnceLock<(Arc<Text>, Arc<[ServiceEntry]>)>,
}

/// What holds for all calls of a domain.
#[derive(Default)]
pub struct Terms {
    /// Fact bits ([`crate::gate::FACT_XMM`] and so on).
    pub facts: u32,
    /// Deadline of a call in nanoseconds; 0 is none.
    pub deadline: u64,
    /// Control-stack limit in return addresses; 0 is none.
    pub call_depth: u64,
}

impl Block {
    /// Takes a free block. Its slots and counters are zero, it is [`Phase::Closed`].
    pub fn take() -> Result<Block, MapError> {
        let threads = thread::registered_ever();
        let mut guard = table();
        let table = match guard.as_mut() {
            Some(table) => table,
            None => guard.insert(Table {
                memory: Mapping::sparse(LAYERS * LAYER)?,
                layers: 1,
                open: 0,
                next: 0,
                generation: 0,
                free: Vec::new(),
            }),
        };
        let (number, used) = match table.free.pop() {
            Some(number) => (number, true),
            None if table.next < MAX_DOMAINS => {
                table.open_block(table.next)?;
                table.next += 1;
                (table.next - 1, false)
            }
            None => return Err(MapError::TooManyDomains(MAX_DOMAINS)),
        };
        let block = table.memory.address() + number * BLOCK;
        // SAFETY: number < MAX_DOMAINS, so the block lies in the reservation, and it is open, for good; zeros or a former domain's are
        // a valid Control (atomics only).
        let control: &'static Control = unsafe { &*(block as *const Control) };
        if used {
            control.wipe(threads);
        }
        table.generation = table.generation.wrapping_add(1).max(1);
        let generation = table.generation;
        control.number.store(number as u32, Ordering::Relaxed);
        control.lifecycle.close();
        control.generation.store(generation, Ordering::SeqCst);
        Ok(Block {
            control,
            made_of: OnceLock::new(),
        })
    }

    /// Whether the text in its window may be entered at `offset`.
    pub fn is_start(&self, offset: u32) -> bool {
        let text = self.made_of.get().map(|(text, _)| text);
        text.is_some_and(|text| text.is_start(offset)) || self.is_slot(offset)
    }

    /// Says what the domain is made of, once: text that is mapped in its window, and one service for each of its gate slots.
    /// [`crate::window::Pin::furnish`] knows which.
    pub(crate) fn made_of(
        &self,
        text: Arc<Text>,
        services: Arc<[ServiceEntry]>,
        terms: &Terms,
    ) -> Result<(), MapError> {
        let table = services.as_ptr().cast_mut();
        let stack = text.layout().stack_size;
        if services.len() < text.slots() as usize || self.made_of.set((text, services)).is_err() {
            return Err(MapError::Taken);
        }
        let order = Ordering::SeqCst;
        self.facts.store(terms.facts, order);
        self.services.store(table, order);
        self.stack_log2.store(stack.trailing_zeros(), order);
        self.deadline.store(terms.deadline, order);
        self.call_depth.store(terms.call_depth, order);
        Ok(())
    }
}

impl std::ops::Deref for Block {
    type Target = Control;
    fn deref(&self) -> &Control {
        self.control
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.control.lifecycle.close();
        // Nobody is inside, nor waits in a call: a domain's parts go last of all (`domain::reclaim`).
        if let Some(table) = table().as_mut() {
            table.free.push(self.control.number() as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::table::open_slots;
    use crate::control::{FIRST, MAX_THREADS, NOBODYS, SLOTS, Slot, slot_at, slot_index};
    use crate::lifecycle::Phase;
    use std::collections::HashSet;

    #[test]
    fn slots_lie_in_their_own_blocks() {
        let mut places = HashSet::new();
        for index in 0..MAX_THREADS {
            let at = slot_at(index);
            assert_eq!(slot_index(at), index);
            let in_layer = (SLOTS + at as usize) % LAYER;
            assert!(in_layer + size_of::<Slot>() <= BLOCK, "{index}");
            assert!(SLOTS + (at as usize) < LAYERS * LAYER && at != NOBODYS && places.insert(at));
            assert!(at as usize >= LAYER - SLOTS || in_layer >= SLOTS);
        }
    }

    #[test]
    fn a_used_block_is_wiped_but_for_its_generation() {
        let block = Block::take().unwrap();
        let (control, generation): (&Control, u32) =
            (&block, block.generation.load(Ordering::SeqCst));
        open_slots(FIRST).unwrap();
        control.deadline.store(7, Ordering::SeqCst);
        control.slot(FIRST).calls.store(8, Ordering::SeqCst);
        control.slot(0).stack.store(9, Ordering::SeqCst);
        control.wipe(FIRST + 1);
        assert_eq!(control.deadline.load(Ordering::SeqCst), 0);
        assert_eq!(control.slot(FIRST).calls.load(Ordering::SeqCst), 0);
        assert_eq!(control.slot(0).stack.load(Ordering::SeqCst), 0);
        assert_eq!(control.generation.load(Ordering::SeqCst), generation);
        assert_eq!(control.lifecycle.now(), Phase::Closed);
    }
}
