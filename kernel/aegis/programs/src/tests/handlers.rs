//! Handlers at the arrival of messages: what runs, what they may do, how they end.

use core::cell::{Cell, RefCell};
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::Context;
use postern_aegis::abi::device::Piece;
use postern_aegis::abi::records::{Holding, Kind, run};
use postern_aegis::handler::{self, Handler};
use postern_aegis::ring::Ring;
use postern_aegis::{
    Error, Mapping, PAGE, address, archive, books, calls, context, memory, pages, slices,
};
use postern_aegis_programs::peer;

use crate::scenario::{Named, Outcome, Why, check, refused, same, wait};

crate::scenarios! {
    "handlers.images" images;
    "handlers.pages" given;
    "handlers.windows" windows;
    "handlers.run" runs;
    "handlers.behind" behind;
    "handlers.pass" pass;
    "handlers.vector" vector;
    "handlers.faults" faults;
    "handlers.endless" endless;
    "handlers.long" long;
    "handlers.services" services;
    "handlers.reply" reply;
    "handlers.pings" pings;
    "handlers.broken" broken;
}

/// Where handlers of these tests find what they share with their owner.
const SHARED: u64 = 0x10_0000;

fn image(name: &'static str) -> Result<&'static [u8], Why> {
    archive::own().file(name).ok_or(Why::Not(name))
}

fn load(name: &'static str) -> Result<Handler, Why> {
    handler::load(image(name)?, 1).named(name)
}

pub fn is_there() -> bool {
    books::machine().network.there.load(Relaxed) != 0
}

/// A handler with a page that it shares, an endpoint for the peer's frames with a ring behind it.
pub struct Line {
    pub handler: Handler,
    pub shared: u64,
    endpoint: usize,
    ring: Ring,
    /// Frames go out from here, and into here.
    pub frame: (u64, u32),
    place: (u64, u32),
}

/// Events since the last time.
fn take_events() -> u64 {
    context::context().events.swap(0, Relaxed)
}

pub fn page() -> Result<(u64, u32), Why> {
    let at = memory::reserve(1);
    Ok((at, memory::map_fresh(at, Mapping::WRITE).named("a page")?))
}

impl Line {
    fn new(name: &'static str) -> Result<Line, Why> {
        Line::with(name, "ether proto 0x88b5")
    }

    fn with(name: &'static str, filter: &str) -> Result<Line, Why> {
        Line::of(load(name)?, filter)
    }

    pub fn of(mut handler: Handler, filter: &str) -> Result<Line, Why> {
        let shared = memory::reserve(1);
        handler.share(SHARED, shared).named("a shared page")?;
        let mut ring = Ring::new().named("a ring")?;
        let (frame, place) = (page()?, page()?);
        (0..8).for_each(|_| _ = ring.offer(u64::from(place.1) << 12, 0));
        let endpoint = calls::bind(filter, 0, ring.page()).named("an endpoint")?;
        calls::direct(endpoint, ring.page(), handler.number).named("its handler")?;
        Ok(Line {
            handler,
            shared,
            endpoint,
            ring,
            frame,
            place,
        })
    }

    fn set(&self, words: &[u64]) {
        for (index, word) in words.iter().enumerate() {
            memory::write(self.shared + 8 * index as u64, *word);
        }
    }

    pub fn word(&self, index: u64) -> u64 {
        memory::read(self.shared + 8 * index)
    }

    pub fn record(&self) -> &'static Holding {
        self.handler.record()
    }

    /// Has the peer send a frame: of so many bytes, the words behind the first.
    fn ask(&self, words: &[u64], length: u64) -> Outcome {
        let (at, page) = self.frame;
        memory::write_bytes(at, &peer::HEADER);
        for (index, word) in words.iter().enumerate() {
            memory::write(at + peer::WORDS + 8 * index as u64, *word);
        }
        let piece = Piece {
            place: u64::from(page) << 12,
            length,
            capability: 0,
        };
        pages::patiently(|| calls::send(&[piece]))
            .named("asking")
            .map(drop)
    }

    /// A message arrives, and the handler has run.
    pub fn message(&self, length: u64) -> Outcome {
        let runs = self.record().arrived.load(Relaxed);
        self.ask(&[peer::ECHO, 5, 6, 7], length)?;
        wait("no handler runs", || {
            self.record().arrived.load(Relaxed) > runs
        })
    }

    /// The message came to the ring.
    fn told(&mut self) -> Outcome {
        let (ring, told) = (RefCell::new(&mut self.ring), Cell::new(None));
        wait("nothing in the ring", || {
            told.set(ring.borrow_mut().next());
            told.get().is_some()
        })?;
        let told = told.get().ok_or(Why::Not("nothing in the ring"))?;
        let ring = &mut self.ring;
        check(told.endpoint() == self.endpoint, "another's message")?;
        ring.offer(told.place, 0);
        Ok(())
    }

    pub fn end(self) -> Outcome {
        calls::drop_holding(self.endpoint, 0).named("the endpoint")?;
        self.handler.end();
        self.ring.free().named("the ring")?;
        pages::free(self.frame.1).named("a page")?;
        pages::free(self.place.1).named("a page")
    }
}

