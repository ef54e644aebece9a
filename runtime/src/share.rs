//! Shared memory: areas that the host and any number of domains see at once.
//!
//! An area is a mapping in one window of the runtime's own, the arena, at an offset that no other
//! area of the process has. A domain that may see the area gets the same pages at the same offset
//! of its own window, with a protection of its own for each page, never execution: together a page
//! table with a protection per domain. The low 32 bits of a host pointer into the area are the
//! offset.

mod build;
mod end;
mod expose;
mod protect;
#[expect(unsafe_code, reason = "its name says so")]
mod trusted;
mod views;
pub(crate) mod watch;

pub use build::AreaBuilder;
pub use postern_gates::map::Prot;
pub(crate) use views::{Views, Withheld};

use crate::error::{MemoryError, ShareError};
use crate::fork::{self, Held};
use crate::value::Offset;
use postern_gates::map::{self, MapError};
use postern_gates::window::{OwnedPart, Window};
use postern_verifier::window::{LIMIT, PAGE};
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use watch::{Unwatched, Watch};

/// Lowest offset that areas get when nobody chooses it: ordinary heaps lie below.
const ARENA: u32 = 0x1000_0000;
/// Lowest offset that somebody can choose: small domains end below.
pub(crate) const LOWEST: u32 = 0x10_0000;

/// The window of the host's views, and the areas in it.
pub(crate) struct Arena {
    pub(crate) window: Window,
    /// By first offset.
    pub(crate) areas: BTreeMap<u32, Used>,
}

/// What the arena knows of an area.
pub(crate) struct Used {
    /// End of its pages. The page above it is nobody's.
    pub(crate) end: u32,
    pub(crate) name: Arc<str>,
    /// Where it stands in the table for other processes.
    record: Option<usize>,
}

static ARENAS: Mutex<Option<Arena>> = Mutex::new(None);

pub(crate) fn arena() -> MutexGuard<'static, Option<Arena>> {
    ARENAS.lock().unwrap_or_else(|e| e.into_inner())
}

impl Arena {
    /// The highest free range of `bytes`, with a page above it that nothing uses.
    fn free(&self, bytes: u32) -> Option<u32> {
        let fits = |floor: u32, top: u32| {
            u64::from(top) >= u64::from(floor) + u64::from(bytes) + u64::from(PAGE)
        };
        let mut top = LIMIT;
        let above = |used: &Used| (used.end + PAGE).max(ARENA);
        for (&start, used) in self.areas.range(ARENA..).rev() {
            if fits(above(used), top) {
                break;
            }
            top = start;
        }
        let floor = self.areas.range(..top).next_back();
        fits(floor.map_or(ARENA, |(_, used)| above(used)), top).then(|| top - PAGE - bytes)
    }

    /// `start`, if a range of `bytes` there is free, with the page above it.
    fn free_at(&self, start: u32, bytes: u32) -> Result<u32, ShareError> {
        let end = u64::from(start) + u64::from(bytes) + u64::from(PAGE);
        if !start.is_multiple_of(PAGE) || start < LOWEST || end > u64::from(LIMIT) {
            return Err(ShareError::Place {
                offset: start,
                len: bytes as usize,
            });
        }
        let below = self.areas.range(..end as u32).next_back();
        match below.filter(|(_, used)| used.end + PAGE > start) {
            Some((_, used)) => Err(ShareError::Taken {
                offset: start,
                other: used.name.to_string(),
            }),
            None => Ok(start),
        }
    }

    /// The areas in the table for other processes: number of the record, first offset, end, name.
    pub(crate) fn records(&self) -> impl Iterator<Item = (usize, u32, u32, &str)> {
        let areas = self.areas.iter();
        areas.filter_map(|(&start, used)| Some((used.record?, start, used.end, &*used.name)))
    }

    /// The area whose pages hold `offset`: its first offset and its name.
    fn find(&self, offset: u32) -> Option<(u32, Arc<str>)> {
        let (&start, used) = self.areas.range(..=offset).next_back()?;
        (offset < used.end).then(|| (start, used.name.clone()))
    }
}

/// First offset and name of the area at `offset`, whoever may see it.
pub(crate) fn area_at(offset: u32) -> Option<(u32, Arc<str>)> {
    arena().as_ref()?.find(offset)
}

