//! Visible revocation and the abort protocol, rule by rule.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;
use std::vec::Vec;

use postern_aegis_abi::call::{self, ANY, RIGHT_WRITE};
use postern_aegis_abi::context::{Place, Repossession};
use postern_aegis_abi::records::end;
use postern_aegis_abi::{Call, Context, Error, Mapping, ROOT, address};

use super::machine::Processor;
use super::world::{self, SMALL, Share, child, get, holds, map, page, reap, set, tables};
use crate::Books;

pub(super) type World<'a> = Books<'a, Processor<'a>>;

pub(super) fn go(books: &World<'_>, who: u16, what: Call, arguments: &[u64]) -> Result<u64, Error> {
    world::call(books, who, what, arguments)
}

/// Slices pass on a processor until a request has become due, and what is due is taken.
pub(super) fn pass(books: &World<'_>, processor: usize, slices: usize) {
    for _ in 0..slices {
        books.machine.processor[processor]
            .ticks
            .fetch_add(1, Relaxed);
        books.due(processor);
    }
}

pub(super) fn revoke(books: &World<'_>, of: u16, resource: u64, count: u64) -> Result<u64, Error> {
    go(books, ROOT, Call::Revoke, &[of.into(), resource, count])
}

pub(super) fn pages(books: &World<'_>, of: u16) -> u32 {
    books.environment(of).pages.load(Relaxed)
}

/// An environment with pages up to its limit.
pub(super) fn full(books: &World<'_>, share: Share) -> (u16, Vec<u64>) {
    let environment = child(books, ROOT, share);
    let count = share.pages.1 - 2;
    (
        environment,
        (0..count).map(|_| page(books, environment)).collect(),
    )
}

pub(super) fn entry(books: &World<'_>, of: u16, index: usize) -> Repossession {
    let at = offset_of!(Context, repossessed) + index * size_of::<Repossession>();
    let words = [0, 8, 16].map(|offset| get(books, of, at + offset));
    Repossession {
        kind: words[0] as u32,
        number: (words[0] >> 32) as u32,
        place: Place {
            kind: words[1] as u32,
            number: (words[1] >> 32) as u32,
            capability: words[2],
        },
    }
}

pub(super) fn set_place(
    books: &World<'_>,
    of: u16,
    index: usize,
    kind: u32,
    number: u64,
    word: u64,
) {
    let at = offset_of!(Context, places) + index * size_of::<Place>();
    set(books, of, at, u64::from(kind) | number << 32);
    set(books, of, at + 8, word);
}

pub(super) fn set_guaranteed(books: &World<'_>, of: u16, index: usize, at: u64, mapping: u64) {
    let offset = offset_of!(Context, guaranteed) + index * 16;
    set(books, of, offset, at);
    set(books, of, offset + 8, mapping);
}

#[test]
fn who_answers_in_time_loses_nothing() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    let (a, owned) = full(&books, SMALL);
    assert_eq!(
        revoke(&books, a, call::PAGES, 9),
        Err(Error::Quota),
        "8 are reserved"
    );
    assert_eq!(revoke(&books, a, call::PAGES, 0), Err(Error::Argument));
    assert_eq!(
        revoke(&books, a, call::ENVIRONMENTS, 1),
        Err(Error::Argument)
    );
    assert_eq!(revoke(&books, a, call::PAGES, 3), Ok(0));
    let word = |offset| get(&books, a, offset);
    assert_eq!(word(offset_of!(Context, asked_pages)), 3);
    assert_eq!(word(offset_of!(Context, deadline)), 8);
    assert_eq!(word(offset_of!(Context, clock)), 0);
    assert_eq!(word(offset_of!(Context, events)), Context::EVENT_REVOKE);
    pass(&books, 0, 8);
    for page in &owned[..3] {
        assert_eq!(go(&books, a, Call::Free, &[*page]), Ok(0));
    }
    assert_eq!(word(offset_of!(Context, asked_pages)), 0);
    pass(&books, 0, 20);
    assert_eq!(
        (pages(&books, a), word(offset_of!(Context, repossessions))),
        (13, 0)
    );
    holds(&books);
}

