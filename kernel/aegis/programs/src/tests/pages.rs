//! Pages, names, capabilities, bindings, tables (section 3.2).

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::Call;
use postern_aegis::abi::call::{NAME_EVERYBODY, PAGES, RIGHT_READ, RIGHT_WRITE};
use postern_aegis::abi::records::{self, Kind};
use postern_aegis::calls::{self, Target};
use postern_aegis::{Error, Mapping, books, memory, pages};
use postern_aegis_programs::{Role, words};

use crate::scenario::{
    Named, Outcome, Why, ask_done, ask_refused, check, elsewhere, goes_on, player, refused,
    running, same, wait,
};

crate::scenarios! {
    "pages.by-number" by_number;
    "pages.zeroed" zeroed;
    "pages.capabilities" capabilities;
    "pages.everybody" everybody;
    "pages.forged" forged;
    "pages.renamed" renamed;
    "pages.stale" stale;
    "pages.books" books_of_bindings;
    "pages.broken" broken;
    "pages.shootdown" shootdown;
    "pages.given" given;
    "pages.tables" tables;
    "pages.untable" untable;
    "pages.quota" quota;
}

/// A name for the tests' own pages.
const NAME: u32 = 77;
const OTHER: u32 = 78;

fn by_number() -> Outcome {
    let page = pages::take_where(|page| page % 8 == 3).named("taking by number")?;
    same("the colour", u64::from(page % 8), 3)?;
    let record = books::page(page).ok_or(Why::Not("no record"))?;
    same(
        "the owner",
        record.owner.load(Relaxed).into(),
        books::own_number().into(),
    )?;
    check(books::kind(record) == Some(Kind::Data), "it is no memory")?;
    refused(
        "taking it again",
        calls::allocate_page(page, 0, 0),
        Error::Taken,
    )?;
    pages::free(page).named("freeing")?;
    check(books::kind(record) == Some(Kind::Free), "it is not free")?;
    refused("freeing again", calls::free(page), Error::Denied)?;
    refused("the kernel's", calls::allocate_page(0, 0, 0), Error::Taken)
}

fn zeroed() -> Outcome {
    let at = memory::reserve(1);
    let page = memory::map_fresh(at, Mapping::WRITE).named("mapping")?;
    for word in 0..512 {
        memory::write(at + 8 * word, u64::MAX);
    }
    pages::free(page).named("freeing")?;
    let again = calls::allocate_page(page, 0, 0).named("taking the same")?;
    memory::map(at, Mapping::new(again, 0), 0, Target::SELF).named("mapping again")?;
    let left = (0..512)
        .filter(|word| memory::read(at + 8 * word) != 0)
        .count();
    pages::free(page).named("freeing again")?;
    same("words left from before", left as u64, 0)
}

/// A page of the root's, an obedient player, and where that maps it.
const AT: u64 = 0x2000_0000_0000;

/// Gives an obedient player tables for its address: before it runs, since who has a processor for
/// itself is hardly ever found standing still.
fn obedient() -> Result<postern_aegis::load::Child, Why> {
    let child = player(Role::Obey, 0, 0)?;
    memory::give_table(AT, 1, child.target()).named("a table for a player")?;
    child.run_on(elsewhere())?;
    Ok(child)
}

/// Calls again as long as the environment runs, and as long as everything is waited for.
pub fn patient<T>(mut call: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let mut result = call();
    let _ = wait("", || {
        if let Err(Error::Busy | Error::Again) = result {
            result = call();
        }
        !matches!(result, Err(Error::Busy | Error::Again))
    });
    result
}

fn map_words(page: u32, flags: u64, capability: u64) -> [u64; 5] {
    [AT, Mapping::new(page, flags).0, capability, 0, 0]
}

