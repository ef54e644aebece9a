//! Messages: a round trip (Table 11), how long an answer takes while others run (Figure 2), copying
//! with and without a sum (section 6.3). In a machine of its own, whose time goes on while nobody runs.
//!
//! The peer is outside, and takes its time, in which this program sleeps: the emulator's plugin counts
//! what is executed meanwhile, and the least of many measurements counts.

use core::fmt::Display;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use postern_aegis::abi::device::{ENTRIES, Entry, Piece, Ring};
use postern_aegis::handler::{self, Handler};
use postern_aegis::load::{self, Child, LoadError, Plan};
use postern_aegis::{Mapping, archive, books, calls, entry, memory, pages, println, slices, time};
use postern_aegis_pipes::{self as pipes, Pass, SHARED};
use postern_aegis_programs::{Role, peer};

use crate::rows::{Named, Outcome, Refused};
use crate::trusted;

/// Rounds of a measurement, and how often they are measured, as in Linux.
const ROUNDS: u64 = 64;
const TRIES: u64 = 20;
/// Messages of which the time to an answer is told.
const ANSWERS: u64 = 48;
/// They come at any time: the longest pause between, in microseconds of the host.
const PAUSE: u64 = 20_000;
/// Messages that are copied.
const COPIES: u64 = 16;
/// Where pipes copy to, in the page that handlers share.
const COPY: u64 = 1024;

/// How many run, in Figure 2.
const RUN: [usize; 5] = [1, 2, 4, 8, 16];

pub fn all() -> Outcome {
    if books::machine().network.there.load(Relaxed) == 0 {
        return Err(Refused("no network", 0));
    }
    let both = [pipes::Piece::copy(SHARED + COPY), pipes::Piece::sum()];
    let (first, second) = both.split_at(1);
    copies("copy-sum", &[&both])?;
    copies("copy-then-sum", &[first, second])?;
    let line = Line::new()?;
    line.direct(true, 0)?;
    round_trip("round-trip")?;
    let handler = load("handler.pong")?;
    line.direct(false, handler.number)?;
    round_trip("round-trip-handler")?;
    line.direct(true, 0)?;
    handler.end();
    for number in RUN {
        latency(&line, number, None)?;
    }
    for number in RUN {
        latency(&line, number, Some("handler.pong_told"))?;
    }
    Ok(())
}

