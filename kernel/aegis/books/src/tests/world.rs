//! A machine with its root environment, as a kernel makes it, and calls with arguments as
//! registers have them.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::call::{self, ANY, Description, TABLE};
use postern_aegis_abi::{Call, Context, Error, Mapping, ROOT};

use super::check::check;
use super::machine::{Memory, Processor};
use super::sums;
use crate::{Books, Start, Turn};

/// Blocks of the disk.
pub const BLOCKS: u64 = 64;

/// Pages that are the kernel's.
pub const KERNELS: u32 = 4;

/// Where environments of these tests begin and are told.
pub const BEGIN: u64 = 0x1000;
pub const NOTIFY: u64 = 0x2000;
pub const END: u64 = 0x3000;

/// A machine whose root environment can be entered, and has the first slice of processor 0.
pub fn machine(pages: usize) -> Memory {
    machine_of(pages, false)
}

/// The same, with processors that are threads or not.
pub fn machine_of(pages: usize, threads: bool) -> Memory {
    let memory = Memory::new(pages, threads);
    let here = memory.processor(0);
    let books = here.books();
    let start = Start {
        processors: 2,
        slice: 1000,
        program: 0,
        package: 0,
    };
    let usable = |page| page >= KERNELS;
    books.boot(&start, usable, |_, _| ()).expect("a root");
    books.open_disk(BLOCKS);
    books.open_clock(10, 1_000);
    handlers(&books, ROOT);
    memory
}

/// Sets handlers in an environment's context.
pub fn handlers(books: &Books<'_, Processor<'_>>, environment: u16) {
    for (offset, address) in [
        (offset_of!(Context, begin), BEGIN),
        (offset_of!(Context, notify), NOTIFY),
        (offset_of!(Context, end), END),
        (offset_of!(Context, synchronous), BEGIN),
        (offset_of!(Context, asynchronous), BEGIN),
    ] {
        set(books, environment, offset, address);
    }
}

/// A word of an environment's context.
pub fn get(books: &Books<'_, Processor<'_>>, environment: u16, offset: usize) -> u64 {
    books.context(environment)[offset / 8].load(Relaxed)
}

/// Stores to a word of an environment's context.
pub fn set(books: &Books<'_, Processor<'_>>, environment: u16, offset: usize, value: u64) {
    books.context(environment)[offset / 8].store(value, Relaxed);
}

/// The calls that are the books'.
pub fn calls() -> impl Iterator<Item = &'static Description> {
    TABLE[8..30]
        .iter()
        .chain(&TABLE[34..39])
        .chain(&TABLE[46..])
}

/// A call with some arguments, the others 0.
pub fn call(
    books: &Books<'_, Processor<'_>>,
    caller: u16,
    call: Call,
    arguments: &[u64],
) -> Result<u64, Error> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    books.call(caller, call, all)
}

/// A page of somebody's.
pub fn page(books: &Books<'_, Processor<'_>>, caller: u16) -> u64 {
    call(books, caller, Call::Allocate, &[ANY]).expect("a page")
}

/// What a child has of its maker: pages and slices reserved, limits, environments.
#[derive(Clone, Copy)]
pub struct Share {
    pub pages: (u64, u64),
    pub slices: (u64, u64),
    pub environments: u64,
}

pub const SMALL: Share = Share {
    pages: (8, 16),
    slices: (4, 8),
    environments: 4,
};

/// A child that can be entered.
pub fn child(books: &Books<'_, Processor<'_>>, maker: u16, share: Share) -> u16 {
    let (context, table) = (page(books, maker), page(books, maker));
    let child = call(books, maker, Call::Create, &[context, table]).expect("a child");
    for (resource, (reserved, limit)) in [
        (call::PAGES, share.pages),
        (call::SLICES, share.slices),
        (call::ENVIRONMENTS, (0, share.environments)),
    ] {
        call(
            books,
            maker,
            Call::Quota,
            &[child, resource, reserved, limit],
        )
        .expect("a quota");
    }
    handlers(books, child as u16);
    call(books, maker, Call::Set, &[child, call::SET_FROZEN, 0]).expect("it thaws");
    child as u16
}

/// Gives an environment tables for its first 2 MiB.
pub fn tables(books: &Books<'_, Processor<'_>>, environment: u16) {
    for level in [3, 2, 1] {
        let (table, links) = (page(books, environment), page(books, environment));
        let arguments = [0, level, table, links];
        call(books, environment, Call::Table, &arguments).expect("a table");
        if level != 1 {
            call(books, environment, Call::Free, &[links]).expect("it is memory");
        }
    }
}

/// Maps a page to be stored to.
pub fn map(
    books: &Books<'_, Processor<'_>>,
    environment: u16,
    address: u64,
    page: u64,
    capability: u64,
) -> Result<u64, Error> {
    let mapping = Mapping::new(page as u32, Mapping::WRITE).0;
    call(
        books,
        environment,
        Call::Map,
        &[address, mapping, capability],
    )
}

/// The slice ends because who runs yields: who is next.
pub fn next(here: &Processor<'_>) -> Option<Turn> {
    let books = here.books();
    here.enter(0);
    books.vacate(here.number);
    let turn = books.next_turn(here.number);
    here.enter(turn.map_or(0, |turn| turn.environment));
    turn
}

/// Slices end until an environment runs here.
pub fn run(here: &Processor<'_>, environment: u16) {
    for _ in 0..200 {
        if next(here).is_some_and(|turn| turn.environment == environment) {
            return;
        }
    }
    panic!("{environment} never runs on processor {}", here.number);
}

/// Does all that is left to do for environments that end.
pub fn reap(books: &Books<'_, Processor<'_>>) {
    for _ in 0..100_000 {
        if !books.reap() {
            return;
        }
    }
    panic!("an environment never ends");
}

/// All invariants.
pub fn holds(books: &Books<'_, Processor<'_>>) {
    check(books);
    sums::check(books);
}
