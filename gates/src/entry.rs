//! Entries are made here, of what is known: a domain's block, an offset where its text may be entered, and C types.

use super::control::{Block, Control, Entry};
use super::gate::{self, FLAG_FLOATS, FLAG_PAYLOAD, GateClass};
use super::lifecycle::Phase;
use super::registers::{float_mask, integer_mask};
use postern_image::{Signature, Type};
use std::sync::atomic::{AtomicPtr, Ordering};

/// How calls of an entry are made, apart from their types.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manner {
    /// Calls bring a [`super::enter::CallPayload`], whose offset is their first parameter.
    pub payload: bool,
    /// Longest time of a call in nanoseconds, besides the domain's deadline; 0 is none.
    pub limit: u64,
    /// What becomes of the domain after a fault: a number for [`super::above::Above::ended`], or 0 for the domain's own.
    pub recovery: u32,
}

impl Block {
    /// The entry of a function at `offset` with these types: which registers carry arguments, and which gate it takes. Where the
    /// domain's text may not be entered, it is one that no domain in any phase lets in.
    pub fn entry(&self, offset: u32, signature: &Signature, manner: Manner) -> Entry {
        let mut entry = Entry {
            control: AtomicPtr::new(std::ptr::from_ref::<Control>(self).cast_mut()),
            offset: offset.into(),
            expected: Control::word(Phase::Open, self.generation()).into(),
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
        if !self.is_start(offset) {
            entry.close();
        }
        entry
    }
}

impl Entry {
    /// The same for callers that use C's calling convention and may leave anything in unused registers.
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
