//! The processor as a vector of time slices (section 5.1.1): who owns a position, who runs next,
//! and what somebody pays who does not stop when told.
//!
//! A processor goes round its vector. A slice ends by its clock ([`Books::tick`]) or because who
//! runs yields; then [`Books::vacate`] and [`Books::next_turn`] follow. Who was told of the end and
//! has not yielded by the next tick has exceeded its slice: it forfeits one for each tick, and ends
//! after [`EXCESS`] of them. No time comes from nowhere: who exceeds and has no slice pays with
//! its lender's, who owes some gives none away, and what the dead owe their makers pay.
//!
//! Invariants: a position whose `runs` is nobody or dead is the owner's to run in. The claim of
//! whom `next` returns is this processor's until it is left, and nobody takes it away: who ends an
//! environment that runs marks it, and the processor leaves it. An environment that transfers to
//! another while it was told to stop pays itself, and not the other.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use postern_aegis_abi::context::Context;
use postern_aegis_abi::records::{Environment, Slice, claim, end, stopping};
use postern_aegis_abi::{EXCESS, Error, PROCESSORS, SLICES};

use crate::quota::Resource;
use crate::{Books, Hardware};

/// What a processor does when its clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Tick {
    /// Who runs goes on: it was told before, and pays for this.
    Stay,
    /// Who runs is told: the address of the handler in its `end`.
    Tell(u64),
    /// Who runs is left, if anybody does, and the next one begins.
    Next,
}

/// A slice that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Who runs in it, claimed.
    pub environment: u16,
    /// Its position.
    pub position: usize,
    /// Where it begins: `notify` of its context if events wait, otherwise `begin`.
    pub entry: u64,
}

