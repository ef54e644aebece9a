//! Shared memory: pages that the host and any number of domains see at once.
//!
//! An area is a range of a memory file that cannot shrink, so that touching it never crashes anybody. Its offset comes from one
//! arena for the whole process: it is the same in every window, and the low 32 bits of a host pointer into the area are that
//! offset. Each domain has its own protection for it, never execution.

use crate::error::ShareError;
use crate::trusted::machine;
use crate::trusted::map::Protection;
use crate::window::Window;
use crate::{Domain, Offset};
use postern_verifier::window::{LIMIT, PAGE};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};

/// What a domain may do with an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read.
    Read,
    /// Read and write.
    ReadWrite,
}

impl Access {
    fn protection(self) -> Protection {
        match self {
            Access::Read => Protection::Read,
            Access::ReadWrite => Protection::ReadWrite,
        }
    }
}

/// Lowest offset of the arena: ordinary heaps lie below.
const ARENA: u32 = 0x1000_0000;

/// Offsets that areas use, each with the page above it, highest first; and the window of the host's views.
pub(crate) struct Arena {
    window: Window,
    used: Vec<(u32, u32)>,
}

static ARENAS: Mutex<Option<Arena>> = Mutex::new(None);

pub(crate) fn arena() -> MutexGuard<'static, Option<Arena>> {
    ARENAS.lock().unwrap_or_else(|e| e.into_inner())
}

impl Arena {
    /// The highest free range of `bytes`, with a page above it that nothing uses.
    fn take(&mut self, bytes: u32) -> Option<u32> {
        let mut top = LIMIT;
        for place in 0..=self.used.len() {
            let (low, next) = self.used.get(place).copied().unwrap_or((ARENA, ARENA));
            let floor = if place == self.used.len() {
                ARENA
            } else {
                next
            };
            if u64::from(top - floor) >= u64::from(bytes) + u64::from(PAGE) {
                let start = top - PAGE - bytes;
                self.used.insert(place, (start, top));
                return Some(start);
            }
            top = low;
        }
        None
    }
}

/// An area of shared memory, seen by the host. Cloning shares it; it goes with the last clone and the last domain that sees it.
#[derive(Clone, Debug)]
pub struct Shared(pub(crate) Arc<Area>);

/// The area itself.
#[derive(Debug)]
pub(crate) struct Area {
    file: File,
    at: u64,
    pub(crate) start: u32,
    pub(crate) end: u32,
    len: usize,
    base: u64,
    writable: bool,
}

impl Shared {
    /// A new area of zero bytes.
    ///
    /// # Errors
    /// The length is 0 or does not fit a window; no memory or address space.
    pub fn new(len: usize) -> Result<Shared, ShareError> {
        let bytes = page_up(len)?;
        let file = machine::memory_file(c"postern-shared", false).map_err(system("make a file"))?;
        file.set_len(u64::from(bytes))
            .and_then(|()| machine::seal_shrink(&file))
            .map_err(system("size a file"))?;
        Shared::of(file, 0, len, bytes)
    }

    /// An area over `len` bytes of a file from `at`, both of whole pages but for the file's last. The file must be sealed against
    /// shrinking (`F_SEAL_SHRINK`), which memory files can be. Where it cannot be written, the area is read-only.
    ///
    /// # Errors
    /// The range is not all in the file or not page-aligned, or the file may shrink.
    pub fn from_file(file: OwnedFd, at: u64, len: usize) -> Result<Shared, ShareError> {
        let bytes = page_up(len)?;
        let file = File::from(file);
        if at % u64::from(PAGE) != 0 {
            return Err(ShareError::Misaligned(at));
        }
        if !machine::cannot_shrink(&file) {
            return Err(ShareError::MayShrink);
        }
        let size = file
            .metadata()
            .map_err(system("ask for a file's size"))?
            .len();
        if at.checked_add(len as u64).is_none_or(|end| end > size) {
            return Err(ShareError::Range { at, len, size });
        }
        Shared::of(file, at, len, bytes)
    }

