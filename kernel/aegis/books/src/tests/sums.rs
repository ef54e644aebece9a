//! What must hold of environments, quotas, slices and holdings whenever no processor is in the
//! kernel.

use core::fmt::{self, Write};
use core::hash::Hasher;
use core::sync::atomic::Ordering::Relaxed;
use std::hash::DefaultHasher;
use std::vec::Vec;

use postern_aegis_abi::records::{Environment, Holding, HoldingKind, Kind, claim, stopping};
use postern_aegis_abi::{ENVIRONMENTS, HOLDINGS, ROOT, SLICES};

use crate::{Books, Hardware};

/// Checks all of it. Panics where something does not hold.
pub fn check<H: Hardware>(books: &Books<'_, H>) {
    let machine = books.machine;
    let there: Vec<(u16, &Environment)> = (1..ENVIRONMENTS as u16)
        .map(|number| (number, books.environment(number)))
        .filter(|(_, record)| record.claim.load(Relaxed) != claim::FREE)
        .collect();
    let exists = |number: u16| there.iter().any(|(other, _)| *other == number);
    let sum = |count: fn(&Environment) -> u32| -> u32 {
        there.iter().map(|(_, record)| count(record)).sum()
    };
    let kernels =
        |page: &&postern_aegis_abi::records::Page| page.kind.load(Relaxed) == Kind::Kernel as u8;
    let pages = books.pages.len() - books.pages.iter().filter(kernels).count();
    let slices = machine.processors.load(Relaxed) as usize * SLICES;
    if there.is_empty() {
        // The root has ended, so nobody is left to have quotas.
        return assert_eq!(machine.free.load(Relaxed) as usize, pages);
    }
    assert_eq!(
        sum(|record| record.pages_reserved.load(Relaxed)),
        pages as u32
    );
    assert_eq!(
        sum(|record| record.slices_reserved.load(Relaxed)),
        slices as u32
    );
    let births = sum(|record| record.environments_limit.load(Relaxed));
    assert_eq!(births as usize + there.len(), ENVIRONMENTS - 1, "numbers");
    let dying = there
        .iter()
        .filter(|(_, record)| record.stopping.load(Relaxed) == stopping::END)
        .count();
    assert_eq!(machine.dying.load(Relaxed) as usize, dying);
    for (number, record) in &there {
        environment(books, *number, record, &exists);
        let children = there
            .iter()
            .filter(|(_, other)| other.parent.load(Relaxed) == *number)
            .count();
        assert_eq!(record.children.load(Relaxed) as usize, children, "{number}");
    }
    let asked = |record: &Environment| {
        record.asked_pages.load(Relaxed) != 0 || record.asked_slices.load(Relaxed) != 0
    };
    let some = there.iter().any(|(_, record)| asked(record));
    assert!(!some || machine.asked.load(Relaxed) != 0, "nobody looks");
    for (processor, vector) in machine.processor.iter().zip(&machine.slices) {
        let owned = vector.iter().enumerate().fold(0, |bits, (at, slice)| {
            bits | u64::from(slice.owner.load(Relaxed) != 0) << at
        });
        assert_eq!(processor.owned.load(Relaxed), owned);
    }
    for slice in machine.slices.iter().flatten() {
        let (owner, runs) = (slice.owner.load(Relaxed), slice.runs.load(Relaxed));
        assert_eq!(owner == 0, runs == 0, "{owner} {runs}");
        assert!(
            owner == 0 || exists(owner) && exists(runs),
            "{owner} {runs}"
        );
    }
    holdings(books, &there);
    for page in books.pages {
        let owner = page.owner.load(Relaxed);
        assert!(owner == 0 || exists(owner), "a page of {owner}");
    }
}

