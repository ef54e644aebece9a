//! What one domain sees of the shared areas.
//!
//! Invariant: an area in the list is mapped at its offset, its ranges lie in ascending order and
//! cover it, neighbours differ, and each is mapped with its protection. An area without any access
//! is not in the list, and nothing of it can be touched.
//!
//! When a domain ends and its window is kept for the next one, its areas stay mapped there without
//! any access: *withheld*. The next domain that is given one of them gets back the access, which
//! costs a third of mapping it anew. A window has few of them, and an area that goes takes its
//! pages with it from all ([`Withheld::forget`]). Whoever gives access to a range of a window where
//! areas may lie, and maps nothing of its own there, first sees to it that none is withheld there
//! ([`Views::clear`]).

use super::{Area, Prot};
use crate::error::ShareError;
use postern_gates::map::{self, MapError};
use postern_gates::window::Pin;
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// Areas that stay mapped in a window which nobody has, at most.
const WITHHELD: usize = 4;

/// A range of an area with one protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    start: u32,
    end: u32,
    protection: Prot,
}

/// An area as one domain sees it.
struct View {
    area: Arc<Area>,
    ranges: Vec<Range>,
}

/// The areas that a domain sees, by first offset.
#[derive(Default)]
pub(crate) struct Views {
    seen: BTreeMap<u32, View>,
    withheld: Withheld,
}

/// Areas that are mapped in a window and cannot be touched there.
#[derive(Default)]
pub(crate) struct Withheld(Vec<Mapped>);

/// An area that is mapped in a window. It may be gone, and its pages with it but for this mapping.
struct Mapped {
    area: Weak<Area>,
    start: u32,
    end: u32,
}

impl Mapped {
    fn is(&self, area: &Area) -> bool {
        std::ptr::eq(self.area.as_ptr(), area)
    }
}

impl Withheld {
    /// Takes the area out. Whether it was there.
    fn take(&mut self, area: &Area) -> bool {
        let found = self.0.iter().position(|m| m.is(area));
        found.map(|found| self.0.swap_remove(found)).is_some()
    }

    /// An area that is mapped, without any access.
    fn add(&mut self, area: &Arc<Area>) {
        area.withheld.store(true, Ordering::Relaxed);
        self.0.push(Mapped {
            area: Arc::downgrade(area),
            start: area.start,
            end: area.end,
        });
    }

    /// Takes all access to an area. Only the first step must succeed, and it splits no mapping, so
    /// the kernel has no reason to refuse it; if it refuses the second one, as it does at its limit
    /// of mappings, the area is withheld.
    fn withdraw(&mut self, pin: &Pin<'_>, area: &Arc<Area>) -> Result<(), MapError> {
        pin.part(area.start, area.end).protect(Prot::None)?;
        if pin.part(area.start, area.end).unmap().is_err() {
            self.add(area);
        }
        Ok(())
    }

    /// Unmaps those for which `which` says so.
    fn unmap(&mut self, pin: &Pin<'_>, which: impl Fn(&Mapped) -> bool) -> Result<(), MapError> {
        while let Some(found) = self.0.iter().position(&which) {
            let Mapped { start, end, .. } = self.0[found];
            pin.part(start, end).unmap()?;
            self.0.swap_remove(found);
        }
        Ok(())
    }

    /// Unmaps an area that is about to go, if it is here.
    pub(crate) fn forget(&mut self, pin: &Pin<'_>, area: &Area) {
        // If the kernel refuses, the pages stay until the window's next domain ends; nobody can
        // touch them.
        let _ = self.unmap(pin, |m| m.is(area));
    }
}

impl From<Withheld> for Views {
    fn from(withheld: Withheld) -> Views {
        let seen = BTreeMap::new();
        Views { seen, withheld }
    }
}

impl Views {
    /// Takes all access to every area, for the window's next domain.
    pub(crate) fn withhold(&mut self, pin: &Pin<'_>) -> Result<Withheld, MapError> {
        let mut withheld = std::mem::take(&mut self.withheld);
        // Some may have gone while the window was in use.
        withheld.unmap(pin, |m| m.area.strong_count() == 0)?;
        for view in self.seen.values() {
            let area = &view.area;
            // A descriptor's mapping keeps a socket or device open; it is not to outlive its area
            // for a moment.
            if area.device.is_some() || withheld.0.len() >= WITHHELD {
                withheld.withdraw(pin, area)?;
                continue;
            }
            pin.part(area.start, area.end).protect(Prot::None)?;
            withheld.add(area);
        }
        Ok(withheld)
    }

