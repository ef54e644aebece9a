//! Handlers of messages: pings that are answered while their owner sleeps, a lock for the network.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use postern_aegis::abi::Context;
use postern_aegis::abi::device::Piece;
use postern_aegis::handler::{self, Handler};
use postern_aegis::load::LoadError;
use postern_aegis::{Error, Mapping, archive, books, calls, entry, memory, pages, println, time};
use postern_aegis_programs::peer;

use crate::Shown;

/// Events that were told.
static TOLD: AtomicU64 = AtomicU64::new(0);
/// Where handlers have the page that they share.
const SHARED: u64 = 0x10_0000;
/// How long this environment sleeps: microseconds, and how often at most.
const NAP: u64 = 300_000;
const NAPS: u32 = 30;

fn failed(what: &'static str) -> impl Fn(Error) -> LoadError {
    move |error| LoadError::Call(what, error)
}

fn told(events: u64) {
    TOLD.fetch_or(events, Relaxed);
}

fn load(name: &str) -> Result<Handler, LoadError> {
    let image = archive::own().file(name).ok_or(LoadError::Missing)?;
    handler::load(image, 1).map_err(failed("a handler"))
}

/// Has the peer do something so often, and sleeps until a handler has run so often: how many slices this
/// took.
fn asleep(what: u64, rounds: u64, handler: &Handler) -> Result<u64, LoadError> {
    let at = memory::reserve(1);
    let page = memory::map_fresh(at, Mapping::WRITE).map_err(failed("a page"))?;
    memory::write_bytes(at, &peer::HEADER);
    memory::write(at + peer::WORDS, what);
    memory::write(at + peer::WORDS + 8, rounds);
    let piece = Piece {
        place: u64::from(page) << 12,
        length: 60,
        capability: 0,
    };
    let goal = handler.record().arrived.load(Relaxed) + rounds;
    entry::on_events(told);
    pages::patiently(|| calls::send(&[piece])).map_err(failed("asking the peer"))?;
    let own = books::environment(books::own_number());
    let before = own.ran.load(Relaxed);
    for _ in 0..NAPS {
        TOLD.store(0, Relaxed);
        time::alarm(NAP).map_err(failed("an alarm"))?;
        let is_over = || TOLD.load(Relaxed) & Context::EVENT_ALARM != 0;
        while !is_over() {
            entry::sleep_unless(is_over);
        }
        if handler.record().arrived.load(Relaxed) >= goal {
            break;
        }
    }
    let slices = own.ran.load(Relaxed) - before;
    pages::free(page).map_err(failed("freeing"))?;
    Ok(slices)
}

fn has_network() -> bool {
    let there = books::machine().network.there.load(Relaxed) != 0;
    if !there {
        println!("   this machine has no network");
    }
    there
}

pub fn pings() -> Shown {
    const ROUNDS: u64 = 25;
    if !has_network() {
        return Ok(true);
    }
    let handler = load("handler.answer")?;
    let endpoint = calls::bind("icmp", 0, 0).map_err(failed("an endpoint"))?;
    calls::direct(endpoint, 0, handler.number).map_err(failed("its handler"))?;
    println!("   the peer sends {ROUNDS} pings, and this environment sleeps");
    let slices = asleep(peer::PING, ROUNDS, &handler)?;
    let record = handler.record();
    let (runs, spent) = (record.arrived.load(Relaxed), record.spent.load(Relaxed));
    println!("   it has had {slices} slices; its handler has run {runs} times, {spent} ns");
    calls::drop_holding(endpoint, 0).map_err(failed("the endpoint"))?;
    handler.end();
    // The next ping comes when the last one is answered.
    Ok(runs >= ROUNDS && slices < ROUNDS)
}

pub fn lock() -> Shown {
    const ROUNDS: u64 = 200;
    if !has_network() {
        return Ok(true);
    }
    let mut handler = load("handler.lock")?;
    let at = memory::reserve(1);
    handler.share(SHARED, at).map_err(failed("a page"))?;
    let endpoint = calls::bind("udp port 8", 0, 0).map_err(failed("an endpoint"))?;
    calls::direct(endpoint, 0, handler.number).map_err(failed("its handler"))?;
    let counts = || (memory::read(at + 8), memory::read(at + 16));
    // This environment has the lock itself.
    memory::write(at, u64::MAX);
    asleep(peer::LOCKS, 20, &handler)?;
    let (none, refused) = counts();
    println!("   the lock is this environment's: {none} requests granted, {refused} refused");
    memory::write(at, 0);
    asleep(peer::LOCKS, ROUNDS, &handler)?;
    let (granted, more) = counts();
    println!(
        "   the lock is free: {granted} granted, {} refused, by the handler alone",
        more - refused
    );
    let runs = handler.record().arrived.load(Relaxed);
    calls::drop_holding(endpoint, 0).map_err(failed("the endpoint"))?;
    handler.end();
    Ok(none == 0 && granted > 20 && runs >= ROUNDS + 20)
}