/// Holdings are somebody's, ranges of blocks are the disk, and no alarm is forgotten.
fn holdings<H: Hardware>(books: &Books<'_, H>, there: &[(u16, &Environment)]) {
    let machine = books.machine;
    assert_eq!(machine.holdings_lock.load(Relaxed), 0);
    let limits: u32 = there
        .iter()
        .map(|(_, record)| record.holdings_limit.load(Relaxed))
        .sum();
    assert_eq!(limits as usize, HOLDINGS - 1);
    let mut ranges = Vec::new();
    for (number, holding) in machine.holdings.iter().enumerate() {
        let kind = HoldingKind::of(holding.kind.load(Relaxed)).expect("a kind");
        let owner = holding.owner.load(Relaxed);
        assert_eq!(kind == HoldingKind::Free, owner == 0, "{number}");
        let birth = books.environment(owner).birth.load(Relaxed);
        assert!(
            owner == 0 || holding.birth.load(Relaxed) == birth,
            "{number}"
        );
        if kind == HoldingKind::Blocks {
            ranges.push((holding.first.load(Relaxed), holding.count.load(Relaxed)));
        }
        let handler = books.holding(holding.handler.load(Relaxed) as usize);
        if holding.handler.load(Relaxed) != 0 {
            assert_eq!(handler.kind.load(Relaxed), HoldingKind::Handler as u32);
            assert_eq!(handler.owner.load(Relaxed), owner);
        }
    }
    for (number, record) in there {
        let owned = |holding: &&Holding| holding.owner.load(Relaxed) == *number;
        let count = machine.holdings.iter().filter(owned).count();
        assert_eq!(record.holdings.load(Relaxed) as usize, count, "{number}");
        let alarm = record.alarm.load(Relaxed);
        let dying = record.stopping.load(Relaxed) == stopping::END;
        let next = machine.next_alarm.load(Relaxed);
        assert!(dying || alarm == 0 || next <= alarm, "{number}");
    }
    ranges.sort_unstable();
    let end = ranges.iter().fold(0, |end, (first, count)| {
        assert!(*first == end && *count != 0, "{ranges:?}");
        end + count
    });
    // Nobody inherits from the root.
    let root = books.lives(ROOT);
    assert!(!root || end == machine.disk.blocks.load(Relaxed));
}

fn environment<H: Hardware>(
    books: &Books<'_, H>,
    number: u16,
    record: &Environment,
    exists: &dyn Fn(u16) -> bool,
) {
    let parent = record.parent.load(Relaxed);
    assert!(number == ROOT || exists(parent), "{number} is of {parent}");
    let server = record.server.load(Relaxed);
    assert!(server == 0 || exists(server) && server != number);
    let vectors = books.machine.slices.iter().flatten();
    let owned = vectors
        .filter(|slice| slice.owner.load(Relaxed) == number)
        .count();
    assert_eq!(record.slices.load(Relaxed) as usize, owned, "{number}");
    assert!(record.pages_reserved.load(Relaxed) <= record.pages_limit.load(Relaxed));
    assert!(record.slices_reserved.load(Relaxed) <= record.slices_limit.load(Relaxed));
    assert_eq!(record.number.load(Relaxed), number);
    let claim = record.claim.load(Relaxed);
    if claim::RUNNING.contains(&claim) {
        let current = &books.machine.processor[claim as usize - 1].current;
        assert_eq!(current.load(Relaxed), u32::from(number));
    }
    assert!(claim != claim::ENDING || record.stopping.load(Relaxed) == stopping::END);
    assert_ne!(claim, claim::CHANGING);
}

/// All that the books keep, as one word: records, and pages that the kernel reads itself.
pub fn digest<H: Hardware>(books: &Books<'_, H>) -> u64 {
    struct Digest(DefaultHasher);
    impl Write for Digest {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.write(text.as_bytes());
            Ok(())
        }
    }
    let mut digest = Digest(DefaultHasher::new());
    write!(digest, "{:?} {:?}", books.machine, books.pages).expect("it is kept");
    for (number, page) in books.pages.iter().enumerate() {
        if page.kind.load(Relaxed) >= Kind::Links as u8 {
            for word in books.hardware.words(number as u32) {
                digest.0.write_u64(word.load(Relaxed));
            }
        }
    }
    digest.0.finish()
}