fn capabilities() -> Outcome {
    let child = obedient()?;
    let page = calls::allocate(NAME, OTHER).named("a page")?;
    let reads = calls::capability(NAME, RIGHT_READ, 0).named("a capability to read")?;
    let writes = calls::capability(OTHER, RIGHT_WRITE, 0).named("a capability to write")?;
    let maps = |flags, capability| map_words(page, flags, capability);
    let write = Mapping::WRITE;
    let no = Error::Denied;
    ask_refused("reading without", &child, Call::Map, &maps(0, 0), no)?;
    ask_refused("writing without", &child, Call::Map, &maps(write, 0), no)?;
    ask_refused(
        "writing by reading",
        &child,
        Call::Map,
        &maps(write, reads),
        no,
    )?;
    ask_done("reading", &child, Call::Map, &maps(0, reads))?;
    ask_refused("more by protect", &child, Call::Protect, &[AT, write], no)?;
    ask_done("writing", &child, Call::Map, &maps(write, writes))?;
    ask_done("reading by writing", &child, Call::Map, &maps(0, writes))?;
    ask_done("unmapping", &child, Call::Unmap, &[AT, 0, 0])?;
    ask_refused("freeing another's", &child, Call::Free, &[page.into()], no)?;
    ask_refused(
        "renaming another's",
        &child,
        Call::Rename,
        &[page.into(), 1, 1],
        no,
    )?;
    ask_refused(
        "breaking another's",
        &child,
        Call::Break,
        &[page.into()],
        no,
    )?;
    ask_refused(
        "giving another's",
        &child,
        Call::Give,
        &[page.into(), 1],
        no,
    )?;
    child.end();
    pages::free(page).named("freeing")
}

fn everybody() -> Outcome {
    let child = obedient()?;
    let page = calls::allocate(NAME_EVERYBODY, 0).named("a page")?;
    ask_done("reading", &child, Call::Map, &map_words(page, 0, 0))?;
    let write = map_words(page, Mapping::WRITE, 0);
    ask_refused("writing", &child, Call::Map, &write, Error::Denied)?;
    calls::rename(page, 0, NAME_EVERYBODY).named("renaming")?;
    ask_done("writing for everybody", &child, Call::Map, &write)?;
    child.end();
    pages::free(page).named("freeing")
}

fn forged() -> Outcome {
    let child = obedient()?;
    let page = calls::allocate(NAME, NAME).named("a page")?;
    let real = calls::capability(NAME, RIGHT_READ, 0).named("a capability")?;
    let forged = (0..64)
        .map(|bit| real ^ 1 << bit)
        .chain([0, 1, u64::MAX, real << 1]);
    for word in forged {
        ask_refused(
            "a forged one",
            &child,
            Call::Map,
            &map_words(page, 0, word),
            Error::Denied,
        )?;
    }
    // Its own word for the same name says nothing of another's pages.
    let own = ask_done(
        "its own",
        &child,
        Call::Capability,
        &[NAME.into(), RIGHT_READ, 0],
    )?;
    check(own != real, "two owners have the same word")?;
    ask_refused(
        "its own word",
        &child,
        Call::Map,
        &map_words(page, 0, own),
        Error::Denied,
    )?;
    ask_done("the real one", &child, Call::Map, &map_words(page, 0, real))?;
    child.end();
    pages::free(page).named("freeing")
}

fn renamed() -> Outcome {
    let child = obedient()?;
    let page = calls::allocate(NAME, 0).named("a page")?;
    let old = calls::capability(NAME, RIGHT_READ, 0).named("a capability")?;
    calls::rename(page, OTHER, 0).named("renaming")?;
    ask_refused(
        "the old word",
        &child,
        Call::Map,
        &map_words(page, 0, old),
        Error::Denied,
    )?;
    let new = calls::capability(OTHER, RIGHT_READ, 0).named("a new one")?;
    ask_done("the new word", &child, Call::Map, &map_words(page, 0, new))?;
    child.end();
    pages::free(page).named("freeing")
}

