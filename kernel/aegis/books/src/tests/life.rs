//! Environments: birth, quotas, control, death.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::call::{self, ANY, RIGHT_CONTROL, RIGHT_READ, RIGHT_WRITE};
use postern_aegis_abi::records::{claim, end};
use postern_aegis_abi::{Call, Context, Error, ROOT};

use super::machine::Processor;
use super::world::{self, SMALL, Share, child, get, holds, map, page, reap, tables};
use crate::Books;

type World<'a> = Books<'a, Processor<'a>>;

fn go(books: &World<'_>, who: u16, what: Call, arguments: &[u64]) -> Result<u64, Error> {
    world::call(books, who, what, arguments)
}

fn reserved(books: &World<'_>, who: u16) -> (u32, u32, u32) {
    let record = books.environment(who);
    (
        record.pages_reserved.load(Relaxed),
        record.slices_reserved.load(Relaxed),
        record.environments_limit.load(Relaxed),
    )
}

#[test]
fn a_child_costs_its_maker_and_gives_all_back() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    assert_eq!(reserved(&books, ROOT), (252, 128, 254));
    let free = books.machine.free.load(Relaxed);
    let a = child(&books, ROOT, SMALL);
    holds(&books);
    assert_eq!(reserved(&books, ROOT), (244, 124, 249));
    let b = child(
        &books,
        a,
        Share {
            pages: (4, 5),
            slices: (1, 1),
            environments: 0,
        },
    );
    assert_eq!(reserved(&books, a), (4, 3, 3));
    holds(&books);
    tables(&books, a);
    let mapped = page(&books, a);
    assert_eq!(map(&books, a, 0x5000, mapped, 0), Ok(0));
    go(&books, b, Call::TakeSlice, &[1, ANY]).expect("a slice");
    holds(&books);
    assert_eq!(go(&books, ROOT, Call::Destroy, &[a.into()]), Ok(0));
    assert!(!books.lives(a));
    assert!(books.lives(b), "until somebody reaps");
    reap(&books);
    assert!(!books.lives(b));
    holds(&books);
    assert_eq!(reserved(&books, ROOT), (252, 128, 254));
    assert_eq!(books.machine.free.load(Relaxed), free);
    assert_eq!(books.environment(b).ended.load(Relaxed), end::DESTROYED);
    let events = get(&books, ROOT, offset_of!(Context, events));
    assert_ne!(events & Context::EVENT_CHILD, 0);
}

#[test]
fn quotas_are_carved_from_the_makers() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    let a = u64::from(child(&books, ROOT, SMALL));
    let other = child(&books, ROOT, SMALL);
    let quota = |who: u16, resource: u64, reserved: u64, limit: u64| {
        go(&books, who, Call::Quota, &[a, resource, reserved, limit])
    };
    assert_eq!(quota(other, call::PAGES, 8, 16), Err(Error::Denied));
    assert_eq!(
        quota(a as u16, call::PAGES, 8, 16),
        Err(Error::Denied),
        "not its own"
    );
    assert_eq!(
        quota(ROOT, call::PAGES, 1, 16),
        Err(Error::Argument),
        "two at least"
    );
    assert_eq!(quota(ROOT, call::PAGES, 17, 16), Err(Error::Argument));
    assert_eq!(
        quota(ROOT, call::PAGES, 8, 253),
        Err(Error::Quota),
        "beyond the maker's limit"
    );
    assert_eq!(
        quota(ROOT, call::PAGES, 244, 252),
        Err(Error::Quota),
        "two for the maker"
    );
    assert_eq!(quota(ROOT, call::PAGES, 242, 252), Ok(0));
    assert_eq!(reserved(&books, ROOT).0, 2);
    assert_eq!(quota(ROOT, call::PAGES, 243, 252), Err(Error::Quota));
    holds(&books);
    assert_eq!(quota(ROOT, call::PAGES, 2, 2), Ok(0));
    assert_eq!(quota(ROOT, call::SLICES, 124, 128), Ok(0));
    assert_eq!(quota(ROOT, call::SLICES, 125, 128), Err(Error::Quota));
    assert_eq!(quota(ROOT, call::ENVIRONMENTS, 0, 248), Ok(0));
    assert_eq!(quota(ROOT, call::ENVIRONMENTS, 0, 249), Err(Error::Quota));
    assert_eq!(quota(ROOT, call::HOLDINGS, 0, 127), Ok(0));
    assert_eq!(quota(ROOT, call::HOLDINGS, 0, 128), Err(Error::Quota));
    assert_eq!(quota(ROOT, 5, 0, 1), Err(Error::Argument));
    assert_eq!(
        quota(ROOT, call::PAGES, 1 << 32, 1 << 32),
        Err(Error::Argument)
    );
    let nobody = [99, call::PAGES, 2, 2];
    assert_eq!(
        go(&books, ROOT, Call::Quota, &nobody),
        Err(Error::NoEnvironment)
    );
    holds(&books);
}

