//! How a thread becomes known at its first entry.

use super::above::above;
use super::below::below;
use super::bulk;
use super::control::{self, MAX_THREADS};
use super::gate::Label;
use super::map::Mapping;
use super::nesting;
use super::outcome::{RawFault, Refusal};
use super::record::MAX_NESTING;
use super::thread::{self, Extra, NESTED, Thread, X87, registry};
use alloc::boxed::Box;
use alloc::vec;
use core::sync::atomic::{AtomicBool, Ordering};

/// Size of a control stack of the gates' own, for calls from other stacks.
const CONTROL_STACK: usize = 256 << 10;
/// Stack below the entry gate that the slow path itself may need.
const MARGIN: u64 = 16 << 10;

static KNOWN: AtomicBool = AtomicBool::new(false);

/// Whether the thread is registered. (Who has no thread pointer yet may ask.)
pub(super) fn known() -> bool {
    KNOWN.load(Ordering::Relaxed)
}

/// Registers the calling thread, or says why it cannot enter extensions.
pub(super) fn register(thread: &Thread, _frame: u64) -> Result<(), Refusal> {
    let (low, top) = (below().stack)();
    let mut registry = registry();
    let former = registry.threads.iter().position(|t| t.is_null());
    let index = former.unwrap_or(registry.threads.len());
    if index == MAX_THREADS {
        return Err(Refusal::ThreadTable);
    }
    control::open_slots(index).map_err(|_| Refusal::NoMemory)?;
    let extra = Box::new(Extra {
        messages: vec![None; MAX_NESTING],
        next_limit: 0,
        fault: RawFault::default(),
        detail: 0,
        message: None,
        panic: None,
        x87: X87::default(),
        stack: (low, top),
        own_stack: None,
        index,
        admitted: true,
        ending: false,
        checked: 0,
        signal_stack: None,
    });
    let relaxed = Ordering::Relaxed;
    let service = Label::postern_service.address() as u64;
    thread.service_gate.store(service, relaxed);
    bulk::give(thread);
    thread.extra.store(Box::into_raw(extra), relaxed);
    nesting::make(thread);
    thread.nested.store(NESTED, relaxed);
    let at = control::slot_at(index);
    thread.slot.store(at, relaxed);
    thread.entry_slot.store(at, Ordering::SeqCst);
    thread.stack_low.store(low + MARGIN, relaxed);
    thread.stack_size.store(top - low - MARGIN, relaxed);
    thread.stack_span.store(top - low - MARGIN, relaxed);
    match former {
        Some(index) => registry.threads[index] = thread,
        None => registry.threads.push(thread),
    }
    drop(registry);
    if former.is_some() {
        (above().renew_thread)(index);
    }
    KNOWN.store(true, Ordering::Relaxed);
    Ok(())
}

/// Nothing changes that a thread would have to look at again.
pub(crate) fn look(_thread: &Thread) -> Result<(), Refusal> {
    Ok(())
}

/// Nobody is known for a call alone.
pub(super) fn leave(_thread: &Thread) {}

/// Forgets the calling thread, which ends and is inside nothing.
pub fn forget() {
    let thread = thread::current();
    let extra = thread.extra.swap(core::ptr::null_mut(), Ordering::Relaxed);
    if extra.is_null() {
        return;
    }
    thread.stack_span.store(0, Ordering::Relaxed);
    thread.entry_slot.store(control::NOBODYS, Ordering::SeqCst);
    // SAFETY: the pointer came from Box::into_raw in `register` and was just taken out of its only
    // place.
    let extra = unsafe { Box::from_raw(extra) };
    if let Some(place) = registry().threads.get_mut(extra.index) {
        *place = core::ptr::null();
    }
    drop(nesting::Records::take(thread));
}

impl Extra {
    /// The control stack of the gates' own (lowest usable address, top), made at first use.
    pub(super) fn own_stack(&mut self) -> Result<(u64, u64), Refusal> {
        const GUARD: usize = 4096;
        let bounds = |memory: &Mapping| {
            let (start, bytes) = (memory.address(), memory.bytes());
            ((start + GUARD) as u64, (start + bytes - GUARD) as u64)
        };
        if let Some(stack) = &self.own_stack {
            return Ok(bounds(stack));
        }
        let memory = Mapping::sparse(CONTROL_STACK + 2 * GUARD);
        let memory = memory.map_err(|_| Refusal::NoMemory)?;
        let opened = memory.open(GUARD..GUARD + CONTROL_STACK);
        opened.map_err(|_| Refusal::NoMemory)?;
        Ok(bounds(self.own_stack.insert(memory)))
    }
}
