//! Every call with every argument out of its range: an error that the calls' table names, and
//! nothing has changed.

use core::mem::offset_of;
use std::vec::Vec;

use postern_aegis_abi::call::{self, ANY, MANY, RIGHT_CONTROL, TABLE};
use postern_aegis_abi::records::DISK;
use postern_aegis_abi::{Call, Context, Error, HOLDINGS, Mapping, ROOT, address};

use super::machine::Processor;
use super::sums;
use super::world::{self, SMALL, Share, child, holds, map, page, set, tables};
use crate::Books;

type World<'a> = Books<'a, Processor<'a>>;

const PAGES: u64 = 256;

/// Values that are in no argument's range, or stand at its border.
fn extremes(name: &str) -> Vec<u64> {
    let mut all = std::vec![1 << 32, 1 << 40, 1 << 63, u64::MAX - 1, u64::MAX];
    match name {
        "page" | "context" | "table" | "links" => all.extend([PAGES, PAGES + 1, 0xffff_ffff]),
        "environment" => all.extend([256, 257, 0xffff, 0x1_0000, 0x1_0001]),
        "address" => all.extend([
            1,
            0xfff,
            0x1001,
            address::TABLES,
            address::BOOKS,
            1 << 47,
            0xffff_8000_0000_0000,
            !0xfff,
        ]),
        "level" => all.extend([0, 4, 5, 255]),
        "mapping" => all.extend([
            1,
            8,
            0x20,
            0x800,
            PAGES << 12,
            1 << 52,
            (PAGES - 1) << 12 | 1,
        ]),
        "requests" | "addresses" => all.extend([1, 7, 0x1004, 1 << 47, !7]),
        "count" => all.extend([MANY + 1, 1 << 16]),
        "flags" => all.extend([1, 8, 0x20, 0x1000, 2 | 1 << 63]),
        "rights" => all.extend([0, 3, 5, 6, 7, 8]),
        "resource" => all.extend([0, 5]),
        "holding" | "behind" => all.extend([0, 100, HOLDINGS as u64]),
        "blocks" => all.extend([0, world::BLOCKS]),
        "processor" => all.extend([2, 8, 64]),
        "position" => all.extend([64, 65, 256]),
        "what" => all.extend([0, 3]),
        "value" => all.extend([2, 256]),
        _ => {}
    }
    all
}

/// Whether a value of an argument means something.
fn allowed(call: Call, name: &str, value: u64) -> bool {
    match (call, name) {
        (_, "capability" | "control" | "time" | "seconds") => true,
        (Call::Allocate, "page") | (Call::TakeSlice, "position") => value == ANY,
        _ => false,
    }
}

/// Arguments with which each call is done: of the root, which has a child.
fn right(books: &World<'_>, call: Call, child: u64) -> [u64; 6] {
    let some: &[u64] = match call {
        Call::Capability => &[0, RIGHT_CONTROL, child],
        Call::Allocate => &[ANY],
        Call::Free | Call::Break => &[page(books, ROOT)],
        Call::Rename => &[page(books, ROOT), 7, 8],
        Call::Give => &[page(books, ROOT), child],
        Call::Table => &[1 << 30, 1, page(books, ROOT), page(books, ROOT)],
        Call::Untable => &[0, 1],
        Call::Map => &[0x5000, page(books, ROOT) << 12 | Mapping::WRITE],
        Call::Unmap => &[0x3000],
        Call::Protect => &[0x3000, 0],
        Call::MapMany => &[0x2000, 2],
        Call::ProtectMany => &[0x2000, 2, 0],
        Call::Create => &[page(books, ROOT), page(books, ROOT)],
        Call::Destroy => &[child],
        Call::Set => &[child, call::SET_FROZEN, 1],
        Call::Quota => &[child, call::PAGES, 9, 17],
        Call::TakeSlice => &[1, 5],
        Call::FreeSlice => &[0, 0],
        Call::GiveSlice => &[0, 0, child],
        Call::Revoke => &[child, call::PAGES, 1],
        Call::Submit => &[child],
        Call::GiveHolding => &[DISK as u64, child],
        Call::RenameHolding => &[DISK as u64, 7, 8],
        Call::Drop => &[DISK as u64],
        Call::Split => &[DISK as u64, 7],
        Call::Join => {
            let rest = world::call(books, ROOT, Call::Split, &[DISK as u64, 7]);
            &[DISK as u64, rest.expect("two ranges")]
        }
        _ => &[],
    };
    let mut all = [0; 6];
    all[..some.len()].copy_from_slice(some);
    all
}

/// A machine whose root has memory and a child with more pages than are reserved for it.
fn prepare(books: &World<'_>) -> u64 {
    tables(books, ROOT);
    for level in [2, 3] {
        // For the table of level 1 at 1 GiB.
        let table = page(books, ROOT);
        let _ = world::call(books, ROOT, Call::Table, &[1 << 30, 5 - level, table]);
    }
    for at in [0x2000, 0x3000] {
        let page = page(books, ROOT);
        map(books, ROOT, at, page, 0).expect("it is mapped");
    }
    let child = child(
        books,
        ROOT,
        Share {
            pages: (4, 16),
            ..SMALL
        },
    );
    for _ in 0..6 {
        page(books, child);
    }
    let server = world::child(books, ROOT, SMALL);
    let arguments = [child.into(), call::SET_SERVER, server.into()];
    world::call(books, ROOT, Call::Set, &arguments).expect("a server");
    set(books, child, offset_of!(Context, begin), 0);
    let quota = [child.into(), call::HOLDINGS, 0, 2];
    world::call(books, ROOT, Call::Quota, &quota).expect("a quota of holdings");
    child.into()
}

#[test]
fn arguments_out_of_range_change_nothing() {
    for description in world::calls() {
        let memory = world::machine(PAGES as usize);
        let here = memory.processor(0);
        here.enter(ROOT);
        let books = here.books();
        let child = prepare(&books);
        let right = right(&books, description.call, child);
        let before = sums::digest(&books);
        for (index, name) in description.arguments.iter().enumerate() {
            for value in extremes(name) {
                if allowed(description.call, name, value) {
                    continue;
                }
                let mut wrong = right;
                wrong[index] = value;
                let what = (description.name, *name, value);
                let result = books.call(ROOT, description.call, wrong);
                let error = result.expect_err(&std::format!("{what:x?}"));
                assert!(description.errors.contains(&error), "{what:x?}: {error:?}");
                assert_eq!(sums::digest(&books), before, "{what:x?}: {error:?}");
            }
        }
        let result = books.call(ROOT, description.call, right);
        assert!(result.is_ok(), "{}: {result:?}", description.name);
        holds(&books);
    }
}

#[test]
fn calls_of_the_kernel_are_not_the_books() {
    let memory = world::machine(64);
    let here = memory.processor(0);
    let books = |call| world::calls().any(|description| description.call == call);
    for description in TABLE.iter().filter(|description| !books(description.call)) {
        let result = here.books().call(ROOT, description.call, [0; 6]);
        assert_eq!(result, Err(Error::NoCall), "{}", description.name);
    }
}
