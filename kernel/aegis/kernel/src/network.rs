//! Frames: from the device to whom they are for, and to it.
//!
//! What arrives is written by the device to the kernel's own pages, and copied from there: no
//! binding stands between a device and memory. What is sent is read by it where it is, in pages
//! that are lent meanwhile.
//!
//! Arrivals are worked off on processor 0, so many in a slice's time: then the device is asked for
//! no more interrupts until the next tick, so that a flood leaves environments their time.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::device::{FRAME, OWN_FRAME, PIECES};
use postern_aegis_abi::{Context, Error, PAGE};
use postern_aegis_books::Hardware;
use postern_aegis_virtio::{Buffer, Refusal};
use spin::Once;
use spin::mutex::Mutex;

use crate::boot::say;
use crate::hardware::device::{self, Channel, Device};
use crate::hardware::{interrupts, registers, window};
use crate::machine::{Here, books, hold};
use crate::{filters, handlers};

/// Where a frame begins in its page: behind the device's header, at a multiple of eight.
pub const AT: usize = 16;
/// Bytes that the device puts before each frame, and that stand before each frame for it.
const HEADER: usize = 12;
/// The device's address can be read (a bit of features).
const HAS_ADDRESS: u64 = 1 << 5;
/// Descriptors of each queue.
const SIZE: u16 = 256;

/// Frames that can be under way to the device, and how many of these places are kept for who has
/// none under way.
const PLACES: usize = 32;
const KEPT: usize = 8;
/// With fewer frames under way the device does not interrupt for those that it is done with: nobody
/// waits for a place, and they are taken back with the next frame, or at a tick.
const QUIET: usize = 4;
/// Bytes of a place, for frames that are copied.
const ROOM: usize = PAGE / 2;
/// Frames that are worked off in a slice's time.
const AT_ONCE: u32 = 64;
/// Seconds in which the device takes nothing of what is under way: then it is reset.
const PATIENCE: u64 = 5;

struct Network {
    device: &'static Device,
    arrivals: Mutex<Arrivals>,
    departures: Mutex<Departures>,
    /// Frames that may still be worked off before the next tick.
    left: AtomicU32,
}

struct Arrivals {
    channel: Channel,
    /// The page of each chain.
    pages: [u32; SIZE as usize],
}

/// A frame that is under way.
#[derive(Clone, Copy, Default)]
struct Departure {
    owner: u16,
    birth: u32,
    lent: [u32; PIECES],
    pieces: usize,
}

struct Departures {
    channel: Channel,
    /// Zeros that stand before each frame; places for frames are behind them.
    first: u32,
    places: [Option<Departure>; PLACES],
    /// How many of them are free.
    free: usize,
    /// The place of each chain.
    of: [u8; SIZE as usize],
    /// When the device took something last, or nothing was under way, in cycles.
    moved: u64,
    nonsense: u64,
}

static NETWORK: Once<Network> = Once::new();

/// Looks for the network's device, and starts it.
pub fn start() {
    let Some(device) = Device::of(device::NETWORK) else {
        return;
    };
    match open(device) {
        Ok(network) => {
            let record = &books().machine.network;
            let byte = |index: u32| u64::from(device.word(index, 1) & 0xff) << (8 * index);
            record.address.store((0..6).map(byte).sum(), Relaxed);
            record.there.store(1, Relaxed);
            NETWORK.call_once(|| network);
        }
        Err(why) => say(format_args!("aegis: the network's device: {why:?}")),
    }
}

fn open(device: &'static Device) -> Result<Network, Refusal> {
    device.start(HAS_ADDRESS, 0, interrupts::NETWORK)?;
    let mut arrivals = Arrivals {
        channel: device.channel(0, SIZE)?,
        pages: [0; SIZE as usize],
    };
    let departures = Departures {
        channel: device.channel(1, SIZE)?,
        first: device::take_pages((1 + PLACES * ROOM / PAGE) as u64).ok_or(Refusal::Queue)?,
        places: [None; PLACES],
        free: PLACES,
        of: [0; SIZE as usize],
        moved: 0,
        nonsense: 0,
    };
    device.go();
    window::buffers().for_each(|page| arrivals.lend(page));
    arrivals.channel.notify();
    Ok(Network {
        device,
        arrivals: Mutex::new(arrivals),
        departures: Mutex::new(departures),
        left: AtomicU32::new(AT_ONCE),
    })
}

/// The device has something. On processor 0.
pub fn interrupt() {
    if let Some(network) = NETWORK.get() {
        hold(&network.departures).take_back();
        network.receive();
    }
}

