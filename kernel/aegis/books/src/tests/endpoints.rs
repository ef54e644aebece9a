//! Endpoints: who makes them, whose rings they name, and what they are known by.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::records::CONSOLE;
use postern_aegis_abi::{Call, Error, FILTER, ROOT, call};

use super::machine::Processor;
use super::world::{self, SMALL, call as go, child, holds};
use crate::Books;

/// A child that may have so many holdings.
fn child_with(books: &Books<'_, Processor<'_>>, holdings: u64) -> u16 {
    let one = child(books, ROOT, SMALL);
    let quota = [one.into(), call::HOLDINGS, 0, holdings];
    go(books, ROOT, Call::Quota, &quota).expect("a quota");
    one
}

#[test]
fn texts_ages_and_rings() {
    let memory = world::machine(128);
    let here = memory.processor(0);
    let books = here.books();
    let one = child_with(&books, 3);
    let page = books.allocate(one, None, 0, 0).expect("a page");
    let others = books.allocate(ROOT, None, 0, 0).expect("a page");
    let new = |text: &[u8], ring: u64| books.new_endpoint(one, text, 7, ring);
    assert_eq!(new(&[b'u'; FILTER + 1], 0), Err(Error::Argument));
    assert_eq!(new(b"udp", others.into()), Err(Error::Denied));
    assert_eq!(new(b"udp", u64::MAX), Err(Error::Argument));
    assert_eq!(new(b"udp", 1), Err(Error::Kind), "the kernel's");
    assert_eq!(books.endpoints().1, 0);
    let first = new(&[b'u'; FILTER], page.into()).expect("the longest");
    let second = new(b"", 0).expect("the shortest");
    let third = new(b"udp port 7", 0).expect("another");
    assert_eq!(new(b"udp", 0), Err(Error::Quota));
    holds(&books);
    // A number that is used again is another endpoint, and the youngest.
    let age = books.holding(first).first.load(Relaxed);
    assert!(books.is_bound(first, age));
    books.end_endpoint(first, age + 1);
    assert!(books.is_bound(first, age), "another one was meant");
    books.end_endpoint(first, age);
    books.end_endpoint(first, age);
    let again = new(b"tcp", 0).expect("room again");
    assert_eq!(again, first);
    assert!(!books.is_bound(first, age));
    let (list, count) = books.endpoints();
    let numbers: std::vec::Vec<_> = list[..count].iter().map(|e| e.number).collect();
    assert_eq!(numbers, [second, third, again]);
    for (endpoint, text) in list[..count].iter().zip(["", "udp port 7", "tcp"]) {
        let all = books.filter(endpoint);
        assert_eq!(&all[..endpoint.length], text.as_bytes());
        assert!(all[endpoint.length..].iter().all(|byte| *byte == 0));
        assert_eq!((endpoint.owner, endpoint.priority), (one, 7));
    }
    holds(&books);
}

#[test]
fn who_directs_frames_where() {
    let memory = world::machine(128);
    let here = memory.processor(0);
    let books = here.books();
    let one = child_with(&books, 3);
    let page = books.allocate(one, None, 0, 0).expect("a page");
    let number = books.new_endpoint(one, b"udp", 0, 0).expect("an endpoint");
    let direct = |who: u16, ring: u32, handler: usize| {
        books.direct(who, number as u64, ring.into(), handler as u64)
    };
    assert_eq!(direct(ROOT, 0, 0), Err(Error::Denied));
    assert_eq!(direct(ROOT, page, 0), Err(Error::Denied));
    assert_eq!(direct(one, 0, number), Err(Error::Kind), "no handler");
    assert_eq!(direct(one, 0, 100), Err(Error::Argument), "nothing");
    assert_eq!(books.direct(one, CONSOLE as u64, 0, 0), Err(Error::Kind));
    assert_eq!(books.direct(one, u64::MAX, 0, 0), Err(Error::Argument));
    assert_eq!(books.holding(number).ring.load(Relaxed), 0);
    assert_eq!(direct(one, page, 0), Ok(()));
    assert_eq!(books.holding(number).ring.load(Relaxed), page);
}

#[test]
fn who_takes_long_pays() {
    let memory = world::machine(128);
    let here = memory.processor(0);
    let books = here.books();
    let one = child(&books, ROOT, SMALL);
    let owed = |who: u16| books.environment(who).forfeits.load(Relaxed);
    // A second of a clock that is not known costs nothing.
    books.machine.clock.frequency.store(0, Relaxed);
    books.pays_for(one, 1 << 40);
    assert_eq!(owed(one), 0);
    books.machine.clock.frequency.store(1_000_000_000, Relaxed);
    books.machine.slice.store(1_000_000, Relaxed);
    books.pays_for(one, 999_999);
    assert_eq!(owed(one), 0);
    books.pays_for(one, 3_500_000);
    assert_eq!(owed(one), 3);
    books.pays_for(one, u64::MAX);
    assert!(owed(one) < 100, "a loaded host ends nobody for good");
    books.pays_for(ROOT, u64::MAX);
    assert_eq!(owed(ROOT), 0);
}
