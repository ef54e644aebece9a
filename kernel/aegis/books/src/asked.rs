//! What environments are asked to give back: told in their contexts, and less as it comes back.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::context::Context;

use crate::quota::Resource;
use crate::{Books, Hardware};

impl<H: Hardware> Books<'_, H> {
    /// The record's requests, as the context shows them. The lock is held.
    pub(crate) fn tell_asked(&self, environment: u16) {
        if !self.lives(environment) {
            return;
        }
        let record = self.environment(environment);
        let context = self.context(environment);
        let tell = |offset: usize, value: u64| context[offset / 8].store(value, Relaxed);
        let pages = record.asked_pages.load(Relaxed);
        let slices = record.asked_slices.load(Relaxed);
        tell(offset_of!(Context, asked_pages), pages.into());
        tell(offset_of!(Context, asked_slices), slices.into());
        tell(offset_of!(Context, deadline), record.deadline.load(Relaxed));
        tell(
            offset_of!(Context, clock),
            record.clock.load(Relaxed).into(),
        );
    }

    /// An environment has one less of a resource, so less is asked of it. Its lock is held.
    pub(crate) fn came_back(&self, environment: u16, resource: Resource) {
        let record = self.environment(environment);
        let asked = match resource {
            Resource::Slices => &record.asked_slices,
            _ => &record.asked_pages,
        };
        let before = asked.load(Relaxed);
        if before != 0 {
            asked.store(
                (before - 1).min(self.surplus(environment, resource)),
                Relaxed,
            );
            self.tell_asked(environment);
        }
    }
}
