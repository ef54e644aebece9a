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

impl Attached {
    fn add(&mut self, counters: UpcallCounters) {
        let sums = &mut self.counters;
        sums.delivered += counters.delivered;
        sums.coalesced += counters.coalesced;
        sums.dropped += counters.dropped;
        sums.skipped += counters.skipped;
        sums.ended += counters.ended;
        sums.promoted += counters.promoted;
    }
}

impl Attachments {
    /// A thread is attached. What its mailbox has counted for former ones counts once.
    pub(crate) fn begin(&self, mailbox: &Arc<Mailbox>) {
        let mut inner = fork::lock(&self.0);
        let (gone, before) = (&inner.gone, mailbox.counters());
        inner.gone = UpcallCounters {
            delivered: gone.delivered.saturating_sub(before.delivered),
            coalesced: gone.coalesced.saturating_sub(before.coalesced),
            dropped: gone.dropped.saturating_sub(before.dropped),
            skipped: gone.skipped.saturating_sub(before.skipped),
            ended: gone.ended.saturating_sub(before.ended),
            promoted: gone.promoted.saturating_sub(before.promoted),
        };
        inner.mailboxes.push(Arc::clone(mailbox));
    }

    /// It is not any more.
    pub(crate) fn end(&self, mailbox: &Arc<Mailbox>) {
        let mut inner = fork::lock(&self.0);
        inner.mailboxes.retain(|other| !Arc::ptr_eq(other, mailbox));
        let mut sums = Attached {
            counters: inner.gone,
            ..Attached::default()
        };
        sums.add(mailbox.counters());
        inner.gone = sums.counters;
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
            sums.add(mailbox.counters());
        }
        sums
    }
}