#[test]
fn who_refuses_loses_what_was_asked_and_no_more() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    let (a, owned) = full(&books, SMALL);
    assert_eq!(revoke(&books, a, call::PAGES, 3), Ok(0));
    pass(&books, 0, 8);
    assert_eq!(pages(&books, a), 16, "not before the deadline");
    pass(&books, 0, 1);
    assert_eq!(pages(&books, a), 13);
    assert_eq!(get(&books, a, offset_of!(Context, repossessions)), 3);
    assert_eq!(get(&books, a, offset_of!(Context, asked_pages)), 0);
    let events = Context::EVENT_REVOKE | Context::EVENT_REPOSSESSED;
    assert_eq!(get(&books, a, offset_of!(Context, events)), events);
    for index in 0..3 {
        let entry = entry(&books, a, index);
        assert_eq!(
            (entry.kind, entry.place.kind),
            (Repossession::PAGE, Place::NOWHERE)
        );
        assert!(owned.contains(&entry.number.into()));
        assert_eq!(books.pages[entry.number as usize].owner.load(Relaxed), 0);
    }
    pass(&books, 0, 50);
    assert_eq!(pages(&books, a), 13);
    holds(&books);
}

#[test]
fn a_pending_request_gets_no_later_deadline() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    let (a, _) = full(&books, SMALL);
    assert_eq!(go(&books, a, Call::Revoke, &[0, call::PAGES, 1]), Ok(0));
    for _ in 0..8 {
        pass(&books, 0, 1);
        assert_eq!(go(&books, a, Call::Revoke, &[0, call::PAGES, 1]), Ok(0));
    }
    assert_eq!(revoke(&books, a, call::PAGES, 4), Ok(0));
    pass(&books, 0, 1);
    assert_eq!(pages(&books, a), 12);
}

#[test]
fn the_deadline_is_two_rounds_where_it_runs() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    let (a, _) = full(
        &books,
        Share {
            slices: (10, 10),
            ..SMALL
        },
    );
    for position in 0..10 {
        go(&books, a, Call::TakeSlice, &[1, position]).expect("a slice");
    }
    assert_eq!(revoke(&books, a, call::PAGES, 1), Ok(0));
    assert_eq!(get(&books, a, offset_of!(Context, clock)), 1);
    assert_eq!(get(&books, a, offset_of!(Context, deadline)), 20);
    pass(&books, 0, 100);
    pass(&books, 1, 20);
    assert_eq!(pages(&books, a), 16);
    pass(&books, 1, 1);
    assert_eq!(pages(&books, a), 15);
}

#[test]
fn yields_make_no_deadline_later() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    let (a, _) = full(&books, SMALL);
    go(&books, a, Call::TakeSlice, &[0, ANY]).expect("a slice");
    assert_eq!(revoke(&books, a, call::PAGES, 1), Ok(0));
    for _ in 0..9 {
        // Never a tick of the clock: it is set anew at each yield.
        world::next(&here);
    }
    books.due(0);
    assert_eq!(pages(&books, a), 15);
}

#[test]
fn guaranteed_pages_and_tables_stay() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    let a = child(&books, ROOT, SMALL);
    tables(&books, a);
    let owned: Vec<u64> = (0..10).map(|_| page(&books, a)).collect();
    for (index, page) in owned[..8].iter().enumerate() {
        let at = address::GUARANTEED + index as u64 * 4096;
        set_guaranteed(&books, a, index, at, Mapping::new(*page as u32, 2).0);
    }
    assert_eq!(revoke(&books, a, call::PAGES, 2), Ok(0));
    pass(&books, 0, 9);
    let owner = |page: u64| books.pages[page as usize].owner.load(Relaxed);
    assert!(owned[..8].iter().all(|page| owner(*page) == a));
    assert!(owned[8..].iter().all(|page| owner(*page) == 0));
    holds(&books);
    // Nothing but guaranteed pages and tables is left beyond the reservation: it ends.
    assert_eq!(revoke(&books, a, call::PAGES, 1), Ok(0));
    pass(&books, 0, 9);
    assert_eq!(books.environment(a).ended.load(Relaxed), end::REFUSED);
    reap(&books);
    holds(&books);
}