#[test]
fn an_inheritance_raises_a_limit() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    let a = child(&books, ROOT, SMALL);
    let share = Share {
        pages: (4, 4),
        slices: (2, 2),
        environments: 0,
    };
    let b = child(&books, a, share);
    for resource in [call::PAGES, call::SLICES] {
        go(&books, ROOT, Call::Quota, &[a.into(), resource, 2, 2]).expect("less");
    }
    go(&books, a, Call::Destroy, &[b.into()]).expect("it ends");
    reap(&books);
    let record = books.environment(a);
    assert_eq!(
        (
            record.pages_limit.load(Relaxed),
            record.slices_limit.load(Relaxed)
        ),
        (6, 4)
    );
    holds(&books);
}

#[test]
fn birth_needs_pages_and_quotas() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    let poor = child(
        &books,
        ROOT,
        Share {
            environments: 1,
            pages: (3, 16),
            ..SMALL
        },
    );
    let create =
        |who: u16, context: u64, table: u64| go(&books, who, Call::Create, &[context, table]);
    let (context, table) = (page(&books, poor), page(&books, poor));
    assert_eq!(
        create(poor, context, table),
        Err(Error::Quota),
        "two stay reserved"
    );
    go(
        &books,
        ROOT,
        Call::Quota,
        &[poor.into(), call::PAGES, 4, 16],
    )
    .expect("more");
    assert_eq!(create(poor, context, context), Err(Error::Argument));
    assert_eq!(create(poor, context, 256), Err(Error::Argument));
    assert_eq!(
        create(poor, context, page(&books, ROOT)),
        Err(Error::Denied)
    );
    let own = books.environment(poor).context.load(Relaxed) >> 12;
    assert_eq!(create(poor, own, table), Err(Error::Kind));
    tables(&books, poor);
    assert_eq!(map(&books, poor, 0x1000, context, 0), Ok(0));
    assert_eq!(create(poor, context, table), Err(Error::InUse));
    assert_eq!(go(&books, poor, Call::Unmap, &[0x1000]), Ok(0));
    holds(&books);
    let born = create(poor, context, table).expect("a child");
    assert_eq!(
        books.environment(born as u16).claim.load(Relaxed),
        claim::FROZEN
    );
    let (context, table) = (page(&books, poor), page(&books, poor));
    assert_eq!(
        create(poor, context, table),
        Err(Error::Quota),
        "no more environments"
    );
    holds(&books);
}

#[test]
fn all_numbers_can_be_had_again_and_again() {
    let memory = world::machine(1024);
    let here = memory.processor(0);
    let books = here.books();
    let share = Share {
        pages: (2, 2),
        slices: (0, 0),
        environments: 0,
    };
    for _ in 0..3 {
        for _ in 0..254 {
            child(&books, ROOT, share);
        }
        let (context, table) = (page(&books, ROOT), page(&books, ROOT));
        assert_eq!(
            go(&books, ROOT, Call::Create, &[context, table]),
            Err(Error::Quota)
        );
        holds(&books);
        for number in 2..256 {
            go(&books, ROOT, Call::Destroy, &[number]).expect("it ends");
        }
        reap(&books);
        holds(&books);
        let freed = [context, table].map(|page| go(&books, ROOT, Call::Free, &[page]));
        assert_eq!(freed, [Ok(0), Ok(0)]);
    }
}

