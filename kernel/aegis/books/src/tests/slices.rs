//! The processor as a vector of time slices: shares, excess, forfeits, donation.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;
use std::collections::HashMap;
use std::vec::Vec;

use postern_aegis_abi::call::{self, ANY};
use postern_aegis_abi::records::{claim, end};
use postern_aegis_abi::{Call, Context, EXCESS, Error, ROOT};

use super::machine::Processor;
use super::world::{self, BEGIN, END, NOTIFY, SMALL, Share, call, child, get, holds, next, set};
use crate::{Books, Tick};

fn take(books: &Books<'_, Processor<'_>>, environment: u16, processor: u64, positions: &[u64]) {
    for position in positions {
        call(books, environment, Call::TakeSlice, &[processor, *position]).expect("a slice");
    }
}

/// Three children with positions 3:2:1 of processor 1.
fn three(books: &Books<'_, Processor<'_>>) -> [u16; 3] {
    let all = [0; 3].map(|_| child(books, ROOT, SMALL));
    take(books, all[0], 1, &[1, 20, 40]);
    take(books, all[1], 1, &[7, 33]);
    take(books, all[2], 1, &[50]);
    all
}

/// A processor's clock ticks while somebody runs, who does something at each.
fn ticks(here: &Processor<'_>, count: usize, mut at_end: impl FnMut(u16) -> bool) -> Vec<u16> {
    let books = here.books();
    let state = &books.machine.processor[here.number];
    let mut ran = Vec::new();
    for _ in 0..count {
        let current = state.current.load(Relaxed) as u16;
        ran.push(current);
        let goes_on = match books.tick(here.number) {
            Tick::Stay => !at_end(current),
            Tick::Tell(_) => !at_end(current),
            Tick::Next => false,
        };
        if !goes_on {
            next(here);
        }
    }
    ran
}

fn count(ran: &[u16]) -> HashMap<u16, usize> {
    ran.iter().fold(HashMap::new(), |mut counts, who| {
        *counts.entry(*who).or_default() += 1;
        counts
    })
}

#[test]
fn shares_are_positions() {
    let memory = world::machine(256);
    let (root, here) = (memory.processor(0), memory.processor(1));
    let [a, b, c] = three(&root.books());
    next(&here);
    let ran = ticks(&here, 600, |_| true);
    let counts = count(&ran);
    assert_eq!((counts[&a], counts[&b], counts[&c]), (300, 200, 100));
    let mut until = HashMap::new();
    for who in ran {
        *until.entry(who).or_insert(0) += 1;
        let of = |who| until.get(&who).copied().unwrap_or(0) as i64;
        assert!(
            (of(a) - 3 * of(c)).abs() <= 3 && (of(b) - 2 * of(c)).abs() <= 2,
            "{until:?}"
        );
    }
    holds(&here.books());
}

#[test]
fn who_exceeds_pays_exactly() {
    let memory = world::machine(256);
    let (root, here) = (memory.processor(0), memory.processor(1));
    let [a, b, c] = three(&root.books());
    next(&here);
    // c overruns every slice of its own by two ticks, then yields.
    let mut late = 0;
    let ran = ticks(&here, 6000, |who| {
        if who != c {
            return true;
        }
        late = (late + 1) % 3;
        late == 0
    });
    let counts = count(&ran);
    // One round with it takes 5 + 3 slices and it forfeits the next two.
    assert!(
        counts[&c].abs_diff(6000 * 3 / (5 * 3 + 3)) <= 3,
        "{counts:?}"
    );
    assert!(
        (counts[&a] as f64 / counts[&b] as f64 - 1.5).abs() < 0.01,
        "{counts:?}"
    );
    let record = here.books().environment(c);
    assert_eq!(record.ended.load(Relaxed), end::NOT);
    let told = get(&here.books(), c, offset_of!(Context, events));
    assert_ne!(told & Context::EVENT_FORFEITED, 0);
    // Its share of the time is what it would have been without: 1 of 6.
    assert!(counts[&c].abs_diff(1000) <= 3, "{counts:?}");
}

