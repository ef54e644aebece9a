//! Devices of virtio's on the bus: their registers, and their queues in the kernel's own pages.
//!
//! A device reaches all memory, so what it is lent is what it can change: [`Channel::add`] lends
//! for writing only what is nobody's object of Rust, which is all memory behind the kernel's own.
//! Which page of that it may be is the books' decision.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use postern_aegis_abi::PAGE;
use postern_aegis_virtio::{
    Area, Buffer, Capabilities, Done, Pages, Place, Queue, Refusal, Registers, capabilities, device,
};
use spin::Once;

use super::loader::Range;
use super::memory::{self, Taken};
use super::pci::{self, Function};
use super::window;

/// Kinds of devices (section 5).
pub const NETWORK: u16 = 1;
/// A disk.
pub const DISK: u16 = 2;

/// Pages that devices' queues and buffers are made of, if there is a device.
pub const PAGES: u64 = 96;
/// Bytes of a part of the registers that are looked at.
const MOST: u32 = 1 << 16;
/// Where the kernel sees memory, physical addresses are below this.
const BEYOND: u64 = 1 << 45;

/// A device on the bus whose registers have been found.
#[derive(Clone, Copy)]
pub struct Found {
    kind: u16,
    function: Function,
    capabilities: Capabilities,
    /// By [`Area`], and then the table of vectors.
    ranges: [Range; 5],
}

impl Found {
    /// Looks for a device. Its registers must not lie where memory is.
    pub fn look(kind: u16, memory: &[Range]) -> Option<Found> {
        let function = pci::find(kind)?;
        let capabilities = capabilities::read(|at| function.read(at))?;
        let mut ranges = [Range::default(); 5];
        let places = capabilities.areas.iter().chain([&capabilities.vectors]);
        for (range, place) in ranges.iter_mut().zip(places) {
            *range = behind(&function, place)?;
            let apart = |other: &Range| range.to <= other.from || other.to <= range.from;
            let controller = Range {
                from: memory::CONTROLLER,
                to: memory::CONTROLLER + PAGE as u64,
            };
            if !memory.iter().chain([&controller]).all(apart) || range.to > BEYOND {
                return None;
            }
        }
        Some(Found {
            kind,
            function,
            capabilities,
            ranges,
        })
    }

    /// The registers' ranges, which the kernel's tables must show.
    pub fn ranges(&self) -> impl Iterator<Item = Range> + '_ {
        self.ranges.iter().copied()
    }
}

/// The addresses of a place.
fn behind(function: &Function, place: &Place) -> Option<Range> {
    let base = function.base(place.base)?;
    let from = base.from.checked_add(place.offset.into())?;
    let to = from.checked_add(place.length.min(MOST).into())?;
    (to <= base.to && place.length != 0).then_some(Range { from, to })
}

/// Registers that the kernel's tables show.
struct Window {
    at: u64,
    bytes: u32,
}

impl Window {
    /// Whether so many bytes at an offset are registers.
    fn has(&self, offset: u32, bytes: u32) -> bool {
        let end = offset.checked_add(bytes);
        offset.is_multiple_of(bytes) && end.is_some_and(|end| end <= self.bytes)
    }

    fn read(&self, offset: u32, bytes: u32) -> u32 {
        if !self.has(offset, bytes) {
            return u32::MAX;
        }
        let at = self.at + u64::from(offset);
        // SAFETY: within the window, which is mapped uncached since `Started::new` found it among
        // the ranges; a register's reading changes nothing but the device.
        unsafe {
            match bytes {
                1 => (at as *const u8).read_volatile().into(),
                2 => (at as *const u16).read_volatile().into(),
                _ => (at as *const u32).read_volatile(),
            }
        }
    }

    fn write(&self, offset: u32, bytes: u32, value: u32) {
        if !self.has(offset, bytes) {
            return;
        }
        let at = self.at + u64::from(offset);
        // SAFETY: as above; that the device reaches no memory by it that it was not given is
        // `Device`'s promise, which alone has windows.
        unsafe {
            match bytes {
                1 => (at as *mut u8).write_volatile(value as u8),
                2 => (at as *mut u16).write_volatile(value as u16),
                _ => (at as *mut u32).write_volatile(value),
            }
        }
    }
}

/// A device's registers.
struct Areas([Window; 4]);

impl Registers for Areas {
    fn read(&self, area: Area, offset: u32, bytes: u32) -> u32 {
        self.0[area as usize].read(offset, bytes)
    }

    fn write(&self, area: Area, offset: u32, bytes: u32, value: u32) {
        self.0[area as usize].write(offset, bytes, value);
    }
}

/// A device that is used.
pub struct Device {
    areas: Areas,
    vectors: Window,
    multiplier: u32,
    function: Function,
    switch: u8,
}

static DEVICES: [Once<Device>; 2] = [const { Once::new() }; 2];

/// Makes a device usable whose ranges the kernel's tables show.
pub fn open(found: &Found) {
    let window = |range: &Range| Window {
        at: memory::PHYSICAL + range.from,
        bytes: (range.to - range.from) as u32,
    };
    let [common, notify, interrupt, device, vectors] = found.ranges.each_ref().map(window);
    DEVICES[usize::from(found.kind != NETWORK)].call_once(|| Device {
        areas: Areas([common, notify, interrupt, device]),
        vectors,
        multiplier: found.capabilities.multiplier,
        function: found.function,
        switch: found.capabilities.switch,
    });
}

/// Takes pages for devices' queues and buffers, if there is a device: the last that the kernel
/// takes.
pub fn give_pages(taken: &mut Taken) {
    if DEVICES.iter().any(|device| device.get().is_some()) {
        LENT.store(taken.next, Relaxed);
        NEXT.store(taken.next, Relaxed);
        (0..PAGES).for_each(|_| _ = taken.page());
        END.store(taken.next, Relaxed);
    }
}