/// Looks for what is due, on processor 0 after each slice or some of them: an interrupt may have
/// been lost, or not been wanted.
pub fn look() {
    let Some(network) = NETWORK.get() else {
        return;
    };
    network.left.store(AT_ONCE, Relaxed);
    let dead = {
        let mut departures = hold(&network.departures);
        departures.take_back();
        departures.is_stuck()
    };
    network.receive();
    network.tell_nonsense();
    if dead || hold(&network.arrivals).channel.queue().is_dead() {
        network.renew();
    }
}

impl Network {
    /// Works off frames that came.
    fn receive(&self) {
        let mut some = false;
        while let Some((page, length)) = self.next() {
            arrive(page, length);
            hold(&self.arrivals).lend(page);
            some = true;
        }
        if some {
            hold(&self.arrivals).channel.notify();
        }
    }

    /// The next frame: its page, and its length.
    fn next(&self) -> Option<(u32, usize)> {
        let mut arrivals = hold(&self.arrivals);
        let left = self.left.load(Relaxed);
        arrivals.channel.set_quiet(left == 0);
        if left == 0 {
            return None;
        }
        let done = arrivals.channel.take()?;
        self.left.store(left - 1, Relaxed);
        let page = arrivals.pages[usize::from(done.chain)];
        Some((page, (done.length as usize).saturating_sub(HEADER)))
    }

    /// Counts what the device said without sense, for everybody to read.
    fn tell_nonsense(&self) {
        let departures = hold(&self.departures);
        let nonsense = departures.nonsense + departures.channel.queue().nonsense();
        drop(departures);
        let nonsense = nonsense + hold(&self.arrivals).channel.queue().nonsense();
        let record = &books().machine.network.nonsense;
        record.store(nonsense, Relaxed);
    }

    /// Begins anew with a device that talks nonsense, or says nothing.
    fn renew(&self) {
        let mut arrivals = hold(&self.arrivals);
        let mut departures = hold(&self.departures);
        let record = &books().machine.network;
        // If it does not come to rest, it has what it was lent for good.
        if self.device.rest().is_err() {
            record.there.store(0, Relaxed);
            departures.moved = registers::time();
            return;
        }
        let nonsense = arrivals.channel.queue().nonsense() + departures.channel.queue().nonsense();
        departures.nonsense += nonsense;
        while let Some(chain) = departures.channel.end() {
            departures.done(chain);
        }
        departures.moved = registers::time();
        let begun = self
            .device
            .start(HAS_ADDRESS, 0, interrupts::NETWORK)
            .and_then(|_| arrivals.channel.renew())
            .and_then(|()| departures.channel.renew());
        record.there.store(begun.is_ok().into(), Relaxed);
        if begun.is_ok() {
            self.device.go();
            window::buffers().for_each(|page| arrivals.lend(page));
            arrivals.channel.notify();
        }
    }
}

impl Arrivals {
    /// Lends the device a page for a frame.
    fn lend(&mut self, page: u32) {
        let buffer = Buffer {
            address: (u64::from(page) << 12) + (AT - HEADER) as u64,
            length: (HEADER + FRAME.end()) as u32,
            written: true,
        };
        if let Some(chain) = self.channel.add(&[buffer]) {
            self.pages[usize::from(chain)] = page;
        }
    }
}

/// A frame lies in one of the pages in which frames arrive.
fn arrive(page: u32, length: usize) {
    let time = registers::time();
    let record = &books().machine.network;
    record.arrived.fetch_add(1, Relaxed);
    let filled = &FILLED[page.wrapping_sub(window::buffers().start) as usize % FILLED.len()];
    filled.fetch_max(length as u32, Relaxed);
    // What says that this machine has sent it has not: that comes back without the device.
    let own = record.address.load(Relaxed);
    if !FRAME.contains(&length) || address_at(page, AT + 6) == own {
        record.unclaimed.fetch_add(1, Relaxed);
        return;
    }
    match filters::find(page, AT, length) {
        Some(endpoint) => deliver(endpoint, page, length, time),
        None => _ = record.unclaimed.fetch_add(1, Relaxed),
    }
}

/// By page in which frames arrive: the longest frame since the page was cleared behind one.
static FILLED: [AtomicU32; window::BUFFERS as usize] =
    [const { AtomicU32::new(0) }; window::BUFFERS as usize];

/// Clears what earlier frames have left behind a frame: its handler sees all of the page.
fn clear_behind(page: u32, length: usize) {
    let filled = &FILLED[page.wrapping_sub(window::buffers().start) as usize % FILLED.len()];
    let end = AT + filled.swap(length as u32, Relaxed) as usize;
    let words = Here.words(page);
    let from = AT + length;
    if let (Some(word), 1..) = (words.get(from / 8), from % 8) {
        word.fetch_and((1 << (8 * (from % 8))) - 1, Relaxed);
    }
    let behind = from.div_ceil(8)..end.min(PAGE).div_ceil(8);
    for word in words.get(behind).unwrap_or_default() {
        word.store(0, Relaxed);
    }
}

