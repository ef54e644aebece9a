//! Holdings: who may do what, and what becomes of them.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::call::{self, RIGHT_WRITE};
use postern_aegis_abi::records::{CLOCK, CONSOLE, DISK, HoldingKind};
use postern_aegis_abi::{Call, Context, Error, ROOT};

use super::machine::Processor;
use super::world::{self, BLOCKS, SMALL, Share, call as go, child, get, holds, reap};
use crate::Books;

type World<'a> = Books<'a, Processor<'a>>;

/// A child that may have some holdings.
fn holder(books: &World<'_>, maker: u16, limit: u64) -> u16 {
    let least = Share {
        pages: (3, 16),
        slices: (0, 8),
        environments: 1,
    };
    let one = child(books, maker, if maker == ROOT { SMALL } else { least });
    let quota = [one.into(), call::HOLDINGS, 0, limit];
    go(books, maker, Call::Quota, &quota).expect("a quota");
    one
}

fn owner(books: &World<'_>, number: usize) -> u16 {
    books.holding(number).owner.load(Relaxed)
}

fn give(books: &World<'_>, who: u16, number: usize, to: u16) -> Result<u64, Error> {
    go(books, who, Call::GiveHolding, &[number as u64, to.into()])
}

#[test]
fn ranges_are_cut_and_joined() {
    let memory = world::machine(128);
    let here = memory.processor(0);
    let books = here.books();
    let disk = DISK as u64;
    let split = |number: u64, blocks| go(&books, ROOT, Call::Split, &[number, blocks]);
    let join = |one: u64, other: u64| go(&books, ROOT, Call::Join, &[one, other]);
    for blocks in [0, BLOCKS, BLOCKS + 1, u64::MAX] {
        assert_eq!(split(disk, blocks), Err(Error::Argument));
    }
    assert_eq!(split(CLOCK as u64, 1), Err(Error::Kind));
    assert_eq!(split(77, 1), Err(Error::Argument), "a free number");
    let rest = split(disk, 10).expect("a second range");
    let last = split(rest, 1).expect("a third");
    holds(&books);
    assert_eq!(split(rest, 1), Err(Error::Argument), "a single block");
    for (one, other) in [(disk, last), (rest, disk), (rest, rest), (last, disk)] {
        assert_eq!(join(one, other), Err(Error::Argument), "{one} {other}");
    }
    assert_eq!(join(disk, CONSOLE as u64), Err(Error::Kind));
    assert_eq!(join(rest, last), Ok(0));
    assert_eq!(join(rest, last), Err(Error::Argument), "it is free");
    assert_eq!(join(disk, rest), Ok(0));
    holds(&books);
    assert_eq!(books.holding(DISK).count.load(Relaxed), BLOCKS);
}

#[test]
fn quotas_bound_what_is_taken_and_given() {
    let memory = world::machine(128);
    let here = memory.processor(0);
    let books = here.books();
    let a = holder(&books, ROOT, 2);
    let none = child(&books, ROOT, SMALL);
    assert_eq!(give(&books, ROOT, DISK, none), Err(Error::Quota));
    assert_eq!(give(&books, ROOT, DISK, 200), Err(Error::NoEnvironment));
    assert_eq!(give(&books, a, DISK, a), Err(Error::Denied));
    assert_eq!(give(&books, ROOT, DISK, a), Ok(0));
    assert_eq!(
        give(&books, ROOT, DISK, a),
        Err(Error::Denied),
        "given away"
    );
    let split = || go(&books, a, Call::Split, &[DISK as u64, 3]);
    let rest = split().expect("a second one");
    assert_eq!(go(&books, a, Call::Split, &[rest, 1]), Err(Error::Quota));
    assert_eq!(give(&books, a, DISK, a), Ok(0), "itself, though it is full");
    holds(&books);
}

