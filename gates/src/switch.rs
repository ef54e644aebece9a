//! Where the calls of one function of a module go: an entry that is exchanged while threads call it.
//!
//! Every entry that was ever current stays until the switch goes, because a thread may have read its address long ago and not
//! gone through the gate yet. The gate then finds a closed domain, and asks for the present entry instead.

use super::entry::{Entry, Kept};
pub use super::entry::{Route, Switch};
use super::map::MapError;
use super::stub;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

impl Switch {
    /// A switch that no call may go through before [`Switch::go`].
    pub fn new(owner: Weak<dyn Route>) -> Switch {
        Switch {
            current: AtomicPtr::default(),
            real: AtomicPtr::default(),
            detour: AtomicPtr::default(),
            all: AtomicPtr::default(),
            stub: AtomicUsize::new(0),
            owner,
        }
    }

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

    /// From now on calls go to `entry`; with `ask`, each finds no entry first: [`super::above::Above::instead`].
    pub fn go(&self, entry: Entry, ask: bool) {
        if self.detour.load(Ordering::SeqCst).is_null() {
            let detour = self.keep(entry.closed());
            self.detour.store(detour, Ordering::SeqCst);
        }
        let entry = self.keep(entry);
        self.real.store(entry, Ordering::SeqCst);
        self.ask(ask);
    }

    /// Whether calls ask first.
    pub fn ask(&self, ask: bool) {
        let from = if ask { &self.detour } else { &self.real };
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
        // SAFETY: `go` was called before anybody got hold of the switch; entries live as long as it.
        unsafe { &*self.current.load(Ordering::Acquire) }
    }

    /// The present version's entry.
    pub fn real(&self) -> &Entry {
        // SAFETY: as above.
        unsafe { &*self.real.load(Ordering::SeqCst) }
    }

    /// The C function pointer that follows the switch, made at the first time. From then on the switch stays for good: C may call the
    /// pointer at any time.
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
        let mut kept = *self.all.get_mut();
        while !kept.is_null() {
            // SAFETY: each was made by Box::into_raw in `keep`, is in the list once, and nobody can call it any more.
            kept = unsafe { Box::from_raw(kept) }.before;
        }
    }
}
