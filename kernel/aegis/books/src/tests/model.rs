//! Pages, tables and bindings once more, as maps: what each call must answer, and what is so
//! afterwards. It knows nothing of lists, links or locks.

use core::sync::atomic::Ordering::Relaxed;
use std::collections::{BTreeMap, HashMap};
use std::vec;
use std::vec::Vec;

use postern_aegis_abi::Error;
use postern_aegis_abi::address::{END, START, index};
use postern_aegis_abi::records::{Kind, claim};

use super::machine::page;
use crate::{Books, Hardware};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Page {
    pub owner: u16,
    pub kind: Kind,
    pub read: u32,
    pub write: u32,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Space {
    pub birth: u32,
    pub limit: usize,
    /// Tables with their pages of links, by level and the number of what they cover.
    pub tables: BTreeMap<(u32, u64), (u32, Option<u32>)>,
    /// Pages and flags of mappings, by address.
    pub entries: BTreeMap<u64, (u32, u64)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    pub pages: Vec<Page>,
    pub spaces: BTreeMap<u16, Space>,
}

/// Capabilities that were given out: owner, birth, name, right.
pub type Known = HashMap<u64, (u16, u32, u32, u64)>;

const WRITE: u64 = 2;
const EXECUTE: u64 = 4;
const FLAGS: u64 = 0x16;

impl Model {
    /// The model of what is in the books now.
    pub fn read<H: Hardware>(books: &Books<'_, H>) -> Model {
        let mut model = Model::default();
        for record in books.pages {
            let kind = Kind::of(record.kind.load(Relaxed)).unwrap();
            let named = matches!(kind, Kind::Data | Kind::Context | Kind::Leaving);
            let name = |name: u32| if named { name } else { 0 };
            model.pages.push(Page {
                owner: record.owner.load(Relaxed),
                kind,
                read: name(record.read.load(Relaxed)),
                write: name(record.write.load(Relaxed)),
            });
        }
        for number in 1..256 {
            let record = books.environment(number);
            if matches!(record.claim.load(Relaxed), claim::FREE | claim::ENDING) {
                continue;
            }
            let mut space = Space {
                birth: record.birth.load(Relaxed),
                limit: record.pages_limit.load(Relaxed) as usize,
                ..Space::default()
            };
            space.descend(books, page(record.root_table.load(Relaxed)) as u32, 4, 0);
            model.spaces.insert(number, space);
        }
        model
    }

    /// Bindings to a page: who, and where.
    pub fn bindings(&self, page: u32) -> impl Iterator<Item = (u16, u64)> {
        self.spaces.iter().flat_map(move |(number, space)| {
            let bound = space.entries.iter().filter(move |(_, (to, _))| *to == page);
            bound.map(|(address, _)| (*number, *address))
        })
    }

    pub fn owned(&self, environment: u16) -> usize {
        self.pages
            .iter()
            .filter(|page| page.owner == environment)
            .count()
    }

    fn space(&mut self, environment: u16) -> &mut Space {
        self.spaces.get_mut(&environment).unwrap()
    }

    /// Breaks bindings to a page but of one environment: whether no more than a call may were
    /// there. If more, nothing is done here.
    fn break_all(&mut self, page: u32, keep: Option<u16>) -> bool {
        let broken: Vec<_> = self
            .bindings(page)
            .filter(|(number, _)| Some(*number) != keep)
            .collect();
        if broken.len() > 64 {
            return false;
        }
        for (number, address) in broken {
            self.space(number).entries.remove(&address);
        }
        true
    }

    fn get(&self, page: u32) -> Option<Page> {
        self.pages.get(page as usize).copied()
    }

    pub fn allocate(&mut self, caller: u16, page: Option<u32>, got: Option<u32>) -> Vec<Error> {
        let mut wrong = vec![];
        match page.map(|page| self.get(page)) {
            Some(None) => wrong.push(Error::Argument),
            Some(Some(page)) if page.kind != Kind::Free => wrong.push(Error::Taken),
            None if !self.pages.iter().any(|page| page.kind == Kind::Free) => {
                wrong.push(Error::Exhausted);
            }
            _ => {}
        }
        if self.owned(caller) >= self.spaces[&caller].limit {
            wrong.push(Error::Quota);
        }
        if let Some(got) = got {
            assert!(page.is_none_or(|page| page == got));
            assert_eq!(self.pages[got as usize].kind, Kind::Free);
        }
        wrong
    }

    /// Free, or the first part of taking by force: `taken`.
    pub fn free(&mut self, caller: u16, page: u32, taken: bool) -> Vec<Error> {
        let Some(record) = self.get(page) else {
            return vec![Error::Argument];
        };
        if record.owner != caller {
            return vec![Error::Denied];
        }
        if !matches!(record.kind, Kind::Data | Kind::Leaving) {
            return vec![Error::Kind];
        }
        if !self.break_all(page, None) {
            return vec![Error::Again];
        }
        let free = Page {
            owner: 0,
            kind: Kind::Free,
            read: 0,
            write: 0,
        };
        self.pages[page as usize] = if taken {
            Page {
                kind: Kind::Leaving,
                ..record
            }
        } else {
            free
        };
        vec![]
    }

    pub fn rename(&mut self, caller: u16, page: u32, read: u32, write: u32) -> Vec<Error> {
        let Some(record) = self.get(page) else {
            return vec![Error::Argument];
        };
        if record.owner != caller {
            return vec![Error::Denied];
        }
        if !matches!(record.kind, Kind::Data | Kind::Context) {
            return vec![Error::Kind];
        }
        self.pages[page as usize] = Page {
            read,
            write,
            ..record
        };
        vec![]
    }

    /// Give, or the last part of taking by force: `taken`.
    pub fn give(&mut self, caller: u16, page: u32, to: u16, taken: bool) -> Vec<Error> {
        let Some(record) = self.get(page) else {
            return vec![Error::Argument];
        };
        let mut wrong = vec![];
        if record.owner != caller {
            wrong.push(Error::Denied);
        }
        let unbound = self.bindings(page).next().is_none();
        if taken && !(record.kind == Kind::Leaving && unbound) {
            wrong.push(Error::Denied);
        }
        if !taken && record.kind != Kind::Data {
            wrong.push(Error::Kind);
        }
        match self.spaces.get(&to) {
            None => wrong.push(Error::NoEnvironment),
            Some(space) if caller != to && self.owned(to) >= space.limit => {
                wrong.push(Error::Quota);
            }
            _ => {}
        }
        if !wrong.is_empty() {
            return wrong;
        }
        if !self.break_all(page, Some(caller)) {
            return vec![Error::Again];
        }
        self.pages[page as usize] = Page {
            owner: to,
            kind: Kind::Data,
            read: 0,
            write: 0,
        };
        vec![]
    }

    pub fn break_others(&mut self, caller: u16, page: u32) -> Vec<Error> {
        match self.get(page) {
            None => vec![Error::Argument],
            Some(record) if record.owner != caller => vec![Error::Denied],
            _ if !self.break_all(page, Some(caller)) => vec![Error::Again],
            _ => vec![],
        }
    }

    pub fn table(
        &mut self,
        (caller, environment): (u16, u16),
        (address, level): (u64, u32),
        page: u32,
        links: u32,
    ) -> Vec<Error> {
        let mut wrong = vec![];
        let pages = if level == 1 {
            vec![page, links]
        } else {
            vec![page]
        };
        if address >= END || !address.is_multiple_of(4096) || !(1..=3).contains(&level) {
            return vec![Error::Argument];
        }
        let place = |level: u32| (level, address >> (12 + 9 * level));
        let space = &self.spaces[&environment];
        if level < 3 && !space.tables.contains_key(&place(level + 1)) {
            wrong.push(Error::NoTable);
        }
        if space.tables.contains_key(&place(level)) {
            wrong.push(Error::Mapped);
        }
        if level == 1 && page == links {
            wrong.push(Error::Argument);
        }
        let mut more = 0;
        for page in &pages {
            let Some(record) = self.get(*page) else {
                wrong.push(Error::Argument);
                continue;
            };
            if record.owner != caller && record.owner != environment {
                wrong.push(Error::Denied);
            }
            if record.kind != Kind::Data {
                wrong.push(Error::Kind);
            }
            if self.bindings(*page).next().is_some() {
                wrong.push(Error::InUse);
            }
            more += usize::from(record.owner != environment);
        }
        if more > 0 && self.owned(environment) + more > space.limit {
            wrong.push(Error::Quota);
        }
        if !wrong.is_empty() {
            return wrong;
        }
        let kinds = [Kind::Table1, Kind::Table2, Kind::Table3];
        let kind = kinds[level as usize - 1];
        self.pages[page as usize] = Page {
            owner: environment,
            kind,
            read: 0,
            write: 0,
        };
        if level == 1 {
            let kind = Kind::Links;
            self.pages[links as usize] = Page {
                owner: environment,
                kind,
                read: 0,
                write: 0,
            };
        }
        let links = (level == 1).then_some(links);
        self.space(environment)
            .tables
            .insert(place(level), (page, links));
        vec![]
    }

    pub fn untable(&mut self, environment: u16, address: u64, level: u32) -> Vec<Error> {
        if address >= END || !address.is_multiple_of(4096) || !(1..=3).contains(&level) {
            return vec![Error::Argument];
        }
        let shift = 12 + 9 * level;
        let space = self.space(environment);
        let Some(&(table, links)) = space.tables.get(&(level, address >> shift)) else {
            return vec![Error::NoTable];
        };
        let mut below = space.tables.keys().filter(|(other, _)| other + 1 == level);
        if level > 1 && below.any(|(_, number)| number >> 9 == address >> shift) {
            return vec![Error::InUse];
        }
        space.tables.remove(&(level, address >> shift));
        if level == 1 {
            space
                .entries
                .retain(|at, _| at >> shift != address >> shift);
        }
        for page in [Some(table), links].into_iter().flatten() {
            assert!(
                self.break_all(page, Some(environment)),
                "never so many in this test"
            );
            self.pages[page as usize] = Page {
                owner: environment,
                kind: Kind::Data,
                read: 0,
                write: 0,
            };
        }
        vec![]
    }

    pub fn map(
        &mut self,
        (caller, environment): (u16, u16),
        address: u64,
        mapping: u64,
        known: Option<&(u16, u32, u32, u64)>,
    ) -> Vec<Error> {
        let mut wrong = vec![];
        if !(START..END).contains(&address) || !address.is_multiple_of(4096) {
            wrong.push(Error::Argument);
        } else if !self.spaces[&environment]
            .tables
            .contains_key(&(1, address >> 21))
        {
            wrong.push(Error::NoTable);
        }
        let page = (mapping >> 12).min(u64::from(u32::MAX)) as u32;
        match self.get(page) {
            _ if mapping & 0xfff & !FLAGS != 0 => wrong.push(Error::Argument),
            None => wrong.push(Error::Argument),
            Some(record) => match record.kind {
                Kind::Free | Kind::Kernel | Kind::Leaving => wrong.push(Error::Kind),
                Kind::Data | Kind::Context => {
                    let own = record.owner == caller || record.owner == environment;
                    if !own && !self.lets(record, mapping & WRITE != 0, known) {
                        wrong.push(Error::Denied);
                    }
                }
                _ if mapping & (WRITE | EXECUTE) != 0 => wrong.push(Error::Kind),
                _ => {}
            },
        }
        if wrong.is_empty() {
            self.space(environment)
                .entries
                .insert(address, (page, mapping & FLAGS));
        }
        wrong
    }

    fn lets(&self, record: Page, write: bool, known: Option<&(u16, u32, u32, u64)>) -> bool {
        let birth = self
            .spaces
            .get(&record.owner)
            .map_or(0, |space| space.birth);
        let proves = |name: u32, right: u64| {
            name == 1 || name > 1 && known == Some(&(record.owner, birth, name, right))
        };
        proves(record.write, 2) || !write && proves(record.read, 1)
    }

    pub fn unmap(&mut self, environment: u16, address: u64) -> Vec<Error> {
        if !(START..END).contains(&address) || !address.is_multiple_of(4096) {
            return vec![Error::Argument];
        }
        match self.space(environment).entries.remove(&address) {
            None => vec![Error::Unmapped],
            Some(_) => vec![],
        }
    }

    pub fn protect(&mut self, caller: u16, address: u64, flags: u64) -> Vec<Error> {
        if !(START..END).contains(&address) || !address.is_multiple_of(4096) || flags & !FLAGS != 0
        {
            return vec![Error::Argument];
        }
        let Some(&(page, old)) = self.spaces[&caller].entries.get(&address) else {
            return vec![Error::Unmapped];
        };
        let record = self.pages[page as usize];
        let memory = matches!(record.kind, Kind::Data | Kind::Context);
        if flags & !old & (WRITE | EXECUTE) != 0 && !(record.owner == caller && memory) {
            return vec![Error::Denied];
        }
        self.space(caller).entries.insert(address, (page, flags));
        vec![]
    }
}

impl Space {
    fn descend<H: Hardware>(&mut self, books: &Books<'_, H>, table: u32, level: u32, base: u64) {
        let slots = if level == 4 { index(END, 4) } else { 512 };
        for slot in 0..slots {
            let entry = books.hardware.words(table)[slot].load(Relaxed);
            let number = base << 9 | slot as u64;
            if entry == 0 {
                continue;
            }
            if level == 1 {
                let flags = entry & 0x12 | if entry >> 63 == 0 { EXECUTE } else { 0 };
                self.entries
                    .insert(number << 12, (page(entry) as u32, flags));
                continue;
            }
            let to = page(entry) as u32;
            let links = (level == 2).then(|| books.pages[to as usize].read.load(Relaxed));
            self.tables.insert((level - 1, number), (to, links));
            self.descend(books, to, level - 1, number);
        }
    }
}
