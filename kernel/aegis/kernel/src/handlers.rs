//! Code that runs when a message arrives: the judge's word on it, its pages, its runs, what it may
//! ask the kernel.
//!
//! Handlers run on processor 0, where messages arrive, with interrupts off if their longest path is
//! short, and otherwise with interrupts on and a clock that ends them.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use postern_aegis_abi::call::MANY;
use postern_aegis_abi::handler::SERVICES;
use postern_aegis_abi::records::run as ending;
use postern_aegis_abi::{Context, Error, Mapping, PAGE};
use postern_aegis_books::{Code, Hardware, Run};
use postern_kernel_judge::{ACCEPTED, OUT_OF_MEMORY, Parts, exports, image_with_parts, imports};

use crate::hardware::arena;
use crate::hardware::handler::{self, Entrance};
use crate::hardware::registers;
use crate::machine::{Here, books};
use crate::{filters, network};

/// What a handler exports: `long message(const void *, unsigned long length, unsigned long
/// endpoint)`. 1: the message is done with; otherwise it goes on to the ring.
const ENTRY: &str = "message";

/// Instructions on the longest path of a handler that runs with interrupts off.
const SHORT: u32 = 16_384;

/// Pages of slots and text that a handler has at most, the table and its links among them.
const PAGES: usize = 18;

/// Services that one run may ask for, and frames among them.
const ASKS: u32 = 64;
const FRAMES: u32 = 8;

/// The handler that runs; 0: none.
static RUNNING: AtomicU32 = AtomicU32::new(0);
/// What it has asked for so far, and frames.
static ASKED: AtomicU32 = AtomicU32::new(0);
static SENT: AtomicU32 = AtomicU32::new(0);
/// Whose it is, and its window's table.
static OWNER: AtomicU32 = AtomicU32::new(0);
static TABLE: AtomicU32 = AtomicU32::new(0);

/// The call: a handler of an image.
pub fn make(caller: u16, arguments: [u64; 6]) -> Result<u64, Error> {
    let [address, length, pages_at, count, _, _] = arguments;
    let mut numbers = [0; PAGES];
    let numbers = usize::try_from(count)
        .ok()
        .filter(|&count| count as u64 <= MANY)
        .and_then(|count| numbers.get_mut(..count))
        .ok_or(Error::Argument)?;
    books().read_words(caller, pages_at, numbers)?;
    let mut pages = [0; PAGES];
    for (page, &number) in pages.iter_mut().zip(numbers.iter()) {
        *page = books().number(number)?;
    }
    let mut room = arena::hold(|| Here.poll());
    let file = usize::try_from(length)
        .ok()
        .and_then(|length| room.image(length));
    let file = file.ok_or(Error::Argument)?;
    books().read_bytes(caller, address, file)?;
    let file = &*file;
    let (verdict, parts) = filters::paid(caller, || image_with_parts(file));
    match verdict.verdict {
        ACCEPTED => {}
        OUT_OF_MEMORY => return Err(Error::Exhausted),
        _ => return Err(Error::Argument),
    }
    let slots = slots(file, &parts)?;
    let code = Code {
        from: parts.gates,
        to: parts.text_end,
        entry: entry(file)?,
        stack: parts.stack + parts.stack_size,
        path: verdict.longest_path,
    };
    let text = &file[parts.text_file as usize..][..parts.text_size as usize];
    let fill = |index: usize, page: u32| {
        let from = index * PAGE;
        let slots_end = (parts.text - parts.gates) as usize;
        let mut bytes = [0xcc; PAGE];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = match (from + at).checked_sub(slots_end) {
                Some(at) => text.get(at).copied().unwrap_or(0xcc),
                None => slots.byte(from + at),
            };
        }
        Here.store(page, 0, &bytes);
    };
    books()
        .make_handler(caller, &pages[..numbers.len()], &code, fill)
        .map(|number| number as u64)
}

/// The services that an image's slots lead to.
struct Slots {
    services: [u8; Slots::MOST],
    count: usize,
}

impl Slots {
    /// More imports than there are services: the same one twice is allowed.
    const MOST: usize = 32;

    /// A byte of the pages of slots.
    fn byte(&self, at: usize) -> u8 {
        match self.services[..self.count].get(at / 32) {
            Some(&service) => handler::slot(service.into())[at % 32],
            None => 0xcc,
        }
    }
}

/// Finds the services that an accepted image imports.
fn slots(file: &[u8], parts: &Parts) -> Result<Slots, Error> {
    let mut slots = Slots {
        services: [0; Slots::MOST],
        count: 0,
    };
    let mut found = parts.imports as usize <= Slots::MOST;
    let each = |name: &str, _| {
        let service = SERVICES.iter().position(|known| known.name == name);
        match (service, slots.services.get_mut(slots.count)) {
            (Some(service), Some(slot)) => {
                *slot = service as u8;
                slots.count += 1;
            }
            _ => found = false,
        }
    };
    if !imports(file, each) {
        return Err(Error::Exhausted);
    }
    found.then_some(slots).ok_or(Error::Argument)
}

/// Where an accepted image is entered.
fn entry(file: &[u8]) -> Result<u32, Error> {
    let mut entry = None;
    if !exports(file, |name, offset| {
        if name == ENTRY {
            entry = Some(offset);
        }
    }) {
        return Err(Error::Exhausted);
    }
    entry.ok_or(Error::Argument)
}

