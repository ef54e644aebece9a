//! What must not change, whatever is called: the good ones' memory, their share, the books.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::records::{Holding, HoldingKind, Kind, NONE, Page, claim};
use postern_aegis::load::Child;
use postern_aegis::{books, calls, entry, println, slices};
use postern_aegis_programs::words;

use crate::Why;

/// What the machine and the root have.
pub struct Books {
    /// Free pages and the root's own: those that hammer give it some of theirs.
    pages: u64,
    /// Slices of others: it is given some of those, too.
    slices: u64,
}

impl Books {
    pub fn now() -> Books {
        let machine = books::machine();
        let own = books::own_number();
        let owned = |processor: usize| {
            let owners = machine.slices[processor]
                .iter()
                .map(|slice| slice.owner.load(Relaxed));
            owners.filter(|owner| *owner != 0 && *owner != own).count() as u64
        };
        let pages = books::environment(own).pages.load(Relaxed);
        Books {
            pages: u64::from(machine.free.load(Relaxed)) + u64::from(pages),
            slices: (0..slices::processors()).map(owned).sum(),
        }
    }

    /// Waits until all children are gone; then everything must be as before.
    pub fn again(&self) -> Result<(), Why> {
        let own = books::environment(books::own_number());
        let start = slices::clock();
        while own.children.load(Relaxed) != 0 && slices::clock().wrapping_sub(start) < CYCLES {
            entry::yield_slice();
        }
        left();
        let now = Books::now();
        let same = |what, now: u64, before: u64| {
            if now == before {
                Ok(())
            } else {
                Err(Why::Books(what, now, before))
            }
        };
        same("children", own.children.load(Relaxed).into(), 0)?;
        same("free pages and own ones", now.pages, self.pages)?;
        same("slices of others", now.slices, self.slices)?;
        // The free list is as long as it says, only free pages are in it, and nobody binds them.
        let free = books::machine().free.load(Relaxed).into();
        same(
            "pages in the free list",
            books::free_pages().count() as u64,
            free,
        )?;
        self.holdings()?;
        let kind = |page: &&Page| page.kind.load(Relaxed) == Kind::Free as u8;
        same(
            "pages that are free",
            books::pages().iter().filter(kind).count() as u64,
            free,
        )?;
        let bound = |page: &&Page| kind(page) && page.first.load(Relaxed) != NONE;
        same(
            "free pages that are bound",
            books::pages().iter().filter(bound).count() as u64,
            0,
        )
    }

    /// All that there is of devices is the root's again, but what others gave it, too.
    fn holdings(&self) -> Result<(), Why> {
        let machine = books::machine();
        let own = books::own_number();
        for (number, holding) in machine.holdings.iter().enumerate() {
            match HoldingKind::of(holding.kind.load(Relaxed)) {
                Some(HoldingKind::Free) => {}
                Some(HoldingKind::Endpoint) => _ = calls::drop_holding(number, 0),
                _ if holding.owner.load(Relaxed) == own => {}
                _ => return Err(Why::Books("a holding of nobody's", number as u64, 0)),
            }
        }
        let held = |kind| {
            let is = move |holding: &&Holding| holding.kind.load(Relaxed) == kind as u32;
            machine.holdings.iter().filter(is)
        };
        let blocks = held(HoldingKind::Blocks).map(|range| range.count.load(Relaxed));
        let all = machine.disk.blocks.load(Relaxed);
        let sum = blocks.sum::<u64>();
        if sum != all {
            return Err(Why::Books("blocks", sum, all));
        }
        let left = held(HoldingKind::Endpoint).chain(held(HoldingKind::Handler));
        match left.count() as u64 {
            0 => Ok(()),
            count => Err(Why::Books("endpoints and handlers", count, 0)),
        }
    }
}

/// Says who is left, for whoever looks for the reason.
fn left() {
    let own = books::own_number();
    for record in &books::machine().environments {
        let claim = record.claim.load(Relaxed);
        let number = record.number.load(Relaxed);
        if claim != claim::FREE && number != own {
            println!(
                "fuzz: environment {number} of {} is left: claim {claim:#x}, stopping {}, {} pages, \
                 {} slices, {} children, lock {}",
                record.parent.load(Relaxed),
                record.stopping.load(Relaxed),
                record.pages.load(Relaxed),
                record.slices.load(Relaxed),
                record.children.load(Relaxed),
                record.lock.load(Relaxed)
            );
        }
    }
}

/// How long is waited for ends, in cycles.
const CYCLES: u64 = 30_000_000_000;

/// How the good ones do.
pub struct Shares {
    started: u64,
    slices: u64,
    last: [u64; 2],
    progress: [u64; 2],
    /// Blocks that were kept when it was looked, and when.
    kept: (u64, u64),
}

/// Slices that the first good one has had between two looks at its progress.
const LOOK: u64 = 20;

/// Slices of the first good one in which who keeps blocks may have written none.
const STILL: u64 = 2000;

impl Shares {
    pub fn new(good: &[Child; 2]) -> Shares {
        let ran = good.map(|child| books::environment(child.number).ran.load(Relaxed));
        Shares {
            started: ticks(),
            slices: 0,
            last: ran,
            progress: [0; 2],
            kept: (0, ran[0]),
        }
    }

    /// Seconds that the good ones have computed: who computes takes whole slices, so they tell the
    /// time, which ticks do not, since anybody ends slices early.
    pub fn seconds(&self) -> u64 {
        let slice = books::machine().slice.load(Relaxed).max(1);
        // With three that hammer beside each.
        self.slices * slice * 3 / 1_000_000_000
    }

    /// Its blocks are whole, and it gets on.
    pub fn check_keeper(&mut self, keeper: &Child) -> Result<(), Why> {
        let errors = keeper.mailbox.get(words::ERRORS);
        if !keeper.lives() {
            return Err(Why::Good(
                "it has ended, and had blocks",
                keeper.number.into(),
            ));
        }
        if errors != 0 {
            return Err(Why::Good("blocks changed", errors));
        }
        let (kept, looked) = self.kept;
        let now = keeper.mailbox.get(words::PROGRESS);
        if now != kept {
            self.kept = (now, self.last[0]);
        } else if self.last[0] > looked + STILL {
            return Err(Why::Good("its blocks are not written", now));
        }
        Ok(())
    }

    /// Their memory is whole, and who has slices gets on in them.
    pub fn check(&mut self, good: &[Child; 2]) -> Result<(), Why> {
        for (index, child) in good.iter().enumerate() {
            let errors = child.mailbox.get(words::ERRORS);
            if !child.lives() {
                return Err(Why::Good("it has ended", child.number.into()));
            }
            if errors != 0 {
                return Err(Why::Good("words of its memory changed", errors));
            }
            let ran = books::environment(child.number).ran.load(Relaxed);
            if ran < self.last[index] + LOOK {
                continue;
            }
            let progress = child.mailbox.get(words::PROGRESS);
            if progress == self.progress[index] {
                return Err(Why::Good("it stands still in its slices", ran));
            }
            self.progress[index] = progress;
            if index == 0 {
                self.slices += ran - self.last[index];
            }
            self.last[index] = ran;
        }
        // One position of each vector is the first good one's: it is not passed by for long.
        let passed = ticks() - self.started;
        let least = passed / (2 * postern_aegis::abi::SLICES as u64);
        if self.slices + 8 * LOOK < least {
            return Err(Why::Good(
                "it has fewer slices than its position gives",
                self.slices,
            ));
        }
        Ok(())
    }
}

fn ticks() -> u64 {
    slices::ticks(0)
}