    fn of(file: File, at: u64, len: usize, bytes: u32) -> Result<Shared, ShareError> {
        let mut guard = arena();
        let arena = match guard.as_mut() {
            Some(arena) => arena,
            None => guard.insert(Arena {
                window: Window::take()?,
                used: Vec::new(),
            }),
        };
        let start = arena.take(bytes).ok_or(ShareError::NoRoom(len))?;
        let mut area = Area {
            file,
            at,
            start,
            end: start + bytes,
            len,
            base: arena.window.base(),
            writable: true,
        };
        let view = |protection| {
            arena
                .window
                .share(start, area.end, protection, area.file.as_fd(), at)
        };
        let mapped = match view(Protection::ReadWrite) {
            Ok(()) => Ok(()),
            Err(_) => {
                area.writable = false;
                view(Protection::Read)
            }
        };
        if let Err(error) = mapped {
            arena.used.retain(|u| u.0 != start);
            // Its drop would lock the arena again.
            drop(guard);
            return Err(error.into());
        }
        Ok(Shared(Arc::new(area)))
    }

    /// Where every domain that is given the area finds it.
    pub fn offset(&self) -> Offset {
        Offset(self.0.start)
    }

    /// Where the host finds it, as long as `self` lives. Other threads and extensions may write it at any time.
    pub fn as_ptr(&self) -> *mut u8 {
        (self.0.base + u64::from(self.0.start)) as *mut u8
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

fn system(what: &'static str) -> impl Fn(std::io::Error) -> ShareError {
    move |e| ShareError::System {
        what,
        reason: e.to_string(),
    }
}

fn page_up(len: usize) -> Result<u32, ShareError> {
    let most = (LIMIT - ARENA - PAGE) as usize;
    match len {
        0 => Err(ShareError::Length(len)),
        _ if len > most => Err(ShareError::Length(len)),
        _ => Ok(len.next_multiple_of(PAGE as usize) as u32),
    }
}

impl Area {
    /// Maps the area into a window that has nothing there.
    pub(crate) fn map(&self, window: &Window, access: Access) -> Result<(), ShareError> {
        if access == Access::ReadWrite && !self.writable {
            return Err(ShareError::ReadOnly);
        }
        let file = self.file.as_fd();
        Ok(window.share(self.start, self.end, access.protection(), file, self.at)?)
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        if let Some(arena) = arena().as_mut()
            && arena.window.unmap(self.start, self.end).is_ok()
        {
            arena.used.retain(|u| u.0 != self.start);
        }
    }
}

impl Domain {
    /// Lets the domain see an area, at the area's own offset, until the domain goes; reset leaves it there.
    ///
    /// # Errors
    /// The heap and the stacks of the domain reach up to the area, the area is read-only, or the domain sees it already with
    /// other access.
    pub fn share(&self, shared: &Shared, access: Access) -> Result<Offset, ShareError> {
        self.0.instance.share(&shared.0, access)?;
        Ok(shared.offset())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arena() -> Arena {
        Arena {
            window: Window::take().unwrap(),
            used: Vec::new(),
        }
    }

    #[test]
    fn areas_are_apart_and_reused() {
        let mut arena = arena();
        let a = arena.take(PAGE).unwrap();
        let b = arena.take(2 * PAGE).unwrap();
        let c = arena.take(PAGE).unwrap();
        assert_eq!(
            (a, b, c),
            (LIMIT - 2 * PAGE, LIMIT - 5 * PAGE, LIMIT - 7 * PAGE)
        );
        arena.used.retain(|u| u.0 != b);
        assert_eq!(arena.take(3 * PAGE), Some(LIMIT - 11 * PAGE));
        assert_eq!(arena.take(2 * PAGE), Some(b));
        let rest = LIMIT - 11 * PAGE - ARENA;
        assert_eq!(arena.take(rest), None);
        assert_eq!(arena.take(rest - PAGE), Some(ARENA));
        assert_eq!(arena.take(PAGE), None);
    }
}