/// The call: binds a page in a handler's window.
pub fn window(caller: u16, arguments: [u64; 6]) -> Result<u64, Error> {
    let [holding, offset, mapping, capability, _, _] = arguments;
    books()
        .window(caller, holding, offset, Mapping(mapping), capability)
        .map(|()| 0)
}

/// A message has come for an endpoint of this number and age: its handler runs, if it has one. The message lies at an
/// offset in a page of the kernel's own. Whether that is all: otherwise it goes on to the ring.
/// No lock is held.
pub fn run(endpoint: (usize, u64), page: u32, offset: usize, length: usize) -> bool {
    let run = {
        let _holdings = books().lock_holdings();
        let Some(run) = books().handler_of(endpoint) else {
            return false;
        };
        // Before the lock is given back: whoever ends it waits from now on.
        RUNNING.store(run.handler as u32, Release);
        run
    };
    let (time, result) = enter(&run, (page, offset, length), endpoint.0);
    books().has_run(&run, time, result.err());
    RUNNING.store(0, Release);
    result == Ok(1)
}

/// Runs a handler: how long it took, and what it returned.
fn enter(
    run: &Run,
    message: (u32, usize, usize),
    endpoint: usize,
) -> (u64, Result<u64, (u32, u64)>) {
    ASKED.store(0, Relaxed);
    SENT.store(0, Relaxed);
    OWNER.store(run.owner.into(), Relaxed);
    TABLE.store(run.table, Relaxed);
    let entrance = Entrance {
        window: run.handler,
        table: run.table,
        entry: run.entry,
        stack: run.stack,
        loops: run.path == 0 || run.path > SHORT,
    };
    let runs = || handler::enter(&entrance, message, endpoint);
    match entrance.loops {
        true => handler::stopped(runs),
        false => handler::short(runs),
    }
}

/// Waits until a handler does not run.
pub fn wait_for(handler: usize) {
    while RUNNING.load(Acquire) == handler as u32 {
        Here.poll();
        core::hint::spin_loop();
    }
}

/// A service: its arguments, and what the handler gets. An argument that makes no sense ends it.
type Service = fn(&[u64; 6]) -> Result<u64, Ends>;

/// The handler is to end, for an argument that no handler has a reason to give.
struct Ends;

/// What handlers may import, in the order of the table.
const SERVICE: [Service; SERVICES.len()] = [send, put, raise, now];

/// `handler.s` calls this for a slot: the service's number stands in it.
#[unsafe(no_mangle)]
extern "C" fn kernel_service(arguments: &[u64; 6], number: u32) -> u64 {
    let result = match SERVICE.get(number as usize) {
        Some(service) if ASKED.fetch_add(1, AcqRel) < ASKS => service(arguments),
        _ => Err(Ends),
    };
    result.unwrap_or_else(|Ends| {
        handler::end(ending::SERVICE);
        0
    })
}

fn owner() -> u16 {
    OWNER.load(Relaxed) as u16
}

/// Bytes of the window of the handler that runs.
fn bytes(at: u64, to: &mut [u8]) -> Result<(), Ends> {
    // Pointers are offsets in the lower half.
    let at = u64::from(at as u32);
    let read = books().read_window(TABLE.load(Relaxed), at, to);
    read.map_err(|_| Ends)
}

fn said(result: Result<(), Error>) -> Result<u64, Ends> {
    Ok(result.map_or_else(|error| error as i64 as u64, |()| 0))
}

/// `long send(const void *frame, unsigned long length)`: 0, or an error below zero.
fn send(arguments: &[u64; 6]) -> Result<u64, Ends> {
    let [at, length, ..] = *arguments;
    let mut frame = [0; *postern_aegis_abi::device::FRAME.end()];
    let frame = usize::try_from(length)
        .ok()
        .and_then(|length| frame.get_mut(..length))
        .ok_or(Ends)?;
    bytes(at, frame)?;
    if SENT.fetch_add(1, Relaxed) >= FRAMES {
        return said(Err(Error::Again));
    }
    said(network::reply(owner(), frame))
}

/// `long put(unsigned long place, unsigned long capability, const void *, unsigned long length)`:
/// copies bytes to a page of the owner's or of one who gave it a capability; 0, or an error below
/// zero.
fn put(arguments: &[u64; 6]) -> Result<u64, Ends> {
    const PIECE: usize = 512;
    let [place, capability, at, length, ..] = *arguments;
    let offset = place as usize % PAGE;
    let length = usize::try_from(length).map_err(|_| Ends)?;
    if length > PAGE - offset {
        return Err(Ends);
    }
    let mut piece = [0; PIECE];
    for done in (0..length).step_by(PIECE) {
        let piece = &mut piece[..PIECE.min(length - done)];
        bytes(at + done as u64, piece)?;
        let put = books().put(owner(), place + done as u64, capability, piece);
        if put.is_err() {
            return said(put);
        }
    }
    Ok(0)
}

/// `long raise(void)`: tells the owner, as an event.
fn raise(_arguments: &[u64; 6]) -> Result<u64, Ends> {
    books().raise(owner(), Context::EVENT_HANDLER);
    Ok(0)
}

/// `long now(void)`: the processor's counter of cycles.
fn now(_arguments: &[u64; 6]) -> Result<u64, Ends> {
    Ok(registers::time())
}
