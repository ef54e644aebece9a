//! The memory of all pictures together: what is worked on, and what only lies there: bodies that
//! come, and answers that go.
//!
//! Invariant: what is taken is less than the budget, whoever sends how many pictures, and however
//! slowly. Of what only lies there one address has half at most.

use bytes::Bytes;
use postern_server::{Failure, Party};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes are counted in such steps.
const STEP: usize = 64 << 10;

/// So many bytes, in parts.
pub struct MemoryBudget {
    /// What work can have: three quarters.
    work: Arc<Semaphore>,
    /// In steps.
    most_work: u32,
    /// Bytes that may lie there: a quarter.
    most_lying: usize,
    lying: Mutex<Lying>,
}

#[derive(Default)]
struct Lying {
    all: usize,
    of: HashMap<Party, usize>,
}

/// Memory for work, until this is dropped.
pub struct WorkShare(#[allow(dead_code, reason = "held")] OwnedSemaphorePermit);

/// Memory of something that lies there, until this is dropped.
pub struct LyingShare {
    budget: Arc<MemoryBudget>,
    party: Party,
    bytes: usize,
}

fn full(what: &str) -> Failure {
    Failure::Exhausted(format!("{what} (plugins.memory_bytes)"))
}

impl MemoryBudget {
    /// Of so many bytes.
    pub fn new(bytes: u64) -> Arc<MemoryBudget> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let steps = (bytes / 4 * 3 / STEP).clamp(1, Semaphore::MAX_PERMITS);
        let most_work = u32::try_from(steps).unwrap_or(u32::MAX);
        Arc::new(MemoryBudget {
            work: Arc::new(Semaphore::new(most_work as usize)),
            most_work,
            most_lying: bytes / 4,
            lying: Mutex::default(),
        })
    }

    /// Waits for memory to work in. Who wants more than there is gets all of it.
    ///
    /// # Errors
    /// It took too long.
    pub async fn work(&self, bytes: usize, wait: Duration) -> Result<WorkShare, Failure> {
        let steps = u32::try_from(bytes.div_ceil(STEP)).unwrap_or(u32::MAX);
        let steps = steps.clamp(1, self.most_work);
        let share = self.work.clone().acquire_many_owned(steps);
        match tokio::time::timeout(wait, share).await {
            Ok(Ok(permit)) => Ok(WorkShare(permit)),
            _ => Err(full("other pictures have the memory for it")),
        }
    }

    /// Something that will lie there: nothing so far.
    pub fn lay(self: &Arc<Self>, party: &Party) -> LyingShare {
        LyingShare {
            budget: self.clone(),
            party: party.clone(),
            bytes: 0,
        }
    }

    /// Bytes that are worked on, at most, and that lie there.
    pub fn taken(&self) -> (usize, usize) {
        let work = self.most_work as usize - self.work.available_permits();
        let lying = self.lying.lock().unwrap_or_else(PoisonError::into_inner);
        (work * STEP, lying.all)
    }
}

impl LyingShare {
    /// More of it.
    ///
    /// # Errors
    /// There is no room, for this address or for all.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Failure> {
        let lying = self.budget.lying.lock();
        let mut lying = lying.unwrap_or_else(PoisonError::into_inner);
        let most = self.budget.most_lying;
        let own = lying.of.get(&self.party).copied().unwrap_or_default();
        if lying.all + bytes > most || own + bytes > most / 2 {
            return Err(full(
                "bodies and answers of pictures have the memory for it",
            ));
        }
        lying.all += bytes;
        *lying.of.entry(self.party.clone()).or_default() += bytes;
        self.bytes += bytes;
        Ok(())
    }
}

impl LyingShare {
    /// The bytes that it is for, which it goes with.
    pub fn hold(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Held {
            bytes,
            _share: self,
        })
    }
}

struct Held {
    bytes: Bytes,
    _share: LyingShare,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A file of a picture that has come.
pub struct Received {
    /// All of it.
    pub bytes: Bytes,
    /// What it takes.
    pub _share: LyingShare,
}

impl Drop for LyingShare {
    fn drop(&mut self) {
        let lying = self.budget.lying.lock();
        let mut lying = lying.unwrap_or_else(PoisonError::into_inner);
        lying.all -= self.bytes;
        if let Some(own) = lying.of.get_mut(&self.party) {
            *own -= self.bytes;
            if *own == 0 {
                lying.of.remove(&self.party);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_has_half_of_what_lies_there() {
        let budget = MemoryBudget::new(8 << 20);
        let party = |last: u8| Party::Address([10, 0, 0, last].into());
        let mut first = budget.lay(&party(1));
        assert!(first.grow(1 << 20).is_ok() && first.grow(1).is_err());
        assert!(budget.lay(&party(1)).grow(1).is_err());
        let mut second = budget.lay(&party(2));
        assert!(second.grow(1 << 20).is_ok());
        assert!(budget.lay(&party(3)).grow(1).is_err());
        assert_eq!(budget.taken(), (0, 2 << 20));
        drop((first, second));
        assert_eq!(budget.taken(), (0, 0));
        assert!(budget.lying.lock().unwrap().of.is_empty());
    }
}