/// From here on memory is nobody's object of Rust; and which of it is not taken yet for devices.
static LENT: AtomicU64 = AtomicU64::new(u64::MAX);
static NEXT: AtomicU64 = AtomicU64::new(0);
static END: AtomicU64 = AtomicU64::new(0);

/// Takes pages for queues and buffers, one behind the other: the first one's number. At the start
/// only, of a fixed number.
pub fn take_pages(count: u64) -> Option<u32> {
    let bytes = count * PAGE as u64;
    let next = |next: u64| (next + bytes <= END.load(Relaxed)).then_some(next + bytes);
    let first = NEXT.fetch_update(Relaxed, Relaxed, next).ok()?;
    Some((first / PAGE as u64) as u32)
}

/// Whether a device may be lent memory to write to.
fn may_write(buffer: &Buffer) -> bool {
    let page = |address: u64| address / PAGE as u64;
    let Some(end) = buffer.address.checked_add(buffer.length.into()) else {
        return false;
    };
    let frames = window::buffers();
    let frames = u64::from(frames.start)..u64::from(frames.end);
    frames.contains(&page(buffer.address)) && frames.contains(&page(end.saturating_sub(1)))
        || buffer.address >= LENT.load(Relaxed) && end <= memory::end()
}

impl Device {
    /// A device of a kind, if the machine has one.
    pub fn of(kind: u16) -> Option<&'static Device> {
        DEVICES[usize::from(kind != NETWORK)].get()
    }

    /// Begins: features as [`device::start`] says, and an interrupt of this vector to this
    /// processor for all queues.
    pub fn start(&self, wanted: u64, needed: u64, vector: u8) -> Result<u64, Refusal> {
        self.function.switch_on(self.switch);
        let to = memory::CONTROLLER as u32 | super::interrupts::identity() << 12;
        for (offset, word) in [(0, to), (4, 0), (8, u32::from(vector)), (12, 0)] {
            self.vectors.write(offset, 4, word);
        }
        device::start(&self.areas, wanted, needed)
    }

    /// A queue, in fresh pages.
    pub fn channel(&'static self, number: u16, size: u16) -> Result<Channel, Refusal> {
        let first = take_pages(3).ok_or(Refusal::Queue)?;
        Channel::new(self, number, size, first)
    }

    /// Its queues are set: it goes.
    pub fn go(&self) {
        device::ready(&self.areas);
    }

    /// Brings it to rest.
    pub fn rest(&self) -> Result<(), Refusal> {
        device::reset(&self.areas)
    }

    /// A part of what is its kind's own: bytes of the device area.
    pub fn word(&self, offset: u32, bytes: u32) -> u32 {
        self.areas.read(Area::Device, offset, bytes)
    }
}

/// A queue of a device.
pub struct Channel {
    device: &'static Device,
    queue: Queue<'static>,
    number: u16,
    notify: u16,
    first: u32,
}

impl Channel {
    fn new(
        device: &'static Device,
        number: u16,
        size: u16,
        first: u32,
    ) -> Result<Channel, Refusal> {
        let [descriptors, available, used] = [0, 1, 2].map(|page| memory::words(first + page));
        let pages = Pages {
            descriptors,
            available,
            used,
        };
        let queue = Queue::new(pages, size).ok_or(Refusal::Queue)?;
        let pages = [0, 1, 2].map(|page| u64::from(first + page) << 12);
        let notify = device::set_queue(&device.areas, number, size, pages, 0)?;
        Ok(Channel {
            device,
            queue,
            number,
            notify,
            first,
        })
    }

    /// Begins anew, when the device was reset and agreed with again: nothing is under way.
    pub fn renew(&mut self) -> Result<(), Refusal> {
        *self = Channel::new(self.device, self.number, self.queue.size(), self.first)?;
        Ok(())
    }

    /// Lends a chain, as [`Queue::add`]. `None`, too, if a part is not to be written by devices.
    pub fn add(&mut self, buffers: &[Buffer]) -> Option<u16> {
        let fits = |buffer: &Buffer| !buffer.written || may_write(buffer);
        buffers.iter().all(fits).then(|| self.queue.add(buffers))?
    }

    /// Tells the device that something was added.
    pub fn notify(&self) {
        let multiplier = self.device.multiplier;
        device::notify(&self.device.areas, self.number, self.notify, multiplier);
    }

    /// The next chain that came back.
    pub fn take(&mut self) -> Option<Done> {
        self.queue.take()
    }

    /// Takes back a chain of a device that was reset.
    pub fn end(&mut self) -> Option<u16> {
        self.queue.end()
    }

    /// The queue, to be looked at.
    pub fn queue(&self) -> &Queue<'static> {
        &self.queue
    }

    /// Asks the device for no interrupts, or for some.
    pub fn set_quiet(&mut self, quiet: bool) {
        self.queue.set_quiet(quiet);
    }
}

/// Lets a function read a frame in one of the pages in which frames arrive, while the device does
/// not have it.
pub fn with_frame<T>(page: u32, at: usize, length: usize, read: impl FnOnce(&[u8]) -> T) -> T {
    let there = window::buffers().contains(&page) && at <= PAGE && length <= PAGE - at;
    let length = if there { length } else { 0 };
    let from = memory::words(page) as *const memory::Words as *const u8;
    // SAFETY: within a page in which frames arrive. The kernel itself never stores to it, and lends
    // it to the device again only when this has returned.
    read(unsafe { core::slice::from_raw_parts(from.add(at.min(PAGE)), length) })
}