#[test]
fn contents_go_to_places_in_order() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    let b = child(&books, ROOT, SMALL);
    let foreign = go(&books, b, Call::Allocate, &[ANY, 0, 9]).unwrap();
    let word = go(&books, b, Call::Capability, &[9, RIGHT_WRITE]).unwrap();
    let (a, owned) = full(&books, SMALL);
    for page in &owned {
        memory.words[*page as usize][7].store(1000 + page, Relaxed);
    }
    // All but three are guaranteed, so it is known which are taken.
    for (index, page) in owned[3..].iter().enumerate() {
        set_guaranteed(&books, a, index, address::GUARANTEED, page << 12);
    }
    set_place(&books, a, 0, Place::PAGE, foreign, word ^ 1);
    set_place(&books, a, 1, Place::NOWHERE, 0, 0);
    set_place(&books, a, 2, Place::PAGE, owned[5], 0);
    set_place(&books, a, 3, Place::PAGE, 1 << 20, 0);
    set_place(&books, a, 4, Place::PAGE, foreign, word);
    assert_eq!(revoke(&books, a, call::PAGES, 3), Ok(0));
    pass(&books, 0, 9);
    let entries = [0, 1, 2].map(|index| entry(&books, a, index));
    let places = entries.map(|entry| (entry.place.kind, u64::from(entry.place.number)));
    assert_eq!(
        places,
        [
            (Place::PAGE, owned[5]),
            (Place::PAGE, foreign),
            (Place::NOWHERE, 0)
        ]
    );
    assert!(entries.iter().all(|entry| entry.place.capability == 0));
    for entry in &entries[..2] {
        let place = &memory.words[entry.place.number as usize];
        assert_eq!(place[7].load(Relaxed), 1000 + u64::from(entry.number));
    }
    for (index, kind) in [(0, Place::PAGE), (2, Place::USED), (4, Place::USED)] {
        let at = offset_of!(Context, places) + index * size_of::<Place>();
        assert_eq!(get(&books, a, at) as u32, kind);
    }
    holds(&books);
}

#[test]
fn bindings_are_broken_by_force() {
    let memory = world::machine(1024);
    let here = memory.processor(0);
    let books = here.books();
    let a = child(
        &books,
        ROOT,
        Share {
            pages: (8, 9),
            ..SMALL
        },
    );
    tables(&books, a);
    let victim = page(&books, a);
    for index in 0..200 {
        assert_eq!(map(&books, a, 0x1000 + index * 4096, victim, 0), Ok(0));
    }
    here.enter(a);
    here.access(0x1000, true).expect("mapped").store(5, Relaxed);
    // Its tables and its context are 6, so one page more is beyond.
    go(&books, ROOT, Call::Quota, &[a.into(), call::PAGES, 6, 9]).expect("less");
    assert_eq!(revoke(&books, a, call::PAGES, 1), Ok(0));
    pass(&books, 0, 9);
    assert_ne!(pages(&books, a), 6, "64 bindings at a time");
    pass(&books, 0, 10);
    assert_eq!(pages(&books, a), 6);
    assert!(
        here.access(0x1000, false).is_none(),
        "nobody knows it any more"
    );
    assert_eq!(go(&books, a, Call::Unmap, &[0x1000]), Err(Error::Unmapped));
    holds(&books);
}

#[test]
fn the_repossession_vector_wraps() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    let (a, _) = full(
        &books,
        Share {
            pages: (2, 42),
            ..SMALL
        },
    );
    assert_eq!(revoke(&books, a, call::PAGES, 20), Ok(0));
    pass(&books, 0, 9);
    assert_eq!(pages(&books, a), 26, "16 at a tick");
    pass(&books, 0, 1);
    assert_eq!(get(&books, a, offset_of!(Context, repossessions)), 20);
    let numbers: Vec<u32> = (0..16)
        .map(|index| entry(&books, a, index).number)
        .collect();
    assert!(
        numbers
            .iter()
            .all(|page| books.pages[*page as usize].owner.load(Relaxed) == 0)
    );
    // The environment may store what it likes there.
    set(&books, a, offset_of!(Context, repossessions), u64::MAX);
    assert_eq!(revoke(&books, a, call::PAGES, 2), Ok(0));
    pass(&books, 0, 9);
    assert_eq!(get(&books, a, offset_of!(Context, repossessions)), 1);
    assert_ne!(entry(&books, a, 15).number, numbers[15]);
    holds(&books);
}

