//! From the loader's word to the first environment.

use core::fmt::Write;
use core::mem::offset_of;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use postern_aegis_abi::records::{Machine, Page};
use postern_aegis_abi::{Context, Error, Mapping, PAGE, ROOT, address, status};
use postern_aegis_books::{Books, Start};
use spin::Once;

use crate::hardware::device::Found;
use crate::hardware::loader::{Loaded, Range};
use crate::hardware::serial::{self, Console};
use crate::hardware::{
    descriptors, device, interrupts, loader, local, memory, others, port, provoke, registers,
    switch, window,
};
use crate::machine::{self, Here};
use crate::{clock, disk, network, panic};

/// A slice: nanoseconds, which are the clock's cycles under the emulator.
pub const SLICE: u32 = 1_000_000;

/// Words at the start of the boot package.
const PACKAGE_MAGIC: u64 = u64::from_le_bytes(*b"AEGISPKG");

static KEY: Once<[u8; 16]> = Once::new();
/// Processors that run.
static UP: AtomicU32 = AtomicU32::new(0);

/// The first processor comes here from `start.s`, on its boot stack, with the loader's tables.
#[unsafe(no_mangle)]
extern "C" fn kernel_first(start: u64) -> ! {
    serial::start();
    for (feature, there) in registers::required() {
        if !there {
            refuse(format_args!("the processor has no {feature}"));
        }
    }
    let loaded = loader::read(start);
    let (books, kernel) = make_books(&loaded);
    descriptors::fill_interrupts();
    interrupts::start_machine();
    start_processor(0, books);
    let (frequency, epoch) = clock::measure();
    names(&loaded.package);
    fill_books(books, &loaded, kernel);
    books.open_clock(frequency, epoch);
    network::start();
    disk::start();
    set_root(books).unwrap_or_else(|error| panic!("the root environment: {error}"));
    for processor in 1..loaded.processors {
        let up = || UP.load(Acquire) > processor as u32;
        let controller = loaded.controllers[processor];
        assert!(
            others::start(processor, controller, up),
            "processor {processor} does not start"
        );
    }
    let free = books.machine.free.load(Relaxed);
    say(format_args!(
        "aegis: {} processors, {free} pages free",
        loaded.processors
    ));
    if let Some(name) = loaded.provoke {
        provoke::provoke(name, books.environment(ROOT));
    }
    interrupts::start_clock(SLICE);
    switch::next()
}

/// Every other processor comes here from `start.s`.
#[unsafe(no_mangle)]
extern "C" fn kernel_other() -> ! {
    start_processor(UP.load(Acquire) as usize, machine::books());
    interrupts::start_clock(SLICE);
    switch::next()
}

/// Makes a processor ready for environments.
fn start_processor(processor: usize, books: &'static Books<'static, Here>) {
    memory::leave_loader();
    registers::start();
    descriptors::start(processor);
    local::start(processor, books.machine);
    interrupts::start();
    local::of(processor)
        .controller
        .store(interrupts::identity(), Relaxed);
    assert!(
        registers::protected(),
        "processor {processor} lacks a protection"
    );
    UP.fetch_add(1, Release);
}

