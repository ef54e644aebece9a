//! Instances: an image mapped into a window, and what of the window may be touched.
//!
//! The table of mapped ranges is here, so every check of an offset that the host uses is here, too.
//! A window whose private pages have been dropped is as good as new for the same image and heap:
//! the image keeps a few of them.

mod moving;
mod refresh;

pub(crate) use moving::Stays;

use crate::common::memory::{BELOW_STACKS, Seat};
use crate::error::ShareError;
use crate::fork::{self, Held};
use crate::image::ImageInner;
use crate::share::{Area, Views, Withheld};
use postern_gates::map::{self, MapError, Prot};
use postern_gates::outcome::Refusal;
use postern_gates::window::{Pin, Window};
use postern_verifier::window::{
    ABI_VERSION, INFO, INFO_ABI, INFO_HEAP_END, INFO_HEAP_START, INFO_STACK_MASK, LIMIT, PAGE,
};
use std::sync::{Arc, Mutex};

/// The memory of one domain.
pub(crate) struct Instance {
    image: Arc<ImageInner>,
    /// `None` only while dropping.
    window: Option<Window>,
    heap: (u32, u32),
    /// Size of each data stack, a power of two. The image's own lies where data follows it: with
    /// another size than that it is nobody's, and all stacks lie above the heap.
    stack_size: u32,
    stacks: Mutex<Stacks>,
    /// Other processes have data and heap, too: where these are, and its data stacks.
    seat: Option<Seat>,
}

/// What lies above the heap: data stacks besides the image's own, growing up, and shared areas.
#[derive(Default)]
struct Stacks {
    own_given: bool,
    next: u32,
    extra: Vec<(u32, u32)>,
    /// Where those begin that were given and came back.
    free: Vec<u32>,
    /// Memory of this process's domain alone, among the data stacks of its seat.
    own: Vec<(u32, u32)>,
    /// The code area and its data: what can be read, and what can be written.
    code: Option<[(u32, u32); 2]>,
    areas: Views,
}

impl Stacks {
    /// Where the lowest shared area begins.
    fn limit(&self) -> u32 {
        self.areas.lowest().unwrap_or(LIMIT)
    }
}

impl Instance {
    /// Maps `image` into a window: the hot one, if that is given. Each data stack has `stack_size`
    /// bytes, a power of two. With a seat, data and heap are those of its memory.
    pub(crate) fn new(
        image: &Arc<ImageInner>,
        heap: (u32, u32),
        stack_size: u32,
        hot: Option<Window>,
        seat: Option<Seat>,
    ) -> Result<Instance, MapError> {
        let mapped = |window: Window| -> Result<Window, MapError> {
            map::room(7)?;
            map_image(&window.pin(), image, heap, stack_size, seat.as_ref())?;
            Ok(window)
        };
        let own = stack_size == image.tables.layout.stack_size && seat.is_none();
        let spare = || {
            let spare = own.then(|| image.spare.take(heap.1)).flatten();
            spare.map(|s| (s.window, s.areas))
        };
        let (window, areas) = match hot {
            Some(window) => (mapped(window)?, Withheld::default()),
            None => match spare() {
                Some(spare) => spare,
                None => (mapped(Window::take()?)?, Withheld::default()),
            },
        };
        Ok(Instance {
            image: image.clone(),
            window: Some(window),
            heap,
            stack_size,
            stacks: Mutex::new(Stacks {
                own_given: !own,
                next: seat.as_ref().map_or(heap.1, |seat| seat.zone().0),
                areas: areas.into(),
                ..Stacks::default()
            }),
            seat,
        })
    }

    pub(crate) fn window(&self) -> &Window {
        self.window.as_ref().expect("taken only by drop")
    }

