//! Handlers' pages and windows: given, bound, broken, ended, and what runs cost.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::address::MESSAGE;
use postern_aegis_abi::mapping::Request;
use postern_aegis_abi::records::{HoldingKind, Kind, run};
use postern_aegis_abi::{Call, Error, Mapping, ROOT, call};

use super::machine::Processor;
use super::world::{SMALL, Share, call, child, holds, machine, page, reap, run};
use crate::{Books, Code, Run};

type World<'a> = Books<'a, Processor<'a>>;

const CODE: Code = Code {
    from: 0x1_1000,
    to: 0x1_3000,
    entry: 0x1_2000,
    stack: 0x1_4000,
    path: 7,
};
const FREE: u64 = 0x10_0000;

fn make(books: &World<'_>, owner: u16) -> (u64, [u32; 4]) {
    let pages = core::array::from_fn(|_| page(books, owner) as u32);
    let number = books.make_handler(owner, &pages, &CODE, |_, _| ());
    (number.expect("a handler") as u64, pages)
}

fn kind(books: &World<'_>, page: u32) -> Option<Kind> {
    Kind::of(books.pages[page as usize].kind.load(Relaxed))
}

#[test]
fn pages_are_given_all_or_none() {
    let memory = machine(64);
    let here = memory.processor(0);
    let books = here.books();
    let own: [u32; 4] = core::array::from_fn(|_| page(&books, ROOT) as u32);
    let [a, b, c, d] = own;
    let refuse = |pages: &[u32], code: &Code, error| {
        let got = books.make_handler(ROOT, pages, code, |_, _| panic!("filled"));
        assert_eq!(got, Err(error), "{pages:?}");
        for page in own {
            assert_eq!(kind(&books, page), Some(Kind::Data));
        }
        holds(&books);
    };
    refuse(&[], &CODE, Error::Argument);
    refuse(&[a, b, c], &CODE, Error::Argument);
    refuse(&[a, b, c, c], &CODE, Error::Kind);
    refuse(&[a, a, c, d], &CODE, Error::Kind);
    refuse(&[a, b, c, 0], &CODE, Error::Denied);
    refuse(&[a, b, c, 64], &CODE, Error::Argument);
    let (from, to) = (CODE.from, CODE.to);
    for (from, to) in [
        (from + 8, to),
        (to, from),
        (from, u32::MAX),
        (MESSAGE as u32, from),
    ] {
        refuse(&own, &Code { from, to, ..CODE }, Error::Argument);
    }
    let (number, pages) = make(&books, ROOT);
    holds(&books);
    for page in pages {
        let freed = call(&books, ROOT, Call::Free, &[page.into()]);
        assert_eq!(freed, Err(Error::Kind));
    }
    assert_eq!(call(&books, ROOT, Call::Drop, &[number, 0]), Ok(0));
    for page in pages {
        assert_eq!(kind(&books, page), Some(Kind::Data));
    }
    holds(&books);
}

#[test]
fn a_window_has_what_its_owner_may_bind() {
    let memory = machine(64);
    let here = memory.processor(0);
    let books = here.books();
    run(&here, ROOT);
    let other = child(&books, ROOT, SMALL);
    let (number, [table, links, ..]) = make(&books, ROOT);
    let own = page(&books, ROOT) as u32;
    let bind = |caller, offset, mapping| books.window(caller, number, offset, mapping, 0);
    let write = Mapping::new(own, Mapping::WRITE);
    assert_eq!(bind(other, FREE, write), Err(Error::Denied));
    for offset in [FREE + 1, MESSAGE, 1 << 32, u64::MAX, CODE.from.into()] {
        assert_eq!(
            bind(ROOT, offset, write),
            Err(Error::Argument),
            "{offset:#x}"
        );
    }
    for page in [table, links, 0] {
        let look = Mapping::new(page, 0);
        assert_eq!(bind(ROOT, FREE, look), Err(Error::Kind));
    }
    assert_eq!(bind(ROOT, FREE, write), Ok(()));
    assert_eq!(bind(ROOT, FREE + 4096, write), Ok(()));
    holds(&books);
    let bindings = || books.pages[own as usize].bindings.load(Relaxed);
    assert_eq!(bindings(), 2);
    assert_eq!(bind(ROOT, FREE, Request::UNMAP), Ok(()));
    assert_eq!(bind(ROOT, FREE, Request::UNMAP), Err(Error::Unmapped));
    assert_eq!(bindings(), 1);
    // Another's, by its capability, until that one takes it back.
    let theirs = page(&books, ROOT) as u32;
    let given = call(&books, ROOT, Call::Give, &[theirs.into(), other.into()]);
    assert_eq!(given, Ok(0));
    let named = call(&books, other, Call::Rename, &[theirs.into(), 0, 5]);
    assert_eq!(named, Ok(0));
    let right = call::RIGHT_WRITE;
    let word = call(&books, other, Call::Capability, &[5, right, 0]).expect("a capability");
    let mapping = Mapping::new(theirs, Mapping::WRITE);
    assert_eq!(
        books.window(ROOT, number, FREE, mapping, word ^ 1),
        Err(Error::Denied)
    );
    assert_eq!(books.window(ROOT, number, FREE, mapping, word), Ok(()));
    holds(&books);
    assert_eq!(call(&books, other, Call::Break, &[theirs.into()]), Ok(0));
    assert_eq!(bind(ROOT, FREE, Request::UNMAP), Err(Error::Unmapped));
    assert_eq!(call(&books, ROOT, Call::Free, &[own.into()]), Ok(0));
    holds(&books);
}

