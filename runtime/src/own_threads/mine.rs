//! Whether the calling thread is one that an extension started, and of which domain.

use super::state::OwnThreads;
use crate::domain::DomainInner;
use postern_gates::stale;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::sync::{Arc, Weak};

/// Whose the calling thread is.
struct Mine {
    threads: Arc<OwnThreads>,
    domain: Weak<DomainInner>,
    number: u64,
    /// Of a thread of the domain's pool: the list on which it is, and its number there.
    pool: Option<(Arc<OwnThreads>, u64)>,
    /// System calls in which it is, each with a reference to the domain in hand.
    holds: Cell<u32>,
}

// Without a destructor, for a thread may call extensions at its very end; [`Belonging`] empties it.
thread_local! {
    static MINE: ManuallyDrop<RefCell<Option<Box<Mine>>>> =
        const { ManuallyDrop::new(RefCell::new(None)) };
}

/// The calling thread belongs to a domain until this is dropped.
pub(crate) struct Belonging(());

impl Belonging {
    /// To this one, under this number.
    pub(crate) fn to(
        threads: Arc<OwnThreads>,
        domain: Weak<DomainInner>,
        number: u64,
    ) -> Belonging {
        Belonging::new(threads, domain, number, None)
    }

    /// To this one, as a thread of its pool, on this list, under this number there. Its extension
    /// has started others, or none.
    pub(crate) fn to_pool(
        threads: Arc<OwnThreads>,
        domain: Weak<DomainInner>,
        list: (Arc<OwnThreads>, u64),
    ) -> Belonging {
        // None that the extension started has this number.
        Belonging::new(threads, domain, u64::MAX, Some(list))
    }

    fn new(
        threads: Arc<OwnThreads>,
        domain: Weak<DomainInner>,
        number: u64,
        pool: Option<(Arc<OwnThreads>, u64)>,
    ) -> Belonging {
        let mine = Mine {
            threads,
            domain,
            number,
            pool,
            holds: Cell::new(0),
        };
        MINE.with(|place| *place.borrow_mut() = Some(Box::new(mine)));
        Belonging(())
    }
}

impl Drop for Belonging {
    fn drop(&mut self) {
        drop(MINE.with(|place| place.borrow_mut().take()));
    }
}

/// Whether the calling thread is an extension's.
pub(crate) fn is_own() -> bool {
    MINE.with(|place| place.borrow().is_some())
}

/// The calling thread's number, if it is one of these.
pub(crate) fn number_of(threads: &Arc<OwnThreads>) -> Option<u64> {
    MINE.with(|place| {
        let mine = place.borrow();
        let mine = mine.as_ref()?;
        Arc::ptr_eq(&mine.threads, threads).then_some(mine.number)
    })
}

/// The calling thread has left a call that was ended. If it is an extension's, and that was its
/// call of the domain, it is on its way out from here on.
pub(crate) fn has_left() {
    MINE.with(|place| {
        if let Some(mine) = &*place.borrow()
            && stale::nesting() == 0
        {
            match &mine.pool {
                Some((list, number)) => list.left(*number),
                None => mine.threads.left(mine.number),
            }
        }
    });
}

/// In how many system calls that hold a reference the calling thread is, if it is one of these.
pub(crate) fn held(threads: &Arc<OwnThreads>) -> u32 {
    MINE.with(|place| {
        let mine = place.borrow();
        let mine = mine.as_ref().filter(|m| Arc::ptr_eq(&m.threads, threads));
        mine.map_or(0, |mine| mine.holds.get())
    })
}

/// The calling thread, which is an extension's, is in one more or one less.
fn holds(threads: &OwnThreads, begins: bool) {
    MINE.with(|place| {
        if let Some(mine) = &*place.borrow() {
            let one = if begins { 1 } else { u32::MAX };
            mine.holds.set(mine.holds.get().wrapping_add(one));
        }
    });
    threads.holds(begins);
}

/// A system call of a thread of the domain's own holds a reference to it meanwhile.
pub(crate) struct Holding<'a>(Option<&'a OwnThreads>);

impl<'a> Holding<'a> {
    pub(crate) fn begin(domain: &'a DomainInner) -> Holding<'a> {
        let own = number_of(&domain.threads).map(|_| &*domain.threads);
        if let Some(threads) = own {
            holds(threads, true);
        }
        Holding(own)
    }
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        if let Some(threads) = self.0 {
            holds(threads, false);
        }
    }
}

/// For those who wait in a system call: the domain, if the calling thread is its own and nobody but
/// such threads, in such calls, has a reference to it any more. Its host has left it, so it is to
/// be closed.
pub(crate) fn orphaned() -> Option<Arc<DomainInner>> {
    MINE.with(|place| {
        let mine = place.borrow();
        let mine = mine.as_ref()?;
        let alone = mine.threads.hold_all(|| mine.domain.strong_count());
        alone.then(|| mine.domain.upgrade()).flatten()
    })
}