    /// Taken under a pin by those who need both, as by the mover, who excludes pins first.
    fn stacks(&self) -> Held<'_, Stacks> {
        fork::lock(&self.stacks)
    }

    /// First offset of the heap, and the one behind its last.
    pub(crate) fn heap(&self) -> (u32, u32) {
        self.heap
    }

    /// Size of each data stack in bytes.
    pub(crate) fn stack_size(&self) -> u32 {
        self.stack_size
    }

    /// Whether the image's own data stack is one of the domain's.
    pub(crate) fn has_own_stack(&self) -> bool {
        self.stack_size == self.image.tables.layout.stack_size && self.seat.is_none()
    }

    /// Its seat in memory that other processes have, too.
    pub(crate) fn seat(&self) -> Option<&Seat> {
        self.seat.as_ref()
    }

    /// Address of offset 0.
    pub(crate) fn base(&self) -> u64 {
        self.window().base()
    }

    /// Whether it lies in the hot window.
    pub(crate) fn is_hot(&self) -> bool {
        self.window().is_hot()
    }

    /// Whether all of the window is still its own.
    pub(crate) fn whole(&self) -> Result<(), MapError> {
        self.window().whole()
    }

    /// Keeps the window where it is.
    pub(crate) fn pin(&self) -> Pin<'_> {
        self.window().pin()
    }

    /// Finds place above the heap for a code area of so many bytes with so many bytes of data
    /// behind it, has it made at the offset that is found, and maps its data. A window has at most
    /// one, and is not moved afterwards.
    pub(crate) fn give_code<T>(
        &self,
        bytes: u32,
        data: u32,
        make: impl FnOnce(u32, &Window) -> Result<T, MapError>,
    ) -> Result<Option<(u32, T)>, MapError> {
        /// An access beyond the heap's end is known for that only if nothing is there.
        const APART: u32 = 1 << 20;
        /// Gate slots must be near enough for a branch.
        const NEAR: u64 = 1 << 31;
        let mut stacks = self.stacks();
        let start = u64::from(stacks.next.max(self.heap.1.saturating_add(APART)));
        let start = start.next_multiple_of(u64::from(APART));
        let data_start = start + u64::from(bytes);
        let end = data_start + u64::from(data);
        if self.seat.is_some() || stacks.code.is_some() || end > NEAR.min(stacks.limit().into()) {
            return Ok(None);
        }
        let (start, data_start, end) = (start as u32, data_start as u32, end as u32);
        map::room(10)?;
        let window = self.window();
        stacks.areas.clear(&window.pin(), start, end)?;
        stacks.code = Some([(start, data_start), (data_start, end)]);
        stacks.next = end;
        let made = make(start, window)?;
        let pin = window.pin();
        let part = pin.part(data_start, end);
        part.map(Prot::ReadWrite)?;
        part.hide();
        Ok(Some((start, made)))
    }

    /// Writes the first values of thread-local variables at the top of a data stack whose pages are
    /// all zero. (The image's own stack has them from the image's file.)
    fn fill_stack_top(&self, pin: &Pin<'_>, end: u32) {
        let initial = &self.image.stack_top.initial;
        if !initial.is_empty() {
            // Private memory that was just mapped.
            let _ = pin.write(end - initial.len() as u32, initial);
        }
    }

    /// Gives the data stack that begins at `first` to another thread of the host: with fresh
    /// thread-local variables.
    pub(crate) fn renew_stack_top(&self, first: u32) {
        if first != 0 {
            self.fill_stack_top(&self.pin(), first + self.image.stack_top.reserved);
        }
    }

    /// A data stack for one more thread: the offset at which it begins. At most `threads` are
    /// given.
    pub(crate) fn give_data_stack(&self, threads: u32) -> Result<u32, Refusal> {
        let size = self.stack_size;
        let reserved = self.image.stack_top.reserved;
        let pin = self.pin();
        let mut stacks = self.stacks();
        if let Some(first) = stacks.free.pop() {
            return Ok(first);
        }
        if !stacks.own_given {
            stacks.own_given = true;
            return Ok(self.image.tables.layout.data - reserved);
        }
        let own = self.has_own_stack();
        if stacks.extra.len() + usize::from(own) >= threads as usize {
            return Err(Refusal::TooManyThreads);
        }
        let lowest = if own {
            0
        } else {
            self.heap.1.saturating_add(BELOW_STACKS)
        };
        let start = u64::from(stacks.next.max(lowest)).next_multiple_of(u64::from(size));
        let end = start + u64::from(size);
        let limit = self.seat.as_ref().map_or(LIMIT, |seat| seat.zone().1);
        if end > u64::from(stacks.limit().min(limit)) {
            return Err(Refusal::NoDataStack);
        }
        let (start, end) = (start as u32, end as u32);
        // The lowest page stays without access, so that an overflow does not reach the neighbour.
        let low = if size > PAGE { start + PAGE } else { start };
        // A change of protection, because threads may be inside: at no moment is there no mapping.
        let part = pin.part(low, end);
        map::room(2)
            .and_then(|()| stacks.areas.clear(&pin, start, end))
            .and_then(|()| part.protect(Prot::ReadWrite))
            .map_err(|_| Refusal::NoMemory)?;
        part.hide();
        self.fill_stack_top(&pin, end);
        stacks.next = end;
        stacks.extra.push((low, end));
        Ok(end - reserved)
    }

    /// Zeroed memory of whole pages that only this process's domain has, at an offset that none of
    /// another process has: `None` if the seat has no room, or there is no seat.
    pub(crate) fn give_own(&self, bytes: u32) -> Result<Option<u32>, MapError> {
        let Some(seat) = &self.seat else {
            return Ok(None);
        };
        let pin = self.pin();
        let mut stacks = self.stacks();
        // With a page on either side that nothing uses.
        let start = u64::from(stacks.next) + u64::from(PAGE);
        let end = (start + u64::from(bytes)).next_multiple_of(PAGE.into());
        let limit = stacks.limit().min(seat.zone().1);
        if bytes == 0 || end + u64::from(PAGE) > u64::from(limit) {
            return Ok(None);
        }
        // Both are below the limit.
        let (start, end) = (start as u32, end as u32);
        let part = pin.part(start, end);
        map::room(2)?;
        stacks.areas.clear(&pin, start - PAGE, end + PAGE)?;
        part.protect(Prot::ReadWrite)?;
        part.hide();
        stacks.next = end + PAGE;
        stacks.own.push((start, end));
        Ok(Some(start))
    }

    /// Takes back a data stack that begins at `first`, for whoever comes next. It is refreshed
    /// before that.
    pub(crate) fn take_data_stack(&self, first: u32) {
        self.stacks().free.push(first);
    }

    /// Lets the domain see all of a shared area, unless it sees it otherwise.
    pub(crate) fn share(&self, area: &Arc<Area>, protection: Prot) -> Result<(), ShareError> {
        let seen = self.stacks().areas.is_all(area, protection);
        match seen {
            Some(true) => Ok(()),
            Some(false) => Err(ShareError::Already(area.name.to_string())),
            None => self.protect(area, area.start, area.end, protection),
        }
    }

    /// Changes what the domain may do with `[start, end)` of a shared area. Nothing else of the
    /// window lies where areas do, and the area's own pages are all that changes, so threads may be
    /// inside.
    pub(crate) fn protect(
        &self,
        area: &Arc<Area>,
        start: u32,
        end: u32,
        protection: Prot,
    ) -> Result<(), ShareError> {
        let pin = self.pin();
        let mut stacks = self.stacks();
        if protection != Prot::None && area.start < stacks.next {
            return Err(ShareError::Overlap {
                area: area.name.to_string(),
                reached: stacks.next,
            });
        }
        let gone = stacks.areas.protect(&pin, area, (start, end), protection);
        // What the domain does not see any more is dropped without its lock.
        drop((stacks, pin));
        gone.map(drop)
    }

    /// The shared areas that the domain sees: name, first offset, length in bytes, and most that it
    /// may do with any page.
    pub(crate) fn areas(&self) -> Vec<(Arc<str>, u32, u32, Prot)> {
        self.stacks().areas.list()
    }

    /// Takes all access to the shared area that begins at `start`. False if the domain sees none
    /// there.
    pub(crate) fn take_area(&self, start: u32) -> Result<bool, ShareError> {
        // Bound here, so that it is dropped without the lock.
        let area = self.stacks().areas.area(start);
        match area {
            Some(area) => self
                .protect(&area, area.start, area.end, Prot::None)
                .map(|()| true),
            None => Ok(false),
        }
    }

    /// Has whoever fills areas' pages told of those that are touched in the window.
    pub(crate) fn watch_areas(&self) -> Result<(), MapError> {
        let pin = self.pin();
        self.stacks().areas.watch(pin.base())
    }

    /// What the domain may do with the page of a shared area at `offset`; `None` where it sees no
    /// area.
    pub(crate) fn shared_at(&self, offset: u32) -> Option<Prot> {
        self.stacks().areas.at(offset)
    }

    /// Whether `address` is in the first megabyte above the heap, where no data stack is.
    pub(crate) fn just_above_heap(&self, address: u32) -> bool {
        (self.heap.1..self.heap.1.saturating_add(1 << 20)).contains(&address)
    }

    /// Whether `offset` is in what is kept free below the data stacks of a size that was chosen.
    pub(crate) fn just_below_stacks(&self, offset: u32) -> bool {
        let first = self.stacks().extra.first().map_or(0, |stack| stack.0);
        !self.has_own_stack() && (first.saturating_sub(BELOW_STACKS)..first).contains(&offset)
    }

    /// The lowest usable offsets of the data stacks besides the image's own.
    pub(crate) fn extra_stack_bottoms(&self) -> impl Iterator<Item = u32> {
        let bottoms: Vec<u32> = self.stacks().extra.iter().map(|s| s.0).collect();
        bottoms.into_iter()
    }

    /// Where what is written of the image begins: the first data stack, if the domain has that.
    fn first_writable(&self) -> u32 {
        let layout = &self.image.tables.layout;
        match self.seat {
            Some(_) => layout.data,
            None => layout.stack,
        }
    }

    /// The ranges with pages of the domain's own.
    pub(crate) fn writable(&self) -> Vec<(u32, u32)> {
        let first = (self.first_writable(), self.heap.1);
        let mut ranges = match self.seat {
            Some(_) => Vec::new(),
            None => vec![first],
        };
        let stacks = self.stacks();
        ranges.extend(&stacks.extra);
        ranges.extend(&stacks.own);
        ranges.extend(stacks.code.map(|[_, data]| data));
        ranges
    }

    /// The ranges whose pages the host has, too: shared areas, and what came into a namespace.
    pub(crate) fn shared(&self) -> Vec<(u32, u32)> {
        let common = self.seat.is_some();
        let common = common.then_some((self.first_writable(), self.heap.1));
        let stacks = self.stacks();
        let mut ranges: Vec<_> = stacks.areas.ranges().chain(common).collect();
        ranges.extend(stacks.code.into_iter().flatten());
        ranges
    }

    /// Whether `[offset, offset + len)` is mapped readable (`write` false) or writable.
    pub(crate) fn accessible(&self, offset: u32, len: usize, write: bool) -> bool {
        let start = u64::from(offset);
        let end = start.saturating_add(len as u64);
        let within = |low: u32, high: u32| u64::from(low) <= start && end <= u64::from(high);
        let layout = &self.image.tables.layout;
        let first = self.first_writable();
        let readable = || within(INFO, layout.stack) || within(first, self.heap.1);
        let private = || self.seat.is_none() && within(INFO, self.heap.1);
        if within(first, self.heap.1) || (!write && (readable() || private())) {
            return true;
        }
        let stacks = self.stacks();
        if let Some([code, data]) = stacks.code
            && (within(data.0, data.1) || (!write && within(code.0, code.1)))
        {
            return true;
        }
        let mut own = stacks.extra.iter().chain(&stacks.own);
        own.any(|&(l, h)| within(l, h)) || stacks.areas.accessible(offset, end, write)
    }
}