#[test]
fn who_never_stops_ends() {
    let memory = world::machine(256);
    let (root, here) = (memory.processor(0), memory.processor(1));
    let [a, b, c] = three(&root.books());
    next(&here);
    let ran = ticks(&here, 600, |who| who != b);
    let counts = count(&ran);
    assert_eq!(counts[&b] as u32, EXCESS + 2);
    assert_eq!(root.books().environment(b).ended.load(Relaxed), end::EXCESS);
    assert!(
        (counts[&a] as f64 / counts[&c] as f64 - 3.0).abs() < 0.1,
        "{counts:?}"
    );
    world::reap(&root.books());
    holds(&root.books());
    assert!(!root.books().lives(b));
}

#[test]
fn excess_counts_one_after_the_other_only() {
    let memory = world::machine(256);
    let (root, here) = (memory.processor(0), memory.processor(1));
    let [_, b, _] = three(&root.books());
    next(&here);
    let mut late = 0;
    ticks(&here, 3000, |who| {
        late = if who == b { late + 1 } else { 0 };
        who != b || late == EXCESS as usize
    });
    assert_eq!(root.books().environment(b).ended.load(Relaxed), end::NOT);
}

#[test]
fn without_a_handler_the_slice_just_ends() {
    let memory = world::machine(256);
    let (root, here) = (memory.processor(0), memory.processor(1));
    let books = here.books();
    let [a, ..] = three(&root.books());
    world::run(&here, a);
    assert_eq!(books.tick(1), Tick::Tell(END));
    world::run(&here, a);
    set(&books, a, offset_of!(Context, end), 1 << 47);
    assert_eq!(books.tick(1), Tick::Next, "the upper half's bits are lost");
    assert_eq!(books.environment(a).excess.load(Relaxed), 0);
}

#[test]
fn begins_are_told_of_events_and_who_has_no_begin_is_skipped() {
    let memory = world::machine(256);
    let (root, here) = (memory.processor(0), memory.processor(1));
    let books = root.books();
    let [a, b, c] = three(&books);
    take(&books, a, 1, &[2]);
    set(&books, b, offset_of!(Context, begin), 0);
    for _ in 0..30 {
        let turn = next(&here).expect("a or c");
        assert_ne!(turn.environment, b);
        assert_eq!(turn.entry, BEGIN);
    }
    books.raise(c, Context::EVENT_CHILD);
    world::run(&here, a);
    loop {
        let turn = next(&here).unwrap();
        if turn.environment == c {
            assert_eq!(turn.entry, NOTIFY);
            break;
        }
    }
    assert_eq!(books.environment(b).claim.load(Relaxed), claim::IDLE);
    holds(&books);
}

#[test]
fn a_synchronous_transfer_donates_the_future_too() {
    let memory = world::machine(256);
    let (root, here) = (memory.processor(0), memory.processor(1));
    let books = root.books();
    let [a, b, c] = three(&books);
    world::run(&here, c);
    here.books().donate(1, a, true).expect("a transfer");
    assert_eq!(books.machine.slices[1][50].runs.load(Relaxed), a);
    assert_eq!(books.environment(c).claim.load(Relaxed), claim::IDLE);
    let ran = ticks(&here, 600, |_| true);
    let counts = count(&ran);
    assert_eq!((counts[&a], counts[&b], counts.get(&c)), (400, 200, None));
    // The owner takes it back by giving it to itself; c cannot run here any more to do so.
    call(&books, c, Call::GiveSlice, &[1, 50, 0]).expect("its own");
    let counts = count(&ticks(&here, 600, |_| true));
    assert!(counts[&c].abs_diff(100) <= 1, "{counts:?}");
    holds(&books);
}

#[test]
fn an_asynchronous_callee_gives_away_no_future() {
    let memory = world::machine(256);
    let (root, here) = (memory.processor(0), memory.processor(1));
    let books = root.books();
    let [a, b, c] = three(&books);
    world::run(&here, c);
    here.books().donate(1, a, false).expect("a transfer");
    assert_eq!(books.machine.slices[1][50].runs.load(Relaxed), c);
    here.books().donate(1, b, true).expect("a transfer");
    assert_eq!(
        books.machine.slices[1][50].runs.load(Relaxed),
        c,
        "not a's to give"
    );
    assert_eq!(here.books().donate(1, b, true), Err(Error::Busy));
    assert_eq!(here.books().donate(1, 99, true), Err(Error::NoEnvironment));
    holds(&books);
}

