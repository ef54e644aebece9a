//! Requests to the disk: virtio's block device (section 5.2), asked for blocks of a page each.
//!
//! Who may ask for what is the books' decision, which also have the list of requests under way; a
//! request's place there is its header's place in a page of the kernel's. What the device answers
//! is believed as far as it names a chain that is under way: a status that is not its good one is
//! an error, and so is a block of which it says that it wrote less.

use postern_aegis_abi::device::{ALL_REQUESTS, Request};
use postern_aegis_abi::{Error, PAGE, call};
use postern_aegis_books::{Block, UnderWay};
use postern_aegis_virtio::{Buffer, Refusal};
use spin::mutex::Mutex;

use core::sync::atomic::Ordering::Relaxed;

use crate::boot::say;
use crate::hardware::device::{self, Channel, Device};
use crate::hardware::{interrupts, memory, registers};
use crate::machine::{books, hold};

/// It can be told to keep what was written (a bit of features).
const HAS_FLUSH: u64 = 1 << 9;
/// Descriptors: three a request.
const SIZE: u16 = 256;
const _: () = assert!(3 * ALL_REQUESTS <= SIZE as usize);

/// Bytes that a sector has, in which the device counts.
const SECTOR: u64 = 512;
const SECTORS: u64 = PAGE as u64 / SECTOR;

/// Words of a header's place: what, which sector, and what came of it.
const PLACE: usize = 4;
const HEADER: u32 = 16;
const _: () = assert!(PLACE * 8 * ALL_REQUESTS <= PAGE);

/// What the device is to do.
const READ: u64 = 0;
const WRITE: u64 = 1;
const FLUSH: u64 = 4;
/// It has done that.
const GOOD: u64 = 0;
/// What stands there before it has answered.
const UNANSWERED: u64 = 0xff;

/// Seconds in which the device is done with nothing of what is under way: then it is used no more.
const PATIENCE: u64 = 30;

struct Disk {
    device: &'static Device,
    channel: Channel,
    under_way: UnderWay,
    /// Each place's chain, and the request of each chain.
    places: [u8; SIZE as usize],
    asked: [Block; ALL_REQUESTS],
    /// The page of headers.
    headers: u32,
    /// How many are under way, and when, in cycles, the first of them was asked or one was done.
    count: usize,
    since: u64,
}

static DISK: Mutex<Option<Disk>> = Mutex::new(None);

/// Looks for the disk, and starts it.
pub fn start() {
    let Some(device) = Device::of(device::DISK) else {
        return;
    };
    match open(device) {
        Ok(disk) => {
            let half = |offset: u32| u64::from(device.word(offset, 4));
            let blocks = (half(0) | half(4) << 32) / SECTORS;
            if blocks != 0 {
                books().open_disk(blocks);
                *hold(&DISK) = Some(disk);
            }
        }
        Err(why) => say(format_args!("aegis: the disk: {why:?}")),
    }
}

fn open(device: &'static Device) -> Result<Disk, Refusal> {
    device.start(0, HAS_FLUSH, interrupts::DISK)?;
    let channel = device.channel(0, SIZE)?;
    let headers = device::take_pages(1).ok_or(Refusal::Queue)?;
    device.go();
    Ok(Disk {
        device,
        channel,
        under_way: UnderWay::new(),
        places: [0; SIZE as usize],
        asked: [Block::Flush; ALL_REQUESTS],
        headers,
        count: 0,
        since: 0,
    })
}

/// The disk is done with something. On processor 0.
pub fn interrupt() {
    if let Some(disk) = &mut *hold(&DISK) {
        disk.take_back();
    }
}

/// Looks on processor 0, at ticks and now and then: an interrupt may have been lost.
pub fn tick() {
    let mut held = hold(&DISK);
    let Some(disk) = &mut *held else {
        return;
    };
    disk.take_back();
    let patience = PATIENCE * books().machine.clock.frequency.load(Relaxed).max(1 << 30);
    let waited = registers::time().saturating_sub(disk.since);
    if disk.channel.queue().is_dead() || disk.count != 0 && waited > patience {
        say(format_args!(
            "aegis: the disk makes no sense: it is used no more"
        ));
        // Of one that does not come to rest, pages stay lent for good.
        if disk.device.rest().is_ok() {
            disk.end_all();
        }
        books().machine.disk.blocks.store(0, Relaxed);
        *held = None;
    }
}