/// What the judge, or the table of services, does not know is refused, and nothing is kept.
fn images() -> Outcome {
    for name in [
        "handler.nothing",
        "handler.foreign",
        "judge.refused",
        "judge.broken",
        "judge.accepted",
    ] {
        let got = handler::load(image(name)?, 1).map(|handler| handler.number as u64);
        refused(name, got, Error::Argument)?;
    }
    let well = load("handler.count")?;
    let (record, number) = (well.record(), well.number);
    same("its runs", record.arrived.load(Relaxed), 0)?;
    check(record.path.load(Relaxed) > 0, "a path without an end")?;
    let kind = |page: u32| books::page(page).and_then(books::kind);
    let table = record.table.load(Relaxed);
    check(kind(table) == Some(Kind::Window), "another kind")?;
    refused("given", calls::give_holding(number, 1), Error::Kind)?;
    well.end();
    check(kind(table) == Some(Kind::Free), "a page is kept")
}

/// Pages that are given must be own memory that nobody binds, each once, and as many as it takes.
fn given() -> Outcome {
    let file = image("handler.count")?;
    let own = || pages::take().named("a page").map(u64::from);
    let pages = [own()?, own()?, own()?];
    let [table, links, text] = pages;
    let make = |pages: &[u64]| calls::handler(file, pages).map(|number| number as u64);
    refused("too few", make(&[table, links]), Error::Argument)?;
    refused("one twice", make(&[table, links, links]), Error::Kind)?;
    refused("itself", make(&[table, table, text]), Error::Kind)?;
    let mapped = page()?;
    refused(
        "a bound page",
        make(&[table, links, u64::from(mapped.1)]),
        Error::InUse,
    )?;
    refused("the kernel's", make(&[table, links, 256]), Error::Denied)?;
    refused("none", make(&[table, links, u64::MAX]), Error::Argument)?;
    let number = make(&pages).named("a handler")?;
    for page in pages {
        refused("freed", calls::free(page as u32), Error::Kind)?;
        let to = memory::reserve(1);
        memory::give_table(to, 1, calls::Target::SELF).named("a table")?;
        let mapping = Mapping::new(page as u32, Mapping::WRITE);
        let bound = calls::map(to, mapping, 0, calls::Target::SELF);
        refused("bound to be written", bound, Error::Kind)?;
    }
    calls::drop_holding(number as usize, 0).named("its end")?;
    for page in pages {
        pages::free(page as u32).named("a page afterwards")?;
    }
    pages::free(mapped.1).named("a page")
}

