//! A domain's memory goes to another window, at the same offsets, with everything that is in it.
//!
//! Nobody may be inside, and the host's own accesses hold a [`Pin`]: the mover waits for those that are under way, and those that
//! come later wait for the mover. Pages are not copied: the kernel moves its tables. At no moment is a part of either window
//! without a mapping, so the kernel cannot give it to somebody else.

use super::{Instance, map_readable};
use crate::trusted::control::Pause;
use crate::trusted::map::{self, MapError};
use crate::window::Window;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Set while the window is moved.
const MOVING: u32 = 1 << 31;
/// Looks at the pins before a mover gives up: about a tenth of a second.
const PATIENCE: u32 = 2000;

/// How many accesses of the host's are under way.
#[derive(Default)]
pub(crate) struct Pins(AtomicU32);

/// The window stays where it is while this lives. Whoever holds one waits for nothing.
pub(crate) struct Pin<'a>(&'a Pins);

impl Pins {
    pub(super) fn pin(&self) -> Pin<'_> {
        let mut pause = Pause::default();
        while self.0.fetch_add(1, Ordering::SeqCst) & MOVING != 0 {
            self.0.fetch_sub(1, Ordering::SeqCst);
            while self.0.load(Ordering::SeqCst) & MOVING != 0 {
                pause.again();
            }
        }
        Pin(self)
    }

    /// Runs `work` while nobody holds a pin; `None` if somebody holds one for long.
    fn without<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        self.0.fetch_or(MOVING, Ordering::SeqCst);
        let mut pause = Pause::default();
        while self.0.load(Ordering::SeqCst) != MOVING && pause.count() < PATIENCE {
            pause.again();
        }
        let free = self.0.load(Ordering::SeqCst) == MOVING;
        let done = free.then(work);
        self.0.fetch_and(!MOVING, Ordering::SeqCst);
        done
    }

    /// In the child after fork: other threads' accesses do not exist here.
    pub(crate) fn forget(&self) {
        self.0.store(0, Ordering::SeqCst);
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Why a domain is still where it was.
pub(crate) enum Stays {
    /// The host has been reading or writing its memory all the time.
    Pinned,
    /// The kernel refused; the domain is whole.
    Refused(MapError),
    /// The kernel refused, and then refused to undo what had been done.
    Broken(MapError),
}

impl Instance {
    /// Moves everything to `to`. The caller has seen to it that nobody is inside and that nobody can enter. `base` is where gates and
    /// the host's accesses read the base.
    pub(crate) fn move_to(&self, to: Window, base: &AtomicU64) -> Result<(), Stays> {
        let moved = self.pins.without(|| {
            self.carry_all(to)?;
            // Before any access goes on.
            base.store(self.base(), Ordering::SeqCst);
            Ok(())
        });
        moved.unwrap_or(Err(Stays::Pinned))
    }

    fn carry_all(&self, to: Window) -> Result<(), Stays> {
        let layout = &self.image.tables.layout;
        // Data stacks are given under this lock.
        let mut stacks = self.stacks();
        let here = self.window();
        if stacks.code.is_some() {
            // Slots hold addresses of this window.
            return Err(Stays::Refused(MapError::Code));
        }
        let parts = [
            (layout.stack, layout.data_file_end),
            (layout.data_file_end, self.heap.1),
        ];
        let areas: Vec<_> = stacks.areas.ranges().collect();
        let parts = parts.iter().chain(&stacks.extra).chain(&areas);
        let mut carried = Vec::new();
        let carry = || -> Result<(), MapError> {
            map::room(12 + 2 * (stacks.extra.len() + areas.len()) as i64)?;
            // What cannot be written is mapped anew: a debugger may have put its breakpoints there, which it does not know to have moved.
            map_readable(&to, &self.image, layout, self.heap)?;
            for &(start, end) in parts {
                here.carry(start, end, &to)?;
                carried.push((start, end));
            }
            Ok(())
        };
        match carry() {
            Ok(()) => {
                // What is dropped is the old place, which its drop wipes.
                here.exchange(&to);
                stacks.areas.moved();
                Ok(())
            }
            Err(error) => {
                let back = |&(start, end): &(u32, u32)| to.carry(start, end, here);
                match carried.iter().try_for_each(back) {
                    Ok(()) => Err(Stays::Refused(error)),
                    Err(_) => Err(Stays::Broken(error)),
                }
            }
        }
    }
}
