//! Swap servers: pages that are taken, environments that are submitted; emergencies.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;
use std::vec::Vec;

use postern_aegis_abi::call::{self, ANY};
use postern_aegis_abi::context::Place;
use postern_aegis_abi::records::{claim, end};
use postern_aegis_abi::{Call, Context, Error, Mapping, ROOT, address};

use super::revocation::{entry, full, go, pages, pass, revoke, set_guaranteed, set_place};
use super::world::{self, SMALL, Share, child, get, holds, map, page, reap, set, tables};
use crate::{Emergency, Tick};

#[test]
fn a_swap_server_gets_the_page_and_is_asked() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    let server = child(
        &books,
        ROOT,
        Share {
            pages: (2, 4),
            ..SMALL
        },
    );
    let (a, owned) = full(&books, SMALL);
    set_place(&books, a, 0, Place::SERVER, server.into(), 0);
    assert_eq!(revoke(&books, a, call::PAGES, 1), Ok(0));
    pass(&books, 0, 9);
    assert_eq!(
        entry(&books, a, 0).place.kind,
        Place::NOWHERE,
        "it is not its server"
    );
    go(&books, a, Call::Set, &[0, call::SET_SERVER, server.into()]).expect("its server");
    for page in &owned {
        memory.words[*page as usize][3].store(77, Relaxed);
    }
    assert_eq!(revoke(&books, a, call::PAGES, 3), Ok(0));
    pass(&books, 0, 9);
    let entries = [1, 2, 3].map(|index| entry(&books, a, index));
    let kinds = entries.map(|entry| entry.place.kind);
    assert_eq!(
        kinds,
        [Place::SERVER, Place::SERVER, Place::NOWHERE],
        "it has room for two"
    );
    for entry in &entries[..2] {
        let page = entry.number as usize;
        assert_eq!(books.pages[page].owner.load(Relaxed), server);
        assert_eq!(memory.words[page][3].load(Relaxed), 77);
    }
    assert_eq!(get(&books, server, offset_of!(Context, asked_pages)), 1);
    let events = Context::EVENT_SERVER | Context::EVENT_REVOKE;
    assert_eq!(get(&books, server, offset_of!(Context, events)), events);
    pass(&books, 0, 9);
    assert_eq!(pages(&books, server), 3);
    holds(&books);
}

#[test]
fn whole_environments_are_swapped() {
    let memory = world::machine(512);
    let here = memory.processor(0);
    let books = here.books();
    let server = child(
        &books,
        ROOT,
        Share {
            pages: (2, 300),
            ..SMALL
        },
    );
    let a = child(
        &books,
        ROOT,
        Share {
            pages: (20, 210),
            ..SMALL
        },
    );
    tables(&books, a);
    let owned: Vec<u64> = (0..200).map(|_| page(&books, a)).collect();
    assert_eq!(map(&books, a, 0x1000, owned[0], 0), Ok(0));
    let submit = |who: u16| go(&books, who, Call::Submit, &[a.into()]);
    assert_eq!(submit(ROOT), Err(Error::NoEnvironment), "it has no server");
    go(
        &books,
        ROOT,
        Call::Set,
        &[a.into(), call::SET_SERVER, server.into()],
    )
    .expect("a server");
    assert_eq!(submit(server), Err(Error::Denied), "not yet");
    assert_eq!(submit(ROOT), Err(Error::Again));
    assert_eq!(books.environment(a).claim.load(Relaxed), claim::SUBMITTED);
    while let Err(error) = submit(server) {
        assert_eq!(error, Error::Again);
        holds(&books);
    }
    assert_eq!((pages(&books, a), pages(&books, server)), (6, 202));
    let event = get(&books, server, offset_of!(Context, events));
    assert_eq!(event, Context::EVENT_SERVER);
    // The server has authority now: it gives a page back, maps it, and lets it go on.
    assert_eq!(go(&books, server, Call::Give, &[owned[0], a.into()]), Ok(0));
    let mapping = Mapping::new(owned[0] as u32, Mapping::WRITE).0;
    assert_eq!(
        go(&books, server, Call::Map, &[0x2000, mapping, 0, a.into()]),
        Ok(0)
    );
    let thaw = [a.into(), call::SET_FROZEN, 0];
    assert_eq!(go(&books, server, Call::Set, &thaw), Ok(0));
    assert_eq!(books.environment(a).claim.load(Relaxed), claim::IDLE);
    assert_eq!(
        go(&books, server, Call::Set, &thaw),
        Err(Error::Denied),
        "no more"
    );
    holds(&books);
}