    /// Sees to it that no area is withheld in `[start, end)`, which is about to be the domain's
    /// own.
    pub(crate) fn clear(&mut self, pin: &Pin<'_>, start: u32, end: u32) -> Result<(), MapError> {
        let overlaps = |m: &Mapped| m.start < end && start < m.end;
        self.withheld.unmap(pin, overlaps)
    }

    /// The window is another one now, with nothing but what is seen.
    pub(crate) fn moved(&mut self) {
        self.withheld = Withheld::default();
    }

    /// Has whoever fills an area's pages told of those that are touched in the window at `base`.
    pub(crate) fn watch(&self, base: u64) -> Result<(), MapError> {
        let mut views = self.seen.values();
        views.try_for_each(|view| watched(base, &view.area))
    }

    /// The area that begins at `start`, if anything of it is seen.
    pub(crate) fn area(&self, start: u32) -> Option<Arc<Area>> {
        self.seen.get(&start).map(|view| view.area.clone())
    }

    /// Name, first offset, length in bytes, and most that may be done with any page, of each area.
    pub(crate) fn list(&self) -> Vec<(Arc<str>, u32, u32, Prot)> {
        let most = |view: &View| match view.ranges.iter().any(|r| r.protection.allows(true)) {
            true => Prot::ReadWrite,
            false => Prot::Read,
        };
        let areas = self.seen.values();
        areas
            .map(|view| {
                let (start, end) = (view.area.start, view.area.end);
                (view.area.name.clone(), start, end - start, most(view))
            })
            .collect()
    }

    /// Where the lowest area begins.
    pub(crate) fn lowest(&self) -> Option<u32> {
        self.seen.keys().next().copied()
    }

    /// First and last (exclusive) offset of every range, each of which is one mapping.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u32, u32)> {
        let ranges = self.seen.values().flat_map(|view| &view.ranges);
        ranges.map(|r| (r.start, r.end))
    }

    fn view_at(&self, offset: u32) -> Option<&View> {
        let (_, view) = self.seen.range(..=offset).next_back()?;
        (offset < view.area.end).then_some(view)
    }

    /// The protection of the page at `offset`; `None` where no area is seen.
    pub(crate) fn at(&self, offset: u32) -> Option<Prot> {
        let ranges = &self.view_at(offset)?.ranges;
        let place = ranges.partition_point(|r| r.end <= offset);
        ranges.get(place).map(|r| r.protection)
    }

    /// Whether all of `[start, end)` lies in one area and may be read, or written.
    pub(crate) fn accessible(&self, start: u32, end: u64, write: bool) -> bool {
        self.view_at(start).is_some_and(|view| {
            // An empty range is where its place is.
            let last = end.max(u64::from(start) + 1);
            let touched = |r: &&Range| r.end > start && u64::from(r.start) < last;
            end <= u64::from(view.area.end)
                && view
                    .ranges
                    .iter()
                    .filter(touched)
                    .all(|r| r.protection.allows(write))
        })
    }

    /// Whether the domain has `protection` for all of the area; `None` if it does not see it.
    pub(crate) fn is_all(&self, area: &Arc<Area>, protection: Prot) -> Option<bool> {
        let view = self.seen.get(&area.start)?;
        Some(view.ranges == whole(area, protection))
    }

    /// Gives `[start, end)` of an area a protection. Returns the area if the domain sees nothing of
    /// it any more, for the caller to drop where it holds no lock. After an error everything is as
    /// before, or if the kernel refuses even that, all access is gone.
    pub(crate) fn protect(
        &mut self,
        pin: &Pin<'_>,
        area: &Arc<Area>,
        (start, end): (u32, u32),
        protection: Prot,
    ) -> Result<Option<Arc<Area>>, ShareError> {
        if protection == Prot::ReadWrite && !area.writable {
            return Err(ShareError::ReadOnly(area.name.to_string()));
        }
        let seen = self.seen.get(&area.start).map(|view| &*view.ranges);
        let nothing = whole(area, Prot::None);
        let before = seen.unwrap_or(&nothing);
        let after = changed(before, start, end, protection);
        if after == before {
            return Ok(None);
        }
        if after == nothing {
            self.withheld.withdraw(pin, area)?;
            return Ok(self.seen.remove(&area.start).map(|view| view.area));
        }
        map::room(4)?;
        if seen.is_none() {
            let given = match self.withheld.take(area) {
                true => watched(pin.base(), area).and_then(|()| allow(pin, &after, Prot::None)),
                false => {
                    self.clear(pin, area.start, area.end)?;
                    place(pin, area, &after)
                }
            };
            if let Err(error) = given {
                self.withheld.withdraw(pin, area)?;
                return Err(error.into());
            }
        } else if let Err(error) = pin.part(start, end).protect(protection) {
            // The kernel may have stopped half way.
            if restore(pin, before, start, end).is_err() {
                // Rather nothing than more than was given.
                self.withheld.withdraw(pin, area)?;
                self.seen.remove(&area.start);
            }
            return Err(error.into());
        }
        let view = View {
            area: area.clone(),
            ranges: after,
        };
        self.seen.insert(area.start, view);
        Ok(None)
    }
}

