//! Calls with arguments out of range, without rights, and of numbers that are none: an error, and
//! nothing has changed.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::call::{MANY, NAME_EVERYBODY, NAME_NOBODY, TABLE};
use postern_aegis::abi::records::{CONSOLE, DISK};
use postern_aegis::abi::{Call, ENVIRONMENTS, address};
use postern_aegis::calls::{self, Target};
use postern_aegis::{Error, books, memory, pages};
use postern_aegis_programs::Role;

use crate::holdings::restore_clock;
use crate::scenario::{Named, Outcome, Why, ask_refused, check, refused, running};
use crate::trusted::any_call;

crate::scenarios! {
    "arguments.no-call" no_call;
    "arguments.pages" pages_of;
    "arguments.environments" environments;
    "arguments.tables" tables;
    "arguments.mappings" mappings;
    "arguments.memory" memory_of_the_caller;
    "arguments.quotas" quotas;
    "arguments.rights" rights;
    "arguments.every-call" every_call;
    "arguments.stale" stale;
}

fn call(call: Call, arguments: &[u64]) -> Result<u64, Error> {
    let all = core::array::from_fn(|index| arguments.get(index).copied().unwrap_or(0));
    any_call(call as u64, all)
}

fn no_call() -> Outcome {
    for number in TABLE.len() as u64..256 {
        refused("a number beyond", any_call(number, [0; 6]), Error::NoCall)?;
    }
    Ok(())
}

/// Numbers that are no page's.
fn no_pages() -> [u64; 6] {
    let count = books::pages().len() as u64;
    [
        count,
        count + 1,
        u64::from(u32::MAX),
        1 << 32,
        1 << 63,
        u64::MAX - 1,
    ]
}

fn pages_of() -> Outcome {
    let own = pages::take().named("a page")?;
    for page in no_pages() {
        let argument = Error::Argument;
        refused("allocating", call(Call::Allocate, &[page]), argument)?;
        refused("freeing", call(Call::Free, &[page]), argument)?;
        refused("renaming", call(Call::Rename, &[page, 1, 1]), argument)?;
        refused("giving", call(Call::Give, &[page, 1]), argument)?;
        refused("breaking", call(Call::Break, &[page]), argument)?;
        refused(
            "a context",
            call(Call::Create, &[page, own.into()]),
            argument,
        )?;
        refused(
            "a root table",
            call(Call::Create, &[own.into(), page]),
            argument,
        )?;
        let at = memory::reserve_tables(1);
        refused(
            "a table",
            call(Call::Table, &[at, 1, page, own.into()]),
            argument,
        )?;
        refused(
            "links",
            call(Call::Table, &[at, 1, own.into(), page]),
            argument,
        )?;
    }
    let twice = call(Call::Create, &[own.into(), own.into()]);
    refused("one page as both", twice, Error::Argument)?;
    refused("the kernel's", call(Call::Free, &[0]), Error::Denied)?;
    refused(
        "a name too long",
        call(Call::Rename, &[own.into(), 1 << 32, 0]),
        Error::Argument,
    )?;
    pages::free(own).named("freeing")
}

/// Numbers that are no environment's.
const NOBODY: [u64; 6] = [
    200,
    255,
    ENVIRONMENTS as u64,
    1 << 16 | 1,
    1 << 32,
    u64::MAX,
];