/// What is bound in a window, and what not.
fn windows() -> Outcome {
    let mut handler = load("handler.count")?;
    let own = pages::take().named("a page")?;
    let write = Mapping::new(own, Mapping::WRITE);
    let number = handler.number;
    let bind = |offset: u64, mapping| calls::window(number, offset as u32, mapping, 0);
    refused("the text", bind(0x1_1000, write), Error::Argument)?;
    refused("inside a page", bind(SHARED + 8, write), Error::Argument)?;
    for beyond in [
        address::MESSAGE,
        address::MESSAGE + 4096,
        address::WINDOW,
        0xffff_f000,
    ] {
        refused("the message's", bind(beyond, write), Error::Argument)?;
    }
    let execute = Mapping::new(own, Mapping::EXECUTE);
    refused("text of data", bind(SHARED, execute), Error::Argument)?;
    let uncached = Mapping::new(own, Mapping::UNCACHED);
    refused("uncached", bind(SHARED, uncached), Error::Argument)?;
    let table = Mapping::new(handler.record().table.load(Relaxed), 0);
    refused("its table", bind(SHARED, table), Error::Kind)?;
    let kernels = Mapping::new(256, 0);
    refused("the kernel's", bind(SHARED, kernels), Error::Kind)?;
    handler.bind(SHARED, write, 0).named("an own page")?;
    let bindings = || books::page(own).map(|page| page.bindings.load(Relaxed));
    check(bindings() == Some(1), "not bound")?;
    handler
        .bind(SHARED, Mapping::new(own, 0), 0)
        .named("again")?;
    check(bindings() == Some(1), "bound twice")?;
    let other = handler
        .fresh(SHARED + 4096, Mapping::WRITE)
        .named("a page")?;
    handler
        .bind(SHARED, Mapping::new(other, 0), 0)
        .named("in its place")?;
    check(bindings() == Some(0), "still bound")?;
    handler.unbind(SHARED).named("taken away")?;
    refused(
        "twice",
        handler.unbind(SHARED).map(|()| 0u64),
        Error::Unmapped,
    )?;
    handler.bind(SHARED, write, 0).named("an own page")?;
    handler.end();
    check(bindings() == Some(0), "bound by the dead")?;
    pages::free(own).named("a page")
}

/// It runs once for each message, sees it, and the ring hears nothing.
fn runs() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let line = Line::new("handler.count")?;
    for length in [60, 61, 512, 1514, 64] {
        let before = line.word(1);
        line.message(length)?;
        same("bytes", line.word(1), before + length)?;
        same(
            "the message's word",
            line.word(4),
            peer::ECHO | peer::REPORT,
        )?;
        same("the endpoint", line.word(3), line.endpoint as u64)?;
    }
    same("messages", line.word(0), 5)?;
    same("runs", line.record().arrived.load(Relaxed), 5)?;
    check(line.record().spent.load(Relaxed) > 0, "no time")?;
    let mut line = line;
    check(line.ring.next().is_none(), "the ring was told")?;
    line.end()
}

/// Nothing of earlier frames is behind a message, in the page that its handler sees.
fn behind() -> Outcome {
    const LONG: u64 = 300;
    if !is_there() {
        return Ok(());
    }
    let line = Line::new("handler.behind")?;
    (64..PAGE as u64)
        .step_by(8)
        .for_each(|at| memory::write(line.frame.0 + at, u64::MAX));
    // Each page in which frames arrive has had a long one; the peer's report comes behind them.
    line.ask(&[peer::FLOOD, LONG, 1514], 60)?;
    wait("no report", || line.record().arrived.load(Relaxed) == 1)?;
    for length in [60, 61, 63, 64, 67] {
        let found = line.word(0);
        line.message(length)?;
        same("bytes of others", line.word(0), found)?;
    }
    check(line.word(1) == 6, "it was not looked for")?;
    line.end()
}

/// It looks, raises the event, and the message goes on.
fn pass() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let mut line = Line::new("handler.pass")?;
    let _ = take_events();
    line.message(100)?;
    line.told()?;
    let told = take_events();
    check(
        told & Context::EVENT_HANDLER != 0,
        "no event of the handler",
    )?;
    check(told & Context::EVENT_NETWORK != 0, "no event of the ring")?;
    line.end()
}

