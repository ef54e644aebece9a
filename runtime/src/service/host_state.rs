//! What the host gives along with a call, for the services that the call comes to.
//!
//! Invariant: a state is seen only by services of calls that the thread makes directly inside
//! [`with_state`]: not by those of calls which these services make in turn, nor by a peer's. So who
//! calls an extension on another one's behalf never lends it the first one's state.

use super::caller::Caller;
use postern_gates::stale::nesting;
use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

/// A state, and how many calls its thread was inside when it was given.
type Given = (usize, Rc<dyn Any>);

thread_local! {
    static GIVEN: RefCell<Vec<Given>> = const { RefCell::new(Vec::new()) };
}

/// Takes a state back, also when a panic goes through the call.
struct TakenBack(usize);

impl Drop for TakenBack {
    fn drop(&mut self) {
        // What is dropped may be the host's own, and give states: not while they are borrowed.
        let taken = GIVEN.try_with(|given| given.borrow_mut().split_off(self.0));
        drop(taken);
    }
}

/// Runs `calls`, whose calls of extensions have `state`: services that they come to see it by
/// [`Caller::state`].
/// The book has an example, on its page of services.
///
/// # Panics
/// With what `calls` panics.
pub fn with_state<T: 'static, R>(state: Rc<T>, calls: impl FnOnce() -> R) -> R {
    // At the very end of a thread nothing is kept any more: its calls have no state then.
    let given = GIVEN.try_with(|given| {
        let mut given = given.borrow_mut();
        given.push((nesting(), state));
        TakenBack(given.len() - 1)
    });
    let result = calls();
    drop(given);
    result
}

impl Caller<'_> {
    /// What the host has given along with this call by [`with_state`], if it is a `T`. `None` in
    /// services of other calls, also of those that a service makes in turn.
    pub fn state<T: 'static>(&self) -> Option<Rc<T>> {
        let given = GIVEN.try_with(|given| {
            let given = given.borrow();
            let (outside, state) = given.last()?;
            (outside + 1 == nesting()).then(|| Rc::clone(state))
        });
        given.ok()??.downcast().ok()
    }
}