fn environments() -> Outcome {
    let page = pages::take().named("a page")?;
    let nobody = |what, result: Result<u64, Error>| match result {
        Err(Error::NoEnvironment | Error::Argument) => Ok(()),
        other => Err(Why::Call(what, other, Err(Error::NoEnvironment))),
    };
    for number in NOBODY {
        let at = memory::FIRST;
        nobody("giving", call(Call::Give, &[page.into(), number]))?;
        nobody("a capability", call(Call::Capability, &[1, 4, number]))?;
        nobody(
            "mapping",
            call(Call::Map, &[at, u64::from(page) << 12, 0, number]),
        )?;
        nobody("unmapping", call(Call::Unmap, &[at, number]))?;
        nobody(
            "a table",
            call(Call::Table, &[at, 1, page.into(), 0, number]),
        )?;
        nobody("no table", call(Call::Untable, &[at, 1, number]))?;
        nobody("destroying", call(Call::Destroy, &[number]))?;
        nobody("freezing", call(Call::Set, &[number, 2, 1]))?;
        nobody("a quota", call(Call::Quota, &[number, 1, 0, 1]))?;
        nobody("revoking", call(Call::Revoke, &[number, 1, 1]))?;
        nobody("submitting", call(Call::Submit, &[number]))?;
        nobody("a slice", call(Call::GiveSlice, &[0, 0, number]))?;
        nobody("a server", call(Call::Set, &[0, 1, number]))?;
    }
    pages::free(page).named("freeing")
}

fn tables() -> Outcome {
    let (page, links) = (
        pages::take().named("a page")?,
        pages::take().named("a page")?,
    );
    let at = memory::reserve_tables(1);
    let give = |at, level| call(Call::Table, &[at, level, page.into(), links.into()]);
    for level in [0, 4, 5, 255, 1 << 32 | 1, u64::MAX] {
        refused("giving a level", give(at, level), Error::Argument)?;
        refused(
            "taking a level",
            call(Call::Untable, &[at, level]),
            Error::Argument,
        )?;
    }
    for at in [
        address::TABLES,
        address::BOOKS,
        1 << 47,
        u64::MAX << 47,
        at + 1,
    ] {
        refused("giving an address", give(at, 1), Error::Argument)?;
        refused(
            "taking an address",
            call(Call::Untable, &[at, 1]),
            Error::Argument,
        )?;
    }
    // A table of level 2 that has one of level 1 below it is not taken away.
    memory::give_table(at, 1, Target::SELF).named("a table")?;
    refused(
        "a table in use",
        call(Call::Untable, &[at, 2]),
        Error::InUse,
    )?;
    pages::free(page).named("freeing")?;
    pages::free(links).named("freeing")
}

fn mappings() -> Outcome {
    let at = memory::reserve(1);
    let page = memory::map_fresh(at, 0).named("mapping")?;
    let word = u64::from(page) << 12;
    let bad = [
        word | 1,
        word | 8,
        word | 1 << 5,
        word | 1 << 11,
        word | 1 << 62,
        u64::MAX,
    ];
    for mapping in bad {
        refused(
            "a mapping",
            call(Call::Map, &[at, mapping]),
            Error::Argument,
        )?;
    }
    for page in no_pages() {
        if page < 1 << 52 {
            refused(
                "a page",
                call(Call::Map, &[at, page << 12]),
                Error::Argument,
            )?;
        }
    }
    for flags in [1, 8, 1 << 5, 1 << 12, u64::MAX] {
        refused("flags", call(Call::Protect, &[at, flags]), Error::Argument)?;
    }
    for odd in [at + 1, at + 8, at + 0xfff] {
        refused(
            "mapping between",
            call(Call::Map, &[odd, word]),
            Error::Argument,
        )?;
        refused(
            "unmapping between",
            call(Call::Unmap, &[odd]),
            Error::Argument,
        )?;
        refused(
            "protecting between",
            call(Call::Protect, &[odd, 0]),
            Error::Argument,
        )?;
    }
    pages::free(page).named("freeing")
}

