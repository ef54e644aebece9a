//! How an area is made: of zero bytes, over a file, or over memory that the host shares already.

use super::{Area, Arena, Shared, Used, arena, expose};
use crate::engine;
use crate::error::ShareError;
use crate::table;
use crate::value::Offset;
use postern_gates::machine;
use postern_gates::map::{MapError, Prot};
use postern_gates::window::{Part, Window};
use postern_verifier::window::{LIMIT, PAGE};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What an area is to be called and where it shall lie. Begins with [`Shared::builder`].
#[derive(Debug, Clone, Default)]
#[must_use = "nothing happens before zeroed(), file() or expose()"]
pub struct AreaBuilder {
    name: Option<String>,
    offset: Option<Offset>,
}

impl Shared {
    /// Begins an area that is given a name or a place.
    pub fn builder() -> AreaBuilder {
        AreaBuilder::default()
    }

    /// A new area of zero bytes.
    ///
    /// # Errors
    /// The length is 0 or does not fit a window; no memory or address space.
    pub fn new(len: usize) -> Result<Shared, ShareError> {
        Shared::builder().zeroed(len)
    }

    /// An area over a file: [`AreaBuilder::file`].
    ///
    /// # Errors
    /// As there.
    pub fn from_file(file: OwnedFd, at: u64, len: usize) -> Result<Shared, ShareError> {
        Shared::builder().file(file, at, len)
    }

    /// An area over shared memory that the host has: [`AreaBuilder::expose`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As there.
    #[expect(unsafe_code, reason = "the caller's promise")]
    pub unsafe fn expose(memory: *mut u8, len: usize) -> Result<Shared, ShareError> {
        // SAFETY: the caller promises the same.
        unsafe { Shared::builder().expose(memory, len) }
    }
}

impl AreaBuilder {
    /// What faults and tables call the area. Default: `area#` and a number. Names need not differ.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The offset at which the area shall lie, a multiple of 4096 from 1 MiB up; so that pointers
    /// in a file mean the same the next time. Or so that it lies near what small domains have of
    /// their own, for whom it then costs no pages for page tables (two in each window at the
    /// default place); a domain whose heap or data stacks reach that far cannot see it. Default:
    /// the highest place that is free.
    pub fn offset(mut self, offset: Offset) -> Self {
        self.offset = Some(offset);
        self
    }

    /// A new area of `len` zero bytes.
    ///
    /// # Errors
    /// The length is 0 or does not fit a window, the place is taken or beyond the window; no memory
    /// or address space.
    pub fn zeroed(self, len: usize) -> Result<Shared, ShareError> {
        let bytes = page_up(len)?;
        let file = machine::memory_file(c"postern-shared", false).map_err(system("make a file"))?;
        machine::size(&file, u64::from(bytes))
            .and_then(|()| machine::seal_shrink(&file))
            .map_err(system("size a file"))?;
        self.over_file(&file, 0, len, bytes)
    }

    /// An area over `len` bytes of a file from `at`, both of whole pages but for the file's last:
    /// its pages are shared, nothing is copied. Where the descriptor cannot write, the area is
    /// read-only. If somebody truncates the file, whoever touches the missing pages has a fault of
    /// kind [`crate::FaultKind::Bus`], and a copy of the host's an error.
    ///
    /// # Errors
    /// As [`AreaBuilder::zeroed`]; the range is not all in the file or not page-aligned, or the
    /// file cannot be mapped and read.
    pub fn file(self, file: OwnedFd, at: u64, len: usize) -> Result<Shared, ShareError> {
        let bytes = page_up(len)?;
        let file = File::from(file);
        if !at.is_multiple_of(u64::from(PAGE)) {
            return Err(ShareError::Misaligned(at));
        }
        let size = file
            .metadata()
            .map_err(system("ask for a file's size"))?
            .len();
        if at.checked_add(len as u64).is_none_or(|end| end > size) {
            return Err(ShareError::Range { at, len, size });
        }
        self.over_file(&file, at, len, bytes)
    }

    /// An area over what the first `len` bytes of a descriptor's mapping are, where only the
    /// descriptor itself can map them: the rings of a packet socket, or a device's memory. `len` is
    /// a multiple of 4096. Every view is a mapping of the descriptor, which stays open as long as
    /// the area.
    ///
    /// # Errors
    /// As [`AreaBuilder::zeroed`]; the length is not of whole pages, or the descriptor does not map
    /// so much.
    pub fn device(self, device: OwnedFd, len: usize) -> Result<Shared, ShareError> {
        let bytes = page_up(len)?;
        if bytes as usize != len {
            return Err(ShareError::Misaligned(len as u64));
        }
        let device = File::from(device);
        let kept = device.try_clone().map_err(system("keep a descriptor"))?;
        self.make(len, bytes, Some(kept), over(&device, 0))
    }