#[test]
fn no_birth_comes_twice() {
    let memory = world::machine(64);
    let here = memory.processor(0);
    let books = here.books();
    books.machine.births.store(u32::MAX - 1, Relaxed);
    let last = child(&books, ROOT, SMALL);
    assert_eq!(books.environment(last).birth.load(Relaxed), u32::MAX);
    let (context, table) = (page(&books, ROOT), page(&books, ROOT));
    let more = go(&books, ROOT, Call::Create, &[context, table]);
    assert_eq!(more, Err(Error::Exhausted));
    holds(&books);
}

#[test]
fn whom_capabilities_let_act() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    let (a, b) = (child(&books, ROOT, SMALL), child(&books, ROOT, SMALL));
    let control = go(
        &books,
        ROOT,
        Call::Capability,
        &[0, RIGHT_CONTROL, a.into()],
    )
    .unwrap();
    let own = go(&books, a, Call::Capability, &[0, RIGHT_CONTROL, 0]);
    assert_eq!(own, Ok(control));
    let freeze = |who: u16, word: u64| {
        go(
            &books,
            who,
            Call::Set,
            &[a.into(), call::SET_FROZEN, 1, word],
        )
    };
    assert_eq!(freeze(b, 0), Err(Error::Denied));
    assert_eq!(freeze(b, control ^ 1), Err(Error::Denied));
    let read = go(&books, a, Call::Capability, &[7, RIGHT_READ]).unwrap();
    assert_eq!(freeze(b, read), Err(Error::Denied));
    assert_eq!(freeze(b, control), Ok(0));
    let denied = go(&books, b, Call::Capability, &[0, RIGHT_CONTROL, a.into()]);
    assert_eq!(denied, Err(Error::Denied));
    // The number is given to another one: the word is worth nothing.
    assert_eq!(go(&books, b, Call::Destroy, &[a.into(), control]), Ok(0));
    assert_eq!(freeze(b, control), Err(Error::NoEnvironment));
    reap(&books);
    let share = Share {
        pages: (2, 2),
        slices: (0, 0),
        environments: 0,
    };
    loop {
        let next = child(&books, ROOT, share);
        if next == a {
            break;
        }
        go(&books, ROOT, Call::Destroy, &[next.into()]).expect("it ends");
        reap(&books);
    }
    assert_eq!(freeze(b, control), Err(Error::Denied));
    assert_eq!(freeze(ROOT, 0), Ok(0));
    holds(&books);
}

#[test]
fn a_dead_owners_pages_are_nobodys() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    let (a, b) = (child(&books, ROOT, SMALL), child(&books, ROOT, SMALL));
    tables(&books, b);
    let shared = go(&books, a, Call::Allocate, &[ANY, 5, 6]).unwrap();
    let word = go(&books, a, Call::Capability, &[6, RIGHT_WRITE]).unwrap();
    assert_eq!(map(&books, b, 0x1000, shared, 0), Err(Error::Denied));
    assert_eq!(map(&books, b, 0x1000, shared, word), Ok(0));
    go(&books, a, Call::Destroy, &[]).expect("itself");
    reap(&books);
    assert_eq!(
        go(&books, b, Call::Unmap, &[0x1000]),
        Err(Error::Unmapped),
        "it was broken"
    );
    assert!(map(&books, b, 0x1000, shared, word).is_err());
    assert_eq!(
        go(&books, b, Call::Give, &[shared, a.into()]),
        Err(Error::NoEnvironment)
    );
    holds(&books);
}

