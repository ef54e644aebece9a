//! The books of a machine that starts: nobody has anything, then the root environment has all.

use core::sync::atomic::Ordering::{Relaxed, Release};

use postern_aegis_abi::records::{Machine, claim};
use postern_aegis_abi::{ENVIRONMENTS, ROOT, SLICES};

use crate::{Books, Hardware};

impl<H: Hardware> Books<'_, H> {
    /// Writes the records of a machine of so many processors, whose slices take so many
    /// nanoseconds. `usable` says which pages are memory that nobody has. The root environment has
    /// a number, a birth and all quotas then, and stands still: its kernel makes it by the calls
    /// that environments have, with [`Books::found`] first.
    pub fn start(&self, processors: u32, slice: u64, usable: impl Fn(u32) -> bool) {
        self.blank_machine(processors, slice);
        self.start_pages(usable);
        self.give_all_to_root();
        self.machine.magic.store(Machine::MAGIC, Release);
    }

    fn blank_machine(&self, processors: u32, slice: u64) {
        let machine = self.machine;
        machine.processors.store(processors, Relaxed);
        machine.pages.store(self.pages.len() as u32, Relaxed);
        machine.slice.store(slice, Relaxed);
        machine.births.store(1, Relaxed);
        machine.dying.store(0, Relaxed);
        machine.package.store(0, Relaxed);
        for processor in &machine.processor {
            processor.ticks.store(0, Relaxed);
            processor.position.store(0, Relaxed);
            processor.current.store(0, Relaxed);
            processor.idle.store(0, Relaxed);
            processor.told.store(0, Relaxed);
        }
        for slice in machine.slices.iter().flatten() {
            slice.owner.store(0, Relaxed);
            slice.runs.store(0, Relaxed);
        }
        for number in 0..ENVIRONMENTS as u16 {
            self.blank(number);
            self.environment(number).birth.store(0, Relaxed);
            self.environment(number).claim.store(claim::FREE, Relaxed);
        }
    }

    fn give_all_to_root(&self) {
        let root = self.environment(ROOT);
        let pages = self.machine.free.load(Relaxed);
        let slices = (self.processors() * SLICES) as u32;
        root.birth.store(1, Relaxed);
        root.pages_reserved.store(pages, Relaxed);
        root.pages_limit.store(pages, Relaxed);
        root.slices_reserved.store(slices, Relaxed);
        root.slices_limit.store(slices, Relaxed);
        // All numbers but 0 and its own.
        root.environments_limit
            .store(ENVIRONMENTS as u32 - 2, Relaxed);
    }
}
