//! Parts of pinned windows: ranges of whole pages, checked when they are made, through which
//! mappings are changed.

use super::reservation::Reservation;
use crate::map::{self, MapError, Prot, Protection};
use postern_verifier::window::{INFO, LIMIT};
use std::os::fd::BorrowedFd;

/// Pages of a window that stays where it is and is somebody's meanwhile. No code area has any of
/// them.
#[derive(Clone, Copy)]
pub struct Part<'w> {
    window: &'w Reservation,
    start: u32,
    end: u32,
}

impl<'w> Part<'w> {
    pub(super) fn new(window: &'w Reservation, start: u32, end: u32) -> Part<'w> {
        assert!(
            INFO <= start && start <= end && end <= LIMIT && (start | end).is_multiple_of(4096)
        );
        assert!(!window.is_code(start, end), "a code area is there");
        Part { window, start, end }
    }

    fn address(&self) -> usize {
        self.window.start() + self.start as usize
    }

    fn bytes(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Maps zero pages.
    pub fn map(self, protection: Prot) -> Result<(), MapError> {
        self.place(protection.into(), None)
    }

    /// Maps a file's pages from `at`, copy-on-write.
    pub fn map_file(self, protection: Prot, file: BorrowedFd<'_>, at: u64) -> Result<(), MapError> {
        self.place(protection.into(), Some((file, at)))
    }

    fn place(
        self,
        protection: Protection,
        file: Option<(BorrowedFd<'_>, u64)>,
    ) -> Result<(), MapError> {
        self.window.reach(self.end);
        // SAFETY: the range lies in the window that the part is of, and no Rust reference is to
        // anything there.
        unsafe { map::place(self.address(), self.bytes(), protection, file) }
    }

    /// Maps a file's pages from `at` so that writes are seen by everybody who maps them.
    pub fn share(self, protection: Prot, file: BorrowedFd<'_>, at: u64) -> Result<(), MapError> {
        self.window.reach(self.end);
        let (start, bytes) = (self.address(), self.bytes());
        // SAFETY: as in `place`.
        unsafe { map::share(start, bytes, protection.into(), file, at) }
    }

    /// Maps the pages of the shared mapping that begins where `from` does once more.
    pub fn share_again(self, protection: Prot, from: Part<'_>) -> Result<(), MapError> {
        assert!(self.bytes() <= from.bytes());
        map::whole(from.address(), self.bytes())?;
        // SAFETY: the pages are of a window, so nothing of the host's that is not shared memory
        // already.
        unsafe { self.share_host(protection, from.address()) }
    }

    /// Maps the pages of the host's shared mapping at `from` once more.
    ///
    /// # Safety
    /// As many bytes from there stay mapped during the call; and while any of the pages can be
    /// written through this part, there is no Rust reference to it.
    pub unsafe fn share_host(self, protection: Prot, from: usize) -> Result<(), MapError> {
        self.window.reach(self.end);
        let (to, bytes) = (self.address(), self.bytes());
        // SAFETY: what is replaced lies in the window, as in `place`; the rest is the caller's
        // promise.
        unsafe { map::share_again(from, bytes, to, protection.into()) }
    }

    /// Takes away what is mapped.
    pub fn unmap(self) -> Result<(), MapError> {
        self.map(Prot::None)
    }

    /// Changes the protection.
    pub fn protect(self, protection: Prot) -> Result<(), MapError> {
        self.window.reach(self.end);
        // SAFETY: as in `place`.
        unsafe { map::protect(self.address(), self.bytes(), protection.into()) }
    }

    /// Drops the private pages; false if they are still there.
    #[must_use]
    pub fn discard(self) -> bool {
        // SAFETY: as in `place`.
        unsafe { map::discard(self.address(), self.bytes()) }
    }

    /// Leaves what is mapped out of core dumps, unless they are to have it.
    pub fn hide(self) {
        // SAFETY: as in `place`.
        unsafe { map::hide(self.address(), self.bytes()) };
    }

    /// [`super::Unpinned::carry`], which sees to it that no text comes here meanwhile.
    pub(super) fn carry(self, to: Part<'_>) -> Result<(), MapError> {
        assert!((self.start, self.end) == (to.start, to.end));
        assert!(!self.window.is_text(self.start, self.end), "text stays");
        to.window.reach(to.end);
        // SAFETY: both ranges lie in windows that are kept meanwhile; as in `place`.
        unsafe { map::carry(self.address(), self.bytes(), to.address()) }
    }

    /// As if the kernel had refused here, and another thread been faster.
    #[cfg(any(test, feature = "testing"))]
    pub fn lose(self) {
        map::lose(self.address(), self.bytes());
    }
}
