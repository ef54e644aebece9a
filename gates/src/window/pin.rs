//! Who uses a window where it is, and who takes it elsewhere: a [`Pin`] excludes an [`Unpinned`],
//! and the other way round.
//!
//! Whoever holds a pin waits for nothing but locks whose holders take none.

use super::part::Part;
use super::reservation::{Reservation, Window};
use crate::block::{Block, Terms};
use crate::callee::ServiceTable;
use crate::control::Control;
use crate::inside::Quiescent;
use crate::machine::InChild;
use crate::map::{self, MapError, Protection};
use crate::memory::{self, Gone};
use crate::pages::{self, Run};
use crate::text::Text;
use postern_verifier::window::{INFO, LIMIT, WINDOW_SIZE};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Window {
    /// Keeps the window where it is, for whoever is about to touch it.
    #[inline]
    pub fn pin(&self) -> Pin<'_> {
        self.0.pins.add();
        Pin(&self.0)
    }

    /// Runs `work` while nobody holds a pin; `None` if somebody holds one for long.
    pub fn unpinned<R>(&self, work: impl FnOnce(&Unpinned<'_>) -> R) -> Option<R> {
        self.0.pins.without(|| work(&Unpinned(&self.0)))
    }

    /// In the child after fork, where other threads' accesses do not exist. (The one that forked
    /// has none: nobody forks with a [`Pin`].)
    pub fn after_fork(&self, _: &InChild) {
        self.0.pins.forget();
    }
}

/// The window stays where it is while this lives.
pub struct Pin<'w>(pub(super) &'w Arc<Reservation>);

impl Drop for Pin<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.pins.remove();
    }
}

impl Pin<'_> {
    /// The pages `[start, end)`.
    ///
    /// # Panics
    /// They are not whole pages between the info page and the last one that may be mapped, or a
    /// code area has some of them.
    pub fn part(&self, start: u32, end: u32) -> Part<'_> {
        Part::new(self.0, start, end)
    }

    /// Maps an image's gate slots and text, the only ones that the window ever has.
    pub fn map_text(&self, text: &Arc<Text>) -> Result<(), MapError> {
        let (start, end) = (text.layout().gates, text.layout().text_end);
        if self.0.is_code(start, end) || self.0.image.set(Arc::clone(text)).is_err() {
            return Err(MapError::Taken);
        }
        self.0.reach(end);
        let (address, bytes) = (self.0.start() + start as usize, (end - start) as usize);
        // SAFETY: the range lies in the window, as the image's parser says, and no Rust reference
        // is to anything there. The file has text that was judged for this place, and is sealed.
        unsafe {
            let file = Some(text.file(start));
            map::place(address, bytes, Protection::ReadExecute, file)
        }
    }

    /// Address of offset 0, for those who show it.
    pub fn base(&self) -> u64 {
        self.0.start() as u64
    }

    /// Copies out of the window.
    #[inline]
    pub fn read(&self, offset: u32, to: &mut [u8]) -> Result<(), Gone> {
        let from = self.address(offset, to.len())?;
        // SAFETY: the range lies in the window, which is disjoint from all Rust objects and stays
        // the owner's while it is pinned.
        unsafe { memory::copy(from, to.as_mut_ptr() as usize, to.len()) }
    }

    /// Copies into the window.
    #[inline]
    pub fn write(&self, offset: u32, from: &[u8]) -> Result<(), Gone> {
        let to = self.address(offset, from.len())?;
        // SAFETY: as in `read`.
        unsafe { memory::copy(from.as_ptr() as usize, to, from.len()) }
    }

    /// Fills a range of the window with zero.
    pub fn zero(&self, offset: u32, bytes: usize) -> Result<(), Gone> {
        let to = self.address(offset, bytes)?;
        // SAFETY: as in `read`.
        unsafe { memory::fill(to, bytes) }
    }

    #[inline]
    fn address(&self, offset: u32, bytes: usize) -> Result<usize, Gone> {
        match bytes <= WINDOW_SIZE as usize - offset as usize {
            true => Ok(self.0.start() + offset as usize),
            false => Err(Gone),
        }
    }

    /// The process's own pages in `[start, end)`: their offsets, in ascending order, and whether
    /// only the kernel's page of zeros is there. `None` as for [`pages::own`].
    pub fn own_pages<'a>(
        &self,
        start: u32,
        end: u32,
        most: usize,
        runs: &'a mut [Run],
    ) -> Option<impl Iterator<Item = (u32, u32, bool)> + use<'a>> {
        let base = self.0.start();
        let at = |offset: u32| base + offset as usize;
        let found = pages::own(at(start), at(end), most, runs)?;
        Some(found.iter().map(move |run| {
            let (start, end) = run.addresses();
            let offset = |address: u64| (address - base as u64) as u32;
            (offset(start), offset(end), run.is_zero())
        }))
    }

    /// Makes the window that of a domain, whose block has none yet: gates and handlers find it
    /// where it is, with its text and these services, one for each of the text's gate slots. The
    /// block owns the window, too, until it goes.
    ///
    /// # Errors
    /// No text is mapped, there are fewer services, a peer among them was made for callers with
    /// other facts than the domain has, the block has a window, or the window has a
    /// domain.
    pub fn furnish(
        &self,
        block: &Block,
        services: Arc<ServiceTable>,
        terms: &Terms,
    ) -> Result<(), MapError> {
        let text = self.0.image.get().cloned().ok_or(MapError::Taken)?;
        let (order, generation) = (Ordering::SeqCst, block.generation());
        let domain = &self.0.domain;
        if domain
            .compare_exchange(0, generation, order, order)
            .is_err()
        {
            return Err(MapError::Taken);
        }
        let made = block.made_of(text, services, Arc::clone(self.0), terms);
        if made.is_err() {
            self.0.is_free_of(generation);
        }
        made?;
        block.lie_at(self.0.start() as u64);
        Ok(())
    }
}

