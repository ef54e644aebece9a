//! The books of a machine that starts: nobody has anything, then the root environment has all.

use core::sync::atomic::Ordering::{Relaxed, Release};

use postern_aegis_abi::address::ROOT_PROGRAM;
use postern_aegis_abi::call::NAME_EVERYBODY;
use postern_aegis_abi::records::{CLOCK, CONSOLE, DISK, Holding, HoldingKind, Machine, claim};
use postern_aegis_abi::{ENVIRONMENTS, Error, HOLDINGS, Mapping, PAGE, ROOT, SLICES};

use crate::holding::blank;
use crate::{Books, Hardware};

/// What a kernel knows of its machine.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// How many processors run.
    pub processors: u32,
    /// Nanoseconds of a slice.
    pub slice: u64,
    /// Pages that the root environment's program needs at
    /// [`ROOT_PROGRAM`](postern_aegis_abi::address::ROOT_PROGRAM).
    pub program: u32,
    /// Bytes of the boot package behind the program, among those pages.
    pub package: u32,
}

impl<H: Hardware> Books<'_, H> {
    /// Writes the records of a machine. `usable` says which pages are memory that nobody has; the
    /// root environment is made of some of them: its context, its tables, and its program, which
    /// `fill` copies (the how many-th page of it, and where it goes). It has all quotas and the
    /// first slice of processor 0, and can be entered as soon as its context says where.
    ///
    /// # Errors
    ///
    /// What the calls say that the root environment would make, if there is too little memory.
    pub fn boot(
        &self,
        start: &Start,
        usable: impl Fn(u32) -> bool,
        mut fill: impl FnMut(usize, u32),
    ) -> Result<(), Error> {
        self.blank_machine(start);
        self.start_pages(usable);
        self.give_all_to_root();
        let root = self.environment(ROOT);
        let [context, table] = [self.take_zeros()?, self.take_zeros()?];
        // The new root environment has these two already: its counts begin with them.
        self.found(ROOT, ROOT, context, table)?;
        for index in 0..start.program as usize {
            let page = self.take_zeros()?;
            fill(index, page);
            let mapping = Mapping::new(page, Mapping::WRITE | Mapping::EXECUTE);
            self.bind_root(ROOT_PROGRAM + (index * PAGE) as u64, mapping)?;
        }
        self.take_slice(ROOT, 0, Some(0))?;
        root.claim.store(claim::IDLE, Release);
        self.machine.magic.store(Machine::MAGIC, Release);
        Ok(())
    }

    fn blank_machine(&self, start: &Start) {
        let machine = self.machine;
        machine.processors.store(start.processors, Relaxed);
        machine.pages.store(self.pages.len() as u32, Relaxed);
        machine.slice.store(start.slice, Relaxed);
        machine.births.store(1, Relaxed);
        machine.dying.store(0, Relaxed);
        machine.package.store(start.package, Relaxed);
        machine.asked.store(0, Relaxed);
        for processor in &machine.processor {
            processor.ticks.store(0, Relaxed);
            processor.position.store(0, Relaxed);
            processor.current.store(0, Relaxed);
            processor.idle.store(0, Relaxed);
            processor.told.store(0, Relaxed);
            processor.lender.store(0, Relaxed);
            processor.owned.store(0, Relaxed);
        }
        for slice in machine.slices.iter().flatten() {
            slice.owner.store(0, Relaxed);
            slice.runs.store(0, Relaxed);
        }
        for holding in &machine.holdings {
            blank(holding);
        }
        for word in [
            &machine.clock.frequency,
            &machine.clock.epoch,
            &machine.disk.blocks,
        ] {
            word.store(0, Relaxed);
        }
        machine.next_alarm.store(u64::MAX, Relaxed);
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
        root.claim.store(claim::CHANGING, Relaxed);
        root.birth.store(1, Relaxed);
        root.pages_reserved.store(pages, Relaxed);
        root.pages_limit.store(pages, Relaxed);
        root.slices_reserved.store(slices, Relaxed);
        root.slices_limit.store(slices, Relaxed);
        // All numbers but 0 and its own.
        root.environments_limit
            .store(ENVIRONMENTS as u32 - 2, Relaxed);
        root.holdings_limit.store(HOLDINGS as u32 - 1, Relaxed);
        self.give_root(CONSOLE, HoldingKind::Console);
        self.give_root(CLOCK, HoldingKind::Clock);
        let console = self.holding(CONSOLE);
        console.write.store(NAME_EVERYBODY, Relaxed);
    }

    fn give_root(&self, number: usize, kind: HoldingKind) -> &Holding {
        let (root, holding) = (self.environment(ROOT), self.holding(number));
        holding.owner.store(ROOT, Relaxed);
        holding.birth.store(root.birth.load(Relaxed), Relaxed);
        holding.kind.store(kind as u32, Relaxed);
        root.holdings.fetch_add(1, Relaxed);
        holding
    }

    /// There is a disk of so many blocks: all of it is the root environment's. Called once, before
    /// that one runs.
    pub fn open_disk(&self, blocks: u64) {
        self.machine.disk.blocks.store(blocks, Relaxed);
        let all = self.give_root(DISK, HoldingKind::Blocks);
        all.first.store(0, Relaxed);
        all.count.store(blocks, Relaxed);
    }

    /// What the time of day follows from: cycles of the processors' counter in a second, not 0,
    /// and the second in which the counter was 0.
    pub fn open_clock(&self, frequency: u64, epoch: u64) {
        self.machine.clock.frequency.store(frequency, Relaxed);
        self.machine.clock.epoch.store(epoch, Relaxed);
    }

    fn take_zeros(&self) -> Result<u32, Error> {
        self.allocate(ROOT, None, 0, 0)
    }

    /// Maps a page of the root environment's, with the tables that this needs: at the start only.
    ///
    /// # Errors
    ///
    /// What the calls say that the root environment would make.
    pub fn bind_root(&self, address: u64, mapping: Mapping) -> Result<(), Error> {
        let map = || self.map_page(ROOT, ROOT, address, mapping, 0);
        for level in [3, 2, 1] {
            match map() {
                Err(Error::NoTable) => {}
                done => return done,
            }
            let table = self.take_zeros()?;
            let links = if level == 1 { self.take_zeros()? } else { 0 };
            match self.table(ROOT, ROOT, address, level, table, links) {
                // There was one of this level already.
                Err(Error::Mapped) => {
                    self.free(ROOT, table)?;
                    if level == 1 {
                        self.free(ROOT, links)?;
                    }
                }
                done => done?,
            }
        }
        map()
    }
}
