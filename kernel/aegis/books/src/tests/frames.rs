//! Frames that are sent: how many are under way, and what is told of them, also when their owner
//! has ended.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::device::FRAMES;
use postern_aegis_abi::records::claim;
use postern_aegis_abi::{Call, Context, Error, ROOT};

use super::world::{self, SMALL, call as go, child, get, holds, page, reap, set};

#[test]
fn so_many_are_under_way_and_each_is_told() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = &here.books();
    let own = child(books, ROOT, SMALL);
    let record = books.environment(own);
    let sent = || get(books, own, offset_of!(Context, sent));
    let birth = books.begin_frame(own, true).expect("the first");
    assert_eq!(books.begin_frame(own, true), Err(Error::Again));
    for _ in 1..FRAMES {
        assert_eq!(books.begin_frame(own, false), Ok(birth));
    }
    assert_eq!(books.begin_frame(own, false), Err(Error::Again));
    books.cancel_frame(own, birth);
    assert_eq!(
        (record.frames.load(Relaxed), sent()),
        (FRAMES as u32 - 1, 0)
    );
    books.end_frame(own, birth);
    assert_eq!(
        (record.frames.load(Relaxed), sent()),
        (FRAMES as u32 - 2, 1)
    );
    let events = get(books, own, offset_of!(Context, events));
    assert_eq!(events, Context::EVENT_SENT);
    // Who does not want to hear of it has the count.
    set(books, own, offset_of!(Context, events), 0);
    set(
        books,
        own,
        offset_of!(Context, ignored),
        Context::EVENT_SENT,
    );
    books.end_frame(own, birth);
    assert_eq!(
        (get(books, own, offset_of!(Context, events)), sent()),
        (0, 2)
    );
    books.raise(own, Context::EVENT_SENT | Context::EVENT_DISK);
    let events = get(books, own, offset_of!(Context, events));
    assert_eq!(events, Context::EVENT_DISK);
    holds(books);
}

/// Who ends with a page lent is not gone before it comes back; a later owner of the number hears
/// nothing of it.
#[test]
fn an_end_waits_for_the_device() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = &here.books();
    let own = child(books, ROOT, SMALL);
    let lent = page(books, own);
    let birth = books.begin_frame(own, false).expect("a frame");
    books.lend(own, lent as u32, false, 0).expect("its page");
    assert_eq!(go(books, own, Call::Free, &[lent]), Err(Error::Again));
    assert_eq!(books.lend(own, lent as u32, false, 0), Err(Error::Kind));
    go(books, ROOT, Call::Destroy, &[own.into()]).expect("its end");
    (0..1000).for_each(|_| _ = books.reap());
    let state = || books.environment(own).claim.load(Relaxed);
    assert_ne!(state(), claim::FREE);
    assert_eq!(books.begin_frame(own, false), Err(Error::NoEnvironment));
    books.take_back(lent as u32);
    reap(books);
    assert_eq!(state(), claim::FREE);
    // Numbers go round.
    let mut next = child(books, ROOT, SMALL);
    while next != own {
        go(books, ROOT, Call::Destroy, &[next.into()]).expect("another's end");
        reap(books);
        next = child(books, ROOT, SMALL);
    }
    books.begin_frame(next, false).expect("a frame");
    books.end_frame(own, birth);
    assert_eq!(books.environment(next).frames.load(Relaxed), 1);
    assert_eq!(get(books, next, offset_of!(Context, sent)), 0);
    holds(books);
}

/// A device that is not done with the pages of one who ended keeps only that one's number.
#[test]
fn others_end_while_one_waits_for_the_device() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = &here.books();
    let own = child(books, ROOT, SMALL);
    let other = child(books, ROOT, SMALL);
    assert!(own < other, "the first is looked at first");
    let lent = page(books, own);
    books.lend(own, lent as u32, false, 0).expect("its page");
    for who in [own, other] {
        go(books, ROOT, Call::Destroy, &[who.into()]).expect("its end");
    }
    (0..1000).for_each(|_| _ = books.reap());
    let state = |who| books.environment(who).claim.load(Relaxed);
    assert_eq!(state(other), claim::FREE);
    assert_ne!(state(own), claim::FREE);
    books.take_back(lent as u32);
    reap(books);
    assert_eq!(state(own), claim::FREE);
    holds(books);
}