/// What calls read and write for the caller is the caller's memory, whole.
fn memory_of_the_caller() -> Outcome {
    let at = memory::reserve(2);
    let page = memory::map_fresh(at, 0).named("mapping")?;
    let end = at + 4096;
    let unreadable = |what, result: Result<u64, Error>| match result {
        Err(Error::Unmapped | Error::Argument) => Ok(()),
        other => Err(Why::Call(what, other, Err(Error::Unmapped))),
    };
    let nowhere = [0, 8, end, 1 << 47, u64::MAX - 7, 0xffff_8000_0000_0000];
    for from in nowhere {
        unreadable("writing", call(Call::Write, &[from, 4096]))?;
        unreadable("mapping many", call(Call::MapMany, &[from, 1]))?;
        unreadable("protecting many", call(Call::ProtectMany, &[from, 1]))?;
        unreadable("judging", call(Call::Judge, &[from, 4096, at]))?;
    }
    // What begins in readable memory and ends beyond it.
    unreadable(
        "mapping many at an edge",
        call(Call::MapMany, &[end - 8, 1]),
    )?;
    unreadable(
        "judging at an edge",
        call(Call::Judge, &[end - 8, 4096, at]),
    )?;
    for long in [MANY + 1, 1 << 32, u64::MAX] {
        refused(
            "too many to map",
            call(Call::MapMany, &[at, long]),
            Error::Argument,
        )?;
        refused(
            "too many",
            call(Call::ProtectMany, &[at, long]),
            Error::Argument,
        )?;
    }
    for long in [(64 << 10) + 1, 1 << 32, u64::MAX] {
        refused(
            "too long an image",
            call(Call::Judge, &[at, long, at]),
            Error::Argument,
        )?;
    }
    // A verdict cannot be stored where the caller cannot write.
    unreadable("a verdict", call(Call::Judge, &[at, 64, at]))?;
    pages::free(page).named("freeing")
}

fn quotas() -> Outcome {
    let child = running(Role::Count, 0, 0)?;
    let number = u64::from(child.number);
    let quota = |resource, reserved, limit| call(Call::Quota, &[number, resource, reserved, limit]);
    for resource in [0, 5, 1 << 32, u64::MAX] {
        refused("a resource", quota(resource, 0, 1), Error::Argument)?;
    }
    refused("kept more than had", quota(1, 10, 9), Error::Argument)?;
    for (reserved, limit) in [(1 << 32, 1 << 32), (0, u64::MAX), (u64::MAX, u64::MAX)] {
        let result = quota(1, reserved, limit);
        check(result.is_err(), "a quota of more than 32 bits")?;
    }
    refused(
        "more than there is",
        quota(1, 1 << 31, 1 << 31),
        Error::Quota,
    )?;
    refused("its own", call(Call::Quota, &[0, 1, 0, 1]), Error::Denied)
        .or_else(|_| refused("its own", call(Call::Quota, &[1, 1, 0, 1]), Error::Denied))?;
    child.end();
    Ok(())
}

/// What only the root may, or an environment's maker.
fn rights() -> Outcome {
    let child = running(Role::Obey, 0, 0)?;
    let other = running(Role::Count, 0, 0)?;
    let root = u64::from(books::own_number());
    let at = memory::FIRST;
    for whom in [root, other.number.into()] {
        for (what, call, arguments) in [
            ("destroying", Call::Destroy, [whom, 0, 0, 0, 0]),
            ("freezing", Call::Set, [whom, 2, 1, 0, 0]),
            ("a server", Call::Set, [whom, 1, child.number.into(), 0, 0]),
            ("a quota", Call::Quota, [whom, 1, 0, 5, 0]),
            ("revoking", Call::Revoke, [whom, 1, 1, 0, 0]),
            ("submitting", Call::Submit, [whom, 0, 0, 0, 0]),
            ("unmapping", Call::Unmap, [at, whom, 0, 0, 0]),
            ("a table", Call::Untable, [at, 1, whom, 0, 0]),
            ("its capability", Call::Capability, [1, 4, whom, 0, 0]),
        ] {
            ask_refused(what, &child, call, &arguments, Error::Denied)?;
        }
    }
    ask_refused("stopping", &child, Call::Stop, &[1], Error::Denied)?;
    ask_refused("the console", &child, Call::Read, &[], Error::Denied)?;
    ask_refused("a slice", &child, Call::FreeSlice, &[0, 0], Error::Denied)?;
    ask_refused(
        "giving it",
        &child,
        Call::GiveSlice,
        &[0, 0, child.number.into()],
        Error::Denied,
    )?;
    child.end();
    other.end();
    Ok(())
}

