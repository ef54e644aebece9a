//! Environments' contexts, as far as the kernel reads and writes them.
//!
//! Invariant: what stands there is the environment's, and believed in nothing. Of one that does not
//! run here, a context is reached only with its lock held, or its claim.

use core::mem::offset_of;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use postern_aegis_abi::Mapping;
use postern_aegis_abi::context::{Context, GUARANTEES};
use postern_aegis_abi::records::claim;

use crate::{Books, Hardware, entry};

impl<'a, H: Hardware> Books<'a, H> {
    /// The words of an environment's [`Context`](postern_aegis_abi::Context). Of one that does not
    /// run here they stay the environment's as long as its lock is held and its claim is neither
    /// ENDING nor FREE.
    pub fn context(&self, environment: u16) -> &'a [AtomicU64; 512] {
        self.hardware.words(entry::page(
            self.environment(environment).context.load(Relaxed),
        ))
    }

    /// An address in a context's word, without the bits of the upper half. The environment runs
    /// here, or is claimed.
    pub(crate) fn entry_of(&self, environment: u16, offset: usize) -> u64 {
        self.context(environment)[offset / 8].load(Relaxed) & ((1 << 47) - 1)
    }

    /// Tells an environment of events, if it lives. Its lock is not held.
    pub fn raise(&self, environment: u16, events: u64) {
        let _lock = self.lock_environment(environment);
        self.raise_locked(environment, events);
    }

    /// The same with its lock held.
    pub(crate) fn raise_locked(&self, environment: u16, events: u64) {
        if !self.lives(environment) {
            return;
        }
        let context = self.context(environment);
        let events = events & !context[offset_of!(Context, ignored) / 8].load(Relaxed);
        if events == 0 {
            return;
        }
        context[offset_of!(Context, events) / 8].fetch_or(events, Relaxed);
        let at_once = context[offset_of!(Context, upcall) / 8].load(Relaxed) != 0;
        if at_once && events & Context::DEVICES != 0 {
            self.interrupt_elsewhere(environment);
        }
    }

    /// Another processor that runs an environment comes to the kernel, and looks for events.
    fn interrupt_elsewhere(&self, environment: u16) {
        let claim = self.environment(environment).claim.load(Acquire);
        if claim::RUNNING.contains(&claim) && claim as usize - 1 != self.hardware.processor() {
            self.hardware.interrupt(claim as usize - 1);
        }
    }

    /// Whether an environment's context has a guaranteed mapping of a page now.
    pub fn is_guaranteed(&self, environment: u16, page: u32) -> bool {
        self.guaranteed(environment)
            .any(|(_, mapping)| mapping.page() == Some(page))
    }

    /// The guaranteed mappings that stand in a context now.
    pub(crate) fn guaranteed(&self, environment: u16) -> impl Iterator<Item = (u64, Mapping)> {
        let words = self.context(environment);
        let first = offset_of!(Context, guaranteed) / 8;
        (first..first + 2 * GUARANTEES)
            .step_by(2)
            .filter_map(move |index| {
                let mapping = words[index + 1].load(Relaxed);
                (mapping != 0).then(|| (words[index].load(Relaxed), Mapping(mapping)))
            })
    }
}
