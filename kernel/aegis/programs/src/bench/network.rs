//! Messages: a round trip (Table 11), how long an answer takes while others run (Figure 2), copying
//! with and without a sum (section 6.3).
//!
//! The peer is outside, and takes its time. So this program spins meanwhile, which is measured without
//! messages first, and taken off: what is left is all that messages took, interrupts among it.

use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use postern_aegis::abi::device::{ENTRIES, Entry, Piece, Ring};
use postern_aegis::handler::{self, Handler};
use postern_aegis::load::{self, Child, LoadError, Plan};
use postern_aegis::{Mapping, archive, books, calls, entry, memory, pages, println, slices};
use postern_aegis_programs::{Role, peer};

use crate::rows::{Named, Outcome, Refused};
use crate::trusted;

/// Rounds of a measurement.
const ROUNDS: u64 = 400;
/// Messages of which the time to an answer is told.
const ANSWERS: u64 = 24;
/// Where handlers have the page that they share.
const SHARED: u64 = 0x10_0000;

pub fn all() -> Outcome {
    if books::machine().network.there.load(Relaxed) == 0 {
        return Ok(());
    }
    let line = Line::new()?;
    round_trips(&line)?;
    for (name, others) in [
        ("latency-1", 0),
        ("latency-2", 1),
        ("latency-4", 3),
        ("latency-8", 7),
        ("latency-16", 15),
    ] {
        latency(&line, name, others, None)?;
    }
    for (name, others) in [("latency-handler-1", 0), ("latency-handler-16", 15)] {
        latency(&line, name, others, Some("handler.pong_told"))?;
    }
    copies("copy-sum", "handler.copy_sum")?;
    copies("copy-then-sum", "handler.copy_then_sum")
}

/// Says a figure.
fn say(name: &str, number: u64, repeats: u64) {
    trusted::end_row();
    println!("figure {name} {number} {repeats}");
}

fn load(name: &'static str) -> Result<Handler, Refused> {
    let file = archive::own().file(name).ok_or(Refused(name, 0))?;
    handler::load(file, 1).named(name)
}

fn page() -> Result<(u64, u32), Refused> {
    let at = memory::reserve(1);
    Ok((at, memory::map_fresh(at, Mapping::WRITE).named("a page")?))
}

/// What an event finds: where the ring is, and what of it was taken; pages of what comes and what
/// goes, and the latter's number.
static RING: AtomicU64 = AtomicU64::new(0);
static TAKEN: AtomicU64 = AtomicU64::new(0);
static IN: AtomicU64 = AtomicU64::new(0);
static OUT: AtomicU64 = AtomicU64::new(0);
static OUT_PAGE: AtomicU64 = AtomicU64::new(0);
/// The page of frames that ask, and its number.
static ASKING: AtomicU64 = AtomicU64::new(0);
static ASKING_PAGE: AtomicU64 = AtomicU64::new(0);
/// Cycles from arrivals to answers.
static WAITED: AtomicU64 = AtomicU64::new(0);
/// Where a handler says when it has answered; 0: this program answers.
static TOLD: AtomicU64 = AtomicU64::new(0);

/// An endpoint for the counter by UDP.
struct Line {
    endpoint: usize,
    ring: u32,
}

impl Line {
    fn new() -> Result<Line, Refused> {
        let (ring, incoming, outgoing) = (page()?, page()?, page()?);
        RING.store(ring.0, Relaxed);
        IN.store(incoming.0, Relaxed);
        OUT.store(outgoing.0, Relaxed);
        OUT_PAGE.store(outgoing.1.into(), Relaxed);
        for entry in 0..ENTRIES as u64 {
            memory::write(ring.0 + entry_at(entry), u64::from(incoming.1) << 12);
        }
        memory::write(ring.0 + offset_of!(Ring, ready) as u64, ENTRIES as u64);
        entry::on_events(answer);
        entry::events_at_once();
        let endpoint = calls::bind("udp port 7", 0, ring.1).named("an endpoint")?;
        Ok(Line {
            endpoint,
            ring: ring.1,
        })
    }

    fn direct(&self, ring: bool, handler: usize) -> Outcome {
        let ring = if ring { self.ring } else { 0 };
        calls::direct(self.endpoint, ring, handler)
            .named("directing")
            .map(drop)
    }
}