/// An area of shared memory, seen by the host. Cloning shares it; it goes with the last clone and
/// the last domain that sees it.
#[derive(Clone, Debug)]
pub struct Shared(pub(crate) Arc<Area>);

/// The area itself.
#[derive(Debug)]
pub(crate) struct Area {
    pub(crate) name: Arc<str>,
    pub(crate) start: u32,
    pub(crate) end: u32,
    len: usize,
    /// The host's view, in the arena.
    view: OwnedPart,
    writable: bool,
    /// The descriptor, if every view has to map it.
    device: Option<File>,
    /// Whether windows that nobody has may have it mapped.
    withheld: AtomicBool,
    /// Who fills pages that are touched first.
    watch: Mutex<Weak<Watch>>,
}

impl Shared {
    /// What faults and tables call it.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Where every domain that is given the area finds it.
    pub fn offset(&self) -> Offset {
        Offset(self.0.start)
    }

    /// Where the host finds it, as long as `self` lives. Other threads and extensions may write it
    /// at any time; and where a file is behind it that somebody truncates, touching it ends the
    /// process, as with any mapping of a file. [`Shared::read`] and [`Shared::write`] have neither
    /// problem.
    pub fn as_ptr(&self) -> *mut u8 {
        self.0.view.as_ptr()
    }

    /// The host's pointer for one that was found in the area, whoever wrote it there, if all of
    /// `[pointer, pointer + len)` is in the area. Only its low 32 bits count, so a host pointer
    /// gives itself and an extension's gives the same place.
    pub fn at(&self, pointer: u64, len: usize) -> Option<*mut u8> {
        let from = (pointer as u32).checked_sub(self.0.start)? as usize;
        let within = from <= self.0.len && len <= self.0.len - from;
        within.then(|| self.as_ptr().wrapping_add(from))
    }

    /// Copies out of the area, from byte `at`.
    ///
    /// # Errors
    /// The range is not all in the area; or a page of it is gone.
    pub fn read(&self, at: usize, to: &mut [u8]) -> Result<(), MemoryError> {
        let offset = self.bounded(at, to.len())?;
        let read = self.0.view.read(at, to);
        read.map_err(|_| gone(offset, to.len()))
    }

    /// Copies into the area, from byte `at`.
    ///
    /// # Errors
    /// The range is not all in the area, the area is read-only, or a page of it is gone.
    pub fn write(&self, at: usize, from: &[u8]) -> Result<(), MemoryError> {
        let offset = self.bounded(at, from.len())?;
        if !self.0.writable {
            return Err(MemoryError::ReadOnlyArea);
        }
        let written = self.0.view.write(at, from);
        written.map_err(|_| gone(offset, from.len()))
    }

    /// The offset of byte `at`, if `len` bytes from there are in the area.
    fn bounded(&self, at: usize, len: usize) -> Result<u32, MemoryError> {
        let size = self.0.len;
        match at <= size && len <= size - at {
            true => Ok(self.0.start + at as u32),
            false => Err(MemoryError::BeyondArea { at, len, size }),
        }
    }

    /// Bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether the host, and domains that are allowed to, can write it.
    pub fn is_writable(&self) -> bool {
        self.0.writable
    }
}

/// Whose missing pages are filled when they are touched first.
impl Area {
    /// Has them told of, in the host's view, and in each that windows get from now on.
    pub(crate) fn watch(self: &Arc<Area>) -> Result<Arc<Watch>, Unwatched> {
        let watch = Arc::new(Watch::begin(watch::Place {
            name: self.name.clone(),
            range: (self.start, self.end),
            view: self.view.as_ptr() as usize,
            _area: self.clone(),
        })?);
        *self.watched_by() = Arc::downgrade(&watch);
        Ok(watch)
    }

    fn watched_by(&self) -> Held<'_, Weak<Watch>> {
        fork::lock_leaf((self.start / PAGE) as usize, &self.watch)
    }

    fn is_watched(&self) -> bool {
        self.watched_by().strong_count() != 0
    }

    /// The area was mapped at this address, or moved there.
    fn mapped(&self, view: usize) -> Result<(), MapError> {
        let watch = self.watched_by().upgrade();
        let added = watch.map_or(Ok(()), |watch| watch.add(view));
        let bytes = (self.end - self.start) as usize;
        added.map_err(|error| map::failed("watch memory", bytes, error))
    }
}

