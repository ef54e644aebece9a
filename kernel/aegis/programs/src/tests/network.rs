//! The network: sending by pages, and what the device is lent.

use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::Call;
use postern_aegis::abi::call::{NAME_EVERYBODY, RIGHT_READ};
use postern_aegis::abi::device::{FRAMES, PIECES, Piece};
use postern_aegis::calls::{self, Target};
use postern_aegis::{Error, Mapping, books, context, memory, pages};
use postern_aegis_programs::{Role, peer, words};

use crate::listener::{Frame, Listener, REPORTS, is_there, send};
use crate::scenario::{
    Named, Outcome, Why, ask_done, ask_refused, check, player, refused, running, same, wait,
};

crate::scenarios! {
    "network.echo" echo;
    "network.arguments" arguments;
    "network.gather" gather;
    "network.itself" itself;
    "network.capability" capability;
    "network.lent" lent;
    "network.places" places;
    "network.dies" dies;
    "network.revoked" revoked;
    "network.renewed" renewed;
}

/// A frame there and back.
fn echo() -> Outcome {
    if !is_there() {
        return refused("sending nowhere", calls::send(&[]), Error::NoDevice);
    }
    let frame = Frame::new()?;
    let mut listener = Listener::new(REPORTS)?;
    let sent = context::sent();
    send(&[frame.ask(&[peer::ECHO, 1, 2, u64::MAX])])?;
    let report = listener.report(peer::ECHO)?;
    check(report == [1, 2, u64::MAX], "another echo")?;
    wait("it is not told", || context::sent() > sent)?;
    same("frames sent", context::sent(), sent + 1)?;
    same(
        "arrived, lost",
        listener.counts().0 + listener.counts().1,
        1,
    )?;
    listener.free()?;
    frame.free()
}

fn arguments() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let frame = Frame::new()?;
    let argument = Error::Argument;
    let one = |offset, length| calls::send(&[frame.piece(offset, length)]);
    for (offset, length) in [
        (0, 0),
        (0, 13),
        (0, 1515),
        (0, u64::MAX),
        (4090, 14),
        (4095, 60),
    ] {
        refused("a bad piece", one(offset, length), argument)?;
    }
    refused("nothing", calls::send(&[]), argument)?;
    refused(
        "too many",
        calls::send(&[frame.piece(0, 60); PIECES + 1]),
        argument,
    )?;
    let whole = frame.piece(0, 1000);
    refused("too long together", calls::send(&[whole, whole]), argument)?;
    refused(
        "an empty one among others",
        calls::send(&[whole, frame.piece(0, 0)]),
        argument,
    )?;
    let at = |place: u64| {
        calls::send(&[Piece {
            place,
            ..frame.piece(0, 60)
        }])
    };
    refused("a page beyond", at(u64::from(u32::MAX) << 12), argument)?;
    refused("a place beyond", at(1 << 44), argument)?;
    refused("all ones", at(u64::MAX), argument)?;
    refused("the kernel's", at(0x20_0000), Error::Kind)?;
    let own = (books::environment(books::own_number())
        .context
        .load(Relaxed))
        & !0xfff;
    refused("a context", at(own), Error::Kind)?;
    let raw =
        |address, count| crate::trusted::any_call(Call::Send as u64, [address, count, 0, 0, 0, 0]);
    refused("from nowhere", raw(0x1000, 1), Error::Unmapped)?;
    refused("no multiple of eight", raw(frame.at + 1, 1), argument)?;
    refused("the kernel's half", raw(u64::MAX - 7, 1), Error::Unmapped)?;
    refused("counts", raw(frame.at, u64::MAX), argument)?;
    same("frames under way", under_way(), 0)?;
    frame.free()
}

fn under_way() -> u64 {
    books::environment(books::own_number())
        .frames
        .load(Relaxed)
        .into()
}