/// A number is a page's only as long as it is owned: the word for a page that is another's now
/// opens nothing.
fn stale() -> Outcome {
    let child = obedient()?;
    let other = player(Role::Count, 0, 0)?;
    let page = calls::allocate(NAME, 0).named("a page")?;
    let word = calls::capability(NAME, RIGHT_READ, 0).named("a capability")?;
    pages::free(page).named("freeing")?;
    let map = map_words(page, 0, word);
    ask_refused("a free page", &child, Call::Map, &map, Error::Kind)?;
    let taken = calls::allocate_page(page, NAME, 0).named("taking it again")?;
    calls::give(taken, other.number).named("giving it")?;
    ask_refused("another's page", &child, Call::Map, &map, Error::Denied)?;
    child.end();
    other.end();
    Ok(())
}

fn books_of_bindings() -> Outcome {
    let page = calls::allocate(0, 0).named("a page")?;
    let record = books::page(page).ok_or(Why::Not("no record"))?;
    let (first, second) = (memory::reserve_tables(1), memory::reserve(1));
    let bindings = || u64::from(record.bindings.load(Relaxed));
    for at in [first, second] {
        memory::map(at, Mapping::new(page, 0), 0, Target::SELF).named("mapping")?;
    }
    same("bindings", bindings(), 2)?;
    let entry = memory::table_entry(first);
    same(
        "the entry's page",
        entry >> 12 & 0xff_ffff_ffff,
        page.into(),
    )?;
    check(
        entry & 1 << 63 != 0 && entry & 2 == 0,
        "the entry lets more than reading",
    )?;
    // The newest binding is the first: the table of the second address, and its index there.
    let binding = record.first.load(Relaxed);
    check(binding != records::NONE, "no first binding")?;
    let table = books::page(binding >> 9).and_then(books::kind);
    check(table == Some(Kind::Table1), "a binding in no table")?;
    calls::unmap(second, Target::SELF).named("unmapping")?;
    same("bindings after unmap", bindings(), 1)?;
    pages::free(page).named("freeing")?;
    same("bindings after free", bindings(), 0)?;
    same("the entry after free", memory::table_entry(first), 0)
}

fn broken() -> Outcome {
    let page = calls::allocate(NAME_EVERYBODY, 0).named("a page")?;
    let child = running(Role::Watch, page.into(), 0)?;
    goes_on(&child)?;
    patient(|| calls::break_page(page)).named("breaking")?;
    wait("it reads on", || child.mailbox.get(words::OTHER) != 0)?;
    same(
        "bindings",
        books::page(page).map_or(9, |page| page.bindings.load(Relaxed).into()),
        0,
    )?;
    child.end();
    pages::free(page).named("freeing")
}

/// A page is another's only after nobody can read it any more: whoever watches it never sees what
/// is written after it was freed.
fn shootdown() -> Outcome {
    for _ in 0..8 {
        let page = calls::allocate(NAME_EVERYBODY, 0).named("a page")?;
        let child = running(Role::Watch, page.into(), 0)?;
        goes_on(&child)?;
        pages::free(page).named("freeing")?;
        let again = calls::allocate_page(page, 0, 0).named("taking it again")?;
        let at = memory::reserve(1);
        memory::map(at, Mapping::new(again, Mapping::WRITE), 0, Target::SELF).named("mapping")?;
        for word in 0..512 {
            memory::write(at + 8 * word, 0x5ec7e7);
        }
        wait("it reads on", || child.mailbox.get(words::OTHER) != 0)?;
        same("secrets seen", child.mailbox.get(words::ERRORS), 0)?;
        child.end();
        pages::free(page).named("freeing")?;
    }
    Ok(())
}

fn given() -> Outcome {
    let child = player(Role::Count, 0, 0)?;
    let at = memory::reserve(1);
    let page = memory::map_fresh(at, Mapping::WRITE).named("mapping")?;
    calls::give(page, child.number).named("giving")?;
    refused("freeing what was given", calls::free(page), Error::Denied)?;
    let owner = books::page(page).map_or(0, |page| page.owner.load(Relaxed));
    same("the owner", owner.into(), child.number.into())?;
    memory::write(at, 5);
    same("the giver's binding", memory::read(at), 5)?;
    calls::unmap(at, Target::SELF).named("unmapping")?;
    let number = child.number;
    refused(
        "mapping what was given",
        calls::map(at, Mapping::new(page, 0), 0, Target::SELF),
        Error::Denied,
    )?;
    child.end();
    crate::scenario::gone(number)
}

