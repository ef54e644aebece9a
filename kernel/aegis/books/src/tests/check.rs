//! What must hold whenever no processor is in the kernel, read from the records and tables alone.

use core::sync::atomic::Ordering::Relaxed;
use std::collections::{HashMap, HashSet};
use std::vec::Vec;

use postern_aegis_abi::records::{HoldingKind, Kind, NONE, Page, claim};

use super::machine::{KERNEL, page};
use crate::{Books, Hardware};

const PRESENT_WRITE_USER: u64 = 7;
const USED: u64 = 0x60;
const NO_EXECUTE: u64 = 1 << 63;

/// Checks all invariants. Panics where one does not hold.
pub fn check<H: Hardware>(books: &Books<'_, H>) {
    let mut trees = Trees {
        books,
        bindings: HashMap::new(),
        stands: HashMap::new(),
    };
    for number in 1..256u16 {
        let record = books.environment(number);
        assert_eq!(record.lock.load(Relaxed), 0);
        match record.claim.load(Relaxed) {
            claim::FREE => assert_eq!(record.pages.load(Relaxed), 0, "{number} is no more"),
            claim::ENDING => {}
            _ => trees.walk_all(number),
        }
    }
    for holding in &books.machine.holdings {
        let owner = holding.owner.load(Relaxed);
        let handler = holding.kind.load(Relaxed) == HoldingKind::Handler as u32;
        let made = holding.table.load(Relaxed) != 0;
        if handler && made && books.environment(owner).claim.load(Relaxed) != claim::ENDING {
            trees.window(owner, holding.table.load(Relaxed));
        }
    }
    assert_eq!(books.machine.free_lock.load(Relaxed), 0);
    let lists = listed(books);
    for (number, record) in books.pages.iter().enumerate() {
        let number = number as u32;
        assert_eq!(record.lock.load(Relaxed), 0);
        let kind = kind(record);
        let owner = record.owner.load(Relaxed);
        let listed = lists.get(&number);
        match kind {
            Kind::Free => assert_eq!(listed, Some(&0), "{number}"),
            Kind::Kernel => assert_eq!((listed, owner), (None, 0), "{number}"),
            _ => assert_eq!(listed, Some(&owner), "{number}"),
        }
        if matches!(kind, Kind::Free | Kind::Kernel) {
            assert_eq!((owner, record.first.load(Relaxed)), (0, NONE), "{number}");
        }
        check_bindings(
            books,
            number,
            trees.bindings.remove(&number).unwrap_or_default(),
        );
        if pinned(kind) && books.environment(owner).claim.load(Relaxed) != claim::ENDING {
            assert_eq!(
                trees.stands.remove(&number),
                Some((owner, kind)),
                "{number}"
            );
        }
    }
    assert!(trees.stands.is_empty() && trees.bindings.is_empty());
}

fn kind(record: &Page) -> Kind {
    Kind::of(record.kind.load(Relaxed)).expect("a kind")
}

fn pinned(kind: Kind) -> bool {
    !matches!(kind, Kind::Free | Kind::Kernel | Kind::Data | Kind::Leaving)
}

/// Whose list each page is in; 0: the free list.
fn listed<H: Hardware>(books: &Books<'_, H>) -> HashMap<u32, u16> {
    let mut lists = HashMap::new();
    let mut list = |owner: u16, first: u32| {
        let (mut page, mut last, mut behind, mut count) = (first, NONE, false, 0);
        while page != NONE {
            let record = &books.pages[page as usize];
            assert_eq!(lists.insert(page, owner), None, "{page} is in two lists");
            if page != first {
                assert_eq!(record.previous.load(Relaxed), last);
            }
            assert!(pinned(kind(record)) || !behind, "memory behind tables");
            behind |= pinned(kind(record));
            last = page;
            page = record.next.load(Relaxed);
            count += 1;
        }
        if first != NONE {
            assert_eq!(books.pages[first as usize].previous.load(Relaxed), last);
        }
        count
    };
    let machine = books.machine;
    assert_eq!(
        list(0, machine.first_free.load(Relaxed)),
        machine.free.load(Relaxed)
    );
    for number in 1..256 {
        let record = books.environment(number);
        assert_eq!(
            list(number, record.first.load(Relaxed)),
            record.pages.load(Relaxed)
        );
    }
    lists
}