#[test]
fn slices_are_taken_too() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    let a = child(
        &books,
        ROOT,
        Share {
            slices: (2, 5),
            ..SMALL
        },
    );
    for position in [10, 20, 30] {
        go(&books, a, Call::TakeSlice, &[1, position]).expect("a slice");
    }
    go(&books, a, Call::TakeSlice, &[0, 7]).expect("a slice");
    assert_eq!(revoke(&books, a, call::SLICES, 3), Err(Error::Quota));
    assert_eq!(revoke(&books, a, call::SLICES, 2), Ok(0));
    assert_eq!(get(&books, a, offset_of!(Context, asked_slices)), 2);
    assert_eq!(go(&books, a, Call::FreeSlice, &[0, 7]), Ok(0));
    assert_eq!(get(&books, a, offset_of!(Context, asked_slices)), 1);
    pass(&books, 0, 9);
    let taken = entry(&books, a, 0);
    assert_eq!((taken.kind, taken.number), (Repossession::SLICE, 256 + 30));
    assert_eq!(books.environment(a).slices.load(Relaxed), 2);
    assert_eq!(books.machine.slices[1][30].owner.load(Relaxed), 0);
    holds(&books);
}

#[test]
fn who_is_below_its_reservation_gets_a_page_in_the_end() {
    let memory = world::machine(64);
    let here = memory.processor(0);
    let books = here.books();
    let good = child(
        &books,
        ROOT,
        Share {
            pages: (10, 10),
            ..SMALL
        },
    );
    let hog = child(
        &books,
        ROOT,
        Share {
            pages: (2, 60),
            ..SMALL
        },
    );
    let less = child(
        &books,
        ROOT,
        Share {
            pages: (2, 5),
            ..SMALL
        },
    );
    for _ in 0..3 {
        page(&books, less);
    }
    while go(&books, hog, Call::Allocate, &[ANY]).is_ok() {}
    let most = pages(&books, hog);
    let want = || go(&books, good, Call::Allocate, &[ANY]);
    assert_eq!(
        go(&books, hog, Call::Allocate, &[ANY]),
        Err(Error::Exhausted)
    );
    for got in 0..8 {
        assert_eq!(want(), Err(Error::Again));
        assert_eq!(want(), Err(Error::Again));
        assert_eq!(
            get(&books, hog, offset_of!(Context, asked_pages)),
            1,
            "one for one"
        );
        assert_eq!(get(&books, less, offset_of!(Context, asked_pages)), 0);
        pass(&books, 0, 9);
        assert_eq!(pages(&books, hog), most - 1 - got);
        // Whoever is not below its reservation leaves the page to who waits for it.
        assert_eq!(
            go(&books, hog, Call::Allocate, &[ANY]),
            Err(Error::Exhausted)
        );
        assert!(want().is_ok());
    }
    assert_eq!(want(), Err(Error::Quota));
    holds(&books);
}

#[test]
fn a_page_is_kept_for_a_while_only() {
    let memory = world::machine(64);
    let here = memory.processor(0);
    let books = here.books();
    let good = child(
        &books,
        ROOT,
        Share {
            pages: (10, 10),
            ..SMALL
        },
    );
    let hog = child(
        &books,
        ROOT,
        Share {
            pages: (2, 60),
            ..SMALL
        },
    );
    while go(&books, hog, Call::Allocate, &[ANY]).is_ok() {}
    assert_eq!(go(&books, good, Call::Allocate, &[ANY]), Err(Error::Again));
    pass(&books, 0, 9);
    assert_eq!(
        go(&books, hog, Call::Allocate, &[ANY]),
        Err(Error::Exhausted)
    );
    pass(&books, 0, 256);
    assert!(
        go(&books, hog, Call::Allocate, &[ANY]).is_ok(),
        "nobody came for it"
    );
}