fn tables() -> Outcome {
    let at = memory::reserve_tables(2);
    let (table, links) = (
        pages::take().named("a table")?,
        pages::take().named("links")?,
    );
    memory::give_table(at, 1, Target::SELF).named("a first table")?;
    refused(
        "a second table",
        calls::table(at, 1, table, links, Target::SELF),
        Error::Mapped,
    )?;
    let at = at + memory::TABLE_SPAN;
    refused(
        "level 0",
        calls::table(at, 0, table, links, Target::SELF),
        Error::Argument,
    )?;
    refused(
        "level 4",
        calls::table(at, 4, table, links, Target::SELF),
        Error::Argument,
    )?;
    refused(
        "itself as links",
        calls::table(at, 1, table, table, Target::SELF),
        Error::Argument,
    )?;
    // A bound page cannot be a table: somebody could write entries.
    let window = memory::reserve(1);
    let bound = Mapping::new(table, Mapping::WRITE);
    memory::map(window, bound, 0, Target::SELF).named("mapping")?;
    refused(
        "a bound page",
        calls::table(at, 1, table, links, Target::SELF),
        Error::InUse,
    )?;
    calls::unmap(window, Target::SELF).named("unmapping")?;
    calls::table(at, 1, table, links, Target::SELF).named("giving a table")?;
    refused("freeing a table", calls::free(table), Error::InUse)
        .or_else(|_| refused("freeing a table", calls::free(table), Error::Kind))?;
    for pinned in [table, links] {
        let write = Mapping::new(pinned, Mapping::WRITE);
        refused(
            "writing a table",
            calls::map(window, write, 0, Target::SELF),
            Error::Kind,
        )?;
        let read = Mapping::new(pinned, 0);
        calls::map(window, read, 0, Target::SELF).named("reading a table")?;
        refused(
            "more by protect",
            calls::protect(window, Mapping::WRITE),
            Error::Kind,
        )
        .or_else(|_| {
            refused(
                "more by protect",
                calls::protect(window, Mapping::WRITE),
                Error::Denied,
            )
        })?;
        calls::unmap(window, Target::SELF).named("unmapping")?;
    }
    calls::untable(at, 1, Target::SELF).named("taking the table back")?;
    pages::free(table).named("freeing the table")?;
    pages::free(links).named("freeing the links")
}

fn untable() -> Outcome {
    let at = memory::reserve_tables(1);
    let (table, links) = (
        pages::take().named("a table")?,
        pages::take().named("links")?,
    );
    calls::table(at, 1, table, links, Target::SELF).named("giving a table")?;
    let page = pages::take().named("a page")?;
    calls::map(at, Mapping::new(page, 0), 0, Target::SELF).named("mapping")?;
    calls::untable(at, 1, Target::SELF).named("taking the table")?;
    let bindings = books::page(page).map_or(9, |page| page.bindings.load(Relaxed));
    same("bindings", bindings.into(), 0)?;
    let map = calls::map(at, Mapping::new(page, 0), 0, Target::SELF);
    refused("mapping without a table", map, Error::NoTable)?;
    refused(
        "taking it again",
        calls::untable(at, 1, Target::SELF),
        Error::NoTable,
    )?;
    for page in [page, table, links] {
        pages::free(page).named("freeing")?;
    }
    Ok(())
}

fn quota() -> Outcome {
    let child = running(Role::Obey, 0, 0)?;
    let any = [u64::MAX, 0, 0];
    let record = books::environment(child.number);
    let room = record.pages_limit.load(Relaxed) - record.pages.load(Relaxed);
    for _ in 0..room {
        ask_done("allocating", &child, Call::Allocate, &any)?;
    }
    ask_refused("one more", &child, Call::Allocate, &any, Error::Quota)?;
    refused(
        "more than its maker has",
        calls::quota(child.number, PAGES, 1 << 30, 1 << 30),
        Error::Quota,
    )?;
    child.end();
    Ok(())
}
