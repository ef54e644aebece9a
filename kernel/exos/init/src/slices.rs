//! Slices of processes. The kernel's limit of each is what its tree counts for it, so nobody takes
//! others by itself; what a process gives back is counted no more when somebody wants one, or at
//! the next look.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::call::SLICES;
use postern_aegis::{Error, books, calls, slices};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::table::PROCESSES;

use crate::making::Made;
use crate::registry::{Registry, refusal};
use crate::tree::What;

impl Registry {
    /// One slice more, as soon as there is one: those of processes that have ended are free a little
    /// later than the tree says.
    pub fn add_slice(&mut self, slot: usize) -> Result<(), Errno> {
        let made = self.environment(slot).ok_or(errno::SRCH)?;
        let tree = self.tree(slot);
        if self.trees.take(tree, What::Slices, 1).is_err() {
            self.count_slices();
            self.trees.take(tree, What::Slices, 1)?;
        }
        let slices = self.slots[slot].slices + 1;
        if let Err(error) = allow(made, slices) {
            self.trees.give(tree, What::Slices, 1);
            return Err(refusal(error));
        }
        self.slots[slot].slices = slices;
        self.slots[slot].wants += 1;
        self.give_wanted();
        Ok(())
    }

    /// Processes have at most the slices that the kernel's books say, and those that they are to get.
    pub fn count_slices(&mut self) {
        for slot in 0..PROCESSES {
            let now = self.slots[slot];
            let Some(made) = self.environment(slot) else {
                continue;
            };
            let has = made.slices() + now.wants;
            if has < now.slices && allow(made, has).is_ok() {
                self.slots[slot].slices = has;
                let tree = self.tree(slot);
                self.trees.give(tree, What::Slices, now.slices - has);
            }
        }
    }

    /// One slice fewer. Who has freed one itself has it no more at once; from others the kernel takes
    /// one after some time, and until then the caller is told to come again.
    pub fn remove_slice(&mut self, slot: usize) -> Result<(), Errno> {
        let made = self.environment(slot).ok_or(errno::SRCH)?;
        let left = self.slots[slot].slices.checked_sub(1);
        let left = left.ok_or(errno::INVAL)?;
        allow(made, left).map_err(refusal)?;
        if self.slots[slot].wants > 0 {
            self.slots[slot].wants -= 1;
        } else if made.slices() > left {
            calls::revoke(made.target(), SLICES, 1).map_err(refusal)?;
            return Err(errno::BUSY);
        }
        self.slots[slot].slices = left;
        self.trees.give(self.tree(slot), What::Slices, 1);
        Ok(())
    }

    /// A new environment of a process is to have all slices that its former one had.
    pub(crate) fn want_all_slices(&mut self, slot: usize) {
        let slices = self.slots[slot].slices;
        self.slots[slot].wants = slices;
        if let Some(made) = self.environment(slot) {
            let _ = allow(made, slices);
        }
        self.give_wanted();
    }

    /// Processes that are to have slices again get them, as far as there are any.
    pub fn give_wanted(&mut self) {
        self.wanting = false;
        for slot in 0..PROCESSES {
            while self.slots[slot].wants > 0 {
                let Some(made) = self.environment(slot) else {
                    self.slots[slot].wants = 0;
                    break;
                };
                let given = take_slice().and_then(|(processor, position)| {
                    calls::give_slice(processor, position, made.environment)
                        .inspect_err(|_| _ = calls::free_slice(processor, position))
                });
                if given.is_err() {
                    self.wanting = true;
                    break;
                }
                self.slots[slot].wants -= 1;
            }
        }
    }
}

/// A process may have so many slices from now on.
fn allow(made: Made, slices: u32) -> Result<(), Error> {
    calls::quota(made.environment, SLICES, 0, slices).map(drop)
}

/// A free slice of the processor that has the fewest in use.
fn take_slice() -> Result<(usize, usize), Error> {
    let used = |processor: &usize| {
        let vector = &books::machine().slices[*processor];
        let owned = |slice: &&postern_aegis::records::Slice| slice.owner.load(Relaxed) != 0;
        vector.iter().filter(owned).count()
    };
    let processors = slices::processors().min(postern_aegis::abi::PROCESSORS);
    let processor = match processors {
        1 => 0,
        _ => (0..processors).min_by_key(used).ok_or(Error::Exhausted)?,
    };
    calls::take_slice(processor, usize::MAX).map(|position| (processor, position as usize))
}
