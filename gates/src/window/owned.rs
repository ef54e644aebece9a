//! Parts of windows that keep them: where they are, and from being given back.

use super::part::Part;
use super::reservation::{Reservation, Window};
use crate::control::Control;
use crate::map::{self, MapError, Prot, Protection};
use crate::memory::{self, Gone};
use crate::text::Text;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Pages of a window that stays where it is, and is not given back, as long as this lives.
pub struct OwnedPart {
    window: Arc<Reservation>,
    start: u32,
    end: u32,
}

impl Window {
    /// The pages `[start, end)`, as [`super::Pin::part`], for longer.
    pub fn owned_part(&self, start: u32, end: u32) -> OwnedPart {
        let pin = self.pin();
        pin.part(start, end);
        let window = Arc::clone(&self.0);
        drop(pin);
        OwnedPart { window, start, end }
    }
}

impl std::fmt::Debug for OwnedPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}..{:#x}", self.start, self.end)
    }
}

impl OwnedPart {
    /// The part.
    pub fn part(&self) -> Part<'_> {
        Part::new(&self.window, self.start, self.end)
    }

    /// Where it begins, for those who know what they do with a pointer.
    pub fn as_ptr(&self) -> *mut u8 {
        (self.window.start() + self.start as usize) as *mut u8
    }

    /// Copies from byte `at` of it.
    pub fn read(&self, at: usize, to: &mut [u8]) -> Result<(), Gone> {
        let from = self.address(at, to.len())?;
        // SAFETY: the range lies in the window, which is disjoint from all Rust objects and stays
        // where it is.
        unsafe { memory::copy(from, to.as_mut_ptr() as usize, to.len()) }
    }

    /// Copies to byte `at` of it.
    pub fn write(&self, at: usize, from: &[u8]) -> Result<(), Gone> {
        let to = self.address(at, from.len())?;
        // SAFETY: as in `read`.
        unsafe { memory::copy(from.as_ptr() as usize, to, from.len()) }
    }

    fn address(&self, at: usize, bytes: usize) -> Result<usize, Gone> {
        let size = (self.end - self.start) as usize;
        match at <= size && bytes <= size - at {
            true => Ok(self.window.start() + self.start as usize + at),
            false => Err(Gone),
        }
    }
}

/// Pages that a code area has for itself, of a window that stays where it is, and is not given
/// back, as long as this lives. No [`Part`] has any of them, also later.
pub(crate) struct CodePart {
    window: Arc<Reservation>,
    start: u32,
    end: u32,
}

impl Window {
    /// Takes `[start, end)` for a code area, the only one that the window ever has, with the image
    /// that is mapped there.
    pub(crate) fn claim_code(
        &self,
        start: u32,
        end: u32,
        control: &Control,
    ) -> Result<(CodePart, Arc<Text>), MapError> {
        let claimed = self.unpinned(|window| window.claim_code(start, end, control));
        let image = claimed.unwrap_or(Err(MapError::Taken))?;
        let window = Arc::clone(&self.0);
        Ok((CodePart { window, start, end }, image))
    }
}

impl CodePart {
    /// Address of the window's offset 0.
    pub(crate) fn base(&self) -> u64 {
        self.window.start() as u64
    }

    fn address(&self, start: u32, end: u32) -> (usize, usize) {
        assert!(
            self.start <= start
                && start <= end
                && end <= self.end
                && (start | end).is_multiple_of(4096)
        );
        (self.window.start() + start as usize, (end - start) as usize)
    }

    /// Maps what the area's file has for `[start, end)` there.
    pub(crate) fn share(
        &self,
        start: u32,
        end: u32,
        protection: Prot,
        file: BorrowedFd<'_>,
    ) -> Result<(), MapError> {
        let (address, bytes) = self.address(start, end);
        let at = u64::from(start - self.start);
        // SAFETY: the range is the area's, in a window to which there are no Rust references.
        unsafe { map::share(address, bytes, protection.into(), file, at) }
    }

    /// Allows `[start, end)` to be executed.
    ///
    /// # Safety
    /// What the file has there is text that was judged for these offsets of the window, and is
    /// written by nobody but the area.
    pub(crate) unsafe fn execute(&self, start: u32, end: u32) -> Result<(), MapError> {
        let (address, bytes) = self.address(start, end);
        // SAFETY: the range is the area's, as in `share`; the rest is the caller's promise.
        unsafe { map::protect(address, bytes, Protection::ReadExecute) }
    }

    /// Leaves all of it out of core dumps, unless they are to have it.
    pub(crate) fn hide(&self) {
        let (address, bytes) = self.address(self.start, self.end);
        // SAFETY: the range is the area's.
        unsafe { map::hide(address, bytes) };
    }
}