/// A page's list of bindings has what was found in tables, and what dying environments have.
fn check_bindings<H: Hardware>(books: &Books<'_, H>, page_number: u32, found: HashSet<u32>) {
    let record = &books.pages[page_number as usize];
    let links = |binding: u32| {
        let table = &books.pages[binding as usize >> 9];
        assert!(matches!(kind(table), Kind::Table1 | Kind::Window));
        let word = &books.hardware.words(table.read.load(Relaxed))[binding as usize & 511];
        ((word.load(Relaxed) >> 32) as u32, word.load(Relaxed) as u32)
    };
    let first = record.first.load(Relaxed);
    let (mut binding, mut last, mut own) = (first, NONE, false);
    let mut listed = Vec::new();
    while binding != NONE {
        let holder = books.pages[binding as usize >> 9].owner.load(Relaxed);
        assert!(
            holder == record.owner.load(Relaxed) || !own,
            "{page_number}: own ones first"
        );
        own |= holder == record.owner.load(Relaxed);
        if books.environment(holder).claim.load(Relaxed) == claim::ENDING {
            let entry = books.hardware.words(binding >> 9)[binding as usize & 511].load(Relaxed);
            assert_eq!(page(entry), page_number as usize);
        } else {
            assert!(
                found.contains(&binding),
                "{page_number}: {binding:#x} is in no table"
            );
        }
        if binding != first {
            assert_eq!(links(binding).0, last);
        }
        listed.push(binding);
        (last, binding) = (binding, links(binding).1);
    }
    if first != NONE {
        assert_eq!(links(first).0, last);
    }
    assert_eq!(listed.len(), record.bindings.load(Relaxed) as usize);
    let listed: HashSet<u32> = listed.into_iter().collect();
    assert!(
        found.is_subset(&listed),
        "{page_number}: bound, and not in its list"
    );
}

struct Trees<'a, 'b, H> {
    books: &'a Books<'b, H>,
    /// Bindings of each page, as found in tables.
    bindings: HashMap<u32, HashSet<u32>>,
    /// In whose tree each pinned page stands, and as what.
    stands: HashMap<u32, (u16, Kind)>,
}

impl<H: Hardware> Trees<'_, '_, H> {
    fn walk_all(&mut self, environment: u16) {
        let record = self.books.environment(environment);
        self.stand(
            environment,
            page(record.context.load(Relaxed)) as u32,
            Kind::Context,
        );
        let root = page(record.root_table.load(Relaxed)) as u32;
        self.stand(environment, root, Kind::Table4);
        let words = self.books.hardware.words(root);
        let own = u64::from(root) << 12 | 5 | NO_EXECUTE;
        assert_eq!(words[254].load(Relaxed) & !USED, own);
        for (slot, word) in words.iter().enumerate().skip(255) {
            assert_eq!(word.load(Relaxed), KERNEL + slot as u64);
        }
        self.walk(environment, root, 4, 254);
    }

    fn stand(&mut self, environment: u16, page: u32, kind: Kind) {
        assert_eq!(
            self.stands.insert(page, (environment, kind)),
            None,
            "{page} stands twice"
        );
    }

    fn walk(&mut self, environment: u16, table: u32, level: u32, slots: usize) {
        for index in 0..slots {
            let entry = self.books.hardware.words(table)[index].load(Relaxed);
            if entry == 0 {
                continue;
            }
            let to = page(entry) as u32;
            if level == 1 {
                self.leaf(table, index, entry);
                continue;
            }
            assert_eq!(entry & !USED, u64::from(to) << 12 | PRESENT_WRITE_USER);
            let kind = [Kind::Table1, Kind::Table2, Kind::Table3][level as usize - 2];
            self.stand(environment, to, kind);
            if kind == Kind::Table1 {
                let links = self.books.pages[to as usize].read.load(Relaxed);
                assert_eq!(self.books.pages[links as usize].read.load(Relaxed), to);
                self.stand(environment, links, Kind::Links);
            }
            self.walk(environment, to, level - 1, 512);
        }
    }

    /// A handler's window: text, and what is bound, for the kernel alone.
    fn window(&mut self, owner: u16, table: u32) {
        self.stand(owner, table, Kind::Window);
        let links = self.books.pages[table as usize].read.load(Relaxed);
        assert_eq!(self.books.pages[links as usize].read.load(Relaxed), table);
        self.stand(owner, links, Kind::Links);
        for index in 0..512 {
            let entry = self.books.hardware.words(table)[index].load(Relaxed);
            let to = page(entry) as u32;
            if entry == 0 {
                continue;
            }
            if kind(&self.books.pages[to as usize]) == Kind::Text {
                assert_eq!(entry & !USED, u64::from(to) << 12 | 1);
                self.stand(owner, to, Kind::Text);
                continue;
            }
            assert_eq!(entry & (0xfff & !0x62 | 0x7ff << 52), 1, "{entry:#x}");
            assert!(entry & NO_EXECUTE != 0, "{to} can be executed");
            let data = matches!(
                kind(&self.books.pages[to as usize]),
                Kind::Data | Kind::Leaving
            );
            assert!(data, "{to} is bound in a window");
            let bindings = self.bindings.entry(to).or_default();
            assert!(bindings.insert(table << 9 | index as u32));
        }
    }

    fn leaf(&mut self, table: u32, index: usize, entry: u64) {
        let to = page(entry) as u32;
        assert_eq!(entry & (0xfff & !0x72 | 0x7ff << 52), 5, "{entry:#x}");
        let kind = kind(&self.books.pages[to as usize]);
        let data = matches!(kind, Kind::Data | Kind::Context | Kind::Leaving);
        assert!(data || pinned(kind), "{to}: {kind:?} is bound");
        assert!(data || entry & 2 == 0, "{to}: {kind:?} can be stored to");
        assert!(
            data || entry & NO_EXECUTE != 0,
            "{to}: {kind:?} can be executed"
        );
        let new = self
            .bindings
            .entry(to)
            .or_default()
            .insert(table << 9 | index as u32);
        assert!(new);
    }
}
