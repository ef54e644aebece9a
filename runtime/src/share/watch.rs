//! An area whose missing pages somebody fills when they are touched first.
//!
//! Every view that is registered belongs to one file, so a page that is filled in one is there in
//! all. Whoever sleeps does so at an address of one view, and is woken at that address.

use super::trusted::{PAGE, Userfault};
use super::{Area, Shared};
use crate::fork::{self, Held};
use std::io::{Error, Result};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, Weak};

static ZEROS: [u8; PAGE] = [0; PAGE];

/// The area is watched until [`Watch::end`].
#[derive(Debug)]
pub(crate) struct Watch {
    area: Arc<Area>,
    userfault: Userfault,
    /// First addresses of views that are registered; `None`: it has ended.
    views: Mutex<Option<Vec<usize>>>,
    /// [`fork::process`]
    process: u64,
}

impl Watch {
    /// Begins with the host's own view. `ErrorKind::ResourceBusy`: somebody watches the area.
    pub(crate) fn begin(shared: &Shared) -> Result<Arc<Watch>> {
        let area = &shared.0;
        let watch = Arc::new(Watch {
            area: area.clone(),
            userfault: Userfault::new()?,
            views: Mutex::new(Some(Vec::new())),
            process: fork::process(),
        });
        // The kernel registers a view once, and says `EBUSY` to the second who asks.
        watch.add(area.view.as_ptr() as usize)?;
        *area.watch() = Arc::downgrade(&watch);
        Ok(watch)
    }

    fn views(&self) -> Held<'_, Option<Vec<usize>>> {
        fork::lock_leaf(self.area.start as usize / PAGE, &self.views)
    }

    /// Whether it has not ended.
    pub(crate) fn is_on(&self) -> bool {
        self.views().is_some()
    }

    pub(crate) fn area(&self) -> &Arc<Area> {
        &self.area
    }

    fn bytes(&self) -> usize {
        (self.area.end - self.area.start) as usize
    }

    fn add(&self, view: usize) -> Result<()> {
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

    /// Becomes readable when a page misses.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.userfault.as_fd()
    }

    /// The address of a page that somebody has touched, and that thread.
    pub(crate) fn next(&self) -> Option<(usize, u32)> {
        self.userfault.next()
    }

    /// Fills the page of the area at `offset` from the address `from`.
    ///
    /// # Errors
    /// `EINVAL`, no page of the area begins there; `EEXIST`, it is there; `EFAULT`, `from` cannot
    /// be read.
    pub(crate) fn fill(&self, offset: u32, from: usize) -> Result<()> {
        let at = offset.checked_sub(self.area.start).map(|at| at as usize);
        let at = at.filter(|&at| at < self.bytes() && at.is_multiple_of(PAGE));
        let at = at.ok_or(Error::from_raw_os_error(libc::EINVAL))?;
        self.userfault
            .copy(self.area.view.as_ptr() as usize + at, from)
    }

    /// Who sleeps at this address goes on: with zeros, if nobody has filled the page.
    pub(crate) fn settle(&self, address: usize) {
        if self
            .userfault
            .copy(address, ZEROS.as_ptr() as usize)
            .is_err()
        {
            self.userfault.wake(address, PAGE);
        }
    }

    /// The area is not watched any more, and nobody sleeps. Nothing in a forked child: what is
    /// registered is the parent's.
    pub(crate) fn end(&self) {
        if self.process != fork::process() {
            return;
        }
        let views = self.views().take();
        for view in views.into_iter().flatten() {
            self.userfault.unregister(view, self.bytes());
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}

impl Area {
    fn watch(&self) -> Held<'_, Weak<Watch>> {
        fork::lock_leaf(self.start as usize / PAGE, &self.watch)
    }

    /// The area was mapped at this address, or moved there.
    pub(super) fn mapped(&self, view: usize) -> Result<()> {
        let watch = self.watch().upgrade();
        watch.map_or(Ok(()), |watch| watch.add(view))
    }
}