/// The call: how many requests of an array were taken.
pub fn ask(caller: u16, requests: u64, count: u64) -> Result<u64, Error> {
    const BYTES: u64 = size_of::<Request>() as u64;
    if count > call::MANY {
        return Err(Error::Argument);
    }
    let _holdings = books().lock_holdings();
    let mut held = hold(&DISK);
    let disk = held.as_mut().ok_or(Error::NoDevice)?;
    let mut done = 0;
    let mut next = || {
        let at = requests.checked_add(done * BYTES).ok_or(Error::Argument)?;
        let mut words = [0; size_of::<Request>() / 8];
        books().read_words(caller, at, &mut words)?;
        disk.ask(caller, &Request::of(words))?;
        done += 1;
        Ok(())
    };
    let result = (0..count).try_for_each(|_| next());
    if done != 0 {
        disk.channel.notify();
    }
    match result {
        Err(error) if done == 0 => Err(error),
        _ => Ok(done),
    }
}

impl Disk {
    /// Asks the device, which is not told yet.
    fn ask(&mut self, caller: u16, request: &Request) -> Result<(), Error> {
        let (place, block) = books().take_request(&mut self.under_way, caller, request)?;
        match self.add(place, block) {
            Some(chain) => {
                self.places[usize::from(chain) % usize::from(SIZE)] = place as u8;
                self.asked[place] = block;
                if self.count == 0 {
                    self.since = registers::time();
                }
                self.count += 1;
                Ok(())
            }
            None => {
                books().forget_request(&mut self.under_way, place);
                Err(Error::Again)
            }
        }
    }

    fn add(&mut self, place: usize, block: Block) -> Option<u16> {
        let (what, sector) = match block {
            Block::Read(block, _) => (READ, block * SECTORS),
            Block::Write(block, _) => (WRITE, block * SECTORS),
            Block::Flush => (FLUSH, 0),
        };
        let words = &memory::words(self.headers)[place * PLACE..][..PLACE];
        for (word, value) in words.iter().zip([what, sector, UNANSWERED]) {
            word.store(value, Relaxed);
        }
        let at = u64::from(self.headers) << 12 | (place * PLACE * 8) as u64;
        let part = |address: u64, length: u32, written: bool| Buffer {
            address,
            length,
            written,
        };
        let header = part(at, HEADER, false);
        let status = part(at + u64::from(HEADER), 1, true);
        match block {
            Block::Read(_, page) | Block::Write(_, page) => {
                let data = part(u64::from(page) << 12, PAGE as u32, what == READ);
                self.channel.add(&[header, data, status])
            }
            Block::Flush => self.channel.add(&[header, status]),
        }
    }

    /// Takes what came back, and tells who asked.
    fn take_back(&mut self) {
        while let Some(done) = self.channel.take() {
            let place = usize::from(self.places[usize::from(done.chain) % usize::from(SIZE)]);
            let status = &memory::words(self.headers)[place * PLACE + 2];
            let reads = matches!(self.asked[place], Block::Read(..));
            let whole = !reads || done.length as usize > PAGE;
            let good = status.load(Relaxed) & 0xff == GOOD && whole;
            self.done(place, if good { Ok(()) } else { Err(Error::Failed) });
        }
        let record = &books().machine.disk;
        let nonsense = self.channel.queue().nonsense();
        record.nonsense.store(nonsense, Relaxed);
    }

    fn done(&mut self, place: usize, result: Result<(), Error>) {
        self.count -= 1;
        self.since = registers::time();
        books().machine.disk.done.fetch_add(1, Relaxed);
        books().request_is_done(&mut self.under_way, place, result);
    }

    /// The device uses no memory any more: all that was under way has failed.
    fn end_all(&mut self) {
        while let Some(chain) = self.channel.end() {
            let place = self.places[usize::from(chain) % usize::from(SIZE)];
            self.done(place.into(), Err(Error::Failed));
        }
    }
}
