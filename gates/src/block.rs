//! A domain's control block in use, and what keeps alive what gates read through it.
//!
//! Invariant: what gates read through a block (text, services, window, C function pointers) is
//! there for as long as somebody is inside, whoever drops the block when; and an entry leads where
//! the domain's text may be entered.

use super::callee::ServiceTable;
use super::control::table::{Table, lock};
use super::control::{BLOCK, Control, LAYER, LAYERS, MAX_DOMAINS, MAX_THREADS};
use super::entry::{Entry, Manner};
use super::gate;
use super::inside::{self, Target};
use super::map::{MapError, Mapping, SharedWords};
use super::text::Text;
use super::window::reservation::Reservation;
use super::{stub, thread};
use postern_image::Signature;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A control block in use; returned to the table on drop, closed.
pub struct Block {
    control: &'static Control,
    /// The text in its window, and what the text's gate slots lead to.
    made_of: OnceLock<MadeOf>,
    /// It was open once: no transition leads out of closed again.
    opened: AtomicBool,
    /// C function pointers to its entries.
    stubs: stub::Owned,
}

/// What gates use of a domain as long as somebody is inside.
struct MadeOf {
    text: Arc<Text>,
    /// With all that its functions find.
    services: Arc<ServiceTable>,
    window: Arc<Reservation>,
    /// The words that say who is inside.
    _inside: Option<Inside>,
}

/// Where other processes see who of this one is inside a common domain: a word for each thread's
/// index, which is the offset of the function that the thread has entered, or 0.
#[derive(Clone)]
pub struct Inside {
    words: Arc<SharedWords>,
    first: usize,
}

impl Inside {
    /// The words from the one with number `first` on; `None` if there are too few.
    pub fn new(words: &Arc<SharedWords>, first: usize) -> Option<Inside> {
        let enough = first.checked_add(MAX_THREADS)? <= words.words();
        let words = Arc::clone(words);
        enough.then_some(Inside { words, first })
    }

    fn address(&self) -> u64 {
        let first = self.words.word(self.first);
        first.map_or(0, |word| ptr::from_ref(word) as u64)
    }
}

/// The same for whom nobody sees: they stay for good.
static UNSEEN: [AtomicU32; MAX_THREADS] = [const { AtomicU32::new(0) }; MAX_THREADS];

/// What holds for all calls of a domain.
#[derive(Default)]
pub struct Terms {
    /// Fact bits ([`crate::gate::FACT_XMM`] and so on), besides those of the domain's text.
    pub facts: u32,
    /// Deadline of a call in nanoseconds; 0 is none.
    pub deadline: u64,
    /// Control-stack limit in return addresses; 0 is none.
    pub call_depth: u64,
    /// Size of each data stack in bytes, a power of two; 0 is the image's.
    pub data_stack: u32,
    /// Who is inside is seen there. The domain is a common one ([`gate::FACT_COMMON`]).
    pub inside: Option<Inside>,
}

impl Block {
    /// Takes a free block. Its slots and counters are zero, it is [`Phase::Closed`].
    pub fn take() -> Result<Block, MapError> {
        let threads = thread::registered_ever();
        let mut guard = lock();
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
        // SAFETY: number < MAX_DOMAINS, so the block lies in the reservation, and it is open, for
        // good; zeros or a former domain's are a valid Control (atomics only).
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
            opened: AtomicBool::new(false),
            stubs: stub::Owned::default(),
        })
    }

    /// What its text's gate slots lead to, once it is made of something.
    pub(crate) fn services(&self) -> Option<&ServiceTable> {
        self.made_of.get().map(|made_of| &*made_of.services)
    }

    /// The text in its window, once there is some.
    pub(crate) fn text(&self) -> Option<Arc<Text>> {
        self.made_of.get().map(|made_of| made_of.text.clone())
    }

    /// Whether the text in its window may be entered at `offset`.
    pub fn is_start(&self, offset: u32) -> bool {
        let text = self.made_of.get().map(|made_of| &made_of.text);
        text.is_some_and(|text| text.is_start(offset)) || self.is_slot(offset)
    }

    /// Says what the domain is made of, once: text that is mapped in its window, and one service
    /// for each of its gate slots. [`crate::window::Pin::furnish`] knows which.
    pub(crate) fn made_of(
        &self,
        text: Arc<Text>,
        services: Arc<ServiceTable>,
        window: Arc<Reservation>,
        terms: &Terms,
    ) -> Result<(), MapError> {
        let table = services.as_ptr().cast_mut();
        let stack = match terms.data_stack {
            0 => text.layout().stack_size,
            chosen => chosen,
        };
        let common = match terms.inside {
            Some(_) => gate::FACT_COMMON,
            None => 0,
        };
        let facts = gate::fact_bits(text.facts()) | (terms.facts & !gate::FACT_COMMON) | common;
        let enough = services.len() >= text.slots() as usize && services.suits(facts);
        let made_of = MadeOf {
            text,
            services,
            window,
            _inside: terms.inside.clone(),
        };
        if !enough || !gate::has(facts) || self.made_of.set(made_of).is_err() {
            return Err(MapError::Taken);
        }
        let order = Ordering::SeqCst;
        let inside = terms.inside.as_ref().map_or(0, Inside::address);
        self.inside.store(inside, order);
        self.facts.store(facts, order);
        self.services.store(table, order);
        self.stack_log2.store(stack.trailing_zeros(), order);
        self.deadline.store(terms.deadline, order);
        self.call_depth.store(terms.call_depth, order);
        Ok(())
    }
}

