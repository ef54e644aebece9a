//! Frames that come: of all lengths, as fast as they can, of bytes at random, and to rings that are
//! none.

use core::cell::{Cell, RefCell};
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::ring::Ring;
use postern_aegis::{books, calls, entry};
use postern_aegis_programs::{Role, peer};

use crate::listener::{Frame, Listener, PLAIN, REPORTS, is_there, send};
use crate::scenario::{Named, Outcome, check, goes_on, player, running, same, wait};

crate::scenarios! {
    "arrivals.lengths" lengths;
    "arrivals.flood" flood;
    "arrivals.binding" binding;
    "arrivals.garbage" garbage;
    "arrivals.rings" rings;
}

/// Frames of all lengths: each that comes is as it was sent.
fn lengths() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let mut reports = Listener::new(REPORTS)?;
    let mut listener = Listener::new(PLAIN)?;
    let asks = Frame::new()?;
    send(&[asks.ask(&[peer::FLOOD, 1587, 0])])?;
    // Longer ones do not come.
    const ALL: u64 = 1514 - 14 + 1;
    let (got, wrong, last) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let drain = |listener: &mut Listener| {
        for (told, words) in listener.by_ref() {
            let length = told.length() as u64;
            got.set(got.get() + 1);
            // They come in the order of their lengths, each with its number in it.
            let bad = length <= last.get() || length > 1514;
            let other = length >= 24 && words[0] != length - 14;
            wrong.set(wrong.get() + u64::from(bad || other));
            last.set(length);
        }
    };
    let cell = RefCell::new(&mut listener);
    wait("frames stay away", || {
        let mut listener = cell.borrow_mut();
        drain(&mut listener);
        listener.counts().0 == ALL
    })?;
    drain(&mut listener);
    same("wrong frames", wrong.get(), 0)?;
    same("told and lost", got.get() + listener.counts().1, ALL)?;
    check(got.get() > 32, "nearly all are lost")?;
    reports.report(peer::FLOOD)?;
    listener.free()?;
    reports.free()?;
    asks.free()
}

/// As fast as frames come, environments go on, and each frame is told or counted as lost.
fn flood() -> Outcome {
    const COUNT: u64 = 4000;
    if !is_there() {
        return Ok(());
    }
    let mut reports = Listener::new(REPORTS)?;
    let mut listener = Listener::new(PLAIN)?;
    let asks = Frame::new()?;
    let neighbour = running(Role::Count, 0, 0)?;
    neighbour.run_on(0)?;
    send(&[asks.ask(&[peer::FLOOD, COUNT, 60])])?;
    let mut got = 0;
    for _ in 0..5 {
        goes_on(&neighbour)?;
        got += listener.by_ref().count() as u64;
    }
    let [sent, refused, _] = reports.report(peer::FLOOD)?;
    same("refused", refused, 0)?;
    wait("frames are missing", || listener.counts().0 == sent)?;
    got += listener.by_ref().count() as u64;
    same("told and lost", got + listener.counts().1, sent)?;
    check(neighbour.lives(), "a neighbour ended")?;
    neighbour.end();
    listener.free()?;
    reports.free()?;
    asks.free()
}