#[test]
fn one_that_runs_ends_when_its_processor_leaves_it() {
    let memory = world::machine(256);
    let (root, here) = (memory.processor(0), memory.processor(1));
    let books = root.books();
    let a = child(&books, ROOT, SMALL);
    go(&books, a, Call::TakeSlice, &[1, ANY]).expect("a slice");
    world::run(&here, a);
    assert_eq!(
        go(&books, ROOT, Call::Map, &[0x1000, 0, 0, a.into()]),
        Err(Error::Busy)
    );
    assert_eq!(go(&books, ROOT, Call::Destroy, &[a.into()]), Ok(0));
    for _ in 0..10 {
        assert!(books.reap(), "it has its tables loaded");
    }
    assert_eq!(books.environment(a).claim.load(Relaxed), 2);
    assert_eq!(world::next(&here), None);
    reap(&books);
    assert_eq!(books.environment(a).claim.load(Relaxed), claim::FREE);
    holds(&books);
}

#[test]
fn servers_are_forgotten_when_they_end() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    let (a, b) = (child(&books, ROOT, SMALL), child(&books, ROOT, SMALL));
    let set = |who: u16, server: u64| {
        go(
            &books,
            who,
            Call::Set,
            &[a.into(), call::SET_SERVER, server],
        )
    };
    assert_eq!(set(ROOT, a.into()), Err(Error::Argument));
    assert_eq!(set(ROOT, 77), Err(Error::NoEnvironment));
    assert_eq!(set(b, b.into()), Err(Error::Denied));
    assert_eq!(set(ROOT, b.into()), Ok(0));
    go(&books, ROOT, Call::Destroy, &[b.into()]).expect("it ends");
    reap(&books);
    assert_eq!(books.environment(a).server.load(Relaxed), 0);
    holds(&books);
}

#[test]
fn the_root_can_end() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    let a = child(&books, ROOT, SMALL);
    child(
        &books,
        a,
        Share {
            pages: (2, 2),
            slices: (0, 0),
            environments: 0,
        },
    );
    books.end(ROOT, end::EXCEPTION + 14, 0x1234);
    reap(&books);
    assert_eq!(books.machine.free.load(Relaxed), 252);
    let root = books.environment(ROOT);
    assert_eq!(root.ended.load(Relaxed), end::EXCEPTION + 14);
    assert_eq!(root.ended_at.load(Relaxed), 0x1234);
    assert_eq!(root.claim.load(Relaxed), claim::FREE);
    books.end(ROOT, end::EXCEPTION, 0);
    assert_eq!(books.machine.dying.load(Relaxed), 0, "nobody ends twice");
}

/// Whoever sees that somebody is dead finds why, and where.
#[test]
fn who_ends_has_a_reason() {
    let memory = world::machine(256);
    let (one, two) = (memory.processor(0), memory.processor(1));
    for at in 0..300 {
        let a = child(&one.books(), ROOT, SMALL);
        std::thread::scope(|scope| {
            scope.spawn(|| one.books().end(a, end::EXCEPTION, at));
            let books = two.books();
            while books.lives(a) {
                core::hint::spin_loop();
            }
            let record = books.environment(a);
            assert_eq!(record.ended.load(Relaxed), end::EXCEPTION);
            assert_eq!(record.ended_at.load(Relaxed), at);
        });
        reap(&one.books());
    }
}

/// Whoever claims an environment for a call gives back the claim that it found, so a thaw in
/// between would be lost: it is refused.
#[test]
fn a_thaw_is_not_lost_on_who_is_claimed_for_a_call() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    let a = child(&books, ROOT, SMALL);
    let record = books.environment(a);
    let thaw = || go(&books, ROOT, Call::Set, &[a.into(), call::SET_FROZEN, 0]);
    // Processor 1 does something to it.
    record.claim.store(2, Relaxed);
    assert_eq!(thaw(), Err(Error::Again));
    // Processor 1 runs it.
    books.machine.processor[1].current.store(a.into(), Relaxed);
    assert_eq!(thaw(), Ok(0));
    books.machine.processor[1].current.store(0, Relaxed);
    record.claim.store(claim::FROZEN, Relaxed);
    assert_eq!(thaw(), Ok(0));
    assert_eq!(record.claim.load(Relaxed), claim::IDLE);
}
