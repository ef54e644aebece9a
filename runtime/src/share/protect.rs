//! Who may do what with an area: asked for by the host, at any time, also while threads are inside.

use super::{Prot, Shared};
use crate::error::ShareError;
use crate::{Domain, Offset};
use postern_verifier::window::PAGE;
use std::ops::{Bound, RangeBounds};

impl Shared {
    /// What `domain` may do from now on with the pages of `range`, in bytes from the area's
    /// beginning; `..` is all of it. Both bounds are multiples of 4096, but for the area's end.
    /// Before the first call, and the first [`Domain::share`], a domain has no access. Threads may
    /// be inside the domain: their next access to the range has the new protection. Reset leaves
    /// it.
    ///
    /// # Errors
    /// The range is not all in the area or not of whole pages; the area is read-only; the domain's
    /// heap or stacks reach up to the area; the kernel refused. The domain has then what it had.
    pub fn protect(
        &self,
        domain: &Domain,
        range: impl RangeBounds<usize>,
        protection: Prot,
    ) -> Result<(), ShareError> {
        let (start, end) = self.pages(range)?;
        let done = domain.0.instance.protect(&self.0, start, end, protection);
        domain.0.ends_if_torn();
        done
    }

    /// What `domain` may do with the page that holds byte `at`.
    pub fn protection(&self, domain: &Domain, at: usize) -> Prot {
        let inside = u32::try_from(at).ok().filter(|_| at < self.len());
        let found = inside.and_then(|at| domain.0.instance.shared_at(self.0.start + at));
        found.unwrap_or(Prot::None)
    }

    /// Offsets of the first page of `range` and of the one behind its last.
    fn pages(&self, range: impl RangeBounds<usize>) -> Result<(u32, u32), ShareError> {
        let start = match range.start_bound() {
            Bound::Included(&at) => Some(at),
            Bound::Excluded(&at) => at.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let end = match range.end_bound() {
            Bound::Included(&at) => at.checked_add(1),
            Bound::Excluded(&at) => Some(at),
            Bound::Unbounded => Some(self.len()),
        };
        let (start, end) = (start.unwrap_or(usize::MAX), end.unwrap_or(usize::MAX));
        let size = self.len();
        if start > end || end > size {
            return Err(ShareError::Beyond { start, end, size });
        }
        let page = PAGE as usize;
        if let Some(bad) = [
            (start, start % page != 0),
            (end, end % page != 0 && end != size),
        ]
        .into_iter()
        .find_map(|(at, bad)| bad.then_some(at))
        {
            return Err(ShareError::Misaligned(bad as u64));
        }
        let at = |bytes: usize| self.0.start + bytes.next_multiple_of(page) as u32;
        Ok((at(start), at(end)))
    }
}

impl Domain {
    /// Lets the domain see all of an area, at the area's own offset, until it is unshared or the
    /// domain goes; reset leaves it there.
    ///
    /// # Errors
    /// As [`Shared::protect`]; or the domain sees the area already with another protection: change
    /// that with [`Shared::protect`].
    pub fn share(&self, shared: &Shared, protection: Prot) -> Result<Offset, ShareError> {
        let done = self.0.instance.share(&shared.0, protection);
        self.0.ends_if_torn();
        done?;
        Ok(shared.offset())
    }

    /// Takes all access to an area away: the same as [`Shared::protect`] with `..` and
    /// [`Prot::None`]. Threads may be inside; an access becomes a fault that names the area.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn unshare(&self, shared: &Shared) -> Result<(), ShareError> {
        shared.protect(self, .., Prot::None)
    }
}
