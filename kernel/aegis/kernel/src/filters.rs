//! Endpoints' filters, compiled together: all texts anew at each change, into one decision program
//! of the crate `filter`, which is judged as every code that runs in the kernel is. Nothing is kept
//! but the texts, in the books, and the code, in window 0.
//!
//! Invariant: who makes a code holds the arena from when it looks which endpoints there are until
//! the code is in use, so codes follow each other as the endpoints do.

use core::sync::atomic::Ordering::{AcqRel, Relaxed};
use core::sync::atomic::{AtomicBool, AtomicU64};

use postern_aegis_abi::device::{BEHIND, FRAME};
use postern_aegis_abi::{Error, FILTER, HOLDINGS, ROOT};
use postern_aegis_books::{Endpoint, Hardware};
use postern_filter::set::{Claim, Limits, Scratch, Set};
use postern_filter::{Filter, NoNames, Options};

use crate::hardware::arena::{self, Held};
use crate::hardware::filters::{self, Side, Visible};
use crate::hardware::registers;
use crate::machine::{Here, books};

/// Tests of one filter, and of all: `filter/tests/bounded.rs` measures what such sets need.
const TESTS: usize = 512;
const ALL_TESTS: usize = 2048;
/// Instructions until a frame's endpoint is found, at most.
const LONGEST: u32 = 16_384;

/// By side of window 0: the endpoints, in the order in which its code counts them, and their ages.
static ENDPOINTS: [[AtomicU64; HOLDINGS]; 2] = [const { [const { AtomicU64::new(0) }; _] }; 2];
/// An endpoint has ended since the code was made.
static STALE: AtomicBool = AtomicBool::new(false);

/// Endpoints as they are now: the oldest first, and behind them those that get what no other one
/// wants. A new one is compared with those before it, so it may take frames of those behind.
struct Bound {
    list: [Endpoint; HOLDINGS],
    count: usize,
}

impl Bound {
    fn now() -> Bound {
        let (mut list, count) = books().endpoints();
        // Ages differ, so all have their places.
        list[..count].sort_unstable_by_key(|one| (one.priority == BEHIND, one.age));
        Bound { list, count }
    }

    fn all(&self) -> &[Endpoint] {
        &self.list[..self.count]
    }
}

/// The call: an endpoint for what a filter accepts.
pub fn bind(caller: u16, arguments: [u64; 6]) -> Result<u64, Error> {
    let [address, length, priority, ring, ..] = arguments;
    let priority = u32::try_from(priority).map_err(|_| Error::Argument)?;
    let mut text = [0; FILTER];
    let text = bytes(caller, address, length, &mut text)?;
    let mut arena = arena::hold(|| Here.poll());
    let number = books().new_endpoint(caller, text, priority, ring)?;
    let age = books().holding(number).first.load(Relaxed);
    let renewed = paid(caller, || renew(&mut arena, Some(number)));
    match renewed {
        Ok(()) => Ok(number as u64),
        Err(error) => {
            // The code in use knows nothing of it.
            books().end_endpoint(number, age);
            Err(error)
        }
    }
}

/// The call: where an endpoint's frames go.
pub fn direct(caller: u16, arguments: [u64; 6]) -> Result<u64, Error> {
    let [holding, ring, handler, ..] = arguments;
    books().direct(caller, holding, ring, handler).map(|()| 0)
}

/// The call: which endpoints' filters accept a frame. For the first alone the code is asked.
pub fn matches(caller: u16, arguments: [u64; 6]) -> Result<u64, Error> {
    let [address, length, holdings, count, ..] = arguments;
    let mut frame = [0; *FRAME.end()];
    let frame = bytes(caller, address, length, &mut frame)?;
    let mut found = [0; HOLDINGS];
    let matches = match count {
        1 => {
            let first = find_of(frame);
            found[0] = first.map_or(0, |(number, _)| number) as u64;
            first.iter().len()
        }
        _ => all(caller, frame, &mut found)?,
    };
    let room = usize::try_from(count).unwrap_or(HOLDINGS);
    // Who asks for one has an answer in any case: 0 is nobody.
    let stored = matches.max(usize::from(count == 1)).min(room);
    books().write_words(caller, holdings, &found[..stored])?;
    Ok(matches as u64)
}

/// The endpoint that gets a frame, which lies at an offset in one of [`buffers`], and its age: the
/// number may be another one's soon.
///
/// [`buffers`]: crate::hardware::window::buffers
pub fn find(page: u32, offset: usize, length: usize) -> Option<(usize, u64)> {
    filters::ask(
        Visible::arrived(page, offset, length)?,
        || Here.poll(),
        endpoint,
    )
}

/// The same of a frame that lies anywhere.
pub fn find_of(frame: &[u8]) -> Option<(usize, u64)> {
    filters::ask_of(frame, || Here.poll(), endpoint)
}