/// Every call with every argument out of every range, others zero or all the same: nothing breaks.
fn every_call() -> Outcome {
    let odd = [
        1,
        7,
        // No page of the root's, as a number.
        0xff,
        1 << 31,
        1 << 32,
        1 << 47,
        1 << 63,
        u64::MAX,
        0xffff_8000_0000_0000,
    ];
    let epoch = books::machine().clock.epoch.load(Relaxed);
    for description in TABLE {
        // Those that take no arguments, that end the slice or the machine, that would ask the root
        // itself for something, or leave it without its slice.
        let quiet = matches!(
            description.call,
            Call::Yield
                | Call::Stop
                | Call::Revoke
                | Call::Submit
                | Call::Destroy
                | Call::Set
                | Call::FreeSlice
                | Call::GiveSlice
        );
        if quiet || description.arguments.is_empty() {
            continue;
        }
        for place in 0..6 {
            for value in odd {
                let mut arguments = [0; 6];
                arguments[place] = value;
                undo(
                    description.call,
                    any_call(description.call as u64, arguments),
                )?;
                undo(
                    description.call,
                    any_call(description.call as u64, [value; 6]),
                )?;
            }
        }
    }
    restore_clock(epoch);
    let _ = calls::fpu(false);
    Ok(())
}

/// Some of them succeed by chance: what they took is given back.
fn undo(done: Call, result: Result<u64, Error>) -> Outcome {
    match (done, result) {
        (Call::Allocate, Ok(page)) => pages::free(page as u32).named("freeing"),
        (Call::TakeSlice, Ok(position)) => {
            let slice = (0..postern_aegis::slices::processors())
                .any(|at| calls::free_slice(at, position as usize).is_ok());
            check(slice, "a slice that was taken is not there")
        }
        // The empty filter.
        (Call::Bind, Ok(holding)) => calls::drop_holding(holding as usize, 0)
            .named("dropping")
            .map(drop),
        (Call::GiveHolding | Call::RenameHolding | Call::Drop, Ok(_)) => {
            // Everybody writes to the console.
            calls::rename_holding(CONSOLE, NAME_NOBODY, NAME_EVERYBODY)
                .named("the console's names")
                .map(drop)
        }
        (Call::Split, Ok(rest)) => calls::join(DISK, rest as usize).named("joining").map(drop),
        (Call::Alarm, _) => calls::alarm(0).named("no alarm").map(drop),
        _ => Ok(()),
    }
}

/// A number that was a page's, an environment's, opens nothing when another has it.
fn stale() -> Outcome {
    let first = running(Role::Count, 0, 0)?;
    let number = first.number;
    let word = calls::capability(0, 4, number).named("a capability")?;
    first.end();
    crate::scenario::gone(number)?;
    // Numbers are given in turn: the same one comes again after all others.
    let helper = running(Role::Obey, 0, 0)?;
    for _ in 0..2 * ENVIRONMENTS {
        let (context, table) = (
            pages::take().named("a page")?,
            pages::take().named("a page")?,
        );
        let second = calls::create(context, table).named("creating")?;
        let mut outcome = Ok(());
        if second == number {
            let arguments = [number.into(), word];
            outcome = ask_refused(
                "an old capability",
                &helper,
                Call::Destroy,
                &arguments,
                Error::Denied,
            )
            .and(check(books::lives(second), "another one has ended by it"));
        }
        calls::destroy(Target::child(second)).named("destroying")?;
        crate::scenario::gone(second)?;
        if second == number {
            helper.end();
            return outcome;
        }
        outcome?;
    }
    helper.end();
    Err(Why::Not("the number does not come again"))
}