/// Pieces of any lengths, at any offsets, are one frame.
fn gather() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let mut listener = Listener::new(REPORTS)?;
    let asks = Frame::new()?;
    let (head, body) = (Frame::new()?, Frame::new()?);
    head.plain();
    for word in 0..512 {
        memory::write(body.at + 8 * word, word.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    let cuts: [&[u64]; 6] = [
        &[],
        &[1],
        &[1500],
        &[1, 1, 1, 1, 1, 1],
        &[7, 250, 3, 900],
        &[499, 501],
    ];
    for lengths in cuts {
        let mut pieces = [head.piece(0, 14); PIECES];
        let mut hash = 0xcbf2_9ce4_8422_2325;
        let mut mix = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        (0..14).for_each(|at| mix(head.byte(at)));
        let mut offset = 5;
        for (piece, length) in pieces[1..].iter_mut().zip(lengths) {
            *piece = body.piece(offset, *length);
            (offset..offset + length).for_each(|at| mix(body.byte(at)));
            offset += length + 3;
        }
        let length = 14 + lengths.iter().sum::<u64>();
        send(&[asks.ask(&[peer::SEEN])])?;
        listener.report(peer::SEEN)?;
        send(&pieces[..=lengths.len()])?;
        send(&[asks.ask(&[peer::SEEN])])?;
        let [count, seen, seen_hash] = listener.report(peer::SEEN)?;
        same("frames seen", count, 1)?;
        same("the length", seen, length)?;
        same("the hash", seen_hash, hash)?;
    }
    for frame in [asks, head, body] {
        frame.free()?;
    }
    listener.free()
}

/// What is for this machine itself comes back, and does not go out.
fn itself() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    const OWN: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
    let mut listener = Listener::new("ether proto 0x88b7 or ether proto 0x88b5")?;
    let frame = Frame::new()?;
    for word in 0..512 {
        memory::write(
            frame.at + 8 * word,
            word.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        );
    }
    let head = |at: u64, to: [u8; 6]| {
        let mut bytes = [0; 14];
        bytes[..6].copy_from_slice(&to);
        bytes[6..].copy_from_slice(&[0x52, 0x54, 0, 0, 0, 2, 0x88, 0xb7]);
        memory::write_bytes(frame.at + at, &bytes);
    };
    // At any offset, of any length, in pieces.
    for (at, pieces) in [
        (0, &[60][..]),
        (1, &[1514]),
        (7, &[6, 8, 100]),
        (3, &[14]),
        (5, &[14, 2000, 2000]),
        (4080, &[14]),
    ] {
        head(at, OWN);
        let mut all = [frame.piece(0, 0); PIECES];
        let mut from = at;
        for (piece, length) in all.iter_mut().zip(pieces) {
            *piece = frame.piece(from, *length);
            from += length;
        }
        send(&all[..pieces.len()])?;
        let (told, words) = listener.next().ok_or(Why::Not("nothing came back"))?;
        same("the length", told.length() as u64, pieces.iter().sum())?;
        let byte = |index: u64| frame.byte(at + 16 + index);
        if told.length() > 60 {
            let second: [u8; 8] = core::array::from_fn(|index| byte(index as u64));
            same("the bytes", words[0], u64::from_le_bytes(second))?;
        }
    }
    same("frames under way", under_way(), 0)?;
    // The peer has not seen any of them.
    let asks = Frame::new()?;
    send(&[asks.ask(&[peer::SEEN])])?;
    let [seen, ..] = listener.report(peer::SEEN)?;
    same("frames that went out", seen, 0)?;
    asks.free()?;
    frame.free()?;
    listener.free()
}

/// Where an obedient player finds what the root wrote for it.
const AT: u64 = 0x2000_0000_0000;
const NAME: u32 = 79;

/// Another's page can be sent by its capability, and not without.
fn capability() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let child = running(Role::Obey, 0, 0)?;
    let give = || memory::give_table(AT, 1, child.target());
    pages::patiently(|| give().map_err(again)).named("a table")?;
    let (array, frame) = (Frame::named(NAME_EVERYBODY)?, Frame::named(NAME)?);
    let map = [AT, Mapping::new(array.page, 0).0, 0, 0, 0];
    ask_done("mapping", &child, Call::Map, &map)?;
    let piece = frame.plain();
    let word = calls::capability(NAME, RIGHT_READ, 0).named("a capability")?;
    let write = |capability: u64| {
        for (index, word) in [piece.place, piece.length, capability]
            .into_iter()
            .enumerate()
        {
            memory::write(array.at + 8 * index as u64, word);
        }
    };
    for wrong in [0, 1, word ^ 1, u64::MAX] {
        write(wrong);
        ask_refused("without it", &child, Call::Send, &[AT, 1], Error::Denied)?;
    }
    write(word);
    ask_done("with it", &child, Call::Send, &[AT, 1])?;
    let record = books::environment(child.number);
    wait("it stays under way", || record.frames.load(Relaxed) == 0)?;
    child.end();
    array.free()?;
    frame.free()
}

/// What the environment runs on another processor for is tried again.
fn again(error: Error) -> Error {
    match error {
        Error::Busy => Error::Again,
        error => error,
    }
}

/// Has the peer take nothing for a while, and sends until the device takes nothing any more: so
/// many frames stay under way.
fn stop_up(asks: &Frame, fill: &Frame, milliseconds: u64) -> Outcome {
    send(&[asks.ask(&[peer::SLEEP, milliseconds])])?;
    wait("it stays under way", || under_way() == 0)?;
    let piece = fill.plain();
    let full = Cell::new((0, 0));
    wait("the device takes everything", || {
        while calls::send(&[piece]).is_ok() {}
        let (sent, times) = full.get();
        let same = context::sent() == sent && under_way() == FRAMES as u64;
        full.set((context::sent(), if same { times + 1 } else { 0 }));
        times > 40
    })
}