/// Bytes go to a page by its capability, and no more when that is worth nothing.
fn vector() -> Outcome {
    const NAME: u32 = 77;
    if !is_there() {
        return Ok(());
    }
    let line = Line::new("handler.vector")?;
    let to = page()?;
    let place = u64::from(to.1) << 12 | 64;
    line.set(&[place, 0, 16, 40, 1]);
    line.message(60)?;
    same("said", line.word(4), 0)?;
    same("copied", memory::read(to.0 + 64), peer::ECHO | peer::REPORT)?;
    same("copied", memory::read(to.0 + 72), 5)?;
    // Not where no word begins.
    line.set(&[place + 1]);
    line.message(60)?;
    same("between words", line.word(4), Error::Argument as i64 as u64)?;
    // Not to somebody's page without its capability: here one that is a table.
    line.set(&[u64::from(line.record().table.load(Relaxed)) << 12]);
    line.message(60)?;
    same("a table", line.word(4), Error::Kind as i64 as u64)?;
    // All of a message, from an odd place on.
    line.set(&[place - 64, 0, 17, 1497]);
    line.message(1514)?;
    same("said", line.word(4), 0)?;
    let word = (peer::ECHO | peer::REPORT) >> 8 | 5 << 56;
    same("an odd place", memory::read(to.0), word)?;
    calls::rename(to.1, 0, NAME).named("a name")?;
    line.end()?;
    pages::free(to.1).named("a page")
}

/// What a run does not survive, and what becomes of it: no more runs, an event, the message in the ring, a
/// slice less.
pub fn ends(line: &mut Line, words: &[u64], how: u32, inside: bool) -> Outcome {
    line.set(words);
    let _ = take_events();
    line.message(60)?;
    line.told()?;
    let record = line.record();
    same(
        "how it ended",
        record.ended.load(Relaxed).into(),
        how.into(),
    )?;
    let at = record.ended_at.load(Relaxed);
    check(
        !inside || (0x1_1000..0x1_4000).contains(&at),
        "somewhere else",
    )?;
    let mut told = 0;
    for (event, what) in [
        (Context::EVENT_HANDLER, "no event"),
        (Context::EVENT_FORFEITED, "nothing is forfeited"),
    ] {
        let events = &context::context().events;
        wait(what, || (told | events.load(Relaxed)) & event != 0)?;
        told |= take_events();
    }
    // It is called no more.
    let runs = record.arrived.load(Relaxed);
    line.ask(&[peer::ECHO], 60)?;
    line.told()?;
    same("it runs on", record.arrived.load(Relaxed), runs)
}

/// A line whose handler was not ended by its clock while something was done with it: on a host that
/// is busy elsewhere the clock goes while the handler does not.
pub fn in_time(
    line: impl Fn() -> Result<Line, Why>,
    act: impl Fn(&Line) -> Outcome,
) -> Result<Line, Why> {
    for _ in 0..8 {
        let line = line()?;
        let done = act(&line);
        if line.record().ended.load(Relaxed) != run::LONG {
            return done.map(|()| line);
        }
        line.end()?;
    }
    Err(Why::Not("always too late"))
}

fn ended(words: &[u64], how: u32, inside: bool) -> Outcome {
    let mut line = in_time(
        || Line::new("handler.bad"),
        |line| {
            // It is well otherwise.
            line.set(&[100]);
            line.message(60)
        },
    )?;
    same("a run", line.word(2), 1)?;
    let result = ends(&mut line, words, how, inside);
    line.end()?;
    result
}

/// Exceptions.
fn faults() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let page_fault = run::EXCEPTION + 14;
    let beyond = address::MESSAGE + PAGE as u64;
    for where_to in [0, 0x8000, 0x15_0000, beyond, address::WINDOW, 0xffff_fff8] {
        ended(&[0, where_to], page_fault, true)?;
        ended(&[1, where_to], page_fault, true)?;
    }
    // What can be read is not all to be stored to: text, the message.
    ended(&[1, 0x1_1000], page_fault, true)?;
    ended(&[1, 0x1_0000], page_fault, true)?;
    ended(&[1, address::MESSAGE + 16], page_fault, true)?;
    ended(&[3, 0, 0, 0], run::EXCEPTION, true)?;
    ended(&[8, 0, 0, 1], page_fault, true)
}

