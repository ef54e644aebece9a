//! What the disk is asked: against a model, and what is told.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;
use std::collections::HashMap;
use std::vec::Vec;

use postern_aegis_abi::call::{self, RIGHT_READ, RIGHT_WRITE};
use postern_aegis_abi::device::{REQUESTS, Request, Ring};
use postern_aegis_abi::records::{DISK, Kind};
use postern_aegis_abi::{Call, Context, Error, ROOT};

use super::machine::{Chance, Processor};
use super::world::{self, BLOCKS, SMALL, Share, call as go, child, holds, page, reap};
use crate::{Block, Books, Hardware};

type World<'a> = Books<'a, Processor<'a>>;

/// A request that the kernel takes for somebody: its place.
pub fn ask(here: &Processor<'_>, who: u16, request: &Request) -> Result<usize, Error> {
    let books = here.books();
    let _holdings = books.lock_holdings();
    let mut under_way = here.memory.under_way.lock().expect("it is whole");
    let (place, _) = books.take_request(&mut under_way, who, request)?;
    Ok(place)
}

/// The disk is done with a place.
pub fn done(here: &Processor<'_>, place: usize) {
    let mut under_way = here.memory.under_way.lock().expect("it is whole");
    here.books().request_is_done(&mut under_way, place, Ok(()));
}

/// The disk is done with all.
pub fn all_done(here: &Processor<'_>) {
    (0..64).for_each(|place| done(here, place));
}

/// Pages are lent, and requests counted, as they are under way; no two are that exclude each other.
pub fn check(here: &Processor<'_>) {
    let books = here.books();
    let under_way = here.memory.under_way.lock().expect("it is whole");
    let all: Vec<_> = under_way.taken().collect();
    let mut lent = HashMap::new();
    for (_, _, _, block) in &all {
        if let Some(page) = block.page() {
            *lent.entry(page as usize).or_insert(0) += 1;
        }
    }
    for (page, record) in books.pages.iter().enumerate() {
        let count = lent.get(&page).copied().unwrap_or(0);
        assert_eq!(books.lent[page].load(Relaxed), count, "{page}");
        let kind = Kind::of(record.kind.load(Relaxed));
        assert!(count == 0 || matches!(kind, Some(Kind::Data | Kind::Leaving)));
    }
    for number in (1..256).filter(|number| books.lives(*number)) {
        let record = books.environment(number);
        let birth = record.birth.load(Relaxed);
        let own =
            |(_, owner, born, _): &&(usize, u16, u32, Block)| *owner == number && *born == birth;
        let count = all.iter().filter(own).count();
        assert_eq!(record.requests.load(Relaxed) as usize, count, "{number}");
        let flushes = all.iter().filter(own).any(|one| one.3 == Block::Flush);
        assert!(!flushes || count == 1, "{number}: a flush is alone");
    }
    for (place, _, _, one) in &all {
        for (_, _, _, two) in all.iter().filter(|other| other.0 != *place) {
            let block = |block: &Block| match *block {
                Block::Read(number, _) => Some((number, false)),
                Block::Write(number, _) => Some((number, true)),
                Block::Flush => None,
            };
            if let (Some((one, writes)), Some((two, also))) = (block(one), block(two)) {
                assert!(one != two || !writes && !also, "{one} {two}");
            }
        }
    }
}

fn read(block: u64, page: u64) -> Request {
    Request {
        operation: Request::READ,
        holding: DISK as u64,
        block,
        page,
        ..Request::default()
    }
}

fn write(block: u64, page: u64) -> Request {
    Request {
        operation: Request::WRITE,
        ..read(block, page)
    }
}

const FLUSH: Request = Request {
    operation: Request::FLUSH,
    holding: DISK as u64,
    block: u64::MAX,
    page: u64::MAX,
    capability: 0,
    authority: 0,
    tag: 0,
};