/// The endpoint that a code means, if it is still there, and its age.
fn endpoint(side: Side, answer: u64) -> Option<(usize, u64)> {
    let index = usize::try_from(answer.checked_sub(1)?).ok()?;
    let word = ENDPOINTS[side as usize].get(index)?.load(Relaxed);
    let (number, age) = (word as usize % HOLDINGS, word / HOLDINGS as u64);
    books().is_bound(number, age).then_some((number, age))
}

/// An endpoint has ended: the code is made anew soon ([`settle`]).
pub fn changed() {
    STALE.store(true, Relaxed);
}

/// Makes the code anew if an endpoint has ended since it was made. Who ended one waits for that, and
/// pays. A processor that is about to begin a slice does not wait while somebody holds the arena,
/// which may be for long: it looks again at the next one.
pub fn settle(payer: Option<u16>) {
    if !STALE.load(Relaxed) {
        return;
    }
    let arena = match payer {
        Some(_) => Some(arena::hold(|| Here.poll())),
        None => arena::try_hold(),
    };
    if let Some(mut arena) = arena
        && STALE.swap(false, AcqRel)
    {
        // Fewer filters have room where more had.
        let _ = paid(payer.unwrap_or(ROOT), || renew(&mut arena, None));
    }
}

/// Makes the code anew, for the endpoints that there are. If one of them is new, its filter may not
/// take frames of others, unless it is the root's.
fn renew(arena: &mut Held, new: Option<usize>) -> Result<(), Error> {
    let bound = Bound::now();
    let Some(mut spare) = filters::spare() else {
        return Err(Error::Exhausted);
    };
    let made = arena.run(|| {
        let set = set(bound.all(), new)?;
        let code = set.kernel_code(spare.tables(), registers::random);
        let code = code.map_err(|_| Error::Exhausted)?;
        match spare.fill(&code, LONGEST) {
            true => Ok(()),
            false => Err(Error::Exhausted),
        }
    });
    made.unwrap_or(Err(Error::Exhausted))?;
    for (place, endpoint) in ENDPOINTS[spare.side() as usize].iter().zip(bound.all()) {
        let word = endpoint.age * HOLDINGS as u64 + endpoint.number as u64;
        place.store(word, Relaxed);
    }
    spare.exchange(|| Here.poll());
    Ok(())
}

/// The set of these filters, in this order.
fn set(endpoints: &[Endpoint], new: Option<usize>) -> Result<Set, Error> {
    let options = Options {
        tests: TESTS,
        ..Options::default()
    };
    let mut set = Set::within(Limits::SMALL);
    let mut left = ALL_TESTS;
    for endpoint in endpoints {
        let text = books().filter(endpoint);
        let text = core::str::from_utf8(&text[..endpoint.length]).map_err(|_| Error::Argument)?;
        let filter = Filter::compile_with(text, &NoNames, options).map_err(|_| Error::Argument)?;
        left = left.checked_sub(filter.tests()).ok_or(Error::Exhausted)?;
        let claim = Claim {
            owner: endpoint.owner.into(),
            priority: match endpoint.priority {
                BEHIND => 0,
                priority => priority,
            },
            may_steal: new != Some(endpoint.number) || endpoint.owner == ROOT,
        };
        set.insert(&filter, claim).map_err(|_| Error::Taken)?;
    }
    Ok(set)
}

/// All endpoints whose filters accept a frame, and how many there are.
fn all(caller: u16, frame: &[u8], found: &mut [u64; HOLDINGS]) -> Result<usize, Error> {
    let mut arena = arena::hold(|| Here.poll());
    let bound = Bound::now();
    let ask = || {
        let set = set(bound.all(), None)?;
        let mut ids = [0; HOLDINGS];
        let all = set.all(frame, frame.len() as u32, &mut Scratch::default());
        for (to, id) in ids.iter_mut().zip(&all) {
            *to = id.0 as usize;
        }
        Ok((ids, all.len()))
    };
    let ids = paid(caller, || arena.run(ask));
    let (ids, count) = ids.unwrap_or(Err(Error::Exhausted))?;
    for (to, index) in found.iter_mut().zip(&ids[..count]) {
        *to = bound.list[*index].number as u64;
    }
    Ok(count)
}

/// Does what takes long on behalf of a caller, who pays for it in slices.
pub fn paid<T>(caller: u16, work: impl FnOnce() -> T) -> T {
    let start = registers::time();
    let result = work();
    books().pays_for(caller, registers::time().wrapping_sub(start));
    result
}

/// Bytes of the caller's memory, no more than there is room for.
fn bytes(caller: u16, address: u64, length: u64, room: &mut [u8]) -> Result<&mut [u8], Error> {
    let length = usize::try_from(length).ok().filter(|n| *n <= room.len());
    let bytes = &mut room[..length.ok_or(Error::Argument)?];
    books().read_bytes(caller, address, bytes)?;
    Ok(bytes)
}