/// A frame goes to an endpoint: its handler, then its ring.
///
/// Its number is believed together with its age: the frame is no other's who gets the number
/// meanwhile.
fn deliver((endpoint, age): (usize, u64), page: u32, length: usize, time: u64) {
    let holding = books().holding(endpoint);
    let handler = {
        let _lock = books().lock_holdings();
        if !books().is_bound(endpoint, age) {
            return;
        }
        holding.arrived.fetch_add(1, Relaxed);
        holding.handler.load(Relaxed)
    };
    if handler != 0 {
        clear_behind(page, length);
    }
    if handler != 0 && handlers::run((endpoint, age), page, AT, length) {
        return;
    }
    let _lock = books().lock_holdings();
    if !books().is_bound(endpoint, age) {
        return;
    }
    device::with_frame(page, AT, length, |frame| tell(endpoint, frame, time));
}

/// A frame goes to the ring of an endpoint that is there. The lock of holdings is held.
fn tell(endpoint: usize, frame: &[u8], time: u64) {
    let holding = books().holding(endpoint);
    let owner = (holding.owner.load(Relaxed), holding.birth.load(Relaxed));
    let what = frame.len() as u64 | (endpoint as u64) << 32;
    let told = match holding.ring.load(Relaxed) {
        0 => Err(Error::Exhausted),
        ring => books().tell(owner, ring, (what, time), Some(frame)),
    };
    match told {
        Ok(()) => books().raise(owner.0, Context::EVENT_NETWORK),
        Err(_) => _ = holding.lost.fetch_add(1, Relaxed),
    }
}

/// The call: sends a frame that is gathered from pages.
pub fn send(caller: u16, pieces: u64, count: u64) -> Result<u64, Error> {
    let network = NETWORK.get().ok_or(Error::NoDevice)?;
    let count = usize::try_from(count).map_err(|_| Error::Argument)?;
    let mut words = [0; 3 * PIECES];
    let words = words
        .get_mut(..3 * count.min(PIECES + 1))
        .ok_or(Error::Argument)?;
    books().read_words(caller, pieces, words)?;
    let mut buffers = [Buffer::default(); 1 + PIECES];
    let mut length = 0;
    for (buffer, words) in buffers[1..].iter_mut().zip(words.chunks_exact(3)) {
        let &[place, bytes, _] = words else { continue };
        let offset = place % PAGE as u64;
        if bytes == 0 || bytes > PAGE as u64 - offset || place >> 44 != 0 {
            return Err(Error::Argument);
        }
        *buffer = Buffer {
            address: place,
            length: bytes as u32,
            written: false,
        };
        length += bytes as usize;
    }
    if !(*FRAME.start()..=OWN_FRAME).contains(&length) {
        return Err(Error::Argument);
    }
    let mut departure = Departure::default();
    let result = words.chunks_exact(3).try_for_each(|words| {
        let &[place, _, capability] = words else {
            return Err(Error::Argument);
        };
        let page = (place >> 12) as u32;
        books().lend(caller, page, false, capability)?;
        departure.lent[departure.pieces] = page;
        departure.pieces += 1;
        Ok(())
    });
    if result.is_ok() && comes_back(&buffers[1]) {
        come_back(&buffers[1..=count], length);
        departure.take_back();
        return Ok(0);
    }
    let result = result.and_then(|()| {
        if !FRAME.contains(&length) {
            return Err(Error::Argument);
        }
        let mut departures = hold(&network.departures);
        let place = departures.place(caller)?;
        departure.owner = caller;
        departure.birth = place.1;
        departures.go(place.0, departure, &mut buffers[..=count])
    });
    if result.is_err() {
        departure.take_back();
    }
    result.map(|()| 0)
}

/// The address of Ethernet whose bytes begin at an offset in a page.
fn address_at(page: u32, at: usize) -> u64 {
    let words = Here.words(page);
    let word = |index: usize| words.get(index).map_or(0, |word| word.load(Relaxed));
    let (index, bits) = (at / 8, 8 * (at % 8));
    let (low, high) = (word(index) >> bits, word(index + 1) << 1 << (63 - bits));
    (low | high) << 16 >> 16
}

/// Whether a frame whose first piece this is goes to this machine itself.
fn comes_back(first: &Buffer) -> bool {
    let (page, at) = ((first.address >> 12) as u32, first.address as usize % PAGE);
    first.length >= 6 && address_at(page, at) == books().machine.network.address.load(Relaxed)
}

/// The bytes of pieces of lent pages.
fn gather(pieces: &[Buffer], frame: &mut [u8]) {
    let bytes = pieces.iter().flat_map(|piece| {
        let words = Here.words((piece.address >> 12) as u32);
        let from = piece.address as usize % PAGE;
        (from..from + piece.length as usize).map(move |at| {
            let word = words.get(at / 8).map_or(0, |word| word.load(Relaxed));
            (word >> (8 * (at % 8))) as u8
        })
    });
    frame
        .iter_mut()
        .zip(bytes)
        .for_each(|(to, byte)| *to = byte);
}