/// Maps an image into a window: five mappings, in the order of the ABI.
fn map_image(
    pin: &Pin<'_>,
    image: &ImageInner,
    heap: (u32, u32),
    stack_size: u32,
    seat: Option<&Seat>,
) -> Result<(), MapError> {
    map_readable(pin, image, heap, stack_size)?;
    map_writable(pin, image, heap, seat)?;
    pin.part(INFO, heap.1).hide();
    Ok(())
}

/// Maps what the extension cannot write: info page, text with its slots, read-only data.
fn map_readable(
    pin: &Pin<'_>,
    image: &ImageInner,
    heap: (u32, u32),
    stack_size: u32,
) -> Result<(), MapError> {
    let layout = image.text.layout();
    put_info(pin, layout.gates, heap, stack_size)?;
    pin.map_text(&image.text)?;
    let (file, at) = image.text.file(layout.text_end);
    let rest = pin.part(layout.text_end, layout.stack);
    rest.map_file(Prot::Read, file, at)
}

/// Maps and fills the info page, and maps zeros from there to the gate slots at `end`, which are
/// one mapping with it and cost no page.
fn put_info(pin: &Pin<'_>, end: u32, heap: (u32, u32), stack_size: u32) -> Result<(), MapError> {
    let page = pin.part(INFO, end);
    page.map(Prot::ReadWrite)?;
    let mut info = [0u8; (INFO_STACK_MASK + 4 - INFO) as usize];
    let mut put = |offset: u32, bytes: &[u8]| {
        let at = (offset - INFO) as usize;
        info[at..at + bytes.len()].copy_from_slice(bytes);
    };
    put(INFO, &pin.base().to_le_bytes());
    put(INFO_ABI, &ABI_VERSION.to_le_bytes());
    put(INFO_HEAP_START, &heap.0.to_le_bytes());
    put(INFO_HEAP_END, &heap.1.to_le_bytes());
    put(INFO_STACK_MASK, &(stack_size - 1).to_le_bytes());
    let _ = pin.write(INFO, &info);
    page.protect(Prot::Read)
}

/// Maps the two writable ranges: the first data stack with the data, and the rest of bss with the
/// heap.
fn map_writable(
    pin: &Pin<'_>,
    image: &ImageInner,
    heap: (u32, u32),
    seat: Option<&Seat>,
) -> Result<(), MapError> {
    let layout = image.text.layout();
    if let Some(seat) = seat {
        // The image's own data stack is nobody's.
        let (file, at) = seat.memory().file(layout.data);
        return pin
            .part(layout.data, heap.1)
            .share(Prot::ReadWrite, file, at);
    }
    let (file, at) = image.text.file(layout.stack);
    let first = pin.part(layout.stack, layout.data_file_end);
    first.map_file(Prot::ReadWrite, file, at)?;
    pin.part(layout.data_file_end, heap.1).map(Prot::ReadWrite)
}