/// Where an entry of the ring begins.
fn entry_at(number: u64) -> u64 {
    offset_of!(Ring, entries) as u64 + number % ENTRIES as u64 * size_of::<Entry>() as u64
}

/// What came is answered, if no handler has done that.
fn answer(_events: u64) {
    let ring = RING.load(Relaxed);
    loop {
        let taken = TAKEN.load(Relaxed);
        if memory::read(ring + offset_of!(Ring, filled) as u64) == taken {
            return;
        }
        let arrived = memory::read(ring + entry_at(taken) + offset_of!(Entry, result) as u64);
        let answered = match TOLD.load(Relaxed) {
            0 => {
                send_back();
                slices::clock()
            }
            told => memory::read(told + 8 * (taken % ENTRIES as u64)),
        };
        WAITED.fetch_add(answered.wrapping_sub(arrived), Relaxed);
        let ready = taken + 1 + ENTRIES as u64;
        memory::write(ring + offset_of!(Ring, ready) as u64, ready);
        TAKEN.store(taken + 1, Relaxed);
    }
}

/// The counter that came goes back plus one, as `handlers/pong.c` has it.
fn send_back() {
    let (from, to) = (IN.load(Relaxed), OUT.load(Relaxed));
    let i: [u64; 8] = core::array::from_fn(|index| memory::read(from + 8 * index as u64));
    let counter = ((i[5] >> 16).swap_bytes() | (i[6] << 48).swap_bytes()).wrapping_add(1);
    let counter = counter.swap_bytes();
    let half = |word: u64, at: u32, to: u32| (word >> (16 * at) & 0xffff) << (16 * to);
    let o = [
        i[0] >> 48 | (i[1] & 0xffff_ffff) << 16 | i[0] << 48,
        i[0] >> 16 & 0xffff_ffff | i[1] >> 32 << 32,
        i[2],
        half(i[3], 0, 0) | half(i[3], 3, 1) | half(i[4], 0, 2) | half(i[3], 1, 3),
        half(i[3], 2, 0) | half(i[4], 2, 1) | half(i[4], 1, 2) | half(i[4], 3, 3),
        counter << 16,
        counter >> 48 | i[6] >> 16 << 16,
        i[7],
    ];
    for (index, word) in o.into_iter().enumerate() {
        memory::write(to + 8 * index as u64, word);
    }
    let piece = Piece {
        place: OUT_PAGE.load(Relaxed) << 12,
        length: 60,
        capability: 0,
    };
    let _ = calls::send(&[piece]);
}

/// Has the peer do something.
fn ask(words: &[u64], length: u64) -> Outcome {
    // The last frame that asked is long gone.
    if ASKING.load(Relaxed) == 0 {
        let (at, page) = page()?;
        ASKING.store(at, Relaxed);
        ASKING_PAGE.store(page.into(), Relaxed);
    }
    let at = ASKING.load(Relaxed);
    memory::write_bytes(at, &peer::HEADER);
    for (index, word) in words.iter().enumerate() {
        memory::write(at + peer::WORDS + 8 * index as u64, *word);
    }
    let piece = Piece {
        place: ASKING_PAGE.load(Relaxed) << 12,
        length,
        capability: 0,
    };
    let asked = pages::patiently(|| calls::send(&[piece]));
    asked.named("asking").map(drop)
}

/// Spins until a counter has come somewhere, or so many times: how often, and in how many cycles.
#[inline(never)]
fn spin(counter: &AtomicU64, goal: u64, most: u64) -> (u64, u64) {
    let start = slices::clock();
    let mut times = 0;
    while counter.load(Relaxed) < goal && times < most {
        times += 1;
    }
    (times, slices::clock().wrapping_sub(start))
}

/// Times of spinning that are measured, and that are waited at most.
const SPINS: u64 = 2_000_000;
const PATIENCE: u64 = 1 << 33;

