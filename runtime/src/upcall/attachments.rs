//! The threads that are attached to a domain's handlers, for what is counted over all of them.

use crate::fork;
use postern_gates::upcall::{Mailbox, UpcallCounters};
use std::sync::{Arc, Mutex};

/// Of one domain.
#[derive(Default)]
pub(crate) struct Attachments(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    mailboxes: Vec<Arc<Mailbox>>,
    /// What was counted by those that are detached.
    gone: UpcallCounters,
}

/// What all attachments of a domain have counted, and hold now.
#[derive(Default)]
pub(crate) struct Attached {
    pub(crate) threads: u32,
    /// Events that wait for them.
    pub(crate) waiting: u32,
    pub(crate) counters: UpcallCounters,
}

impl Attachments {
    /// A thread is attached. What its mailbox has counted for former ones counts once.
    pub(crate) fn begin(&self, mailbox: &Arc<Mailbox>) {
        let mut inner = fork::lock(&self.0);
        inner.gone = inner.gone.since(mailbox.counters());
        inner.mailboxes.push(Arc::clone(mailbox));
    }

    /// It is not any more.
    pub(crate) fn end(&self, mailbox: &Arc<Mailbox>) {
        let mut inner = fork::lock(&self.0);
        inner.mailboxes.retain(|other| !Arc::ptr_eq(other, mailbox));
        inner.gone = inner.gone.and(mailbox.counters());
    }

    /// The sums over all that there are and were.
    pub(crate) fn sums(&self) -> Attached {
        let inner = fork::lock(&self.0);
        let mut sums = Attached {
            threads: inner.mailboxes.len() as u32,
            counters: inner.gone,
            ..Attached::default()
        };
        for mailbox in &inner.mailboxes {
            sums.waiting += mailbox.waiting();
            sums.counters = sums.counters.and(mailbox.counters());
        }
        sums
    }
}
