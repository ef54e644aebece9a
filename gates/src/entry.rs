//! Entries: what callers call. They are made by a domain's block ([`super::block`]).

use super::control::Control;
use super::gate::{self, FLAG_FLOATS, FLAG_PAYLOAD, GateClass};
use super::lifecycle::Phase;
use super::registers::{float_mask, integer_mask};
use alloc::sync::Weak;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use postern_image::{Signature, Type};

/// One exported function as the gates see it. Lives as long as anybody can call it. Nothing changes
/// but the three words that say whose it is, and those only of entries of C function pointers
/// ([`super::stub`]).
#[repr(C, align(64))]
pub struct Entry {
    /// Where callers jump: masked gate for C stubs, plain gate for typed calls.
    pub(crate) gate: usize,
    /// Where the slow path tries again.
    pub(crate) body: usize,
    /// The domain's control block.
    pub(crate) control: AtomicPtr<Control>,
    /// Offset of the function.
    pub(crate) offset: AtomicU32,
    /// [`super::gate::FLAG_FLOATS`], [`super::gate::FLAG_PAYLOAD`].
    pub(crate) flags: u32,
    /// Words of arguments on the caller's stack, above its return address.
    pub(crate) stack_words: u32,
    /// Phase and generation with which the call is let in: [`Phase::Open`], and the domain's own.
    pub(crate) expected: AtomicU64,
    /// For [`super::gate::narrow`]: the gate behind.
    pub(crate) inner: usize,
    /// Masks of the integer argument registers.
    pub(crate) int_masks: [u64; 6],
    /// Masks of the floating-point argument registers.
    pub(crate) float_masks: FloatMasks,
    /// Masks of the words on the stack.
    pub(crate) stack_masks: [u64; 10],
    /// Longest time of a call in nanoseconds, besides the domain's deadline; 0 is none. Only the
    /// full gate looks at it …
    pub(crate) limit: u64,
    /// … and at what becomes of the domain after a fault: a number for
    /// [`super::above::Above::ended`], or 0 for the domain's own.
    pub(crate) recovery: u32,
    /// For functions of modules: what knows where calls go that this entry does not let in. Else
    /// null.
    pub(crate) switch: *const Destinations,
}

impl Entry {
    /// One that leads nowhere and is never entered.
    pub(crate) fn nowhere() -> Entry {
        Entry {
            gate: 0,
            body: 0,
            control: AtomicPtr::default(),
            offset: AtomicU32::new(0),
            flags: 0,
            stack_words: 0,
            expected: AtomicU64::new(u64::MAX),
            inner: 0,
            int_masks: [0; 6],
            float_masks: FloatMasks::default(),
            stack_masks: [0; 10],
            limit: 0,
            recovery: 0,
            switch: core::ptr::null(),
        }
    }
}

impl Clone for Entry {
    fn clone(&self) -> Entry {
        Entry {
            control: AtomicPtr::new(self.control.load(Ordering::SeqCst)),
            offset: AtomicU32::new(self.offset()),
            expected: AtomicU64::new(self.expected()),
            // Its own copies only: see [`super::switch`].
            switch: core::ptr::null(),
            ..*self
        }
    }
}

/// Eight 128-bit masks, aligned for `andps`.
#[repr(C, align(16))]
#[derive(Clone, Copy, Default)]
pub(crate) struct FloatMasks(pub [[u64; 2]; 8]);

// SAFETY: an entry is immutable once built but for atomics, its control block is never unmapped,
// and its switch owns it and can be shared.
unsafe impl Send for Entry {}
// SAFETY: as above.
unsafe impl Sync for Entry {}

impl Entry {
    /// What knows where calls of this function go, if it is a module's.
    pub fn switch(&self) -> Option<&Destinations> {
        // SAFETY: entries that have such are owned by it.
        unsafe { self.switch.as_ref() }
    }

    /// The same function for callers, but no domain in any phase lets it in.
    pub(crate) fn closed(&self) -> Entry {
        let entry = self.clone();
        entry.close();
        entry
    }

    /// From now on no domain in any phase lets calls in.
    pub(crate) fn close(&self) {
        self.expected.store(u64::MAX, Ordering::SeqCst);
    }

    /// From now on calls go where those of `other` go, which differs in nothing else. The word that
    /// lets them in is written last: who reads it finds the rest.
    pub(crate) fn lead(&self, other: &Entry) {
        let control = other.control.load(Ordering::SeqCst);
        self.control.store(control, Ordering::SeqCst);
        self.offset.store(other.offset(), Ordering::SeqCst);
        self.expected.store(other.expected(), Ordering::SeqCst);
    }