/// Says a figure.
fn say(name: impl Display, number: u64, repeats: u64) {
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
/// The ring of the peer's reports, and how many came.
static REPORTS: AtomicU64 = AtomicU64::new(0);
static REPORTED: AtomicU64 = AtomicU64::new(0);
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
        let (ring, reports, incoming, outgoing) = (page()?, page()?, page()?, page()?);
        RING.store(ring.0, Relaxed);
        REPORTS.store(reports.0, Relaxed);
        IN.store(incoming.0, Relaxed);
        OUT.store(outgoing.0, Relaxed);
        OUT_PAGE.store(outgoing.1.into(), Relaxed);
        for entry in 0..ENTRIES as u64 {
            memory::write(ring.0 + entry_at(entry), u64::from(incoming.1) << 12);
            let place = u64::from(incoming.1) << 12 | 2048;
            memory::write(reports.0 + entry_at(entry), place);
        }
        for ring in [ring.0, reports.0] {
            memory::write(ring + READY, ENTRIES as u64);
        }
        entry::on_events(answer);
        calls::bind("ether proto 0x88b5", 0, reports.1).named("an endpoint")?;
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

/// Where a ring's counts stand.
const READY: u64 = offset_of!(Ring, ready) as u64;
const FILLED: u64 = offset_of!(Ring, filled) as u64;

/// Where an entry of the ring begins.
fn entry_at(number: u64) -> u64 {
    offset_of!(Ring, entries) as u64 + number % ENTRIES as u64 * size_of::<Entry>() as u64
}

/// What came is answered, if no handler has done that.
fn answer(_events: u64) {
    let ring = RING.load(Relaxed);
    loop {
        let taken = TAKEN.load(Relaxed);
        if memory::read(ring + FILLED) == taken {
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
        memory::write(ring + READY, ready);
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

/// Microseconds in which something comes, or never will.
const PATIENCE: u64 = 20_000_000;

/// Sleeps until the peer's next report. The alarm was set: there is an end.
fn sleep(name: &'static str) -> Outcome {
    let (ring, due) = (REPORTS.load(Relaxed), REPORTED.load(Relaxed) + 1);
    let start = slices::clock();
    let reported = || memory::read(ring + FILLED) >= due;
    while !reported() {
        if slices::clock().wrapping_sub(start) > time::cycles(PATIENCE) {
            return Err(Refused(name, 0));
        }
        entry::sleep_unless(reported);
    }
    REPORTED.store(due, Relaxed);
    memory::write(ring + READY, due + ENTRIES as u64);
    Ok(())
}

/// What a round takes, by this program or by a handler. What asking and the peer's report take is
/// in it: a part of each of the rounds.
fn round_trip(name: &'static str) -> Outcome {
    for _ in 0..TRIES {
        time::alarm(PATIENCE).named("an alarm")?;
        trusted::begin();
        ask(&[peer::ROUNDS, ROUNDS], 60)?;
        sleep(name)?;
        trusted::end();
    }
    trusted::end_row();
    println!("figure {name} busy {ROUNDS}");
    Ok(())
}

/// How long an answer takes while so many others run.
fn latency(line: &Line, number: usize, by: Option<&'static str>) -> Outcome {
    let refused = |error| match error {
        LoadError::Call(what, error) => Refused(what, error as i64),
        _ => Refused("a player", 0),
    };
    let mut children: [Option<Child>; 15] = [None; 15];
    for child in children.iter_mut().take(number - 1) {
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
            memory::write(ring + FILLED, 0);
            memory::write(ring + READY, ENTRIES as u64);
            TAKEN.store(0, Relaxed);
            TOLD.store(at, Relaxed);
            Some(handler)
        }
    };
    line.direct(true, handler.as_ref().map_or(0, |handler| handler.number))?;
    WAITED.store(0, Relaxed);
    time::alarm(PATIENCE).named("an alarm")?;
    let before = TAKEN.load(Relaxed);
    ask(&[peer::PACED, ANSWERS, PAUSE], 60)?;
    sleep("latency")?;
    // Messages may have come in the slice that asked.
    answer(0);
    let taken = TAKEN.load(Relaxed) - before;
    let mean = WAITED.load(Relaxed) / taken.max(1);
    match by {
        None => say(format_args!("latency-{number}"), mean, ANSWERS),
        Some(_) => say(format_args!("latency-handler-{number}"), mean, ANSWERS),
    }
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
    let all = (taken == ANSWERS).then_some(());
    all.ok_or(Refused("answers", taken as i64))
}

/// What a pipe takes for the 1,440 bytes behind the words that ask.
fn copies(name: &'static str, passes: &[&Pass]) -> Outcome {
    let pipe = pipes::load(peer::WORDS as usize, passes);
    let mut handler = pipe.map_err(|_| Refused(name, 0))?;
    handler
        .share(SHARED, memory::reserve(1))
        .named("a shared page")?;
    if ASKING.load(Relaxed) == 0 {
        let (at, page) = page()?;
        ASKING.store(at, Relaxed);
        ASKING_PAGE.store(page.into(), Relaxed);
    }
    let endpoint = calls::bind("ether proto 0x88b5", 0, 0).named("an endpoint")?;
    calls::direct(endpoint, 0, handler.number).named("directing")?;
    let record = handler.record();
    for run in 1..=COPIES {
        ask(&[peer::ECHO], 1456)?;
        let start = slices::clock();
        while record.arrived.load(Relaxed) < run {
            if slices::clock().wrapping_sub(start) > time::cycles(PATIENCE) {
                return Err(Refused(name, run as i64));
            }
            entry::yield_slice();
        }
    }
    say(name, record.spent.load(Relaxed) / COPIES, COPIES);
    calls::drop_holding(endpoint, 0).named("the endpoint")?;
    handler.end();
    Ok(())
}
