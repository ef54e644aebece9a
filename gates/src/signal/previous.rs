//! Handlers that were there before ours, for each signal a list: the latest first.
//!
//! Invariant: what is in a list is leaked and never changes, so a handler may read it at any time.

/// A handler that ours took the place of. Leaked: a handler may be about to read it.
pub(super) struct Previous {
    pub(super) action: libc::sigaction,
    pub(super) older: *const Previous,
}

impl Previous {
    pub(super) fn is(&self, action: &libc::sigaction) -> bool {
        (self.action.sa_sigaction, self.action.sa_flags) == (action.sa_sigaction, action.sa_flags)
    }

    /// The same list without `action`. What is not before it is shared.
    pub(super) fn without(list: *const Previous, action: &libc::sigaction) -> *const Previous {
        // SAFETY: null, or a leaked structure that nobody changes.
        let Some(first) = (unsafe { list.as_ref() }) else {
            return list;
        };
        if first.is(action) {
            return first.older;
        }
        let older = Previous::without(first.older, action);
        if std::ptr::eq(older, first.older) {
            return list;
        }
        let action = first.action;
        Box::into_raw(Box::new(Previous { action, older }))
    }
}
