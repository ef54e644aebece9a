//! Waiting for another process: the processor goes to it at once, and if it runs elsewhere, or is
//! not ready, the slice ends.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Relaxed, Ordering::Release};

use postern_aegis::abi::records::claim;
use postern_aegis::{Error, books, entry};

/// Looks that are worth it while a peer runs on another processor.
const SPINS: u32 = 64;
/// Turns in a row that go to the same peer before others have theirs, too.
const TURNS: u32 = 32;

/// Who waits, and how often it did so far.
#[derive(Debug, Default)]
pub struct Wait {
    turns: u32,
}

impl Wait {
    /// Gives the processor away once: to a peer if it takes it.
    pub fn turn(&mut self, peer: u16) {
        self.turns = self.turns.wrapping_add(1);
        let others = self.turns.is_multiple_of(TURNS);
        if others || peer == 0 || peer > 255 || books::is_self(peer) {
            return entry::yield_slice();
        }
        match entry::yield_to(peer) {
            Ok(()) => {}
            Err(Error::Busy) if !self.turns.is_multiple_of(4) && runs(peer) => {
                (0..SPINS).for_each(|_| spin_loop())
            }
            Err(_) => entry::yield_slice(),
        }
    }
}

/// Whether an environment runs now: on another processor, then. Others may have been stopped.
pub fn runs(environment: u16) -> bool {
    let state = books::environment(environment).claim.load(Relaxed);
    claim::RUNNING.contains(&state)
}

/// How locks name this environment, which no lookup has to say each time.
static OWN: AtomicU64 = AtomicU64::new(0);

/// In every process once, copies too.
pub fn begin() {
    OWN.store(holder(books::own_number()), Relaxed);
}

/// Turns that a lock's holder is given. None keeps it while it waits, so one that does not give it
/// back has stopped, or somebody who shares the memory has made it up.
const PATIENCE: u32 = 1024;

/// A lock in shared memory that a death does not keep: it names its holder.
#[derive(Debug)]
pub struct Lock<'a>(&'a AtomicU64);

impl<'a> Lock<'a> {
    /// Waits for it. `None`: this process has it already, in what a signal interrupted, or `stops`
    /// says that it is not to be waited for.
    pub fn take(word: &'a AtomicU64, stops: impl Fn() -> bool) -> Option<Lock<'a>> {
        let own = OWN.load(Relaxed);
        let mut wait = Wait::default();
        let mut found = 0;
        loop {
            match word.compare_exchange(found, own, AcqRel, Relaxed) {
                Ok(_) => return Some(Lock(word)),
                Err(now) if now == own => return None,
                // Its holder has ended: once more, in its place.
                Err(now) if now == 0 || now != holder(now as u8 as u16) => found = now,
                Err(now) if wait.turns >= PATIENCE => found = now,
                Err(now) => {
                    found = 0;
                    if stops() {
                        return None;
                    }
                    wait.turn(now as u8 as u16);
                }
            }
        }
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        self.0.store(0, Release);
    }
}

/// How a lock names an environment that lives, not one that has its number later; otherwise 0.
fn holder(environment: u16) -> u64 {
    match books::lives(environment) {
        true => {
            let birth = books::environment(environment).birth.load(Relaxed);
            u64::from(birth) << 8 | u64::from(environment)
        }
        false => 0,
    }
}