impl<'a, H: Hardware> Books<'a, H> {
    fn slice(&self, processor: usize, position: usize) -> &'a Slice {
        &self.machine.slices[processor][position]
    }

    /// Positions of a processor that somebody owns: mostly few, so the others are not looked at.
    fn owned(&self, processor: usize) -> &'a AtomicU64 {
        const { assert!(SLICES == 64) };
        &self.machine.processor[processor].owned
    }

    /// How many processors there are.
    pub(crate) fn processors(&self) -> usize {
        (self.machine.processors.load(Relaxed) as usize).min(PROCESSORS)
    }

    /// All slices of all processors, with processor and position.
    pub(crate) fn slices(&self) -> impl DoubleEndedIterator<Item = (usize, usize, &'a Slice)> {
        let machine = self.machine;
        (0..self.processors()).flat_map(move |processor| {
            let vector = machine.slices[processor].iter().enumerate();
            vector.map(move |(position, slice)| (processor, position, slice))
        })
    }

    /// The call: a free slice becomes the caller's, by its position or any. The result is the
    /// position.
    pub fn take_slice(
        &self,
        caller: u16,
        processor: usize,
        position: Option<usize>,
    ) -> Result<usize, Error> {
        let record = self.environment(caller);
        let _lock = self.lock_environment(caller);
        let slices = record.slices.load(Relaxed);
        if slices >= record.slices_limit.load(Relaxed) {
            return Err(Error::Quota);
        }
        let free = |position: &usize| {
            let owner = &self.slice(processor, *position).owner;
            owner.compare_exchange(0, caller, AcqRel, Relaxed).is_ok()
        };
        let taken = match position {
            Some(position) => Some(position).filter(free),
            None => (0..SLICES).find(free),
        };
        let position = taken.ok_or(Error::Taken)?;
        self.owned(processor).fetch_or(1 << position, Release);
        self.slice(processor, position).runs.store(caller, Release);
        record.slices.store(slices + 1, Relaxed);
        Ok(position)
    }

    /// The call: a slice of the caller's becomes free.
    pub fn free_slice(&self, caller: u16, processor: usize, position: usize) -> Result<(), Error> {
        let _lock = self.lock_environment(caller);
        self.drop_slice(caller, processor, position)?;
        self.came_back(caller, Resource::Slices);
        Ok(())
    }

    /// The call: a slice of the caller's becomes another's, or, given to the caller itself, is no
    /// longer run by whom it was donated to.
    pub fn give_slice(
        &self,
        caller: u16,
        processor: usize,
        position: usize,
        to: u16,
    ) -> Result<(), Error> {
        let _locks = self.lock_both(caller, to);
        if !self.lives(to) {
            return Err(Error::NoEnvironment);
        }
        let slice = self.slice(processor, position);
        if slice.owner.load(Relaxed) != caller {
            return Err(Error::Denied);
        }
        if to != caller {
            // Its debts are paid with its own slices.
            if self.environment(caller).forfeits.load(Relaxed) != 0 {
                return Err(Error::Again);
            }
            let (from, record) = (self.environment(caller), self.environment(to));
            let slices = record.slices.load(Relaxed);
            if slices >= record.slices_limit.load(Relaxed) {
                return Err(Error::Quota);
            }
            record.slices.store(slices + 1, Relaxed);
            from.slices.fetch_sub(1, Relaxed);
            slice.owner.store(to, Release);
        }
        slice.runs.store(to, Release);
        Ok(())
    }

    /// A slice is nobody's any more. The owner's lock is held.
    pub(crate) fn drop_slice(
        &self,
        owner: u16,
        processor: usize,
        position: usize,
    ) -> Result<(), Error> {
        let slice = self.slice(processor, position);
        if slice.owner.load(Relaxed) != owner {
            return Err(Error::Denied);
        }
        // Before it is free: whoever takes it then sets this again.
        self.owned(processor).fetch_and(!(1 << position), Relaxed);
        slice.owner.store(0, Release);
        slice.runs.store(0, Release);
        self.environment(owner).slices.fetch_sub(1, Relaxed);
        Ok(())
    }

    /// What to do at a tick of this processor's clock, which interrupts an environment or nobody.
    pub fn tick(&self, processor: usize) -> Tick {
        let here = &self.machine.processor[processor];
        let current = here.current.load(Relaxed) as u16;
        if current == 0 {
            here.ticks.fetch_add(1, Relaxed);
            here.idle.fetch_add(1, Relaxed);
            return Tick::Next;
        }
        let told = here.told.swap(u32::from(current), Relaxed) as u16;
        if told != 0 {
            here.ticks.fetch_add(1, Relaxed);
            self.exceed(processor, told);
        }
        let record = self.environment(current);
        if record.stopping.load(Relaxed) >= stopping::SUBMIT {
            return Tick::Next;
        }
        if told == current {
            return Tick::Stay;
        }
        if told == 0 {
            record.excess.store(0, Relaxed);
        }
        match self.entry_of(current, core::mem::offset_of!(Context, end)) {
            0 => Tick::Next,
            entry => Tick::Tell(entry),
        }
    }

    /// Somebody was told that its slice has ended, and a tick later that slice has not. Who has no
    /// slice of its own to forfeit runs in one that was lent: then the lender pays.
    fn exceed(&self, processor: usize, environment: u16) {
        let record = self.environment(environment);
        // Whose it was at its beginning: it may be free by now.
        let lender = self.machine.processor[processor].lender.load(Relaxed) as u16;
        let payer = match record.slices.load(Relaxed) {
            0 if self.lives(lender) => self.environment(lender),
            _ => record,
        };
        payer.forfeits.fetch_add(1, Relaxed);
        if record.excess.fetch_add(1, Relaxed) + 1 > EXCESS {
            self.end(environment, end::EXCESS, 0);
        }
    }

    /// This processor leaves who runs on it: its slice has ended, or it is stopping. The processor
    /// uses none of its tables any more (another one may free them from now on).
    pub fn vacate(&self, processor: usize) {
        let here = &self.machine.processor[processor];
        here.told.store(0, Relaxed);
        let current = here.current.swap(0, Relaxed) as u16;
        if current == 0 {
            return;
        }
        let record = self.environment(current);
        record.excess.store(0, Relaxed);
        self.release(record);
    }

    /// Gives a claim back that this processor has.
    fn release(&self, record: &Environment) {
        let state = record.stopping.load(Acquire);
        let after = match state {
            stopping::END => claim::ENDING,
            stopping::SUBMIT => claim::SUBMITTED,
            stopping::FREEZE => claim::FROZEN,
            _ => claim::IDLE,
        };
        record.claim.store(after, Release);
        if matches!(state, stopping::FREEZE | stopping::SUBMIT) {
            // Only now: who thaws it clears this first and the claim then. It fails if the
            // environment is to end since a moment ago: whoever reaps takes the claim.
            let mark = &record.stopping;
            let _ = mark.compare_exchange(state, stopping::NOT, AcqRel, Relaxed);
        }
    }

    /// Claims who runs next, whose slice begins; `None` if nobody can run. Asking often takes no
    /// time of anybody's: a processor where nobody runs counts its clock's ticks only.
    /// [`Books::vacate`] was called before.
    pub fn next_turn(&self, processor: usize) -> Option<Turn> {
        let here = &self.machine.processor[processor];
        let next = here.position.load(Relaxed) as usize + 1;
        let mut owned = self
            .owned(processor)
            .load(Acquire)
            .rotate_right(next as u32);
        let turn = loop {
            if owned == 0 {
                return None;
            }
            let position = (next + owned.trailing_zeros() as usize) % SLICES;
            owned &= owned - 1;
            if let Some(turn) = self.begin(processor, position) {
                break turn;
            }
        };
        here.ticks.fetch_add(1, Relaxed);
        here.position.store(turn.position as u32, Relaxed);
        here.current.store(u32::from(turn.environment), Relaxed);
        Some(turn)
    }

    /// Claims who runs in a position, if that one can run and its owner has none to forfeit.
    fn begin(&self, processor: usize, position: usize) -> Option<Turn> {
        let slice = self.slice(processor, position);
        let owner = slice.owner.load(Acquire);
        if owner == 0 {
            return None;
        }
        let mut runs = slice.runs.load(Acquire);
        if !self.lives(runs) {
            // Donated to somebody who is dead, so it is its owner's again.
            let _ = slice.runs.compare_exchange(runs, owner, AcqRel, Relaxed);
            runs = owner;
        }
        let debts = &self.environment(owner).forfeits;
        let pays = |forfeits: u32| forfeits.checked_sub(1);
        if debts.fetch_update(Relaxed, Relaxed, pays).is_ok() {
            self.raise(owner, Context::EVENT_FORFEITED);
            return None;
        }
        let record = self.environment(runs);
        self.claim(processor, runs).ok()?;
        // Now that it is claimed the number is not given to another; was it before?
        let context = self.context(runs);
        let word = |offset: usize| context[offset / 8].load(Relaxed);
        let events = word(core::mem::offset_of!(Context, events)) != 0;
        let notify = self.entry_of(runs, core::mem::offset_of!(Context, notify));
        let entry = match events && notify != 0 {
            true => notify,
            false => self.entry_of(runs, core::mem::offset_of!(Context, begin)),
        };
        if entry == 0 || slice.runs.load(Acquire) != runs {
            self.release(record);
            return None;
        }
        record.ran.fetch_add(1, Relaxed);
        let lender = &self.machine.processor[processor].lender;
        lender.store(owner.into(), Relaxed);
        Some(Turn {
            environment: runs,
            position,
            entry,
        })
    }

    /// Claims an environment to enter it.
    fn claim(&self, processor: usize, environment: u16) -> Result<(), Error> {
        let record = self.environment(environment);
        let mine = processor as u32 + 1;
        match record
            .claim
            .compare_exchange(claim::IDLE, mine, Acquire, Relaxed)
        {
            Ok(_) if record.stopping.load(Relaxed) == stopping::NOT => Ok(()),
            Ok(_) => {
                self.release(record);
                Err(Error::Busy)
            }
            Err(claim::FREE | claim::ENDING | claim::CHANGING) => Err(Error::NoEnvironment),
            Err(_) => Err(Error::Busy),
        }
    }

    /// What transfers do on their fast paths in assembly, as a rule: the callee is claimed, gets
    /// the rest of this slice and, if the transfer is synchronous and the position runs the
    /// caller, its future; then the caller can be entered again. An asynchronous callee gives
    /// away no future: the position does not run it. Who was told of the slice's end stays told.
    pub fn donate(&self, processor: usize, callee: u16, synchronous: bool) -> Result<(), Error> {
        let here = &self.machine.processor[processor];
        let caller = here.current.load(Relaxed) as u16;
        if callee == 0 {
            return Err(Error::NoEnvironment);
        }
        self.claim(processor, callee)?;
        if synchronous {
            let slice = self.slice(processor, here.position.load(Relaxed) as usize);
            // Another processor may free or give the slice meanwhile: then it is not donated.
            let _ = slice.runs.compare_exchange(caller, callee, AcqRel, Relaxed);
        }
        here.current.store(u32::from(callee), Relaxed);
        self.release(self.environment(caller));
        Ok(())
    }
}