#[test]
fn capabilities_are_of_a_name_and_a_right() {
    let memory = world::machine(128);
    let here = memory.processor(0);
    let books = here.books();
    let (a, b) = (holder(&books, ROOT, 2), holder(&books, ROOT, 2));
    give(&books, ROOT, CLOCK, a).expect("a clock");
    let set = |who: u16, word: u64| go(&books, who, Call::SetClock, &[5000, word]);
    assert_eq!(set(ROOT, 0), Err(Error::Denied), "it was given away");
    assert_eq!(set(a, 0), Ok(0));
    go(&books, a, Call::RenameHolding, &[CLOCK as u64, 8, 7]).expect("names");
    let mint = |who: u16, name: u64, right: u64| {
        go(&books, who, Call::Capability, &[name, right]).expect("a word")
    };
    for word in [
        0,
        1,
        mint(a, 8, call::RIGHT_READ),
        mint(a, 7, call::RIGHT_READ),
    ] {
        assert_eq!(set(b, word), Err(Error::Denied));
    }
    assert_eq!(set(b, mint(b, 7, RIGHT_WRITE)), Err(Error::Denied));
    let word = mint(a, 7, RIGHT_WRITE);
    assert_eq!(set(b, word), Ok(0));
    go(&books, a, Call::RenameHolding, &[CLOCK as u64, 0, 9]).expect("names");
    assert_eq!(set(b, word), Err(Error::Denied), "an old name");
    go(&books, a, Call::RenameHolding, &[CLOCK as u64, 0, 1]).expect("names");
    assert_eq!(set(b, 0), Ok(0), "everybody");
    give(&books, a, CLOCK, b).expect("its owner gives it");
    assert_eq!(set(a, word), Err(Error::Denied), "names are nobody's");
    assert_eq!(set(b, 0), Ok(0));
    holds(&books);
}

#[test]
fn the_console_is_written_by_everybody_until_it_is_renamed() {
    let memory = world::machine(128);
    let here = memory.processor(0);
    let books = here.books();
    let a = child(&books, ROOT, SMALL);
    let console = (CONSOLE as u64, HoldingKind::Console);
    let may = |who, write| books.may_use(who, console, write, 0);
    assert_eq!(may(a, true), Ok(CONSOLE));
    assert_eq!(
        may(a, false),
        Err(Error::Denied),
        "what is typed is not everybody's"
    );
    assert_eq!(may(ROOT, false), Ok(CONSOLE));
    go(&books, ROOT, Call::RenameHolding, &[CONSOLE as u64]).expect("no names");
    assert_eq!(
        (may(a, true), may(a, false)),
        (Err(Error::Denied), Err(Error::Denied))
    );
    assert_eq!(may(ROOT, true), Ok(CONSOLE));
}

#[test]
fn what_the_dead_held_goes_to_who_made_them() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    let a = holder(&books, ROOT, 5);
    let b = holder(&books, a, 3);
    for (number, to) in [(CONSOLE, a), (DISK, a)] {
        give(&books, ROOT, number, to).expect("given");
        give(&books, a, number, b).expect("given on");
    }
    let rest = go(&books, b, Call::Split, &[DISK as u64, 3]).expect("its third") as usize;
    // The maker has room for one: for the others it gets the quota, too.
    let quota = [b.into(), call::HOLDINGS, 0, 4];
    go(&books, a, Call::Quota, &quota).expect("a quota");
    go(&books, ROOT, Call::Destroy, &[b.into()]).expect_err("not its child");
    go(&books, a, Call::Destroy, &[b.into()]).expect("it ends");
    reap(&books);
    assert_eq!(
        [
            owner(&books, CONSOLE),
            owner(&books, DISK),
            owner(&books, rest)
        ],
        [a, a, a]
    );
    assert_eq!(books.environment(a).holdings_limit.load(Relaxed), 5);
    holds(&books);
    // Of one that lives it goes on to who has room; the root's own stays.
    let b = holder(&books, a, 2);
    give(&books, a, DISK, b).expect("given");
    go(&books, ROOT, Call::Quota, &[a.into(), call::HOLDINGS, 0, 2]).expect("a lower quota");
    assert_eq!(go(&books, b, Call::Drop, &[DISK as u64]), Ok(0));
    assert_eq!(owner(&books, DISK), ROOT);
    assert_eq!(
        go(&books, a, Call::Drop, &[DISK as u64]),
        Err(Error::Denied)
    );
    assert_eq!(
        go(&books, ROOT, Call::Drop, &[CONSOLE as u64]),
        Ok(0),
        "its maker"
    );
    assert_eq!(go(&books, ROOT, Call::Drop, &[CONSOLE as u64]), Ok(0));
    assert_eq!(owner(&books, CONSOLE), ROOT);
    assert_eq!(go(&books, ROOT, Call::Drop, &[99]), Err(Error::Argument));
    holds(&books);
}

