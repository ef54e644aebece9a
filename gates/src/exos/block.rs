//! A domain's control block in use, and what keeps alive what gates read through it.
//!
//! Invariant: what gates read through a block (text, services, window) is there for as long as
//! somebody is inside, whoever drops the block when; and an entry leads where the domain's text may
//! be entered.

use super::callee::ServiceTable;
use super::control::table::{Table, lock};
use super::control::{BLOCK, Control, LAYER, LAYERS, MAX_DOMAINS};
use super::entry::{Entry, Manner};
use super::gate;
use super::map::{MapError, Mapping};
use super::sync::OnceLock;
use super::text::Text;
use super::window::Window;
use super::{stub, thread};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ptr;
use core::sync::atomic::Ordering;
use postern_image::Signature;

/// A control block in use; returned to the table on drop, closed.
pub struct Block {
    control: &'static Control,
    made_of: OnceLock<MadeOf>,
}

/// What gates use of a domain as long as somebody is inside.
struct MadeOf {
    text: Arc<Text>,
    services: Arc<ServiceTable>,
    window: Arc<Window>,
}

/// What holds for all calls of a domain.
#[derive(Default)]
pub struct Terms {
    /// Fact bits ([`crate::gate::FACT_XMM`] and so on), besides those of the domain's text.
    pub facts: u32,
    /// Deadline of a call in nanoseconds; 0 is none.
    pub deadline: u64,
    /// Control-stack limit in return addresses; 0 is none.
    pub call_depth: u64,
}

impl Block {
    /// Takes a free block. Its slots and counters are zero, it is closed.
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
        })
    }

    /// What its text's gate slots lead to, once it is made of something.
    pub(crate) fn services(&self) -> Option<&ServiceTable> {
        self.made_of.get().map(|made_of| &*made_of.services)
    }

    /// Whether the text in its window may be entered at `offset`.
    pub fn is_start(&self, offset: u32) -> bool {
        let made_of = self.made_of.get();
        made_of.is_some_and(|made_of| made_of.text.is_start(offset))
    }

    /// Says what the domain is made of, once: text that is in its window, and one service for each
    /// of its gate slots. From then on calls are let in.
    pub fn open(
        &self,
        text: &Arc<Text>,
        services: ServiceTable,
        window: &Arc<Window>,
        terms: &Terms,
    ) -> Result<(), MapError> {
        let facts = gate::fact_bits(text.facts()) | terms.facts;
        let enough = services.len() >= text.slots() as usize && services.suits(facts);
        if !enough || !gate::has(facts) || self.made_of.get().is_some() {
            return Err(MapError::Taken);
        }
        let made_of = MadeOf {
            text: text.clone(),
            services: Arc::new(services),
            window: window.clone(),
        };
        let table = made_of.services.as_ptr().cast_mut();
        self.made_of.get_or_init(|| made_of);
        let order = Ordering::SeqCst;
        self.facts.store(facts, order);
        self.services.store(table, order);
        let size = text.layout().stack_size;
        self.stack_log2.store(size.trailing_zeros(), order);
        self.deadline.store(terms.deadline, order);
        self.call_depth.store(terms.call_depth, order);
        self.control.lie_at(window.base());
        self.control.lifecycle.open();
        Ok(())
    }

    /// The domain's window, once it has one.
    pub fn window(&self) -> Option<&Arc<Window>> {
        self.made_of.get().map(|made_of| &made_of.window)
    }

    /// A C function pointer that calls `entry`, one of this domain's. The same entry has the same
    /// pointer. When the domain is gone it is refused.
    pub fn pointer(&self, entry: Entry) -> Result<usize, MapError> {
        match ptr::eq(entry.control(), self.control) {
            true => stub::pointer(entry),
            false => Err(MapError::Taken),
        }
    }

    /// The entry of a function at `offset` with these types. Where the domain's text may not be
    /// entered, it is one that no domain in any phase lets in.
    pub fn entry(&self, offset: u32, signature: &Signature, manner: Manner) -> Entry {
        let entry = Entry::of(self.control, offset, signature, manner);
        if !self.is_start(offset) {
            entry.close();
        }
        entry
    }
}

impl core::ops::Deref for Block {
    type Target = Control;
    fn deref(&self) -> &Control {
        self.control
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.control.lifecycle.close();
        // Who keeps a domain's parts keeps them until the thread is not inside any more; if it is,
        // what it uses stays for good.
        if thread::is_inside(self.control)
            && thread::own_phase() != super::call_state::CallPhase::Outside
        {
            core::mem::forget(core::mem::replace(&mut self.made_of, OnceLock::new()));
            return;
        }
        if let Some(table) = lock().as_mut() {
            table.free.push(self.control.number() as usize);
        }
    }
}
