//! A model of environments, quotas, slices and holdings, written from what the calls' table says.

use core::sync::atomic::Ordering::Relaxed;
use std::collections::{HashMap, HashSet};

use postern_aegis_abi::call::{self, ANY};
use postern_aegis_abi::records::{HoldingKind, claim, end, stopping};
use postern_aegis_abi::{Call, Error, ROOT, SLICES};

use super::held::Held;
use super::machine::Processor;
use crate::Books;

type World<'a> = Books<'a, Processor<'a>>;

#[derive(Clone, Default)]
struct One {
    parent: u16,
    server: u16,
    /// Reserved and limit of pages and slices.
    quotas: [(u64, u64); 2],
    environments: u64,
    holdings: u64,
    dying: bool,
}

pub struct Model {
    all: HashMap<u16, One>,
    slices: HashMap<(u64, u64), u16>,
    /// Who may be controlled by which words.
    words: HashSet<(u16, u64)>,
    held: Held,
}

impl Model {
    pub fn new(books: &World<'_>) -> Model {
        let pages = u64::from(books.environment(ROOT).pages_reserved.load(Relaxed));
        let root = One {
            quotas: [(pages, pages), (128, 128)],
            environments: 254,
            holdings: 127,
            ..One::default()
        };
        Model {
            all: HashMap::from([(ROOT, root)]),
            slices: HashMap::from([((0, 0), ROOT)]),
            words: HashSet::new(),
            held: Held::new(),
        }
    }

    pub fn minted(&mut self, books: &World<'_>, of: u16, word: u64) {
        assert!(self.lives(of) && books.lives(of));
        self.words.insert((of, word));
    }

    fn lives(&self, number: u16) -> bool {
        self.all.get(&number).is_some_and(|one| !one.dying)
    }

    fn owned(&self, who: u16) -> u64 {
        self.slices.values().filter(|owner| **owner == who).count() as u64
    }

    /// Whom a call is about, or why the caller may not.
    fn controls(
        &self,
        books: &World<'_>,
        caller: u16,
        number: u64,
        word: u64,
    ) -> Result<u16, Error> {
        if number > 255 {
            return Err(Error::NoEnvironment);
        }
        let number = if number == 0 { caller } else { number as u16 };
        if number == caller {
            return Ok(caller);
        }
        if !self.lives(number) {
            return Err(Error::NoEnvironment);
        }
        let submitted = books.environment(number).claim.load(Relaxed) == claim::SUBMITTED;
        let one = &self.all[&number];
        let may = one.parent == caller
            || submitted && one.server == caller
            || self.words.contains(&(number, word));
        if may { Ok(number) } else { Err(Error::Denied) }
    }

    /// What a call must answer, where this model knows.
    pub fn expected(
        &self,
        books: &World<'_>,
        caller: u16,
        call: Call,
        arguments: &[u64; 6],
    ) -> Option<Result<u64, Error>> {
        let [a, b, c, d, ..] = *arguments;
        let nothing = |result: Result<(), Error>| Some(result.map(|()| 0));
        match call {
            Call::TakeSlice => Some(self.take(caller, a, b)),
            Call::FreeSlice => nothing(self.owns(caller, a, b)),
            Call::GiveSlice => nothing(self.give(books, caller, [a, b, c])),
            Call::Quota => nothing(self.quota(caller, a, b, c, d)),
            Call::Destroy => nothing(self.controls(books, caller, a, b).map(|_| ())),
            Call::Set => nothing(self.set(books, caller, arguments)),
            Call::Revoke => nothing(self.revoke(books, caller, arguments)),
            Call::GiveHolding | Call::RenameHolding | Call::Join => {
                nothing(self.hold(books, caller, call, arguments))
            }
            Call::Drop | Call::Alarm | Call::SetClock => {
                nothing(self.hold(books, caller, call, arguments))
            }
            _ => None,
        }
    }

    /// The calls on holdings.
    fn hold(
        &self,
        books: &World<'_>,
        caller: u16,
        call: Call,
        arguments: &[u64; 6],
    ) -> Result<(), Error> {
        let [a, b, c, ..] = *arguments;
        let room = |who: u16| {
            let one = self.all.get(&who).filter(|one| !one.dying)?;
            Some(self.held.count(who) < one.holdings)
        };
        match call {
            Call::GiveHolding => self.held.give(caller, a, b, room),
            Call::RenameHolding => self.held.rename(caller, a, (b, c)),
            Call::Join => self.held.join(caller, a, b),
            Call::SetClock => self.held.set_clock(caller, b),
            Call::Drop => {
                let owner = self.held.owner(a)?;
                let denied = |_| Error::Denied;
                self.controls(books, caller, owner.into(), b)
                    .map(drop)
                    .map_err(denied)
            }
            _ => Ok(()),
        }
    }