/// A maker that has given all its quota away gets back what its child held, not its own maker: the
/// quota comes with it.
#[test]
fn a_maker_loses_nothing_to_its_own_maker() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    let a = holder(&books, ROOT, 2);
    give(&books, ROOT, DISK, a).expect("given");
    let rest = go(&books, a, Call::Split, &[DISK as u64, 3]).expect("its rest") as usize;
    let b = holder(&books, a, 1);
    give(&books, a, rest, b).expect("given on");
    holds(&books);
    go(&books, a, Call::Destroy, &[b.into()]).expect("it ends");
    reap(&books);
    assert_eq!([owner(&books, DISK), owner(&books, rest)], [a, a]);
    let record = books.environment(a);
    assert_eq!(record.holdings_limit.load(Relaxed), 2);
    assert_eq!(record.holdings.load(Relaxed), 2);
    holds(&books);
}

#[test]
fn endpoints_and_handlers_end_with_their_owner() {
    let memory = world::machine(128);
    let here = memory.processor(0);
    let books = here.books();
    let a = holder(&books, ROOT, 3);
    let take = |who, kind| {
        let _lock = books.lock_holdings();
        books.take_holding(who, kind)
    };
    let handler = take(a, HoldingKind::Handler).expect("a handler");
    let endpoint = take(a, HoldingKind::Endpoint).expect("an endpoint");
    let record = books.holding(endpoint);
    record.handler.store(handler as u32, Relaxed);
    record.ring.store(50, Relaxed);
    assert_eq!(give(&books, a, handler, ROOT), Err(Error::Kind));
    let names = |number: usize| go(&books, a, Call::RenameHolding, &[number as u64, 1, 1]);
    assert_eq!(
        (names(handler), names(endpoint)),
        (Err(Error::Kind), Err(Error::Kind))
    );
    assert_eq!(go(&books, a, Call::Drop, &[handler as u64]), Ok(0));
    assert_eq!(record.handler.load(Relaxed), 0, "it has none now");
    assert_eq!(record.ring.load(Relaxed), 50);
    holds(&books);
    assert_eq!(give(&books, a, endpoint, ROOT), Ok(0));
    assert_eq!(record.ring.load(Relaxed), 0, "the ring was the giver's");
    assert_eq!(give(&books, ROOT, endpoint, a), Ok(0));
    take(a, HoldingKind::Handler).expect("one more");
    go(&books, ROOT, Call::Destroy, &[a.into()]).expect("it ends");
    reap(&books);
    assert_eq!(books.environment(ROOT).holdings.load(Relaxed), 3);
    holds(&books);
}

#[test]
fn alarms_are_told_once_when_they_are_due() {
    let memory = world::machine(128);
    let here = memory.processor(0);
    let books = here.books();
    let (a, b) = (child(&books, ROOT, SMALL), child(&books, ROOT, SMALL));
    let told = |who: u16| {
        let at = offset_of!(Context, events);
        let bits = get(&books, who, at);
        world::set(&books, who, at, 0);
        bits & Context::EVENT_ALARM != 0
    };
    let set = |who: u16, time: u64| go(&books, who, Call::Alarm, &[time]).expect("an alarm");
    let at = |time: u64| {
        memory.time.store(time, Relaxed);
        books.alarms();
        holds(&books);
        [told(a), told(b)]
    };
    set(a, 100);
    set(b, 200);
    assert_eq!(at(99), [false, false]);
    assert_eq!(at(100), [true, false]);
    assert_eq!(at(150), [false, false]);
    set(a, 120);
    set(b, 300);
    assert_eq!(at(200), [true, false], "in the past; put off");
    set(b, 0);
    assert_eq!(at(400), [false, false], "never");
    set(b, u64::MAX);
    assert_eq!(at(u64::MAX - 1), [false, false]);
    set(a, 500);
    go(&books, ROOT, Call::Destroy, &[a.into()]).expect("it ends");
    assert_eq!(at(500), [false, false], "it has ended");
    reap(&books);
    holds(&books);
}

#[test]
fn the_time_of_day_follows_from_the_counter() {
    let memory = world::machine(64);
    let here = memory.processor(0);
    let books = here.books();
    memory.time.store(10 * 50, Relaxed);
    let set = |seconds: u64| go(&books, ROOT, Call::SetClock, &[seconds]);
    let epoch = || books.machine.clock.epoch.load(Relaxed);
    assert_eq!((set(7050), epoch()), (Ok(0), 7000));
    assert_eq!((set(20), epoch()), (Ok(0), 0), "before the machine started");
    assert_eq!((set(u64::MAX), epoch()), (Ok(0), u64::MAX - 50));
}
