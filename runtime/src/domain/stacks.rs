//! Data stacks, which threads get at their first entry.

use super::{DomainInner, domains, let_go, of};
use crate::image;
use postern_gates::control::Control;
use postern_gates::outcome::Refusal;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// For the gate's slow path: the first entry of a thread into a domain.
pub(crate) fn give_data_stack(control: &Control, index: usize) -> Result<(), Refusal> {
    let inner = of(control).ok_or(Refusal::Closed)?;
    let given = inner.instance.give_data_stack(inner.limits.threads);
    match given {
        // While the block is this domain's, who counts what it gives.
        Ok(first) => control.give_data_stack(index, first),
        Err(_) => inner.ends_if_torn(),
    }
    // A gate cannot be unwound.
    let_go(inner);
    given.map(drop)
}

impl DomainInner {
    /// The calling thread's data stack is anybody's. Nobody is inside, and all data stacks begin
    /// anew after this: so a domain that one thread after the other has for a while is never one
    /// that several threads may enter, which a reset would have to make sure of.
    pub(super) fn return_my_data_stack(&self) {
        if let Some(first) = self.control.take_my_data_stack() {
            self.instance.take_data_stack(first);
        }
    }
}

/// For a thread of the host that got the index, and so the data stacks, of one that has ended:
/// thread-local variables begin anew.
pub(crate) fn renew_thread(index: usize) {
    if !image::THREAD_LOCALS_EXIST.load(Ordering::SeqCst) {
        return;
    }
    let live: Vec<Arc<DomainInner>> = domains().iter().filter_map(Weak::upgrade).collect();
    for inner in live {
        let first = inner.control.data_stack(index);
        inner.instance.renew_stack_top(first);
        let_go(inner);
    }
}