#[test]
fn who_was_told_pays_and_not_whom_it_calls() {
    let memory = world::machine(256);
    let (root, here) = (memory.processor(0), memory.processor(1));
    let books = root.books();
    let [a, b, _] = three(&books);
    world::run(&here, a);
    assert_eq!(books.tick(1), Tick::Tell(END));
    here.books().donate(1, b, false).expect("a transfer");
    assert_eq!(books.tick(1), Tick::Tell(END), "b is told now");
    let forfeits = |who: u16| books.environment(who).forfeits.load(Relaxed);
    assert_eq!((forfeits(a), forfeits(b)), (1, 0));
    // Two that pass a slice on between them end both: excess is not forgotten within it.
    for _ in 0..4 * EXCESS {
        let current = books.machine.processor[1].current.load(Relaxed) as u16;
        let other = if current == a { b } else { a };
        if here.books().donate(1, other, false).is_err() {
            break;
        }
        if books.tick(1) == Tick::Next {
            break;
        }
    }
    let ended = |who: u16| books.environment(who).ended.load(Relaxed);
    assert!(ended(a) == end::EXCESS || ended(b) == end::EXCESS);
}

/// c passes its slice on, when it is told, to helpers without slices, each of whom overruns it. It
/// may free the slice first and take it again later.
fn pass_on(free: bool) {
    let memory = world::machine(512);
    let (root, here) = (memory.processor(0), memory.processor(1));
    let books = root.books();
    let [a, b, c] = three(&books);
    let helpers = [0; 12].map(|_| child(&books, ROOT, SMALL));
    next(&here);
    let mut passed = 0;
    let ran = ticks(&here, 6000, |who| {
        if who == a || who == b {
            return true;
        }
        passed = (passed + 1) % helpers.len();
        if who == c && free {
            // Nobody's slice, then, is overrun.
            call(&books, c, Call::FreeSlice, &[1, 50]).expect("its own");
        }
        // The last one yields.
        let done = passed == 0 || here.books().donate(1, helpers[passed], false).is_err();
        if done && free {
            call(&books, c, Call::TakeSlice, &[1, 50]).expect("free again");
        }
        done
    });
    let counts = count(&ran);
    let (others, own) = (counts[&a] + counts[&b], counts[&c]);
    assert!((6000 - others).abs_diff(1000) <= 15, "{own} and {others}");
    holds(&books);
}

#[test]
fn helpers_bring_no_time() {
    pass_on(false);
    pass_on(true);
}

#[test]
fn debts_are_not_given_away() {
    let memory = world::machine(256);
    let (root, here) = (memory.processor(0), memory.processor(1));
    let books = root.books();
    let a = child(&books, ROOT, SMALL);
    let share = Share {
        pages: (2, 8),
        slices: (2, 2),
        environments: 0,
    };
    let own = child(&books, a, share);
    let friend = child(&books, ROOT, SMALL);
    take(&books, own, 1, &[9]);
    world::run(&here, own);
    assert_eq!(books.tick(1), Tick::Tell(END));
    assert_eq!(books.tick(1), Tick::Stay);
    assert_eq!(books.tick(1), Tick::Stay);
    let give = || call(&books, own, Call::GiveSlice, &[1, 9, friend.into()]);
    assert_eq!(give(), Err(Error::Again));
    assert_eq!(next(&here), None, "one is paid");
    assert_eq!(give(), Err(Error::Again));
    // Its death does not free its maker of the other one.
    call(&books, a, Call::Destroy, &[own.into()]).expect("it ends");
    world::reap(&books);
    assert_eq!(books.environment(a).forfeits.load(Relaxed), 1);
    take(&books, a, 1, &[9]);
    assert_eq!(next(&here), None);
    assert_eq!(next(&here).map(|turn| turn.environment), Some(a));
    holds(&books);
}

#[test]
fn a_dead_callee_gives_the_slice_back() {
    let memory = world::machine(256);
    let (root, here) = (memory.processor(0), memory.processor(1));
    let books = root.books();
    let [a, _, c] = three(&books);
    world::run(&here, c);
    here.books().donate(1, a, true).expect("a transfer");
    call(&books, ROOT, Call::Destroy, &[a.into()]).expect("it ends");
    assert_eq!(books.tick(1), Tick::Next);
    world::run(&here, c);
    world::reap(&books);
    assert_eq!(books.machine.slices[1][50].runs.load(Relaxed), c);
    holds(&books);
}