    /// The kernel took a holding for somebody, or did not.
    pub fn took_holding(&mut self, who: u16, kind: HoldingKind, result: Result<usize, Error>) {
        let full = self.held.count(who) >= self.all[&who].holdings;
        assert_eq!(result == Err(Error::Quota), full);
        if let Ok(number) = result {
            self.held.take(number, who, kind);
        }
    }

    /// To whom a holding goes that its owner does not keep.
    /// The quota comes along if there is no room, and the owner is dying.
    fn heir(&mut self, owner: u16) -> Option<u16> {
        let mut heir = match owner {
            ROOT => ROOT,
            _ => self.all[&owner].parent,
        };
        loop {
            let one = self.all.get(&heir)?;
            let room = heir == ROOT || self.held.count(heir) < one.holdings;
            let given = self.all[&owner].dying && self.all[&owner].holdings != 0;
            if (room || given) && !one.dying {
                if !room {
                    self.all.get_mut(&owner)?.holdings -= 1;
                    self.all.get_mut(&heir)?.holdings += 1;
                }
                return Some(heir);
            }
            heir = one.parent;
        }
    }

    fn let_go(&mut self, number: usize, owner: u16) {
        let heir = self.heir(owner);
        self.held.let_go(number, heir);
    }

    fn position(processor: u64, position: u64) -> Result<(), Error> {
        match processor < 2 && position < SLICES as u64 {
            true => Ok(()),
            false => Err(Error::Argument),
        }
    }

    fn take(&self, caller: u16, processor: u64, position: u64) -> Result<u64, Error> {
        let free = |position: &u64| !self.slices.contains_key(&(processor, *position));
        if position != ANY || processor > 1 {
            Model::position(processor, position)?;
        }
        if self.owned(caller) >= self.all[&caller].quotas[1].1 {
            return Err(Error::Quota);
        }
        match position {
            ANY => (0..SLICES as u64).find(free).ok_or(Error::Taken),
            position => Some(position).filter(free).ok_or(Error::Taken),
        }
    }

    fn owns(&self, caller: u16, processor: u64, position: u64) -> Result<(), Error> {
        Model::position(processor, position)?;
        match self.slices.get(&(processor, position)) == Some(&caller) {
            true => Ok(()),
            false => Err(Error::Denied),
        }
    }

    fn give(&self, books: &World<'_>, caller: u16, arguments: [u64; 3]) -> Result<(), Error> {
        let [processor, position, to] = arguments;
        Model::position(processor, position)?;
        if to > 255 || to != 0 && !self.lives(to as u16) {
            return Err(Error::NoEnvironment);
        }
        self.owns(caller, processor, position)?;
        let full = |to: u16| self.owned(to) >= self.all[&to].quotas[1].1;
        match to as u16 {
            0 => Ok(()),
            to if to == caller => Ok(()),
            _ if books.environment(caller).forfeits.load(Relaxed) != 0 => Err(Error::Again),
            to if full(to) => Err(Error::Quota),
            _ => Ok(()),
        }
    }

    fn quota(
        &self,
        caller: u16,
        of: u64,
        resource: u64,
        reserved: u64,
        limit: u64,
    ) -> Result<(), Error> {
        if of > 255 {
            return Err(Error::NoEnvironment);
        }
        let whole = reserved >> 32 == 0 && limit >> 32 == 0;
        if !(1..=4).contains(&resource) || !whole {
            return Err(Error::Argument);
        }
        let of = if of == 0 { caller } else { of as u16 };
        if !self.lives(of) {
            return Err(Error::NoEnvironment);
        }
        if self.all[&of].parent != caller {
            return Err(Error::Denied);
        }
        let (maker, child) = (&self.all[&caller], &self.all[&of]);
        let least = if resource == call::PAGES { 2 } else { 0 };
        if reserved > limit || resource == call::PAGES && reserved < least {
            return Err(Error::Argument);
        }
        let enough = match resource {
            call::ENVIRONMENTS => maker.environments + child.environments >= limit,
            call::HOLDINGS => maker.holdings + child.holdings >= limit,
            _ => {
                let which = resource as usize - 1;
                let ((kept, most), (given, _)) = (maker.quotas[which], child.quotas[which]);
                limit <= most && kept + given >= reserved + least
            }
        };
        if enough { Ok(()) } else { Err(Error::Quota) }
    }