/// Lays out the kernel's memory: itself, the books, its tables. The books have no entry yet; the
/// range is what the kernel keeps.
fn make_books(loaded: &Loaded) -> (&'static Books<'static, Here>, Range) {
    let end = loaded
        .memory
        .iter()
        .map(|range| range.to)
        .max()
        .unwrap_or(0);
    let pages = (end / PAGE as u64) as usize;
    memory::set_pages(pages);
    let bytes = (Machine::PAGES + pages * (size_of::<Page>() + 1)).next_multiple_of(PAGE) as u64;
    let from = memory::kernel_ends();
    let mut taken = memory::Taken { next: from + bytes };
    // The kernel's tables: a word for each page, in tables of 512, and some above.
    let tables = pages as u64 / 512 + 64;
    let most = taken.next + (tables + u64::from(window::TAKEN) + device::PAGES) * PAGE as u64;
    assert!(
        usable(loaded, memory::kernel_starts(), most),
        "not enough memory behind the kernel"
    );
    assert!(
        most <= loaded.package.from || loaded.package.to <= memory::kernel_starts(),
        "the boot package lies where the books go"
    );
    let (machine, records, lent) = memory::open_books(bytes, pages);
    let found = [device::NETWORK, device::DISK].map(|kind| Found::look(kind, &loaded.memory));
    let registers = found.iter().flatten().flat_map(Found::ranges);
    memory::make_tables(&mut taken, pages, (from, bytes), registers);
    for found in found.iter().flatten() {
        device::open(found);
    }
    window::make(&mut taken);
    device::give_pages(&mut taken);
    let key = KEY.call_once(|| {
        u128::from(registers::random())
            .wrapping_mul(1 << 64 | 1)
            .to_le_bytes()
    });
    let books = Books {
        machine,
        pages: records,
        lent,
        key,
        hardware: &Here,
    };
    (
        machine::open(books),
        Range {
            from: 0,
            to: taken.next,
        },
    )
}

/// Whether a range is memory.
fn usable(loaded: &Loaded, from: u64, to: u64) -> bool {
    loaded
        .memory
        .iter()
        .any(|range| range.from <= from && to <= range.to)
}

/// Opens the books: the root environment has a copy of the boot package, and all that is neither
/// the kernel's nor the package is free.
fn fill_books(books: &Books<'static, Here>, loaded: &Loaded, kernel: Range) {
    let package = loaded.package;
    let usable_pages = |page: u32| {
        let (from, to) = (
            u64::from(page) * PAGE as u64,
            (u64::from(page) + 1) * PAGE as u64,
        );
        let apart = |range: &Range| to <= range.from || range.to <= from;
        usable(loaded, from, to) && apart(&kernel) && apart(&package)
    };
    let bytes = memory::package(package.from, package.to);
    let start = Start {
        processors: loaded.processors as u32,
        slice: u64::from(SLICE),
        program: bytes.len().div_ceil(PAGE) as u32,
        package: bytes.len() as u32,
    };
    let fill = |index: usize, page: u32| {
        let piece = bytes.chunks(PAGE).nth(index).unwrap_or_default();
        for (word, bytes) in memory::words(page).iter().zip(piece.chunks(8)) {
            let mut value = [0; 8];
            value[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(value), Relaxed);
        }
    };
    books
        .boot(&start, usable_pages, fill)
        .unwrap_or_else(|error| panic!("the root environment: {error}"));
}

/// Finds the kernel's names in the boot package.
fn names(package: &Range) {
    let bytes = memory::package(package.from, package.to);
    let word = |index: usize| {
        let word = bytes.get(8 * index..8 * index + 8)?;
        Some(u64::from_le_bytes(word.try_into().ok()?) as usize)
    };
    assert!(
        word(0) == Some(PACKAGE_MAGIC as usize),
        "there is no boot package"
    );
    let names = word(4)
        .zip(word(5))
        .and_then(|(at, length)| bytes.get(at..at.checked_add(length)?));
    if let Some(names) = names.and_then(|names| core::str::from_utf8(names).ok()) {
        panic::NAMES.call_once(|| names);
    }
}

/// Says where the root environment begins, and shows it its context in the second segment. (It is
/// made already, with a copy of the boot package at the program's place.)
fn set_root(books: &Books<'static, Here>) -> Result<(), Error> {
    let context = (books.environment(ROOT).context.load(Relaxed) >> 12) as u32;
    let begin = offset_of!(Context, begin) / 8;
    memory::words(context)[begin].store(address::ROOT_PROGRAM + PAGE as u64, Relaxed);
    books.bind_root(address::GUARANTEED, Mapping::new(context, Mapping::WRITE))
}

/// There is something that the kernel cannot start with, or without.
fn refuse(why: core::fmt::Arguments) -> ! {
    say(format_args!("aegis: {why}"));
    port::stop(status::BOOT)
}

/// Writes a line to the console.
pub fn say(line: core::fmt::Arguments) {
    let poll = || postern_aegis_books::Hardware::poll(&Here);
    let _ = writeln!(Console::hold(poll), "{line}");
}