#[test]
fn slices_have_owners_and_quotas() {
    let memory = world::machine(256);
    let root = memory.processor(0);
    let books = root.books();
    let [a, b, _] = three(&books);
    let go = |who: u16, what: Call, arguments: &[u64]| call(&books, who, what, arguments);
    assert_eq!(go(a, Call::TakeSlice, &[1, 7]), Err(Error::Taken));
    assert_eq!(go(a, Call::FreeSlice, &[1, 7]), Err(Error::Denied));
    assert_eq!(
        go(a, Call::GiveSlice, &[1, 7, b.into()]),
        Err(Error::Denied)
    );
    assert_eq!(go(a, Call::TakeSlice, &[0, ANY]), Ok(1));
    take(&books, a, 0, &[2, 3, 4, 5]);
    assert_eq!(go(a, Call::TakeSlice, &[0, ANY]), Err(Error::Quota));
    assert_eq!(go(b, Call::GiveSlice, &[1, 7, a.into()]), Err(Error::Quota));
    assert_eq!(go(a, Call::GiveSlice, &[0, 2, b.into()]), Ok(0));
    assert_eq!(
        go(a, Call::GiveSlice, &[0, 3, 200]),
        Err(Error::NoEnvironment)
    );
    assert_eq!(go(b, Call::FreeSlice, &[0, 2]), Ok(0));
    holds(&books);
}

#[test]
fn two_processors_run_nobody_twice() {
    let memory = world::machine(256);
    let here = [memory.processor(0), memory.processor(1)];
    let books = here[0].books();
    let both = child(
        &books,
        ROOT,
        Share {
            slices: (4, 100),
            ..SMALL
        },
    );
    for position in 0..50 {
        take(&books, both, 1, &[position]);
        take(&books, both, 0, &[position + 1]);
    }
    for round in 0..200 {
        let turns = [next(&here[round % 2]), next(&here[1 - round % 2])];
        let runs = turns.map(|turn| turn.map_or(0, |turn| turn.environment));
        assert!(runs[0] != runs[1] || runs[0] == 0);
        holds(&books);
    }
}

#[test]
fn freezing_waits_for_a_yield() {
    let memory = world::machine(256);
    let (root, here) = (memory.processor(0), memory.processor(1));
    let books = root.books();
    let [a, b, _] = three(&books);
    let freeze =
        |who: u16, what: u64, value: u64| call(&books, who, Call::Set, &[a.into(), what, value]);
    world::run(&here, a);
    assert_eq!(freeze(ROOT, call::SET_FROZEN, 1), Err(Error::Again));
    assert_eq!(freeze(b, call::SET_FROZEN, 1), Err(Error::Denied));
    next(&here);
    assert_eq!(books.environment(a).claim.load(Relaxed), claim::FROZEN);
    assert_eq!(freeze(ROOT, call::SET_FROZEN, 1), Ok(0));
    assert!(!count(&ticks(&here, 100, |_| true)).contains_key(&a));
    assert_eq!(freeze(ROOT, call::SET_FROZEN, 0), Ok(0));
    assert_eq!(count(&ticks(&here, 600, |_| true))[&a], 300);
    world::run(&here, b);
    assert_eq!(freeze(ROOT, call::SET_FROZEN, 1), Ok(0));
    assert_eq!(freeze(ROOT, call::SET_FROZEN, 2), Err(Error::Argument));
    holds(&books);
}

/// A processor that asks again and again who runs next, where nobody can, makes no time pass:
/// deadlines are counted in slices.
#[test]
fn asking_for_nobody_takes_no_time() {
    let memory = world::machine(256);
    let here = memory.processor(1);
    let books = here.books();
    let passed = || books.machine.processor[1].ticks.load(Relaxed);
    let before = passed();
    assert!((0..5).all(|_| books.next_turn(1).is_none()));
    assert_eq!(passed(), before);
    assert_eq!(books.tick(1), Tick::Next);
    assert_eq!(passed(), before + 1);
}