/// Nobody else touches the window, nor begins to.
pub struct Unpinned<'w>(pub(super) &'w Arc<Reservation>);

impl Unpinned<'_> {
    /// The pages `[start, end)`, as [`Pin::part`].
    pub fn part(&self, start: u32, end: u32) -> Part<'_> {
        Part::new(self.0, start, end)
    }

    /// Moves `[start, end)` with its pages to the same offsets of another window. What stays here
    /// has no private pages.
    ///
    /// # Panics
    /// The other part has other offsets, or an image's text or a code area lies here: that is where
    /// it was verified to be, and nowhere else. None comes here meanwhile, for that takes a
    /// [`Pin`], or another [`Unpinned`].
    pub fn carry(&self, start: u32, end: u32, to: Part<'_>) -> Result<(), MapError> {
        self.part(start, end).carry(to)
    }

    /// Exchanges the places of two windows; `control` is that of the domain whose window this is,
    /// and that nobody is inside. The other is no domain's, and has text of the same image.
    ///
    /// # Errors
    /// [`MapError::Code`]: somebody owns a part of one of them, or code came into one, which cannot
    /// follow. [`MapError::Taken`]: it is another domain's window, somebody may be inside, or the
    /// texts differ.
    pub fn exchange(
        &self,
        other: &mut Window,
        control: &Control,
        nobody: &Quiescent,
    ) -> Result<(), MapError> {
        let generation = self.0.domain.load(Ordering::SeqCst);
        if generation != control.generation() || !nobody.is_of(generation) {
            return Err(MapError::Taken);
        }
        let Some(other) = Arc::get_mut(&mut other.0).filter(|_| self.0.is_only_of(control)) else {
            return Err(MapError::Code);
        };
        let same = match (self.0.image.get(), other.image.get()) {
            (Some(own), Some(its)) => Arc::ptr_eq(own, its),
            _ => false,
        };
        if !same {
            return Err(MapError::Taken);
        }
        let order = Ordering::SeqCst;
        if (self.0.code.load(order), *other.code.get_mut()) != (0, 0) {
            return Err(MapError::Code);
        }
        *other.base.get_mut() = self.0.base.swap(*other.base.get_mut(), order);
        *other.high.get_mut() = self.0.high.swap(*other.high.get_mut(), order);
        control.lie_at(self.0.start() as u64);
        Ok(())
    }

    /// Takes `[start, end)` for a code area, the only one that the window ever has. No part is made
    /// of it from now on.
    pub(super) fn claim_code(
        &self,
        start: u32,
        end: u32,
        control: &Control,
    ) -> Result<Arc<Text>, MapError> {
        let window = &self.0;
        let fits =
            INFO <= start && start < end && end <= LIMIT && (start | end).is_multiple_of(4096);
        let unused = !window.is_text(start, end) && window.code.load(Ordering::SeqCst) == 0;
        // Nor has anybody a part of it already.
        let free = unused && window.is_only_of(control);
        let image = window.image.get().cloned().filter(|_| fits && free);
        let image = image.ok_or(MapError::Taken)?;
        window.reach(end);
        let code = u64::from(start) << 32 | u64::from(end);
        window.code.store(code, Ordering::SeqCst);
        Ok(image)
    }
}