/// A frame for this machine itself while it is looked at.
static OWN: Mutex<[u8; OWN_FRAME]> = Mutex::new([0; OWN_FRAME]);

/// A frame of this machine's for itself goes to the ring of who wants it. Handlers are for what
/// arrives: they run on processor 0.
#[inline(never)]
fn come_back(pieces: &[Buffer], length: usize) {
    let (record, time) = (&books().machine.network, registers::time());
    let mut room = hold(&OWN);
    let frame = &mut room[..length];
    gather(pieces, frame);
    record.arrived.fetch_add(1, Relaxed);
    match filters::find_of(frame) {
        Some(found) => {
            let _lock = books().lock_holdings();
            if books().is_bound(found.0, found.1) {
                books().holding(found.0).arrived.fetch_add(1, Relaxed);
                tell(found.0, frame, time);
            }
        }
        None => _ = record.unclaimed.fetch_add(1, Relaxed),
    }
}

/// Sends a frame that is copied, for `owner`, among whose frames it counts.
pub fn reply(owner: u16, frame: &[u8]) -> Result<(), Error> {
    let network = NETWORK.get().ok_or(Error::NoDevice)?;
    if !FRAME.contains(&frame.len()) {
        return Err(Error::Argument);
    }
    let mut departures = hold(&network.departures);
    let (place, birth) = departures.place(owner)?;
    let offset = place * ROOM;
    let page = departures.first + 1 + (offset / PAGE) as u32;
    Here.store(page, offset % PAGE, frame);
    let departure = Departure {
        owner,
        birth,
        ..Departure::default()
    };
    let copied = Buffer {
        address: (u64::from(page) << 12) + (offset % PAGE) as u64,
        length: frame.len() as u32,
        written: false,
    };
    departures.go(place, departure, &mut [Buffer::default(), copied])
}

impl Departure {
    fn take_back(&self) {
        for &page in &self.lent[..self.pieces] {
            books().take_back(page);
        }
    }
}

impl Departures {
    /// A free place for a frame of an environment's, which counts it from now on, and the
    /// environment's birth.
    fn place(&mut self, owner: u16) -> Result<(usize, u32), Error> {
        self.take_back();
        if books().machine.network.there.load(Relaxed) == 0 {
            return Err(Error::NoDevice);
        }
        let place = self.places.iter().position(Option::is_none);
        let birth = books().begin_frame(owner, self.free <= KEPT)?;
        match place {
            Some(place) if self.channel.queue().room() > PIECES => Ok((place, birth)),
            _ => {
                books().cancel_frame(owner, birth);
                Err(Error::Again)
            }
        }
    }

    /// Hands a frame to the device, from a place that was found free. The first buffer is the
    /// device's header.
    fn go(
        &mut self,
        place: usize,
        departure: Departure,
        buffers: &mut [Buffer],
    ) -> Result<(), Error> {
        buffers[0] = Buffer {
            address: u64::from(self.first) << 12,
            length: HEADER as u32,
            written: false,
        };
        let quiet = self.channel.queue().under_way() < QUIET;
        self.channel.set_quiet(quiet);
        let Some(chain) = self.channel.add(buffers) else {
            books().cancel_frame(departure.owner, departure.birth);
            return Err(Error::Again);
        };
        self.of[usize::from(chain)] = place as u8;
        self.places[place] = Some(departure);
        self.free -= 1;
        self.channel.notify();
        Ok(())
    }

    /// Takes back what the device is done with.
    fn take_back(&mut self) {
        while let Some(done) = self.channel.take() {
            self.moved = registers::time();
            self.done(done.chain);
            books().machine.network.sent.fetch_add(1, Relaxed);
        }
    }

    /// The device is done with a chain, or never will be.
    fn done(&mut self, chain: u16) {
        let place = usize::from(self.of[usize::from(chain)]);
        if let Some(departure) = self.places[place].take() {
            self.free += 1;
            departure.take_back();
            // Of a frame that a handler sent nobody waits for its pages.
            match departure.pieces {
                0 => books().cancel_frame(departure.owner, departure.birth),
                _ => books().end_frame(departure.owner, departure.birth),
            }
        }
    }

    /// Whether the device talks nonsense, or has taken nothing for long.
    fn is_stuck(&mut self) -> bool {
        let now = registers::time();
        if self.channel.queue().under_way() == 0 {
            self.moved = now;
        }
        let patience = PATIENCE * books().machine.clock.frequency.load(Relaxed).max(1 << 30);
        self.channel.queue().is_dead() || now.wrapping_sub(self.moved) > patience
    }
}
