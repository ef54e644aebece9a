//! What the imports of an image lead to, with what those functions find there.
//!
//! Invariant: what a service's function finds as its context (a closure, a [`Narrow`], a peer) is
//! owned by the [`ServiceTable`] whose entry names it, and the table by the block whose gates read
//! it ([`super::block`]). So it stays for as long as somebody is inside, whoever drops what when.

use super::control::{PEER, ServiceEntry};
use super::gate::{FACT_FLOAT, FACT_X87, FACT_XMM, FACT_YMM};
use super::shim::Narrow;
#[cfg(feature = "linux")]
use super::shim::{self, Body};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::ops::Deref;
use core::sync::atomic::{AtomicPtr, Ordering};
use postern_image::Type;

/// The facts of a caller's text that matter to a peer that it calls.
pub(crate) const CALLER_FACTS: u32 = FACT_XMM | FACT_YMM | FACT_FLOAT | FACT_X87;
/// Most bytes of stack that a service asks for: with more, the gates would take it for a peer.
const MOST_STACK: usize = 1 << 48;

/// Something of any type that is kept.
pub(crate) type Keepsake = Arc<dyn Any + Send + Sync>;

/// A function that can serve an import. Cloning shares its context.
#[derive(Clone)]
pub struct Callee {
    function: usize,
    context: usize,
    kept: Option<Keepsake>,
    peer: Option<ForCallers>,
}

/// Who a peer was made for.
#[derive(Clone, Copy)]
pub(crate) enum ForCallers {
    /// It clears nothing by their facts.
    All,
    /// Blocks with these facts, as far as they are among [`CALLER_FACTS`].
    With(u32),
}

impl ForCallers {
    /// Whether a block with `facts` is one.
    pub(crate) fn has(self, facts: u32) -> bool {
        match self {
            ForCallers::All => true,
            ForCallers::With(known) => known == facts & CALLER_FACTS,
        }
    }
}

impl Callee {
    /// A closure that has a result of this type.
    #[cfg(feature = "linux")]
    pub fn closure<B: Body>(body: B, result: Option<Type>) -> Callee {
        let body = Arc::new(body);
        Callee {
            function: shim::address::<B>(result),
            context: Arc::as_ptr(&body) as usize,
            kept: Some(body),
            peer: None,
        }
    }

    /// A C function with these parameters.
    ///
    /// # Safety
    /// `function` is one of the C calling convention that any words in the argument registers of
    /// these parameters may be given to, as wide as their types, on any thread, and that neither
    /// unwinds nor jumps over the gates.
    pub unsafe fn function(function: usize, parameters: &[Type]) -> Callee {
        // SAFETY: the caller's promise.
        match unsafe { Narrow::new(function, parameters) }.map(Arc::new) {
            Some(narrow) => Callee {
                function: Narrow::shim(),
                context: Arc::as_ptr(&narrow) as usize,
                kept: Some(narrow),
                peer: None,
            },
            None => Callee {
                function,
                context: 0,
                kept: None,
                peer: None,
            },
        }
    }

    /// What peers are behind, for [`super::peer`].
    ///
    /// # Safety
    /// The function is [`super::peer::function`], and `context` the address of a peer for such
    /// callers, which `kept` owns and which stays where it is.
    pub(crate) unsafe fn of_peer(
        function: usize,
        context: usize,
        kept: Keepsake,
        callers: ForCallers,
    ) -> Callee {
        Callee {
            function,
            context,
            kept: Some(kept),
            peer: Some(callers),
        }
    }

    /// Whether it is another extension's function.
    pub fn is_peer(&self) -> bool {
        self.peer.is_some()
    }

    /// Whether it has a context of its own.
    pub fn has_context(&self) -> bool {
        self.kept.is_some()
    }

    /// The entry of an import with a result of this type.
    fn entry(&self, stack: usize, result: Option<Type>) -> ServiceEntry {
        let stack = match self.is_peer() {
            true => PEER,
            false => stack.min(MOST_STACK) as u64,
        };
        // SAFETY: there are three kinds. Of a closure, function and context are the shim of its
        // very type and the closure. A C function is as whoever made the callee has promised, and
        // has no context, or its shim has the `Narrow`. Of a peer they are the gates' own function
        // and the peer, and only with it goes this need of stack. The table that the entry is for
        // keeps a clone of this callee, and with it the context, for as long as the entry; its
        // owner among the gates is a block, which keeps it while somebody is inside.
        unsafe { ServiceEntry::new(self.function, self.context, stack, result, !self.is_peer()) }
    }
}

impl core::fmt::Debug for Callee {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Callee")
            .field("context", &self.has_context())
            .field("peer", &self.is_peer())
            .finish_non_exhaustive()
    }
}

/// What the gate slots of one domain lead to, in the order of the imports.
pub struct ServiceTable {
    entries: Box<[ServiceEntry]>,
    callees: Box<[Callee]>,
    /// What was kept after the table was made, latest first. It has no lock, for a child that is
    /// forked meanwhile.
    later: AtomicPtr<Later>,
}

struct Later {
    _kept: Keepsake,
    before: *mut Later,
}

impl ServiceTable {
    /// A table of callees, each with the bytes of stack that it needs (peers say so themselves) and
    /// the type of its result.
    pub fn new<'a>(
        callees: impl IntoIterator<Item = (&'a Callee, usize, Option<Type>)>,
    ) -> ServiceTable {
        let callees = callees.into_iter();
        let (entries, callees): (Vec<_>, Vec<_>) = callees
            .map(|(callee, stack, result)| (callee.entry(stack, result), callee.clone()))
            .unzip();
        ServiceTable {
            entries: entries.into(),
            callees: callees.into(),
            later: AtomicPtr::default(),
        }
    }

    /// Whether a block with `facts` may have this table: its peers were made for such callers.
    pub(crate) fn suits(&self, facts: u32) -> bool {
        let mut peers = self.callees.iter().filter_map(|callee| callee.peer);
        peers.all(|callers| callers.has(facts))
    }

    /// The entry of an import that a peer serves.
    pub(crate) fn peer(&self, number: usize) -> Option<&ServiceEntry> {
        self.callees.get(number).filter(|callee| callee.is_peer())?;
        self.entries.get(number)
    }

    /// Keeps something for as long as the table is there.
    pub(crate) fn keep(&self, kept: Keepsake) {
        let new = Box::into_raw(Box::new(Later {
            _kept: kept,
            before: core::ptr::null_mut(),
        }));
        let (order, mut before) = (Ordering::SeqCst, self.later.load(Ordering::SeqCst));
        loop {
            // SAFETY: just made, and nobody else's until the exchange below.
            unsafe { (*new).before = before };
            match self.later.compare_exchange(before, new, order, order) {
                Ok(_) => return,
                Err(other) => before = other,
            }
        }
    }
}

impl Deref for ServiceTable {
    type Target = [ServiceEntry];
    fn deref(&self) -> &[ServiceEntry] {
        &self.entries
    }
}

impl Drop for ServiceTable {
    fn drop(&mut self) {
        let mut later = *self.later.get_mut();
        while !later.is_null() {
            // SAFETY: each was made by Box::into_raw in `keep`, and is in the list once.
            later = unsafe { Box::from_raw(later) }.before;
        }
    }
}
