//! Where the calls of one function of a module go: an entry that is exchanged while threads call
//! it.
//!
//! Every entry that was ever current stays until the switch goes, because a thread may have read
//! its address long ago and not gone through the gate yet. The gate then finds a closed domain, and
//! asks for the present entry instead.

pub use super::entry::{Destinations, Route};
use super::entry::{Entry, Kept};
use super::map::MapError;
use super::stub;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// One function's.
pub struct Switch {
    /// What callers take: the destinations' `real`, or their `detour`.
    current: AtomicPtr<Entry>,
    /// Made when the switch was, and freed with it: it stays where it is, wherever the switch goes,
    /// for its entries lead to it.
    to: NonNull<Destinations>,
    /// Address of the C function pointer that follows `current`, or 0.
    stub: AtomicUsize,
}

// SAFETY: the pointers are to entries, which are immutable but for atomics and may be read by every
// thread, and to destinations, of which that is true, too; only `drop` frees any.
unsafe impl Send for Switch {}
// SAFETY: as above.
unsafe impl Sync for Switch {}

impl Destinations {
    fn keep(&self, mut entry: Entry) -> *mut Entry {
        entry.switch = self;
        let kept = Box::into_raw(Box::new(Kept {
            entry,
            before: std::ptr::null_mut(),
        }));
        let mut before = self.all.load(Ordering::SeqCst);
        loop {
            // SAFETY: just made, and nobody else's until the exchange below.
            unsafe { (*kept).before = before };
            match self
                .all
                .compare_exchange(before, kept, Ordering::SeqCst, Ordering::SeqCst)
            {
                Ok(_) => return kept.cast(),
                Err(other) => before = other,
            }
        }
    }

    /// The present version's entry.
    pub fn real(&self) -> &Entry {
        // SAFETY: set when the switch was made; entries live as long as this.
        unsafe { &*self.real.load(Ordering::SeqCst) }
    }

    /// Who is asked, if it is still there.
    pub fn owner(&self) -> Option<Arc<dyn Route>> {
        self.owner.upgrade()
    }
}

impl Drop for Destinations {
    fn drop(&mut self) {
        let mut kept = *self.all.get_mut();
        while !kept.is_null() {
            // SAFETY: each was made by Box::into_raw in `keep`, is in the list once, and nobody can
            // call it any more.
            kept = unsafe { Box::from_raw(kept) }.before;
        }
    }
}

impl Switch {
    /// A switch whose calls go to `entry`; with `ask`, each finds no entry first:
    /// [`super::above::Above::instead`].
    pub fn new(owner: Weak<dyn Route>, entry: Entry, ask: bool) -> Switch {
        let to = Box::new(Destinations {
            real: AtomicPtr::default(),
            detour: AtomicPtr::default(),
            all: AtomicPtr::default(),
            owner,
        });
        let switch = Switch {
            current: AtomicPtr::default(),
            to: NonNull::from(Box::leak(to)),
            stub: AtomicUsize::new(0),
        };
        let to = switch.to();
        to.detour.store(to.keep(entry.closed()), Ordering::SeqCst);
        switch.go(entry, ask);
        switch
    }

    fn to(&self) -> &Destinations {
        // SAFETY: `new` made it, and `drop` frees it.
        unsafe { self.to.as_ref() }
    }

    /// From now on calls go to `entry`; with `ask`, each finds no entry first.
    pub fn go(&self, entry: Entry, ask: bool) {
        let entry = self.to().keep(entry);
        self.to().real.store(entry, Ordering::SeqCst);
        self.ask(ask);
    }

    /// Whether calls ask first.
    pub fn ask(&self, ask: bool) {
        let from = if ask {
            &self.to().detour
        } else {
            &self.to().real
        };
        let entry = from.load(Ordering::SeqCst);
        self.current.store(entry, Ordering::SeqCst);
        let stub = self.stub.load(Ordering::SeqCst);
        if stub != 0 {
            // SAFETY: `stub` made it, and keeps the switch for good, with its entries.
            unsafe { stub::point(stub, entry) };
        }
    }

    /// What callers call.
    #[inline(always)]
    pub fn current(&self) -> &Entry {
        // SAFETY: `new` has set it, before anybody got hold of the switch; entries live as long as
        // it.
        unsafe { &*self.current.load(Ordering::Acquire) }
    }

    /// The C function pointer that follows the switch, made at the first time. From then on the
    /// switch stays for good: C may call the pointer at any time.
    pub fn stub(self: &Arc<Self>) -> Result<usize, MapError> {
        let known = self.stub.load(Ordering::SeqCst);
        if known != 0 {
            return Ok(known);
        }
        // So the switch stays for good, with its entries.
        let kept = self.clone();
        // SAFETY: `kept` is forgotten before anybody has the pointer.
        let stub = unsafe { stub::make(self.current.load(Ordering::SeqCst))? };
        std::mem::forget(kept);
        let first = self
            .stub
            .compare_exchange(0, stub, Ordering::SeqCst, Ordering::SeqCst);
        // It may have been switched meanwhile.
        // SAFETY: as above.
        unsafe { stub::point(stub, self.current.load(Ordering::SeqCst)) };
        Ok(first.err().unwrap_or(stub))
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        // SAFETY: leaked in `new`, and nobody else frees it.
        drop(unsafe { Box::from_raw(self.to.as_ptr()) });
    }
}