impl Block {
    /// Closed → Open, once: a domain that is made of something is complete.
    pub fn open(&self) {
        if self.made_of.get().is_some() && !self.opened.swap(true, Ordering::SeqCst) {
            self.control.lifecycle.open();
        }
    }

    /// Nobody sees any more who is inside: those words are another process's, or are about to go.
    pub fn goes_unseen(&self) {
        if self.inside.load(Ordering::SeqCst) != 0 {
            let unseen = ptr::from_ref(&UNSEEN) as u64;
            self.inside.store(unseen, Ordering::SeqCst);
        }
    }

    /// A C function pointer that calls `entry`, one of this domain's. The same entry has the same
    /// pointer. When the domain is gone it is refused.
    ///
    /// # Errors
    /// The kernel's, if there can be no more; [`MapError::Taken`]: it is another domain's entry.
    pub fn pointer(&self, entry: Entry) -> Result<usize, MapError> {
        let generation = (entry.expected() >> 32) as u32;
        let closed = entry.expected() == u64::MAX;
        if !ptr::eq(entry.control(), self.control) || !(closed || generation == self.generation()) {
            return Err(MapError::Taken);
        }
        self.stubs.pointer(entry)
    }
}

impl Block {
    /// The entry of a function at `offset` with these types: which registers carry arguments, and
    /// which gate it takes. Where the domain's text may not be entered, it is one that no domain in
    /// any phase lets in.
    pub fn entry(&self, offset: u32, signature: &Signature, manner: Manner) -> Entry {
        let entry = Entry::of(self.control, offset, signature, manner);
        if !self.is_start(offset) {
            entry.close();
        }
        entry
    }

    /// An entry whose offset is said, and looked at, before each call ([`super::upcall`]).
    pub(crate) fn later_entry(&self, signature: &Signature) -> Entry {
        Entry::of(self.control, 0, signature, Manner::default())
    }
}

impl std::ops::Deref for Block {
    type Target = Control;
    fn deref(&self) -> &Control {
        self.control
    }
}

/// A thread that finds a domain closed leaves it within this time, also where processors are few.
const LONGEST_REFUSAL: Duration = Duration::from_secs(1);

impl Drop for Block {
    fn drop(&mut self) {
        self.control.lifecycle.close();
        self.goes_unseen();
        if let Some(made_of) = self.made_of.take() {
            // The runtime keeps a domain's parts until nobody is inside (`domain::reclaim`), so
            // this finds only calls by C function pointers that are being refused: they are gone at
            // once. If others are there, what they use stays for good.
            if !inside::wait_for_all(Target::domain(self.control), LONGEST_REFUSAL) {
                std::mem::forget((made_of, std::mem::take(&mut self.stubs)));
                return;
            }
            made_of.window.is_free_of(self.control.generation());
        }
        self.stubs.retire();
        if let Some(table) = lock().as_mut() {
            table.free.push(self.control.number() as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::table::open_slots;
    use crate::control::{FIRST, MAX_THREADS, NOBODYS, SLOTS, ThreadSlot, slot_at, slot_index};
    use crate::lifecycle::Phase;
    use std::collections::HashSet;

    #[test]
    fn slots_lie_in_their_own_blocks() {
        let mut places = HashSet::new();
        for index in 0..MAX_THREADS {
            let at = slot_at(index);
            assert_eq!(slot_index(at), index);
            let in_layer = (SLOTS + at as usize) % LAYER;
            assert!(in_layer + size_of::<ThreadSlot>() <= BLOCK, "{index}");
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
