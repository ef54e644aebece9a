//! Domains whose last handle is gone while a call is inside: kept until it has left.
//!
//! A call needs no reference to its domain. So a service, a decider, a policy's function may drop
//! the last one there is, or another thread may while this one waits for a third; what the call
//! still reaches (its own closure, the guard in front of it, the system calls' files, window and
//! control block) must stay until the call has left. Invariant: the parts of a domain are dropped
//! only when it is closed and a look at all threads has found nobody inside, and then nobody can
//! be: the gates let nobody into a closed domain.
//!
//! A call that comes back into a closed domain is ended, if it does not end before it could be
//! asked to; so the way out of ended calls ([`crate::call::ended`]) is where a thread looks here.
//! Who builds another domain looks, too, for the few that are left: by longjmp, or by a call that
//! was quicker than the wish.

use super::DomainInner;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard};

pub(crate) type Retired = Vec<DomainInner>;
static RETIRED: Mutex<Retired> = Mutex::new(Vec::new());
/// How many there are, or are about to be.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The list, locked: for [`crate::at_fork`]. The registry may be locked under it.
pub(crate) fn list() -> MutexGuard<'static, Retired> {
    RETIRED.lock().unwrap_or_else(|e| e.into_inner())
}

/// Takes over the parts of a domain that is being dropped. False if everybody has left meanwhile.
pub(super) fn keep(inner: &mut DomainInner) -> bool {
    let mut list = list();
    // Whoever leaves from here on finds it; whoever has left is not seen inside.
    COUNT.fetch_add(1, Ordering::SeqCst);
    if !inner.occupied() {
        COUNT.fetch_sub(1, Ordering::SeqCst);
        return false;
    }
    list.push(DomainInner(inner.0.take()));
    true
}

/// Drops the domains that everybody has left. The host's own code runs in there: destructors of
/// what its closures own.
pub(crate) fn sweep() {
    // After the caller's own call state.
    fence(Ordering::SeqCst);
    if COUNT.load(Ordering::SeqCst) == 0 {
        return;
    }
    let mut list = list();
    let (stay, go): (Retired, Retired) = std::mem::take(&mut *list)
        .into_iter()
        .partition(|inner| inner.occupied());
    *list = stay;
    COUNT.fetch_sub(go.len(), Ordering::SeqCst);
    drop(list);
    drop(go);
}
