//! A domain's memory goes to another window, at the same offsets, with everything that is in it.
//!
//! Nobody may be inside, and the host's own accesses hold a [`Pin`](postern_gates::window::Pin):
//! the mover waits for those that are under way, and those that come later wait for the mover.
//! Pages are not copied: the kernel moves its tables. At no moment is a part of either window
//! without a mapping, so the kernel cannot give it to somebody else.

use super::{Instance, map_readable};
use postern_gates::control::Control;
use postern_gates::inside::Quiescent;
use postern_gates::map::{self, MapError};
use postern_gates::window::{Unpinned, Window};

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
    /// Moves everything to `to`, while `nobody` is inside. `control` is the domain's, where gates
    /// read the base.
    pub(crate) fn move_to(
        &self,
        to: Window,
        control: &Control,
        nobody: &Quiescent,
    ) -> Result<(), Stays> {
        let moved = self
            .window()
            .unpinned(|here| self.carry_all(here, to, control, nobody));
        moved.unwrap_or(Err(Stays::Pinned))
    }

    fn carry_all(
        &self,
        here: &Unpinned<'_>,
        mut to: Window,
        control: &Control,
        nobody: &Quiescent,
    ) -> Result<(), Stays> {
        let layout = &self.image.tables.layout;
        // Data stacks are given under this lock.
        let mut stacks = self.stacks();
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
        let there = to.pin();
        let carry = || -> Result<(), MapError> {
            map::room(12 + 2 * (stacks.extra.len() + areas.len()) as i64)?;
            // What cannot be written is mapped anew: a debugger may have put its breakpoints there,
            // which it does not know to have moved.
            map_readable(&there, &self.image, self.heap, self.stack_size)?;
            for &(start, end) in parts {
                here.carry(start, end, there.part(start, end))?;
                carried.push((start, end));
            }
            // A view that was carried is watched at its old place only.
            stacks.areas.watch(there.base())
        };
        let done = carry();
        drop(there);
        let Err(error) = done.and_then(|()| here.exchange(&mut to, control, nobody)) else {
            // What is dropped is the old place, which its drop wipes.
            stacks.areas.moved();
            return Ok(());
        };
        let back = to.unpinned(|there| {
            let mut carried = carried.iter();
            carried.try_for_each(|&(start, end)| there.carry(start, end, here.part(start, end)))?;
            stacks.areas.watch(self.base())
        });
        Err(match back {
            Some(Ok(())) => Stays::Refused(error),
            _ => Stays::Broken(error),
        })
    }
}