/// Rounds, by this program and by a handler: instructions of each.
fn round_trips(line: &Line) -> Outcome {
    let (times, cycles) = spin(&AtomicU64::new(0), 1, SPINS);
    let rounds = |name, counter: &AtomicU64| {
        let goal = counter.load(Relaxed) + ROUNDS;
        ask(&[peer::ROUNDS, ROUNDS], 60)?;
        let (waited, took) = spin(counter, goal, PATIENCE);
        let spun = u128::from(waited) * u128::from(cycles) / u128::from(times);
        say(name, took.saturating_sub(spun as u64) / ROUNDS, ROUNDS);
        settle();
        match counter.load(Relaxed) {
            done if done < goal => Err(Refused(name, done as i64)),
            _ => Ok(()),
        }
    };
    line.direct(true, 0)?;
    rounds("round-trip", &TAKEN)?;
    let handler = load("handler.pong")?;
    line.direct(false, handler.number)?;
    rounds("round-trip-handler", &handler.record().arrived)?;
    line.direct(true, 0)?;
    handler.end();
    Ok(())
}

/// The peer's report comes, and nothing more.
fn settle() {
    let arrived = || books::machine().network.arrived.load(Relaxed);
    let before = arrived();
    for _ in 0..2000 {
        if arrived() > before {
            return;
        }
        entry::yield_slice();
    }
}

/// How long an answer takes while so many others run.
fn latency(line: &Line, name: &'static str, others: usize, by: Option<&'static str>) -> Outcome {
    let refused = |error| match error {
        LoadError::Call(what, error) => Refused(what, error as i64),
        _ => Refused("a player", 0),
    };
    let mut children: [Option<Child>; 15] = [None; 15];
    for child in children.iter_mut().take(others) {
        let plan = Plan::new([Role::Count as u64, 1, 0, 0, 0, 0, 0, 0]);
        let started = load::program("player", &plan).map_err(refused)?;
        started.run_on(0).map_err(refused)?;
        *child = Some(started);
    }
    let handler = match by {
        None => None,
        Some(name) => {
            let mut handler = load(name)?;
            let at = memory::reserve(1);
            handler.share(SHARED, at).named("a shared page")?;
            // Its words are counted from 0, as the ring's entries.
            let ring = RING.load(Relaxed);
            memory::write(ring + offset_of!(Ring, filled) as u64, 0);
            memory::write(ring + offset_of!(Ring, ready) as u64, ENTRIES as u64);
            TAKEN.store(0, Relaxed);
            TOLD.store(at, Relaxed);
            Some(handler)
        }
    };
    line.direct(true, handler.as_ref().map_or(0, |handler| handler.number))?;
    let goal = TAKEN.load(Relaxed) + ANSWERS;
    WAITED.store(0, Relaxed);
    ask(&[peer::ROUNDS, ANSWERS], 60)?;
    let mut slices = 0;
    while TAKEN.load(Relaxed) < goal && slices < 1_000_000 {
        entry::yield_slice();
        slices += 1;
    }
    say(name, WAITED.load(Relaxed) / ANSWERS, ANSWERS);
    let done = TAKEN.load(Relaxed) >= goal;
    settle();
    line.direct(true, 0)?;
    TOLD.store(0, Relaxed);
    if let Some(handler) = handler {
        handler.end();
    }
    children.into_iter().flatten().for_each(Child::end);
    while books::environment(books::own_number())
        .children
        .load(Relaxed)
        != 0
    {
        entry::yield_slice();
    }
    done.then_some(()).ok_or(Refused(name, 0))
}

/// What a handler takes for a message of 1,440 bytes behind the words that ask.
fn copies(name: &'static str, image: &'static str) -> Outcome {
    let mut handler = load(image)?;
    handler
        .share(SHARED, memory::reserve(1))
        .named("a shared page")?;
    let endpoint = calls::bind("ether proto 0x88b5", 0, 0).named("an endpoint")?;
    calls::direct(endpoint, 0, handler.number).named("directing")?;
    let record = handler.record();
    for run in 1..=16 {
        ask(&[peer::ECHO], 1456)?;
        let (waited, _) = spin(&record.arrived, run, PATIENCE);
        if waited == PATIENCE {
            return Err(Refused(name, run as i64));
        }
    }
    let (spent, runs) = (record.spent.load(Relaxed), record.arrived.load(Relaxed));
    say(name, spent / runs, runs);
    calls::drop_holding(endpoint, 0).named("the endpoint")?;
    handler.end();
    Ok(())
}