    fn set(&self, books: &World<'_>, caller: u16, arguments: &[u64; 6]) -> Result<(), Error> {
        let [of, what, value, word, ..] = *arguments;
        if of > 255 {
            return Err(Error::NoEnvironment);
        }
        match (what, value) {
            (call::SET_SERVER, 256..) => return Err(Error::NoEnvironment),
            (call::SET_SERVER, _) | (call::SET_FROZEN, 0 | 1) => {}
            _ => return Err(Error::Argument),
        }
        let named = if of == 0 { caller } else { of as u16 };
        if what == call::SET_SERVER && value == u64::from(named) {
            return Err(Error::Argument);
        }
        let named = self.controls(books, caller, of, word)?;
        if what == call::SET_SERVER {
            let there = value == 0 || self.lives(value as u16);
            return if there {
                Ok(())
            } else {
                Err(Error::NoEnvironment)
            };
        }
        let state = books.environment(named).claim.load(Relaxed);
        let runs = claim::RUNNING.contains(&state) && named != caller;
        if value == 1 && runs {
            Err(Error::Again)
        } else {
            Ok(())
        }
    }

    fn revoke(&self, books: &World<'_>, caller: u16, arguments: &[u64; 6]) -> Result<(), Error> {
        let [of, resource, count, word, ..] = *arguments;
        if of > 255 {
            return Err(Error::NoEnvironment);
        }
        if !(1..=2).contains(&resource) || count == 0 || count >> 32 != 0 {
            return Err(Error::Argument);
        }
        let of = self.controls(books, caller, of, word)?;
        let has = match resource {
            call::PAGES => books.environment(of).pages.load(Relaxed).into(),
            _ => self.owned(of),
        };
        let (reserved, _) = self.all[&of].quotas[resource as usize - 1];
        if count > has.saturating_sub(reserved) {
            Err(Error::Quota)
        } else {
            Ok(())
        }
    }

    /// What a call has changed.
    pub fn done(
        &mut self,
        books: &World<'_>,
        caller: u16,
        call: Call,
        arguments: &[u64; 6],
        result: Result<u64, Error>,
    ) {
        let Ok(value) = result else { return };
        let [a, b, c, d, ..] = *arguments;
        let named = |number: u64| if number == 0 { caller } else { number as u16 };
        match call {
            Call::TakeSlice => {
                self.slices.insert((a, value), caller);
            }
            Call::FreeSlice => {
                self.slices.remove(&(a, b));
            }
            Call::GiveSlice => {
                self.slices.insert((a, b), named(c));
            }
            Call::Quota if b == call::ENVIRONMENTS => {
                let child = self.all.get_mut(&named(a)).unwrap();
                let before = core::mem::replace(&mut child.environments, d);
                let maker = self.all.get_mut(&caller).unwrap();
                maker.environments = maker.environments + before - d;
            }
            Call::Quota if b == call::HOLDINGS => {
                let child = self.all.get_mut(&named(a)).unwrap();
                let before = core::mem::replace(&mut child.holdings, d);
                let maker = self.all.get_mut(&caller).unwrap();
                maker.holdings = maker.holdings + before - d;
            }
            Call::GiveHolding => self.held.moved(a as usize, named(b)),
            Call::RenameHolding => self.held.renamed(a as usize, (b, c)),
            Call::Split => self.held.split(a as usize, b, value as usize),
            Call::Join => self.held.joined(a as usize, b as usize),
            Call::Drop => {
                let owner = self.held.owner(a).unwrap();
                self.let_go(a as usize, owner);
            }
            Call::Capability => self.held.minted(value, (caller, a, b)),
            Call::Quota => {
                let which = b as usize - 1;
                let child = self.all.get_mut(&named(a)).unwrap();
                let (before, _) = core::mem::replace(&mut child.quotas[which], (c, d));
                let maker = self.all.get_mut(&caller).unwrap();
                maker.quotas[which].0 = maker.quotas[which].0 + before - c;
            }
            Call::Set if b == call::SET_SERVER => {
                self.all.get_mut(&named(a)).unwrap().server = c as u16;
            }
            Call::Destroy => {
                self.all.get_mut(&named(a)).unwrap().dying = true;
                assert!(!books.lives(named(a)));
            }
            Call::Create => {
                let maker = self.all.get_mut(&caller).unwrap();
                maker.environments -= 1;
                maker.quotas[0].0 -= 2;
                let child = One {
                    parent: caller,
                    quotas: [(2, 2), (0, 0)],
                    ..One::default()
                };
                let before = self.all.insert(value as u16, child);
                assert!(before.is_none(), "{value} was somebody's");
            }
            _ => {}
        }
    }

