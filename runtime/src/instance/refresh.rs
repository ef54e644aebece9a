//! A window's memory becomes what it was when the image was mapped.
//!
//! Invariant: afterwards every page that the domain can write reads as it did at first, whichever
//! way was taken. Of a window of which something is lost nothing is looked at or written: what lies
//! there may be the host's.
//!
//! Where few pages were written, they are copied back and stay: the next call does not fault them
//! in again, which would cost more than all the rest. Where many were, or the kernel does not tell
//! which, all are dropped.

use super::{Instance, Stacks, map_writable};
use crate::image::SpareWindow;
use postern_gates::map::{self, MapError, Prot};
use postern_gates::pages::Run;
use postern_gates::window::Pin;

/// Pages that a window keeps, at most: 256 KiB. Each saves a page fault, which takes as long as
/// copying ten to twenty of them.
const KEPT: usize = 64;

/// Windows that an image keeps for its next domains, at most.
const SPARE: usize = 16;

impl Instance {
    /// Puts every private page back to what it was at first. Nobody may be inside.
    pub(crate) fn refresh(&self) -> Result<(), MapError> {
        self.window().whole()?;
        let pin = self.pin();
        if self.seat.is_some() {
            self.refresh_common(&pin)?;
        }
        self.refresh_own(&pin)
    }

    /// The same of the pages that no other process has.
    pub(crate) fn refresh_own(&self, pin: &Pin<'_>) -> Result<(), MapError> {
        let stacks = self.stacks();
        if self.seat.is_some() {
            self.drop_stacks(pin, &stacks)?;
        } else if !self.copy_back(pin, &stacks) {
            self.drop_pages(pin, &stacks)?;
        }
        for &(_, end) in &stacks.extra {
            self.fill_stack_top(pin, end);
        }
        Ok(())
    }

    /// The same of those that all processes have. Nobody of any of them is inside.
    fn refresh_common(&self, pin: &Pin<'_>) -> Result<(), MapError> {
        let layout = &self.image.tables.layout;
        let Some(seat) = &self.seat else {
            return Ok(());
        };
        let bytes = (self.heap.1 - layout.data) as usize;
        let failed = |error| map::failed("clear common memory", bytes, error);
        let memory = seat.memory();
        memory
            .zero(layout.data_file_end, self.heap.1)
            .map_err(failed)?;
        let first = self
            .image
            .text
            .first_values(layout.data, layout.data_file_end);
        let written = first.is_some_and(|first| pin.write(layout.data, first).is_ok());
        match written {
            true => Ok(()),
            false => Err(failed(std::io::ErrorKind::OutOfMemory.into())),
        }
    }

    /// Writes the first contents over the pages that are the domain's own. False if it is not known
    /// which, or if they are too many: then some may have been written all the same.
    fn copy_back(&self, pin: &Pin<'_>, stacks: &Stacks) -> bool {
        let layout = &self.image.tables.layout;
        let from_file = (layout.stack, layout.data_file_end);
        let zeroed = [(layout.data_file_end, self.heap.1)].into_iter();
        let zeroed = zeroed
            .chain(stacks.extra.iter().copied())
            .chain(stacks.code.map(|[_, data]| data));
        // Above these are shared areas only.
        let end = stacks.next.max(self.heap.1);
        let mut runs = [Run::default(); KEPT + 1];
        let found = pin.own_pages(layout.stack, end, KEPT, &mut runs);
        let Some(found) = found else {
            return false;
        };
        for (start, end, is_zero) in found {
            let part = |(low, high): (u32, u32)| {
                let (start, end) = (start.max(low), end.min(high));
                (start < end).then_some((start, end))
            };
            if let Some((start, end)) = part(from_file) {
                let first = self.image.text.first_values(start, end);
                if first.is_none_or(|first| pin.write(start, first).is_err()) {
                    return false;
                }
            }
            if is_zero {
                continue;
            }
            for range in zeroed.clone() {
                if let Some((start, end)) = part(range)
                    && pin.zero(start, (end - start) as usize).is_err()
                {
                    return false;
                }
            }
        }
        true
    }

    /// Drops every private page, by mapping anew what the host has locked.
    fn drop_pages(&self, pin: &Pin<'_>, stacks: &Stacks) -> Result<(), MapError> {
        let own = pin.part(self.image.tables.layout.stack, self.heap.1);
        if !own.discard() {
            map_writable(pin, &self.image, self.heap, None)?;
            own.hide();
        }
        self.drop_stacks(pin, stacks)
    }

    /// Drops the pages of the data stacks besides the image's own, and of a code area's data.
    fn drop_stacks(&self, pin: &Pin<'_>, stacks: &Stacks) -> Result<(), MapError> {
        let extra = stacks.extra.iter().chain(&stacks.own).copied();
        for (start, end) in extra.chain(stacks.code.map(|[_, data]| data)) {
            let part = pin.part(start, end);
            if !part.discard() {
                part.map(Prot::ReadWrite)?;
            }
        }
        Ok(())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Only a window in which nothing but the image and areas is mapped is kept for the next
        // domain; the hot one goes back for anybody to take, and one that cannot be cleaned is
        // wiped as a whole.
        let stacks = self.stacks();
        let plain = stacks.extra.is_empty() && stacks.code.is_none() && self.has_own_stack();
        drop(stacks);
        if !plain || self.is_hot() || self.refresh().is_err() {
            return;
        }
        let stacks = self.stacks.get_mut().unwrap_or_else(|e| e.into_inner());
        // Nobody else has the instance, so this needs no lock.
        let Some(window) = self.window.take() else {
            return;
        };
        let Ok(areas) = stacks.areas.withhold(&window.pin()) else {
            return;
        };
        let mut spare = self.image.spare.lock();
        if spare.len() < SPARE {
            let heap_end = self.heap.1;
            spare.push(SpareWindow {
                window,
                heap_end,
                areas,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::sample;

    /// Nor do they leave one, as their stacks lie elsewhere.
    #[test]
    fn domains_with_stacks_of_another_size_take_no_spare_window() {
        let source = "int n; int next(void) { return ++n; }";
        let domain = sample::domain(source).build().unwrap();
        let (image, linked) = (domain.image(), domain.0.instance.stack_size());
        drop(domain);
        assert_eq!(image.0.spare.lock().len(), 1);
        for _ in 0..2 {
            let other = crate::Domain::builder(&image);
            drop(other.data_stack(2 * u64::from(linked)).build().unwrap());
            assert_eq!(image.0.spare.lock().len(), 1);
        }
        drop(crate::Domain::builder(&image).build().unwrap());
        assert_eq!(image.0.spare.lock().len(), 1);
    }

    #[test]
    fn a_window_that_is_not_whole_is_not_touched() {
        let source = "int n; int next(void) { return ++n; }";
        let domain = sample::domain(source).build().unwrap();
        let next = domain.func::<fn() -> i32>("next").unwrap();
        assert_eq!(next.call().unwrap(), 1);
        let instance = &domain.0.instance;
        domain.reset().unwrap();
        let at = instance.heap().0;
        instance.pin().part(at, at + 4096).lose();
        // In truth the page is still there.
        domain.write(crate::Offset(at), &[7]).unwrap();
        assert!(domain.reset().is_err() && domain.is_poisoned());
        assert!(next.call().is_err());
        let mut byte = [0];
        domain.read(crate::Offset(at), &mut byte).unwrap();
        assert_eq!(byte, [7]);
        domain.0.ends_if_torn();
        assert!(domain.is_closed());
    }
}
