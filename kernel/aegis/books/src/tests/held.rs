//! A model of holdings, written from what the calls' table says.

use core::sync::atomic::Ordering::Relaxed;
use std::collections::{BTreeMap, HashMap};
use std::vec::Vec;

use postern_aegis_abi::call::RIGHT_WRITE;
use postern_aegis_abi::records::{CLOCK, CONSOLE, DISK, HoldingKind};
use postern_aegis_abi::{Error, HOLDINGS};

use super::machine::Processor;
use super::world::BLOCKS;
use crate::Books;

#[derive(Clone, Copy, PartialEq, Debug)]
struct One {
    owner: u16,
    kind: HoldingKind,
    names: (u64, u64),
    /// The first of its blocks, and how many.
    blocks: (u64, u64),
}

pub struct Held {
    all: BTreeMap<usize, One>,
    /// Words that capabilities are: whose, of which name, which right.
    words: HashMap<u64, (u16, u64, u64)>,
}

impl Held {
    pub fn new() -> Held {
        let one = |kind, write, count| One {
            owner: 1,
            kind,
            names: (0, write),
            blocks: (0, count),
        };
        let all = [
            (CONSOLE, one(HoldingKind::Console, 1, 0)),
            (CLOCK, one(HoldingKind::Clock, 0, 0)),
            (DISK, one(HoldingKind::Blocks, 0, BLOCKS)),
        ];
        Held {
            all: all.into(),
            words: HashMap::new(),
        }
    }

    pub fn count(&self, who: u16) -> u64 {
        self.all.values().filter(|one| one.owner == who).count() as u64
    }

    pub fn owner(&self, number: u64) -> Result<u16, Error> {
        self.get(number).map(|one| one.owner)
    }

    pub fn minted(&mut self, word: u64, of: (u16, u64, u64)) {
        self.words.insert(word, of);
    }

    fn get(&self, number: u64) -> Result<One, Error> {
        let number = number.min(HOLDINGS as u64) as usize;
        self.all.get(&number).copied().ok_or(Error::Argument)
    }

    fn own(&self, who: u16, number: u64) -> Result<One, Error> {
        let one = self.get(number)?;
        match one.owner == who {
            true => Ok(one),
            false => Err(Error::Denied),
        }
    }

    /// `room` says of who lives whether it has room for one more.
    pub fn give(
        &self,
        who: u16,
        number: u64,
        to: u64,
        room: impl Fn(u16) -> Option<bool>,
    ) -> Result<(), Error> {
        if number >= HOLDINGS as u64 {
            return Err(Error::Argument);
        }
        if to > 255 {
            return Err(Error::NoEnvironment);
        }
        if self.own(who, number)?.kind == HoldingKind::Handler {
            return Err(Error::Kind);
        }
        let to = if to == 0 { who } else { to as u16 };
        match room(to) {
            None => Err(Error::NoEnvironment),
            Some(false) if to != who => Err(Error::Quota),
            _ => Ok(()),
        }
    }

    pub fn rename(&self, who: u16, number: u64, (read, write): (u64, u64)) -> Result<(), Error> {
        if read >> 32 != 0 || write >> 32 != 0 {
            return Err(Error::Argument);
        }
        match self.own(who, number)?.kind {
            HoldingKind::Endpoint | HoldingKind::Handler => Err(Error::Kind),
            _ => Ok(()),
        }
    }

    pub fn join(&self, who: u16, number: u64, behind: u64) -> Result<(), Error> {
        let range = |number: u64| {
            let one = self.get(number)?;
            match one.kind {
                HoldingKind::Blocks => self.own(who, number),
                _ => Err(Error::Kind),
            }
        };
        if behind >= HOLDINGS as u64 {
            return Err(Error::Argument);
        }
        let (one, other) = (range(number)?, range(behind)?);
        match one.blocks.0 + one.blocks.1 == other.blocks.0 {
            true => Ok(()),
            false => Err(Error::Argument),
        }
    }

    pub fn set_clock(&self, who: u16, word: u64) -> Result<(), Error> {
        let clock = self.all[&CLOCK];
        let name = clock.names.1;
        let known = self.words.get(&word);
        let may = clock.owner == who
            || name == 1
            || name > 1 && known == Some(&(clock.owner, name, RIGHT_WRITE));
        if may { Ok(()) } else { Err(Error::Denied) }
    }

    pub fn take(&mut self, number: usize, owner: u16, kind: HoldingKind) {
        let one = One {
            owner,
            kind,
            names: (0, 0),
            blocks: (0, 0),
        };
        assert_eq!(self.all.insert(number, one), None);
    }

    pub fn moved(&mut self, number: usize, to: u16) {
        let one = self.all.get_mut(&number).unwrap();
        one.owner = to;
        one.names = (0, 0);
    }

    pub fn renamed(&mut self, number: usize, names: (u64, u64)) {
        self.all.get_mut(&number).unwrap().names = names;
    }

    pub fn split(&mut self, number: usize, blocks: u64, new: usize) {
        let one = self.all.get_mut(&number).unwrap();
        let (first, count) = one.blocks;
        assert!(blocks != 0 && blocks < count);
        one.blocks.1 = blocks;
        let rest = One {
            names: (0, 0),
            blocks: (first + blocks, count - blocks),
            ..*one
        };
        assert_eq!(self.all.insert(new, rest), None);
    }

    pub fn joined(&mut self, number: usize, behind: usize) {
        let rest = self.all.remove(&behind).unwrap();
        self.all.get_mut(&number).unwrap().blocks.1 += rest.blocks.1;
    }

    pub fn let_go(&mut self, number: usize, heir: Option<u16>) {
        let kind = self.all[&number].kind;
        match heir {
            Some(heir) if !matches!(kind, HoldingKind::Endpoint | HoldingKind::Handler) => {
                self.moved(number, heir);
            }
            _ => _ = self.all.remove(&number),
        }
    }

    /// What those who are dying have no more.
    pub fn gone(
        &self,
        books: &Books<'_, Processor<'_>>,
        dying: impl Fn(u16) -> bool,
    ) -> Vec<usize> {
        let lost = |(number, one): (&usize, &One)| {
            let owner = books.holding(*number).owner.load(Relaxed);
            (owner != one.owner && dying(one.owner)).then_some(*number)
        };
        self.all.iter().filter_map(lost).collect()
    }

    pub fn forget(&mut self, who: u16) {
        self.words.retain(|_, (owner, ..)| *owner != who);
    }

    /// The books say the same.
    pub fn check(&self, books: &Books<'_, Processor<'_>>) {
        for (number, holding) in books.machine.holdings.iter().enumerate() {
            let there = One {
                owner: holding.owner.load(Relaxed),
                kind: HoldingKind::of(holding.kind.load(Relaxed)).unwrap(),
                names: (
                    holding.read.load(Relaxed).into(),
                    holding.write.load(Relaxed).into(),
                ),
                blocks: (holding.first.load(Relaxed), holding.count.load(Relaxed)),
            };
            match self.all.get(&number) {
                Some(one) => assert_eq!(there, *one, "{number}"),
                None => assert_eq!(there.kind, HoldingKind::Free, "{number}"),
            }
        }
    }
}