#[test]
fn a_request_is_checked_before_anything_is_lent() {
    let memory = world::machine(128);
    let here = memory.processor(0);
    let books = here.books();
    let own = page(&books, ROOT);
    let a = child(&books, ROOT, SMALL);
    let others = page(&books, a);
    let right = read(3, own);
    let with = |change: fn(&mut Request)| {
        let mut wrong = right;
        change(&mut wrong);
        ask(&here, ROOT, &wrong)
    };
    assert_eq!(with(|one| one.operation = 3), Err(Error::Argument));
    assert_eq!(with(|one| one.holding = 1), Err(Error::Kind));
    assert_eq!(with(|one| one.holding = 90), Err(Error::Argument));
    assert_eq!(with(|one| one.holding = u64::MAX), Err(Error::Argument));
    assert_eq!(with(|one| one.block = BLOCKS), Err(Error::Argument));
    assert_eq!(with(|one| one.block = u64::MAX), Err(Error::Argument));
    assert_eq!(with(|one| one.page = 128), Err(Error::Argument));
    assert_eq!(with(|one| one.page = 1 << 32), Err(Error::Argument));
    assert_eq!(with(|one| one.page = 1), Err(Error::Kind), "the kernel's");
    assert_eq!(ask(&here, ROOT, &read(3, others)), Err(Error::Denied));
    let context = books.environment(ROOT).context.load(Relaxed) >> 12;
    assert_eq!(ask(&here, ROOT, &read(3, context)), Err(Error::Kind));
    assert_eq!(ask(&here, a, &read(3, others)), Err(Error::Denied));
    assert_eq!(ask(&here, a, &FLUSH), Err(Error::Denied));
    check(&here);
    assert_eq!(books.environment(ROOT).requests.load(Relaxed), 0);
    assert!(ask(&here, ROOT, &right).is_ok());
    check(&here);
}

#[test]
fn capabilities_of_ranges_and_pages() {
    let memory = world::machine(128);
    let here = memory.processor(0);
    let books = here.books();
    let a = child(&books, ROOT, SMALL);
    let (roots, own) = (page(&books, ROOT), page(&books, a));
    go(&books, ROOT, Call::Rename, &[roots, 5, 6]).expect("a page's names");
    go(&books, ROOT, Call::RenameHolding, &[DISK as u64, 7, 8]).expect("a range's names");
    let word =
        |name: u64, right: u64| go(&books, ROOT, Call::Capability, &[name, right]).expect("a word");
    let [page_reads, page_writes] = [word(5, RIGHT_READ), word(6, RIGHT_WRITE)];
    let [reads, writes] = [word(7, RIGHT_READ), word(8, RIGHT_WRITE)];
    let may = |request: Request, authority, capability| {
        let request = Request {
            authority,
            capability,
            ..request
        };
        let asked = ask(&here, a, &request);
        all_done(&here);
        asked.map(drop)
    };
    let denied = Err(Error::Denied);
    assert_eq!(may(read(0, own), 0, 0), denied);
    assert_eq!(may(read(0, own), reads, 0), Ok(()));
    assert_eq!(may(write(0, own), reads, 0), denied);
    assert_eq!(may(write(0, own), writes, 0), Ok(()));
    assert_eq!(may(read(0, own), writes, 0), Ok(()), "to write lets read");
    assert_eq!(may(FLUSH, reads, 0), denied);
    assert_eq!(may(FLUSH, writes, 0), Ok(()));
    // The disk writes to the page of a read, and reads that of a write.
    assert_eq!(may(read(0, roots), reads, page_reads), denied);
    assert_eq!(may(read(0, roots), reads, page_writes), Ok(()));
    assert_eq!(may(write(0, roots), writes, page_reads), Ok(()));
    assert_eq!(may(write(0, roots), writes, 0), denied);
    check(&here);
}

#[test]
fn one_block_is_not_written_and_used_at_the_same_time() {
    let memory = world::machine(128);
    let here = memory.processor(0);
    let books = here.books();
    let pages: Vec<u64> = (0..4).map(|_| page(&books, ROOT)).collect();
    let ask = |request| ask(&here, ROOT, &request);
    let first = ask(read(4, pages[0])).expect("a first reader");
    assert!(ask(read(4, pages[1])).is_ok(), "two read");
    assert_eq!(ask(write(4, pages[2])), Err(Error::Again));
    assert_eq!(ask(FLUSH), Err(Error::Again), "something is under way");
    all_done(&here);
    assert_eq!(ask(write(4, pages[2])), Ok(first), "the place is free");
    assert_eq!(ask(read(4, pages[0])), Err(Error::Again));
    assert_eq!(ask(write(4, pages[0])), Err(Error::Again));
    assert!(ask(write(5, pages[2])).is_ok(), "one page twice");
    assert_eq!(books.lent[pages[2] as usize].load(Relaxed), 2);
    all_done(&here);
    assert!(ask(FLUSH).is_ok());
    assert_eq!(ask(read(1, pages[0])), Err(Error::Again), "behind a flush");
    check(&here);
    all_done(&here);
    assert!(ask(read(1, pages[0])).is_ok());
    check(&here);
}

