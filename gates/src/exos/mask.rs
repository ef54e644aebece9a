//! There are no signals of the system's own: exceptions come on a stack of their own, and ends of
//! slices, too.

/// A stack for signals: none is needed.
pub(crate) struct SignalStack;

/// Nobody calls on one.
pub(crate) fn on_signal_stack() -> bool {
    false
}

/// What comes meanwhile sees nothing that is half done: ends of slices look at the call state
/// first.
pub(crate) struct SignalsBlocked;

impl SignalsBlocked {
    /// Nothing is blocked.
    pub(crate) fn new() -> SignalsBlocked {
        SignalsBlocked
    }
}
