//! An area whose missing pages somebody fills when they are touched first.
//!
//! Every view that is registered is of one file, so a page that is filled through one is there in
//! all. Whoever sleeps does so at an address of one view, and is woken at that address.
//!
//! Invariant: while an area is watched, each view of it that this process has, and whose pages can
//! be touched, is registered. Whoever maps one does that before it gives access.

pub(crate) use super::trusted::Touch;
use super::trusted::{PAGE, Userfault};
use crate::fork::{self, Held};
use std::any::Any;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};

/// Where an area lies.
pub(super) struct Place {
    pub(super) name: Arc<str>,
    /// First offset, and the one behind its last.
    pub(super) range: (u32, u32),
    /// Address of the host's view.
    pub(super) view: usize,
    /// Kept as long as it is watched.
    pub(super) _area: Arc<dyn Any + Send + Sync>,
}

/// An area is watched until [`Watch::end`].
pub(crate) struct Watch {
    place: Place,
    userfault: Userfault,
    /// First addresses of views that are registered, the host's own first; `None`: it has ended. A
    /// view may be gone: then nothing else that is watched is there, for the area keeps its offset.
    views: Mutex<Option<Vec<usize>>>,
    /// [`fork::process`]
    process: u64,
}

/// Why an area is not watched.
pub(crate) enum Unwatched {
    /// The kernel has no userfaultfd for this process.
    Unavailable(Error),
    /// Somebody watches the area.
    Already,
    /// Of such memory the kernel does not tell which pages are missing.
    Area(Error),
}

impl Watch {
    /// Begins with the host's own view. Those of windows follow by [`Self::add`].
    pub(super) fn begin(place: Place) -> std::result::Result<Watch, Unwatched> {
        let watch = Watch {
            userfault: Userfault::new().map_err(Unwatched::Unavailable)?,
            views: Mutex::new(Some(Vec::new())),
            process: fork::process(),
            place,
        };
        // The kernel registers a view once, and refuses the second who asks.
        let added = watch.add(watch.place.view);
        added.map_err(|error| match error.kind() {
            ErrorKind::ResourceBusy => Unwatched::Already,
            _ => Unwatched::Area(error),
        })?;
        Ok(watch)
    }

    /// The area's.
    pub(crate) fn name(&self) -> &str {
        &self.place.name
    }

    fn views(&self) -> Held<'_, Option<Vec<usize>>> {
        fork::lock_leaf(self.place.range.0 as usize / PAGE, &self.views)
    }

    /// Whether the area has this offset, and a page of it could be filled.
    pub(crate) fn covers(&self, offset: u32) -> bool {
        let (start, end) = self.place.range;
        (start..end).contains(&offset) && self.is_on()
    }

    /// A forked child has only its parent's descriptor, which would fill the parent's pages.
    fn is_on(&self) -> bool {
        self.process == fork::process() && self.views().is_some()
    }

    fn bytes(&self) -> usize {
        (self.place.range.1 - self.place.range.0) as usize
    }

    /// The area was mapped at this address, too, or moved there.
    pub(super) fn add(&self, view: usize) -> Result<()> {
        if self.process != fork::process() {
            return Ok(());
        }
        if let Some(views) = &mut *self.views() {
            self.userfault.register(view, self.bytes())?;
            if !views.contains(&view) {
                views.push(view);
            }
        }
        Ok(())
    }

    /// Becomes readable when somebody touches a page that is missing.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.userfault.as_fd()
    }

    /// Who else sleeps.
    pub(crate) fn next(&self) -> Option<Touch> {
        self.userfault.next()
    }

    /// Fills the page of the area at `offset` from the address `from`. Who sleeps for it goes on by
    /// [`Self::settle`].
    ///
    /// # Errors
    /// `EINVAL`, no page of the area begins there, or it is not watched any more; `EEXIST`, it is
    /// there; `EFAULT`, `from` cannot be read.
    pub(crate) fn fill(&self, offset: u32, from: usize) -> Result<()> {
        let invalid = || Error::from_raw_os_error(libc::EINVAL);
        let at = offset.checked_sub(self.place.range.0);
        let at = at.map(|at| at as usize);
        let at = at.filter(|&at| at < self.bytes() && at.is_multiple_of(PAGE));
        let at = at.filter(|_| self.is_on()).ok_or_else(invalid)?;
        let filled = self.userfault.copy(self.place.view + at, from);
        filled.map_err(|error| match error.raw_os_error() {
            // It has ended just now.
            Some(libc::ENOENT) => invalid(),
            _ => error,
        })
    }

    /// Who sleeps at this address goes on: with zeros, if nobody has filled the page.
    pub(crate) fn settle(&self, address: usize) {
        match self.userfault.zero(address) {
            Ok(()) => {}
            Err(error) => match error.raw_os_error() {
                // It is there, or the view is not; or the kernel wants to be asked again, as it is
                // when the thread touches the page again.
                Some(libc::EEXIST | libc::ENOENT | libc::EAGAIN) => {
                    self.userfault.wake(address, PAGE);
                }
                // There is no page to be had. What that means for the thread, the kernel says.
                _ => self.userfault.unregister(address, PAGE),
            },
        }
    }

    /// The area is not watched any more, and nobody sleeps. Nothing in a forked child: what is
    /// registered is the parent's. The descriptor's close would do as much, but a child may have
    /// it, too.
    pub(crate) fn end(&self) {
        if self.process != fork::process() {
            return;
        }
        let views = self.views().take();
        // The host's own one last: as long as that is registered, nobody else begins.
        for view in views.into_iter().flatten().rev() {
            self.userfault.unregister(view, self.bytes());
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}