/// Endpoints come and go while frames do, so that what is compiled changes under them: each frame
/// is told to, or lost by, one of those that there were.
fn binding() -> Outcome {
    const COUNT: u64 = 4000;
    if !is_there() {
        return Ok(());
    }
    let mut reports = Listener::new(REPORTS)?;
    let mut listener = Listener::new(PLAIN)?;
    let asks = Frame::new()?;
    send(&[asks.ask(&[peer::FLOOD, COUNT, 60])])?;
    let (mut got, mut others, mut rounds) = (0, 0, 0);
    let all = |got: u64, others: u64, listener: &Listener| got + listener.counts().1 + others;
    while rounds < 40 || all(got, others, &listener) < COUNT && rounds < 4000 {
        // Of a higher priority, for the same frames; and one that no frame is for.
        let above = calls::bind(PLAIN, 2, 0).named("above")?;
        let beside = calls::bind("ether proto 0x9999", 3, 0).named("beside")?;
        got += listener.by_ref().count() as u64;
        calls::drop_holding(beside, 0).named("dropping one")?;
        entry::yield_slice();
        others += books::machine().holdings[above].arrived.load(Relaxed);
        // Its record is gone with it, and with that a frame that comes just now.
        calls::drop_holding(above, 0).named("dropping another")?;
        got += listener.by_ref().count() as u64;
        rounds += 1;
    }
    let [sent, refused, _] = reports.report(peer::FLOOD)?;
    same("refused", refused, 0)?;
    wait("frames are missing", || {
        listener.counts().0 + others + rounds >= sent
    })?;
    got += listener.by_ref().count() as u64;
    let told = all(got, others, &listener);
    check(told <= sent && told + rounds >= sent, "told and lost")?;
    check(
        others > 0 && listener.counts().0 > 0,
        "one of them got nothing",
    )?;
    listener.free()?;
    reports.free()?;
    asks.free()
}

/// Bytes at random change nothing.
fn garbage() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let mut reports = Listener::new(REPORTS)?;
    let all = Listener::new("ip or arp or ip6")?;
    let asks = Frame::new()?;
    for seed in 0..4 {
        send(&[asks.ask(&[peer::GARBAGE, 700, seed])])?;
        reports.report(peer::GARBAGE)?;
    }
    send(&[asks.ask(&[peer::ECHO, 1, 2, 3])])?;
    check(reports.report(peer::ECHO)? == [1, 2, 3], "another echo")?;
    same(
        "nonsense",
        books::machine().network.nonsense.load(Relaxed),
        0,
    )?;
    all.free()?;
    reports.free()?;
    asks.free()
}

/// Rings and places that are not what they should be: frames are lost, and nothing else happens.
fn rings() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let mut reports = Listener::new(REPORTS)?;
    let asks = Frame::new()?;
    let frame = Frame::new()?;
    let child = player(Role::Count, 0, 0)?;
    let mut ring = Ring::new().named("a ring")?;
    let endpoint = calls::bind(PLAIN, 1, ring.page()).named("an endpoint")?;
    let record = &books::machine().holdings[endpoint];
    let kernel = 0x20_0000;
    let context = books::environment(child.number).context.load(Relaxed);
    let own = u64::from(frame.page) << 12;
    for place in [
        kernel,
        context,
        own | 4,
        own | 1,
        u64::MAX,
        u64::from(u32::MAX) << 12,
    ] {
        ring.offer(place, 0);
        let lost = record.lost.load(Relaxed);
        send(&[asks.ask(&[peer::FLOOD, 3, 60])])?;
        reports.report(peer::FLOOD)?;
        wait("it is not lost", || record.lost.load(Relaxed) == lost + 3)?;
        check(ring.next().is_none(), "it is told")?;
        // The same entry again.
        calls::direct(endpoint, 0, 0).named("no ring")?;
        ring.free().named("freeing")?;
        ring = Ring::new().named("a ring")?;
        calls::direct(endpoint, ring.page(), 0).named("a ring")?;
    }
    // At the page's end: cut.
    ring.offer(own | 4088, 0);
    send(&[asks.ask(&[peer::FLOOD, 1, 60])])?;
    let told = Cell::new(None);
    let cell = RefCell::new(&mut ring);
    wait("it is not told", || {
        told.set(cell.borrow_mut().next());
        told.get().is_some()
    })?;
    same(
        "the length",
        told.get().map_or(0, |told| told.length() as u64),
        60,
    )?;
    reports.report(peer::FLOOD)?;
    // The ring's page is somebody else's meanwhile.
    let page = ring.page();
    calls::give(page, child.number).named("giving the ring away")?;
    let lost = record.lost.load(Relaxed);
    send(&[asks.ask(&[peer::FLOOD, 2, 60])])?;
    wait("it is not lost", || record.lost.load(Relaxed) == lost + 2)?;
    reports.report(peer::FLOOD)?;
    calls::drop_holding(endpoint, 0).named("dropping")?;
    child.end();
    asks.free()?;
    frame.free()?;
    reports.free()
}