#[test]
fn places_are_bounded_and_some_are_kept() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books = here.books();
    go(&books, ROOT, Call::RenameHolding, &[DISK as u64, 1, 0]).expect("all may read");
    let small = Share {
        pages: (4, 16),
        ..SMALL
    };
    let all: Vec<u16> = (0..5).map(|_| child(&books, ROOT, small)).collect();
    for (index, who) in all.iter().enumerate() {
        let own = page(&books, *who);
        let most = if index < 3 { REQUESTS } else { 1 };
        for request in 0..most {
            assert!(ask(&here, *who, &read(0, own)).is_ok(), "{index} {request}");
        }
        assert_eq!(
            ask(&here, *who, &read(0, own)),
            Err(Error::Again),
            "{index}"
        );
    }
    check(&here);
    holds(&books);
}

#[test]
fn lent_pages_stay_until_the_disk_is_done() {
    let memory = world::machine(128);
    let here = memory.processor(0);
    let books = here.books();
    let a = child(&books, ROOT, SMALL);
    go(&books, ROOT, Call::RenameHolding, &[DISK as u64, 1, 0]).expect("all may read");
    let own = page(&books, a);
    let place = ask(&here, a, &read(0, own)).expect("it is asked");
    assert_eq!(
        go(&books, a, Call::Give, &[own, ROOT.into()]),
        Err(Error::Again)
    );
    let table = [0, 3, own];
    assert_eq!(go(&books, a, Call::Table, &table), Err(Error::InUse));
    assert_eq!(go(&books, a, Call::Free, &[own]), Err(Error::Again));
    assert_eq!(
        go(&books, a, Call::Free, &[own]),
        Err(Error::Again),
        "still"
    );
    check(&here);
    done(&here, place);
    assert_eq!(go(&books, a, Call::Free, &[own]), Ok(0));
    // Death waits, and its number is not used anew.
    let own = page(&books, a);
    let place = ask(&here, a, &read(0, own)).expect("it is asked");
    go(&books, ROOT, Call::Destroy, &[a.into()]).expect("it ends");
    assert!((0..1000).all(|_| books.reap()), "it waits");
    check(&here);
    done(&here, place);
    reap(&books);
    check(&here);
    holds(&books);
}

#[test]
fn who_has_the_number_now_hears_nothing() {
    let memory = world::machine(128);
    let here = memory.processor(0);
    let books = here.books();
    go(&books, ROOT, Call::RenameHolding, &[DISK as u64, 1, 0]).expect("all may read");
    let shared = page(&books, ROOT);
    go(&books, ROOT, Call::Rename, &[shared, 1, 1]).expect("everybody's page");
    let first = child(&books, ROOT, SMALL);
    let place = ask(&here, first, &read(0, shared)).expect("it is asked");
    go(&books, ROOT, Call::Destroy, &[first.into()]).expect("it ends");
    reap(&books);
    // The same number comes again after all others.
    let second = (0..300).find_map(|_| {
        let next = child(&books, ROOT, SMALL);
        if next == first {
            return Some(next);
        }
        go(&books, ROOT, Call::Destroy, &[next.into()]).expect("it ends");
        reap(&books);
        None
    });
    let second = second.expect("the number comes again");
    check(&here);
    assert!(ask(&here, second, &read(0, shared)).is_ok());
    done(&here, place);
    check(&here);
    assert_eq!(books.environment(second).requests.load(Relaxed), 1);
    assert_eq!(world::get(&books, second, offset_of!(Context, events)), 0);
}

#[test]
fn completions_are_told_in_the_ring_that_the_context_names() {
    let memory = world::machine(128);
    let here = memory.processor(0);
    let books = here.books();
    let (ring, own) = (page(&books, ROOT), page(&books, ROOT));
    let words = &memory.words[ring as usize];
    let set = |value: u64| world::set(&books, ROOT, offset_of!(Context, completions), value);
    let tagged = |tag: u64| Request {
        tag,
        ..read(tag % BLOCKS, own)
    };
    words[offset_of!(Ring, ready) / 8].store(2, Relaxed);
    set(ring);
    for (tag, result) in [(70, Ok(())), (71, Err(Error::Failed)), (72, Ok(()))] {
        let place = ask(&here, ROOT, &tagged(tag)).expect("it is asked");
        let mut under_way = memory.under_way.lock().expect("it is whole");
        books.request_is_done(&mut under_way, place, result);
    }
    let entry = |index: usize| {
        let at = offset_of!(Ring, entries) / 8 + 4 * index;
        (
            words[at + 2].load(Relaxed),
            words[at + 3].load(Relaxed) as i64,
        )
    };
    assert_eq!(entry(0), (70, 0));
    assert_eq!(entry(1), (71, Error::Failed as i64));
    assert_eq!(
        words[offset_of!(Ring, filled) / 8].load(Relaxed),
        2,
        "none was ready"
    );
    let events = || world::get(&books, ROOT, offset_of!(Context, events));
    assert_eq!(events(), Context::EVENT_DISK);
    // What is no ring of its own is passed by, and the event comes all the same.
    let a = child(&books, ROOT, SMALL);
    let others = page(&books, a);
    for nonsense in [
        0,
        1,
        others,
        127,
        128,
        1 << 32,
        u64::MAX,
        u64::from(u32::MAX),
    ] {
        set(nonsense);
        world::set(&books, ROOT, offset_of!(Context, events), 0);
        let place = ask(&here, ROOT, &tagged(5)).expect("it is asked");
        done(&here, place);
        assert_eq!(events(), Context::EVENT_DISK, "{nonsense:#x}");
    }
    holds(&books);
}