    fn over_file(self, file: &File, at: u64, len: usize, bytes: u32) -> Result<Shared, ShareError> {
        self.make(len, bytes, None, over(file, at))
    }

    /// An area over memory that the host shares already: a mapping of a memory file or of any file
    /// with `MAP_SHARED`, or an anonymous one with `MAP_SHARED`. Both are whole pages. The pages
    /// get a second place, [`Shared::as_ptr`]; the first one stays as it is and may go. What the
    /// host's mapping can never be, the area cannot be: one of a file that was opened for reading
    /// is read-only.
    ///
    /// # Errors
    /// As [`AreaBuilder::zeroed`]; the memory is not mapped, is private ([`ShareError::Private`]
    /// says what to do), or is of several mappings.
    ///
    /// # Safety
    /// `[memory, memory + len)` stays mapped during the call, and there is no Rust reference to it
    /// while a domain may write it.
    #[expect(unsafe_code, reason = "the caller's promise")]
    pub unsafe fn expose(self, memory: *mut u8, len: usize) -> Result<Shared, ShareError> {
        let start = memory as usize;
        let misplaced = [start, len].into_iter().find(|n| n % PAGE as usize != 0);
        if let Some(number) = misplaced {
            return Err(ShareError::Misaligned(number as u64));
        }
        let bytes = page_up(len)?;
        expose::check(start, len)?;
        self.make(len, bytes, None, |part| {
            // SAFETY: the caller's promise: so much stays mapped, and there are no references while
            // a domain may write it.
            let view = |protection| unsafe { part.share_host(protection, start) };
            match view(Prot::ReadWrite) {
                Ok(()) => Ok(true),
                Err(_) => view(Prot::Read).map(|()| false),
            }
        })
    }

    /// Takes a place, and has `map` put the area's pages there, which says whether they can be
    /// written.
    fn make(
        self,
        len: usize,
        bytes: u32,
        device: Option<File>,
        map: impl FnOnce(Part<'_>) -> Result<bool, MapError>,
    ) -> Result<Shared, ShareError> {
        engine::start()?;
        let mut guard = arena();
        let arena = match guard.as_mut() {
            Some(arena) => arena,
            None => {
                let window = Window::take()?;
                table::set_arena(window.base());
                guard.insert(Arena {
                    window,
                    areas: BTreeMap::new(),
                })
            }
        };
        let start = match self.offset {
            Some(offset) => arena.free_at(offset.0, bytes)?,
            None => arena.free(bytes).ok_or(ShareError::NoRoom(len))?,
        };
        let end = start + bytes;
        let name: Arc<str> = self.name.unwrap_or_else(default_name).into();
        postern_gates::map::room(4)?;
        let view = arena.window.owned_part(start, end);
        let writable = map(view.part())?;
        view.part().hide();
        let used = Used {
            end,
            name: name.clone(),
            record: table::note_area(start, end, &name),
        };
        arena.areas.insert(start, used);
        Ok(Shared(Arc::new(Area {
            name,
            start,
            end,
            len,
            view,
            writable,
            device,
            withheld: AtomicBool::new(false),
            watch: Mutex::default(),
        })))
    }
}

/// Maps a file's bytes from `at`, for writing if that can be had.
fn over(file: &File, at: u64) -> impl FnOnce(Part<'_>) -> Result<bool, MapError> + use<'_> {
    move |part| {
        let view = |protection| part.share(protection, file.as_fd(), at);
        match view(Prot::ReadWrite) {
            Ok(()) => Ok(true),
            Err(_) => view(Prot::Read).map(|()| false),
        }
    }
}

fn default_name() -> String {
    static MADE: AtomicU64 = AtomicU64::new(0);
    format!("area#{}", MADE.fetch_add(1, Ordering::Relaxed) + 1)
}

fn system(what: &'static str) -> impl Fn(std::io::Error) -> ShareError {
    move |e| ShareError::System {
        what,
        reason: postern_gates::map::explained(&e),
    }
}

fn page_up(len: usize) -> Result<u32, ShareError> {
    let most = (LIMIT - super::ARENA - PAGE) as usize;
    match len {
        0 => Err(ShareError::Length(len)),
        _ if len > most => Err(ShareError::Length(len)),
        _ => Ok(len.next_multiple_of(PAGE as usize) as u32),
    }
}