    /// Whether calls of the one may go to the other, as far as where their arguments are is
    /// concerned.
    pub(crate) fn takes_the_same(&self, other: &Entry) -> bool {
        let FloatMasks(floats) = &self.float_masks;
        (self.flags, self.stack_words, self.inner != 0)
            == (other.flags, other.stack_words, other.inner != 0)
            && (self.int_masks, self.stack_masks) == (other.int_masks, other.stack_masks)
            && *floats == other.float_masks.0
    }

    /// Offset of the function.
    pub fn offset(&self) -> u32 {
        self.offset.load(Ordering::SeqCst)
    }

    /// Phase and generation with which the call is let in.
    pub(crate) fn expected(&self) -> u64 {
        self.expected.load(Ordering::SeqCst)
    }

    /// The control block of its domain, which may have closed.
    pub fn control(&self) -> &'static Control {
        // SAFETY: an entry is made with a control block, and those are never unmapped.
        unsafe { &*self.control.load(Ordering::SeqCst) }
    }
}

/// Where the calls of a switch go, and went.
pub struct Destinations {
    /// The present version's entry.
    pub(super) real: AtomicPtr<Entry>,
    /// An entry that no state lets in, so that each call asks.
    pub(super) detour: AtomicPtr<Entry>,
    pub(super) all: AtomicPtr<Kept>,
    /// Who is asked.
    pub(super) owner: Weak<dyn Route>,
}

/// An entry that is kept, and the one kept before it. Callers hold its address as that of its
/// entry.
#[repr(C)]
pub(super) struct Kept {
    pub(super) entry: Entry,
    pub(super) before: *mut Kept,
}

/// Who knows where calls of a switch go.
pub trait Route: Send + Sync {
    /// A call was not let in by `entry`: the entry to try instead. `None`: the refusal stays.
    fn route<'a>(&self, to: &'a Destinations, entry: &Entry) -> Option<&'a Entry>;
}

/// How calls of an entry are made, apart from their types.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manner {
    /// Calls bring a [`super::payload::CallPayload`], whose offset is their first parameter.
    pub payload: bool,
    /// Longest time of a call in nanoseconds, besides the domain's deadline; 0 is none.
    pub limit: u64,
    /// What becomes of the domain after a fault: a number for [`super::above::Above::ended`], or 0
    /// for the domain's own.
    pub recovery: u32,
}

impl Entry {
    /// The entry of a function at `offset` of the domain with this control block, with these types:
    /// which registers carry arguments, and which gate it takes.
    pub(super) fn of(
        control: &'static Control,
        offset: u32,
        signature: &Signature,
        manner: Manner,
    ) -> Entry {
        let mut entry = Entry {
            control: AtomicPtr::new(core::ptr::from_ref(control).cast_mut()),
            offset: offset.into(),
            expected: Control::word(Phase::Open, control.generation()).into(),
            flags: if manner.payload { FLAG_PAYLOAD } else { 0 },
            limit: manner.limit,
            recovery: manner.recovery,
            ..Entry::nowhere()
        };
        let (mut integers, mut floats) = (0, 0);
        for &t in signature.parameters() {
            if t.is_float() && floats < 8 {
                entry.float_masks.0[floats][0] = float_mask(t);
                entry.flags |= FLAG_FLOATS;
                floats += 1;
            } else if !t.is_float() && integers < 6 {
                entry.int_masks[integers] = integer_mask(t);
                integers += 1;
            } else {
                entry.stack_masks[entry.stack_words as usize] = integer_mask(t) | float_mask(t);
                entry.stack_words += 1;
            }
        }
        let class = entry.class();
        (entry.gate, entry.body) = (class.gate, class.body);
        if entry.stack_words != 0 {
            entry.gate = gate::without_words();
        }
        entry
    }

    /// The same for callers that use C's calling convention and may leave anything in unused
    /// registers.
    pub fn for_c(mut self, result: Option<Type>) -> Entry {
        let masked = self.class().masked;
        self.gate = masked;
        if let Some(narrow) = gate::narrow(result) {
            (self.gate, self.inner) = (narrow, masked);
        }
        self
    }

    /// The same while the domain is [`Phase::Exclusive`]: whoever has it is let in then.
    pub fn in_exclusive(self) -> Entry {
        let generation = (self.expected() >> 32) as u32;
        // One that leads nowhere stays so.
        if self.expected() != u64::MAX {
            let expected = Control::word(Phase::Exclusive, generation);
            self.expected.store(expected, Ordering::SeqCst);
        }
        self
    }

    /// Whether only the full gate does what its calls need.
    pub(super) fn needs_full(&self) -> bool {
        self.stack_words != 0
            || self.flags & FLAG_PAYLOAD != 0
            || self.limit != 0
            || self.recovery != 0
            || self.control().call_depth.load(Ordering::Relaxed) != 0
    }

    /// The gates that its calls go through.
    pub(super) fn class(&self) -> GateClass {
        gate::class(self.control().facts(), self.needs_full())
    }
}
