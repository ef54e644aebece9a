//! What the disk is asked, from the call to the ring in which it is told.
//!
//! Invariants, under the disk's lock: of two requests under way for one block none writes. Each has
//! its page lent, and is counted in its owner's record as long as that is the same environment.
//! A flush is under way alone among its owner's.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::device::{ALL_REQUESTS, REQUESTS, Request};
use postern_aegis_abi::records::HoldingKind;
use postern_aegis_abi::{Context, Error};

use crate::{Books, Hardware};

/// Places for requests that are only for who has none under way.
const KEPT: usize = REQUESTS;

/// What the device is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// A block of the disk goes to a page.
    Read(u64, u32),
    /// A page goes to a block of the disk.
    Write(u64, u32),
    /// What was written before is there for good.
    Flush,
}

impl Block {
    /// Whether two requests must not be under way together.
    fn excludes(self, other: Block) -> bool {
        match (self, other) {
            (Block::Read(one, _) | Block::Write(one, _), Block::Write(two, _))
            | (Block::Write(one, _), Block::Read(two, _)) => one == two,
            _ => false,
        }
    }

    /// The page that is read or written.
    pub(crate) fn page(self) -> Option<u32> {
        match self {
            Block::Read(_, page) | Block::Write(_, page) => Some(page),
            Block::Flush => None,
        }
    }
}

/// A request that the disk is not done with.
#[derive(Clone, Copy, Debug)]
struct Taken {
    owner: u16,
    birth: u32,
    block: Block,
    tag: u64,
}

/// All requests that the disk is not done with, by their places.
#[derive(Debug)]
pub struct UnderWay([Option<Taken>; ALL_REQUESTS]);

impl UnderWay {
    /// None.
    pub const fn new() -> UnderWay {
        UnderWay([None; ALL_REQUESTS])
    }

    fn all(&self) -> impl Iterator<Item = &Taken> {
        self.0.iter().flatten()
    }

    /// Places with whose requests they are, and what they do.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> impl Iterator<Item = (usize, u16, u32, Block)> {
        let taken = |taken: &Taken| (taken.owner, taken.birth, taken.block);
        let places = self.0.iter().enumerate();
        places.filter_map(move |(place, one)| {
            let (owner, birth, block) = taken(one.as_ref()?);
            Some((place, owner, birth, block))
        })
    }

    /// A place for a request of somebody who has some under way already, or none.
    fn place(&self, has_none: bool) -> Option<usize> {
        let free = ALL_REQUESTS - self.all().count();
        if free <= KEPT && !has_none {
            return None;
        }
        self.0.iter().position(Option::is_none)
    }
}

impl Default for UnderWay {
    fn default() -> UnderWay {
        UnderWay::new()
    }
}

impl<H: Hardware> Books<'_, H> {
    /// Takes a request of somebody's: its place, and what the device is to do. Holdings are locked,
    /// and the disk.
    ///
    /// # Errors
    /// As the call [`Blocks`](postern_aegis_abi::Call::Blocks); nothing is changed then.
    pub fn take_request(
        &self,
        under_way: &mut UnderWay,
        caller: u16,
        request: &Request,
    ) -> Result<(usize, Block), Error> {
        let block = self.decide(caller, request)?;
        let birth = self.environment(caller).birth.load(Relaxed);
        let own = |taken: &&Taken| taken.owner == caller && taken.birth == birth;
        let count = under_way.all().filter(own).count();
        let flushes = under_way
            .all()
            .filter(own)
            .any(|one| one.block == Block::Flush);
        let alone = block == Block::Flush;
        let excluded = under_way.all().any(|one| one.block.excludes(block));
        if count >= REQUESTS || flushes || excluded || (alone && count != 0) {
            return Err(Error::Again);
        }
        let place = under_way.place(count == 0).ok_or(Error::Again)?;
        if let Some(page) = block.page() {
            let written = matches!(block, Block::Read(..));
            self.lend(caller, page, written, request.capability)?;
        }
        under_way.0[place] = Some(Taken {
            owner: caller,
            birth,
            block,
            tag: request.tag,
        });
        self.environment(caller).requests.fetch_add(1, Relaxed);
        Ok((place, block))
    }

    /// What a request means, if its maker may ask for it. Holdings are locked.
    fn decide(&self, caller: u16, request: &Request) -> Result<Block, Error> {
        let reads = match request.operation {
            Request::READ => true,
            Request::WRITE | Request::FLUSH => false,
            _ => return Err(Error::Argument),
        };
        let range = (request.holding, HoldingKind::Blocks);
        let range = self.holding(self.may_use(caller, range, !reads, request.authority)?);
        if request.operation == Request::FLUSH {
            return Ok(Block::Flush);
        }
        let first = range.first.load(Relaxed);
        if request.block >= range.count.load(Relaxed) {
            return Err(Error::Argument);
        }
        let block = first.checked_add(request.block).ok_or(Error::Argument)?;
        let page = self.number(request.page)?;
        Ok(match reads {
            true => Block::Read(block, page),
            false => Block::Write(block, page),
        })
    }

    /// The device was not asked after all.
    pub fn forget_request(&self, under_way: &mut UnderWay, place: usize) {
        if let Some(taken) = under_way.0.get_mut(place).and_then(Option::take) {
            self.give_back(&taken);
        }
    }

    /// The device is done with a request, or will never be: its owner is told. The disk is locked.
    pub fn request_is_done(
        &self,
        under_way: &mut UnderWay,
        place: usize,
        result: Result<(), Error>,
    ) {
        let Some(taken) = under_way.0.get_mut(place).and_then(Option::take) else {
            return;
        };
        self.give_back(&taken);
        if let Some(ring) = self.completions(&taken) {
            let result = result.map_or_else(|error| error as i64 as u64, |()| 0);
            let owner = (taken.owner, taken.birth);
            // A ring that has no entry ready, or is none, is its owner's affair.
            let _ = self.tell(owner, ring, (taken.tag, result), None);
        }
        let _lock = self.lock_environment(taken.owner);
        if self.is_same(&taken) {
            self.raise_locked(taken.owner, Context::EVENT_DISK);
        }
    }

    fn give_back(&self, taken: &Taken) {
        if let Some(page) = taken.block.page() {
            self.take_back(page);
        }
        let _lock = self.lock_environment(taken.owner);
        if self.is_same(taken) {
            let requests = &self.environment(taken.owner).requests;
            requests.store(requests.load(Relaxed).saturating_sub(1), Relaxed);
        }
    }

    /// Whether a request's owner is the one that its number is now. It is locked.
    fn is_same(&self, taken: &Taken) -> bool {
        self.environment(taken.owner).birth.load(Relaxed) == taken.birth
    }

    /// The page of the ring that the owner of a request names now, if it lives.
    fn completions(&self, taken: &Taken) -> Option<u32> {
        let _lock = self.lock_environment(taken.owner);
        if !self.lives(taken.owner) || !self.is_same(taken) {
            return None;
        }
        let word = &self.context(taken.owner)[offset_of!(Context, completions) / 8];
        // None is page 0, which is the kernel's.
        u32::try_from(word.load(Relaxed)).ok()
    }
}