#[test]
fn an_owner_that_dies_leaves_no_window() {
    let memory = machine(64);
    let here = memory.processor(0);
    let books = here.books();
    run(&here, ROOT);
    let owner = child(&books, ROOT, SMALL);
    let quota = [owner.into(), call::HOLDINGS, 0, 2];
    assert_eq!(call(&books, ROOT, Call::Quota, &quota), Ok(0));
    let (number, pages) = make(&books, owner);
    let own = page(&books, owner) as u32;
    let write = Mapping::new(own, Mapping::WRITE);
    assert_eq!(books.window(owner, number, FREE, write, 0), Ok(()));
    holds(&books);
    assert_eq!(call(&books, ROOT, Call::Destroy, &[owner.into()]), Ok(0));
    reap(&books);
    for page in pages.into_iter().chain([own]) {
        assert_eq!(kind(&books, page), Some(Kind::Free));
    }
    let record = books.holding(number as usize);
    assert_eq!(record.kind.load(Relaxed), HoldingKind::Free as u32);
    holds(&books);
}

#[test]
fn runs_cost_their_owner_slices() {
    let memory = machine(64);
    let here = memory.processor(0);
    let books = here.books();
    let (number, [table, ..]) = make(&books, ROOT);
    let handler = Run {
        handler: number as usize,
        owner: ROOT,
        table,
        entry: CODE.entry,
        stack: CODE.stack,
        path: CODE.path,
    };
    let owes = || books.environment(ROOT).forfeits.load(Relaxed);
    // A slice is 1000 here.
    for (time, wanted) in [(999, 0), (1, 1), (1999, 2), (1, 3), (5000, 8)] {
        books.has_run(&handler, time, None);
        assert_eq!(owes(), wanted);
    }
    books.has_run(&handler, 10, Some((run::LONG, 0x1_2000)));
    assert_eq!(owes(), 9);
    let record = books.holding(number as usize);
    assert_eq!(record.ended.load(Relaxed), run::LONG);
    assert_eq!(record.arrived.load(Relaxed), 6);
    // It is no endpoint's, and would not run for one.
    assert!(books.handler_of((number as usize, 0)).is_none());
    assert!(books.handler_of((usize::MAX, 0)).is_none());
}

/// A frame of an endpoint that has ended is not for the handler of one that has its number now.
#[test]
fn a_handler_runs_for_the_endpoint_that_was_meant() {
    let memory = machine(64);
    let here = memory.processor(0);
    let books = here.books();
    let (handler, _) = make(&books, ROOT);
    let bind = || {
        let number = books.new_endpoint(ROOT, b"udp", 0, 0).expect("an endpoint");
        let direct = [number as u64, 0, handler];
        books
            .direct(ROOT, direct[0], direct[1], direct[2])
            .expect("directed");
        (number, books.holding(number).first.load(Relaxed))
    };
    let first = bind();
    let runs = |endpoint| books.handler_of(endpoint).map(|run| run.handler as u64);
    assert_eq!(runs(first), Some(handler));
    books.end_endpoint(first.0, first.1);
    assert_eq!(runs(first), None);
    let second = bind();
    assert_eq!(second.0, first.0, "the number is used again");
    assert_eq!((runs(first), runs(second)), (None, Some(handler)));
    holds(&books);
}

#[test]
fn another_handler_for_each_run_costs_as_much() {
    let memory = machine(64);
    let here = memory.processor(0);
    let books = here.books();
    run(&here, ROOT);
    let maker = child(&books, ROOT, SMALL);
    let owes = |who| books.environment(who).forfeits.load(Relaxed);
    // A slice is 1000 here.
    for (runs, wanted) in [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)] {
        let (number, [table, ..]) = make(&books, ROOT);
        let handler = Run {
            handler: number as usize,
            owner: ROOT,
            table,
            entry: CODE.entry,
            stack: CODE.stack,
            path: CODE.path,
        };
        books.has_run(&handler, 900, None);
        assert_eq!(call(&books, ROOT, Call::Drop, &[number, 0]), Ok(0));
        assert_eq!(owes(ROOT), wanted, "{runs}");
    }
    // Nor another child for each.
    for wanted in [0, 1, 2] {
        let least = Share {
            pages: (2, 4),
            slices: (0, 0),
            environments: 0,
        };
        let owner = child(&books, maker, least);
        books.charge_runs(owner, 900, 0);
        assert_eq!(owes(owner), 0);
        let ended = call(&books, maker, Call::Destroy, &[owner.into()]);
        assert_eq!(ended, Ok(0));
        reap(&books);
        assert_eq!(owes(maker), wanted);
    }
    holds(&books);
}