#[test]
fn who_submits_itself_stands_still_when_it_is_left() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    let server = child(
        &books,
        ROOT,
        Share {
            pages: (2, 30),
            ..SMALL
        },
    );
    let (a, _) = full(&books, SMALL);
    go(&books, a, Call::TakeSlice, &[0, ANY]).expect("a slice");
    world::run(&here, a);
    assert_eq!(go(&books, a, Call::Submit, &[]), Err(Error::NoEnvironment));
    go(&books, a, Call::Set, &[0, call::SET_SERVER, server.into()]).expect("a server");
    assert_eq!(go(&books, a, Call::Submit, &[]), Ok(0));
    assert_eq!(books.tick(0), Tick::Next);
    world::next(&here);
    assert_eq!(books.environment(a).claim.load(Relaxed), claim::SUBMITTED);
    assert_eq!((pages(&books, a), pages(&books, server)), (2, 16));
    holds(&books);
}

#[test]
fn emergencies() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    let a = child(&books, ROOT, SMALL);
    go(&books, a, Call::TakeSlice, &[0, ANY]).expect("a slice");
    let at = address::GUARANTEED + 0x3000;
    for level in [3, 2, 1] {
        let (table, links) = (page(&books, a), page(&books, a));
        go(&books, a, Call::Table, &[at, level, table, links]).expect("a table");
        if level != 1 {
            go(&books, a, Call::Free, &[links]).expect("memory");
        }
    }
    let handler = page(&books, a);
    world::run(&here, a);
    set_guaranteed(
        &books,
        a,
        3,
        at,
        Mapping::new(handler as u32, Mapping::EXECUTE).0,
    );
    assert_eq!(books.emergency(a, at + 0x123, 0x55), Emergency::Restored);
    assert!(here.walk(at).is_some());
    set(
        &books,
        a,
        offset_of!(Context, emergency),
        0xffff_8000_0000_4000,
    );
    assert_eq!(
        books.emergency(a, at + 0x123, 0x55),
        Emergency::Entry(0x4000),
        "it is there"
    );
    set(&books, a, offset_of!(Context, emergency), 0);
    let server = child(&books, ROOT, SMALL);
    go(&books, a, Call::Set, &[0, call::SET_SERVER, server.into()]).expect("a server");
    assert_eq!(books.emergency(a, 0x5000, 0x55), Emergency::Gone);
    world::next(&here);
    assert_eq!(books.environment(a).claim.load(Relaxed), claim::SUBMITTED);
    assert_eq!(
        go(&books, server, Call::Submit, &[a.into()]),
        Ok(0),
        "it takes the memory"
    );
    assert_eq!(books.pages[handler as usize].owner.load(Relaxed), server);
    holds(&books);
    go(&books, server, Call::Destroy, &[]).expect("itself");
    reap(&books);
    go(&books, ROOT, Call::Set, &[a.into(), call::SET_FROZEN, 0]).expect("it thaws");
    world::run(&here, a);
    assert_eq!(books.emergency(a, 0x5000, 0x55), Emergency::Gone);
    let record = books.environment(a);
    assert_eq!(record.ended.load(Relaxed), end::EMERGENCY);
    assert_eq!(record.ended_at.load(Relaxed), 0x55);
    world::next(&here);
    reap(&books);
    holds(&books);
}