/// One that never ends is ended by its clock.
fn endless() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    ended(&[2], run::LONG, true)
}

/// One that takes long, and ends, pays for its time.
fn long() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let act = |line: &Line| {
        (0..4).try_for_each(|_| {
            line.set(&[9, 0, 0, 1000]);
            line.message(60)?;
            same("it ended", line.word(2), 1)?;
            same("not well", line.record().ended.load(Relaxed).into(), 0)
        })
    };
    let line = in_time(|| Line::new("handler.bad"), act)?;
    check(line.record().spent.load(Relaxed) > 0, "no time")?;
    let before = slices::clock();
    check(slices::clock() >= before, "the clock stands still")?;
    line.end()
}

/// Services: arguments that make no sense end a run, and so does asking too much.
fn services() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    // From where nothing is; more than a page; frames of no length.
    ended(&[5, 0, 0, 0x15_0000], run::SERVICE, false)?;
    ended(&[6, 0, 0, 5000], run::SERVICE, false)?;
    ended(&[6, 0, 0, u64::MAX], run::SERVICE, false)?;
    ended(&[7, 1515], run::SERVICE, false)?;
    ended(&[7, u64::MAX], run::SERVICE, false)?;
    // Frames without an end: eight are sent at most.
    let sent = Cell::new(0);
    let line = in_time(
        || Line::new("handler.bad"),
        |line| {
            sent.set(books::machine().network.sent.load(Relaxed));
            line.set(&[4, 0, 0, 0]);
            line.message(60)?;
            let how = line.record().ended.load(Relaxed);
            same("how it ended", how.into(), run::SERVICE.into())
        },
    )?;
    check(line.word(3) <= 8, "more than eight frames")?;
    check(line.word(3) > 0, "no frame")?;
    check(
        books::machine().network.sent.load(Relaxed) <= sent.get() + 8 + 3,
        "more frames on the line",
    )?;
    line.end()
}

/// A counter by UDP goes forth and back, and the owner's program has no part in it.
fn reply() -> Outcome {
    const ROUNDS: u64 = 100;
    if !is_there() {
        return Ok(());
    }
    let line = Line::with("handler.pong", "udp port 7")?;
    line.ask(&[peer::ROUNDS, ROUNDS], 60)?;
    wait("rounds end early", || {
        line.record().arrived.load(Relaxed) >= ROUNDS
    })?;
    same("ended", line.record().ended.load(Relaxed).into(), 0)?;
    line.end()
}

/// Pings are answered, by code with loops.
fn pings() -> Outcome {
    const ROUNDS: u64 = 20;
    if !is_there() {
        return Ok(());
    }
    let line = in_time(
        || Line::with("handler.answer", "icmp"),
        |line| {
            line.ask(&[peer::PING, ROUNDS], 60)?;
            let record = line.record();
            wait("pings end early", || {
                record.arrived.load(Relaxed) >= ROUNDS || record.ended.load(Relaxed) != 0
            })
        },
    )?;
    same("ended", line.record().ended.load(Relaxed).into(), 0)?;
    line.end()
}

/// A page that is freed is out of the window at once: the run that needs it ends.
fn broken() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let mut line = Line::new("handler.bad")?;
    let own = page()?;
    let at = 0x12_0000;
    line.handler
        .bind(at, Mapping::new(own.1, Mapping::WRITE), 0)
        .named("binding")?;
    line.set(&[1, at]);
    line.message(60)?;
    same("stored", memory::read(own.0), 1)?;
    pages::free(own.1).named("freeing")?;
    let result = ends(&mut line, &[1, at], run::EXCEPTION + 14, true);
    line.end()?;
    result
}