    /// Follows deaths and slices taken by force, as far as they have a reason; all else must be as
    /// it is here.
    pub fn follow(&mut self, books: &World<'_>) {
        for (number, record) in books.machine.environments.iter().enumerate().skip(1) {
            let number = number as u16;
            let free = record.claim.load(Relaxed) == claim::FREE;
            let ends = record.stopping.load(Relaxed) == stopping::END;
            let Some(one) = self.all.get(&number).cloned() else {
                assert!(free, "{number} came from nowhere");
                continue;
            };
            if ends && !one.dying {
                let reason = record.ended.load(Relaxed);
                let orphan = self.all.get(&one.parent).is_some_and(|maker| maker.dying);
                let own = reason == end::EXCESS || reason == end::REFUSED;
                assert!(
                    own || orphan && reason == end::DESTROYED,
                    "{number}: {reason:#x}"
                );
                self.all.get_mut(&number).unwrap().dying = true;
            }
            assert!(!one.dying || ends || free);
            if free {
                self.bury(number);
            }
        }
        for number in self.held.gone(books, |owner| self.all[&owner].dying) {
            let owner = self.held.owner(number as u64).unwrap();
            self.let_go(number, owner);
        }
        for (number, one) in &self.all {
            if one.dying {
                continue;
            }
            let held = books.environment(*number).holdings_limit.load(Relaxed);
            assert_eq!(u64::from(held), one.holdings, "{number}");
        }
        for (number, one) in &self.all {
            let record = books.environment(*number);
            let counts = [
                (&record.pages_reserved, one.quotas[0].0),
                (&record.pages_limit, one.quotas[0].1),
                (&record.slices_reserved, one.quotas[1].0),
                (&record.slices_limit, one.quotas[1].1),
                (&record.environments_limit, one.environments),
            ];
            for (count, expected) in counts {
                assert_eq!(u64::from(count.load(Relaxed)), expected, "{number}");
            }
            assert_eq!(record.parent.load(Relaxed), one.parent);
            assert_eq!(record.server.load(Relaxed), one.server, "{number}");
        }
        self.follow_slices(books);
        self.held.check(books);
    }

    fn bury(&mut self, number: u16) {
        let one = self.all.remove(&number).unwrap();
        assert_eq!(self.held.count(number), 0, "{number} holds something");
        self.held.forget(number);
        assert!(one.dying, "{number} is gone");
        assert!(
            self.all.values().all(|other| other.parent != number),
            "children live"
        );
        let maker = self.all.get_mut(&one.parent).unwrap();
        maker.environments += one.environments + 1;
        maker.holdings += one.holdings;
        for which in [0, 1] {
            maker.quotas[which].0 += one.quotas[which].0;
            let (reserved, limit) = &mut maker.quotas[which];
            *limit = (*limit).max(*reserved);
        }
        for other in self.all.values_mut().filter(|other| other.server == number) {
            other.server = 0;
        }
        self.words.retain(|(of, _)| *of != number);
    }

    fn follow_slices(&mut self, books: &World<'_>) {
        for processor in 0..2u64 {
            for position in 0..SLICES as u64 {
                let slice = &books.machine.slices[processor as usize][position as usize];
                let owner = slice.owner.load(Relaxed);
                let expected = self
                    .slices
                    .get(&(processor, position))
                    .copied()
                    .unwrap_or(0);
                if owner == 0 && expected != 0 {
                    // Its owner died, or had more than is reserved for it and was asked.
                    if let Some(one) = self.all.get(&expected).filter(|one| !one.dying) {
                        assert!(self.owned(expected) > one.quotas[1].0, "{expected}");
                    }
                    self.slices.remove(&(processor, position));
                    continue;
                }
                assert_eq!(owner, expected, "{processor} {position}");
            }
        }
    }
}