fn gone(offset: u32, len: usize) -> MemoryError {
    MemoryError::Gone { offset, len }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arena() -> Arena {
        Arena {
            window: Window::take().unwrap(),
            areas: BTreeMap::new(),
        }
    }

    fn put(arena: &mut Arena, start: u32, bytes: u32) -> u32 {
        let used = Used {
            end: start + bytes,
            name: format!("at {start:#x}").into(),
            record: None,
        };
        assert!(arena.areas.insert(start, used).is_none());
        start
    }

    fn take(arena: &mut Arena, bytes: u32) -> Option<u32> {
        let start = arena.free(bytes)?;
        Some(put(arena, start, bytes))
    }

    #[test]
    fn areas_are_apart_and_reused() {
        let mut arena = arena();
        let a = take(&mut arena, PAGE).unwrap();
        let b = take(&mut arena, 2 * PAGE).unwrap();
        let c = take(&mut arena, PAGE).unwrap();
        assert_eq!(
            (a, b, c),
            (LIMIT - 2 * PAGE, LIMIT - 5 * PAGE, LIMIT - 7 * PAGE)
        );
        arena.areas.remove(&b);
        assert_eq!(take(&mut arena, 3 * PAGE), Some(LIMIT - 11 * PAGE));
        assert_eq!(take(&mut arena, 2 * PAGE), Some(b));
        let rest = LIMIT - 11 * PAGE - ARENA;
        assert_eq!(take(&mut arena, rest), None);
        assert_eq!(take(&mut arena, rest - PAGE), Some(ARENA));
        assert_eq!(take(&mut arena, PAGE), None);
        // Nobody gets a place below without choosing it, and who is there takes none above.
        put(&mut arena, LOWEST, PAGE);
        arena.areas.remove(&ARENA);
        assert_eq!(take(&mut arena, rest), None);
        assert_eq!(take(&mut arena, rest - PAGE), Some(ARENA));
        put(&mut arena, ARENA - 2 * PAGE, 2 * PAGE);
        arena.areas.remove(&ARENA);
        assert_eq!(take(&mut arena, rest - PAGE), None);
        assert_eq!(take(&mut arena, rest - 2 * PAGE), Some(ARENA + PAGE));
    }

    #[test]
    fn chosen_places() {
        let mut arena = arena();
        let high = LIMIT - 2 * PAGE;
        for beyond in [0, LOWEST - PAGE, ARENA + 1, LIMIT - PAGE, LIMIT, u32::MAX] {
            let refused = arena.free_at(beyond, PAGE);
            assert!(
                matches!(refused, Err(ShareError::Place { .. })),
                "{beyond:#x}"
            );
        }
        assert_eq!(arena.free_at(ARENA, PAGE).unwrap(), ARENA);
        assert_eq!(arena.free_at(LOWEST, PAGE).unwrap(), LOWEST);
        assert_eq!(arena.free_at(high, PAGE).unwrap(), high);
        assert!(arena.free_at(high, 2 * PAGE).is_err());
        let middle = put(&mut arena, 0x8000_0000, 4 * PAGE);
        for (start, bytes, free) in [
            (middle, PAGE, false),
            (middle - PAGE, PAGE, false),
            (middle - 2 * PAGE, PAGE, true),
            (middle - 3 * PAGE, 2 * PAGE, true),
            (middle - 3 * PAGE, 8 * PAGE, false),
            (middle + PAGE, PAGE, false),
            (middle + 4 * PAGE, PAGE, false),
            (middle + 5 * PAGE, PAGE, true),
        ] {
            let answer = arena.free_at(start, bytes);
            assert_eq!(answer.is_ok(), free, "{start:#x} {bytes:#x}: {answer:?}");
            if let Err(error) = answer {
                assert!(error.to_string().contains("at 0x80000000"), "{error}");
            }
        }
        assert_eq!(arena.find(middle + PAGE).unwrap().0, middle);
        assert!(arena.find(middle - 1).is_none() && arena.find(middle + 4 * PAGE).is_none());
    }
}