fn whole(area: &Area, protection: Prot) -> Vec<Range> {
    vec![Range {
        start: area.start,
        end: area.end,
        protection,
    }]
}

/// The ranges once `[start, end)` has another protection.
fn changed(ranges: &[Range], start: u32, end: u32, protection: Prot) -> Vec<Range> {
    let mut list: Vec<Range> = Vec::with_capacity(ranges.len() + 2);
    let mut push = |start: u32, end: u32, protection: Prot| match list.last_mut() {
        _ if start >= end => {}
        Some(last) if last.protection == protection => last.end = end,
        _ => list.push(Range {
            start,
            end,
            protection,
        }),
    };
    for r in ranges {
        push(r.start, r.end.min(start), r.protection);
    }
    push(start, end, protection);
    for r in ranges {
        push(r.start.max(end), r.end, r.protection);
    }
    list
}

/// Maps an area that the window has not.
fn place(pin: &Pin<'_>, area: &Area, ranges: &[Range]) -> Result<(), MapError> {
    // With several ranges, each gets more access than the mapping begins with; and so does one of
    // an area that is watched, for threads may be inside.
    let first = match ranges {
        [only] if !area.is_watched() => only.protection,
        _ => Prot::None,
    };
    let part = pin.part(area.start, area.end);
    match &area.device {
        Some(device) => part.share(first, device.as_fd(), 0)?,
        None => part.share_again(first, area.view.part())?,
    }
    part.hide();
    watched(pin.base(), area)?;
    allow(pin, ranges, first)
}

/// Has whoever fills the area's pages told of those that are touched in the window at `base`.
fn watched(base: u64, area: &Area) -> Result<(), MapError> {
    area.mapped(base as usize + area.start as usize)
}

/// Gives each range its protection, where all have `first`.
fn allow(pin: &Pin<'_>, ranges: &[Range], first: Prot) -> Result<(), MapError> {
    let mut others = ranges.iter().filter(|r| r.protection != first);
    others.try_for_each(|r| pin.part(r.start, r.end).protect(r.protection))
}

/// Gives what lies in `[start, end)` of `ranges` its protection again.
fn restore(pin: &Pin<'_>, ranges: &[Range], start: u32, end: u32) -> Result<(), MapError> {
    for r in ranges.iter().filter(|r| r.end > start && r.start < end) {
        let (from, to) = (r.start.max(start), r.end.min(end));
        pin.part(from, to).protect(r.protection)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use Prot::{None, Read, ReadWrite};

    fn list(ranges: &[(u32, u32, Prot)]) -> Vec<Range> {
        let range = |&(start, end, protection): &(u32, u32, Prot)| Range {
            start,
            end,
            protection,
        };
        ranges.iter().map(range).collect()
    }

    #[test]
    fn neighbours_merge() {
        let whole = list(&[(10, 20, None)]);
        let one = changed(&whole, 12, 14, Read);
        assert_eq!(one, list(&[(10, 12, None), (12, 14, Read), (14, 20, None)]));
        let two = changed(&one, 14, 16, Read);
        assert_eq!(two, list(&[(10, 12, None), (12, 16, Read), (16, 20, None)]));
        let three = changed(&two, 10, 12, ReadWrite);
        assert_eq!(
            three,
            list(&[(10, 12, ReadWrite), (12, 16, Read), (16, 20, None)])
        );
        assert_eq!(
            changed(&three, 11, 19, None),
            list(&[(10, 11, ReadWrite), (11, 20, None)])
        );
        assert_eq!(changed(&three, 10, 20, Read), list(&[(10, 20, Read)]));
        assert_eq!(changed(&three, 10, 10, Read), three);
        assert_eq!(changed(&three, 20, 20, Read), three);
        assert_eq!(changed(&three, 15, 15, None), three);
    }
}