/// Requests and completions by chance against a model.
#[test]
fn requests_by_chance_do_what_the_model_does() {
    let memory = world::machine(256);
    let here = memory.processor(0);
    let books: World<'_> = here.books();
    let mut chance = Chance(1);
    let all: Vec<u16> = (0..6).map(|_| child(&books, ROOT, SMALL)).collect();
    for who in &all {
        let quota = [u64::from(*who), call::HOLDINGS, 0, 1];
        go(&books, ROOT, Call::Quota, &quota).expect("a quota");
    }
    go(&books, ROOT, Call::RenameHolding, &[DISK as u64, 1, 1]).expect("everybody's");
    let pages: Vec<(u16, u64)> = all.iter().map(|who| (*who, page(&books, *who))).collect();
    // Whose, which block, whether it writes; a flush has none.
    let mut model: HashMap<usize, (u16, Option<(u64, bool)>)> = HashMap::new();
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..50_000 {
        let (who, own) = chance.of(&pages);
        if chance.one_in(3) && !model.is_empty() {
            let places: Vec<usize> = model.keys().copied().collect();
            let place = chance.of(&places);
            model.remove(&place);
            done(&here, place);
            continue;
        }
        let block = chance.below(40);
        let (request, means) = match chance.below(20) {
            0 => (FLUSH, None),
            1..12 => (read(block, own), Some((block, false))),
            _ => (write(block, own), Some((block, true))),
        };
        let own: Vec<_> = model.values().filter(|one| one.0 == who).collect();
        let flushes = own.iter().any(|one| one.1.is_none());
        let clash = |one: &(u16, Option<(u64, bool)>)| match (one.1, means) {
            (Some((a, one)), Some((b, two))) => a == b && (one || two),
            _ => false,
        };
        let refuse = flushes
            || own.len() == REQUESTS
            || means.is_none() && !own.is_empty()
            || model.values().any(clash)
            || model.len() >= 48 && !own.is_empty()
            || model.len() == 64;
        match ask(&here, who, &request) {
            Ok(place) => {
                assert!(!refuse);
                assert_eq!(model.insert(place, (who, means)), None);
                taken += 1;
            }
            Err(error) => {
                assert!(refuse && error == Error::Again, "{error:?}");
                refused += 1;
            }
        }
        check(&here);
    }
    assert!(taken > 1000 && refused > 1000, "{taken} {refused}");
}

/// Between a request's end and its word in a ring, the owner's number can become another's who has
/// the page: nothing is told in that.
#[test]
fn a_ring_of_a_later_owner_is_not_told() {
    let memory = world::machine(128);
    let here = memory.processor(0);
    let books = here.books();
    let a = child(&books, ROOT, SMALL);
    let ring = page(&books, a);
    let word = |offset: usize| &books.hardware.words(ring as u32)[offset / 8];
    word(offset_of!(Ring, ready)).store(5, Relaxed);
    let birth = books.environment(a).birth.load(Relaxed);
    let tell = |birth| books.tell((a, birth), ring as u32, (7, 0), None);
    assert_eq!(tell(birth), Ok(()));
    assert_eq!(tell(birth - 1), Err(Error::Denied));
    assert_eq!(tell(birth + 1), Err(Error::Denied));
    assert_eq!(word(offset_of!(Ring, filled)).load(Relaxed), 1);
    let bytes = |birth| books.tell((a, birth), ring as u32, (7, 0), Some(b"frame"));
    assert_eq!(bytes(birth - 1), Err(Error::Denied));
    assert_eq!(word(offset_of!(Ring, filled)).load(Relaxed), 1);
}