/// How long the peer sleeps in these scenarios.
const SLEEP: u64 = 1500;

/// A page that the device reads stays where it is, until it is done.
fn lent() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    // On a host that is busy elsewhere the peer may wake before all is tried.
    let in_time = || lent_while_the_peer_sleeps().is_ok();
    if (0..7).any(|_| in_time()) {
        return Ok(());
    }
    lent_while_the_peer_sleeps()
}

fn lent_while_the_peer_sleeps() -> Outcome {
    let mut listener = Listener::new(REPORTS)?;
    let (asks, fill) = (Frame::new()?, Frame::new()?);
    stop_up(&asks, &fill, SLEEP)?;
    let again = Error::Again;
    let child = player(Role::Count, 0, 0)?;
    let links = pages::take().named("links")?;
    let stays = || {
        refused("giving", calls::give(fill.page, child.number), again)?;
        let at = memory::reserve_tables(1);
        let table = calls::table(at, 1, fill.page, links, Target::SELF);
        check(table.is_err(), "it became a table")?;
        refused("one more", calls::send(&[fill.plain()]), again)?;
        refused("freeing", calls::free(fill.page), again)
    };
    let stayed = stays();
    listener.report(peer::SLEEP)?;
    wait("they stay under way", || under_way() == 0)?;
    let number = child.number;
    child.end();
    crate::scenario::gone(number)?;
    for page in [links, asks.page] {
        pages::free(page).named("freeing")?;
    }
    let freed = fill.free();
    listener.free()?;
    stayed.and(freed)
}

/// Some places are kept: who has nothing under way sends while others have all that they may.
fn places() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let mut listener = Listener::new(REPORTS)?;
    let (asks, fill) = (Frame::new()?, Frame::new()?);
    stop_up(&asks, &fill, SLEEP)?;
    let children = [(); 6].map(|()| running(Role::Transmit, 0, 0));
    for child in &children {
        let child = child.as_ref().map_err(|_| Why::Not("a player"))?;
        let record = books::environment(child.number);
        wait("it has no place", || record.frames.load(Relaxed) > 0)?;
        check(record.frames.load(Relaxed) <= FRAMES as u32, "too many")?;
    }
    listener.report(peer::SLEEP)?;
    children.into_iter().flatten().for_each(|child| child.end());
    wait("they stay under way", || under_way() == 0)?;
    for frame in [asks, fill] {
        frame.free()?;
    }
    listener.free()
}

/// Who dies with frames under way is gone when the device is done with them, and not before.
fn dies() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let mut listener = Listener::new(REPORTS)?;
    let (asks, fill) = (Frame::new()?, Frame::new()?);
    stop_up(&asks, &fill, SLEEP)?;
    let child = running(Role::Transmit, 0, 0)?;
    let record = books::environment(child.number);
    wait("it has no place", || record.frames.load(Relaxed) > 0)?;
    let number = child.number;
    child.end();
    for _ in 0..20 {
        postern_aegis::entry::yield_slice();
        let gone = record.context.load(Relaxed) == 0;
        check(
            !gone || record.frames.load(Relaxed) == 0,
            "it is gone already",
        )?;
    }
    listener.report(peer::SLEEP)?;
    crate::scenario::gone(number)?;
    wait("they stay under way", || under_way() == 0)?;
    for frame in [asks, fill] {
        frame.free()?;
    }
    listener.free()
}

/// A device that takes nothing for seconds is begun anew: pages come back, and frames go again.
fn renewed() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let mut listener = Listener::new(REPORTS)?;
    let (asks, fill) = (Frame::new()?, Frame::new()?);
    stop_up(&asks, &fill, 8000)?;
    wait("they stay under way", || under_way() == 0)?;
    check(listener.next().is_none(), "the peer woke before")?;
    fill.free()?;
    listener.report(peer::SLEEP)?;
    send(&[asks.ask(&[peer::ECHO, 1, 2, 3])])?;
    check(listener.report(peer::ECHO)? == [1, 2, 3], "another echo")?;
    wait("they stay under way", || under_way() == 0)?;
    asks.free()?;
    listener.free()
}

/// Pages of who sends are taken by force meanwhile.
fn revoked() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let frame = Frame::new()?;
    let child = running(Role::Transmit, 0, 0)?;
    wait("it does not send", || {
        child.mailbox.get(words::PROGRESS) > 5
    })?;
    for _ in 0..8 {
        let _ = calls::revoke(child.target(), postern_aegis::abi::call::PAGES, 1);
        let ran = books::environment(child.number).ran.load(Relaxed);
        wait("it does not run", || {
            !child.lives() || books::environment(child.number).ran.load(Relaxed) > ran + 8
        })?;
    }
    let number = child.number;
    child.end();
    crate::scenario::gone(number)?;
    send(&[frame.plain()])?;
    wait("they stay under way", || under_way() == 0)?;
    frame.free()
}
