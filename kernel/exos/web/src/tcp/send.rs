//! What is sent, and when.

use super::connection::{Connection, NEVER, Owed, State};
use super::sequence::{before, from};
use super::{Reply, STALL, TRIES, TRIES_HALF, Tcp};
use crate::frame::{ACK, FIN, Fields, HEADERS, OPTIONS, PSH};
use crate::piece::{PIECES, Piece, Sent, Store, Wire};
use crate::sum::Sum;

/// Segments of one connection before others have their turn.
const BURST: u32 = 4;

/// Pieces of a segment.
#[derive(Default)]
struct Gathered {
    pieces: [Piece; PIECES],
    count: usize,
    length: usize,
    sum: Sum,
}

/// Pieces of what is to be sent from so many bytes behind the first one on: whole chunks, as many
/// as there is room for; of the first one a part, if it may be `cut`. `None`: bytes are gone.
fn gather(
    connection: &Connection,
    offset: u64,
    limit: usize,
    cut: bool,
    store: &mut impl Store,
) -> Option<Gathered> {
    let mut gathered = Gathered::default();
    let mss = usize::from(connection.mss);
    'all: for stretch in connection.behind(offset) {
        let mut done = 0;
        while done < stretch.length && gathered.count < PIECES {
            let most = mss.min(usize::try_from(stretch.length - done).unwrap_or(mss));
            let room = limit - gathered.length;
            if room == 0 {
                break 'all;
            }
            let mut piece = store.piece(stretch.object, stretch.from + done, most)?;
            if piece.length > room {
                if !cut || gathered.count > 0 {
                    break 'all;
                }
                piece = store.piece(stretch.object, stretch.from + done, room)?;
            }
            let sum = match gathered.length % 2 {
                0 => piece.sum,
                _ => piece.sum.shifted(),
            };
            gathered.sum = gathered.sum.and(sum);
            gathered.length += piece.length;
            gathered.pieces[gathered.count] = piece;
            gathered.count += 1;
            done += piece.length as u64;
        }
        if done < stretch.length {
            break;
        }
    }
    Some(gathered)
}

/// What a turn of a connection came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Done,
    More,
    /// The wire takes nothing now.
    Later,
    /// What is to be sent is not there any more.
    Gone,
}

impl Tcp {
    /// Sends what waits to be sent, until there is nothing or no room; whether all went.
    pub fn flush(&mut self, now: u64, store: &mut impl Store, wire: &mut impl Wire) -> bool {
        while let Some(reply) = self.replies.last() {
            if wire_reply(reply, wire) == Sent::Later {
                return false;
            }
            self.counts.sent += 1;
            self.replies.pop();
        }
        while let Some(slot) = self.pending.pop_front() {
            match self.turn(slot, now, store, wire) {
                Turn::Later => {
                    self.pending.push_front(slot);
                    return false;
                }
                Turn::More => self.pending.push_back(slot),
                Turn::Done => {
                    if let Some(connection) = self.table.get_mut(slot) {
                        connection.pending = false;
                    }
                }
                Turn::Gone => {
                    if let Some(connection) = self.table.get_mut(slot) {
                        connection.pending = false;
                    }
                    self.abort(slot);
                }
            }
        }
        true
    }

    fn turn(&mut self, slot: u16, now: u64, store: &mut impl Store, wire: &mut impl Wire) -> Turn {
        let room = self.own.room;
        let Some(connection) = self.table.get_mut(slot) else {
            return Turn::Done;
        };
        let turn = match connection.state {
            State::Free => Turn::Done,
            State::Half if connection.owed == Owed::Nothing => Turn::Done,
            State::Half => {
                let (fields, options) = Tcp::synchronise(connection, room, now);
                let mut headers = [0; HEADERS + OPTIONS];
                let nothing = (0, Sum::default());
                let template = &connection.template;
                let length = template.fill(&mut headers, &fields, &options, nothing);
                match wire.send(headers.get(..length).unwrap_or_default(), &[]) {
                    Sent::Later => {
                        connection.owed = Owed::Now;
                        Turn::Later
                    }
                    _ => {
                        self.counts.sent += 1;
                        Turn::Done
                    }
                }
            }
            State::Open | State::Waits => transmit(connection, now, store, wire, &mut self.counts),
        };
        self.next_due = self.next_due.min(connection.due);
        turn
    }

    /// Time has passed.
    pub fn tick(&mut self, now: u64) {
        if now < self.next_due {
            return;
        }
        self.next_due = NEVER;
        for slot in 0..self.own.connections as u16 {
            self.look(slot, now);
            if let Some(c) = self.table.get(slot)
                && c.state != State::Free
            {
                let due = c.due.min(c.acknowledge).min(c.deadline);
                self.next_due = self.next_due.min(due);
            }
        }
    }

    fn look(&mut self, slot: u16, now: u64) {
        let Some(connection) = self.table.get_mut(slot) else {
            return;
        };
        if connection.state == State::Free {
            return;
        }
        if connection.acknowledge <= now {
            connection.acknowledge = NEVER;
            if connection.owed == Owed::Soon {
                connection.owed = Owed::Now;
                self.touch(slot);
            }
        }
        self.look_for_lost(slot, now);
        let Some(connection) = self.table.get_mut(slot) else {
            return;
        };
        if connection.deadline > now {
            return;
        }
        match connection.state {
            State::Free => {}
            State::Waits | State::Half => self.remove(slot),
            State::Open => {
                let stalled = now.saturating_sub(connection.progress) >= STALL;
                let waits = connection.queued > 0 || connection.ends;
                if waits && stalled {
                    self.abort(slot);
                } else if waits {
                    connection.deadline = connection.progress + STALL;
                } else {
                    connection.deadline = NEVER;
                    self.expired.push(slot);
                }
            }
        }
    }

    /// Whether something is to be sent again.
    fn look_for_lost(&mut self, slot: u16, now: u64) {
        let Some(connection) = self.table.get_mut(slot) else {
            return;
        };
        if connection.due > now {
            return;
        }
        connection.due = NEVER;
        connection.tries += 1;
        let half = connection.state == State::Half;
        if connection.tries > if half { TRIES_HALF } else { TRIES } {
            if !half {
                self.counts.lost += 1;
            }
            return self.remove(slot);
        }
        if half {
            connection.owed = Owed::Now;
        } else if connection.window == 0 {
            // It says so again and again: it lives. How long it may is for `look` to say.
            connection.tries = connection.tries.min(TRIES - 2);
            connection.next = connection.first;
            connection.probe = true;
        } else {
            let (flight, mss) = (connection.flight(), connection.mss);
            if flight > 0 {
                connection.pace.timed_out(flight, mss);
                connection.next = connection.first;
            }
            connection.probe = true;
        }
        self.touch(slot);
    }
}

fn wire_reply(reply: &Reply, wire: &mut impl Wire) -> Sent {
    let mut headers = [0; HEADERS + OPTIONS];
    let options = reply.options.as_ref().map_or(&[][..], |options| options);
    let nothing = (0, Sum::default());
    let length = reply
        .template
        .fill(&mut headers, &reply.fields, options, nothing);
    wire.send(headers.get(..length).unwrap_or_default(), &[])
}

/// The window that is told, which never shrinks (RFC 9293, section 3.8.6.2).
fn window(connection: &Connection) -> u16 {
    let known = from(connection.expected, connection.edge);
    known.max(connection.room.into()).min(u16::MAX.into()) as u16
}

/// Sends a segment: pieces from a number on, or none, and perhaps the end.
fn emit(
    connection: &mut Connection,
    (sequence, gathered, end): (u32, &Gathered, bool),
    wire: &mut impl Wire,
) -> Sent {
    let mut flags = ACK;
    if end {
        flags |= FIN;
    }
    let behind = u64::from(from(connection.first, sequence));
    if gathered.length > 0 && gathered.length as u64 + behind >= connection.queued {
        flags |= PSH;
    }
    let window = window(connection);
    let fields = Fields {
        sequence,
        acknowledged: connection.expected,
        flags,
        window,
    };
    let mut headers = [0; HEADERS + OPTIONS];
    let data = (gathered.length, gathered.sum);
    let length = connection.template.fill(&mut headers, &fields, &[], data);
    let headers = headers.get(..length).unwrap_or_default();
    let sent = wire.send(
        headers,
        gathered.pieces.get(..gathered.count).unwrap_or_default(),
    );
    if sent == Sent::Yes {
        connection.edge = connection.expected.wrapping_add(window.into());
        connection.owed = Owed::Nothing;
        connection.acknowledge = NEVER;
    }
    sent
}

/// What there is to be sent, as far as windows allow it.
fn transmit(
    connection: &mut Connection,
    now: u64,
    store: &mut impl Store,
    wire: &mut impl Wire,
    counts: &mut super::Counts,
) -> Turn {
    let mss = usize::from(connection.mss);
    if connection.again && connection.flight() > 0 {
        let Some(gathered) = gather(connection, 0, mss, true, store) else {
            return Turn::Gone;
        };
        let end = connection.ends && gathered.length as u64 == connection.queued;
        match emit(connection, (connection.first, &gathered, end), wire) {
            Sent::Yes => {}
            Sent::Later => return Turn::Later,
            Sent::Gone => return Turn::Gone,
        }
        counts.sent += 1;
        counts.again += 1;
        connection.pace.forget_time();
        connection.due = now + connection.pace.timeout;
    }
    connection.again = false;
    for _ in 0..BURST {
        let flight = connection.flight();
        let unsent = connection.unsent();
        let end_waits = connection.ends && !connection.end_known && !connection.end_is_sent();
        if connection.state != State::Open || unsent == 0 && !end_waits {
            return last(connection, wire, counts);
        }
        let allowed = connection.window.min(connection.pace.window);
        let mut usable = allowed.saturating_sub(flight) as usize;
        if flight == 0 && connection.probe {
            usable = usable.max(1);
        }
        // A part of a chunk is sent if nothing else would come (RFC 9293, section 3.8.6.2.1).
        let half = connection.widest.div_ceil(2) as usize;
        let cut = flight == 0 && (connection.probe || usable >= half || usable >= mss);
        let gathered = match usable.min(mss) {
            0 => Gathered::default(),
            limit => match gather(connection, flight.into(), limit, cut, store) {
                Some(gathered) => gathered,
                None => return Turn::Gone,
            },
        };
        let rest = gathered.length as u64 == unsent;
        let end = end_waits && rest && (usable > gathered.length || flight == 0);
        if gathered.length == 0 && !end {
            // Nothing may be sent. If nothing is under way either, somebody has to ask.
            if flight == 0 && connection.due == NEVER {
                connection.due = now + (connection.pace.timeout << connection.tries);
            }
            return last(connection, wire, counts);
        }
        let begin = connection.next;
        match emit(connection, (begin, &gathered, end), wire) {
            Sent::Yes => {}
            Sent::Later => return Turn::Later,
            Sent::Gone => return Turn::Gone,
        }
        connection.probe = false;
        counts.sent += 1;
        let length = gathered.length as u32 + u32::from(end);
        connection.next = begin.wrapping_add(length);
        if before(connection.most, connection.next) {
            connection.most = connection.next;
            connection.pace.sent(connection.next, now);
        } else {
            counts.again += 1;
            connection.pace.forget_time();
        }
        if end {
            connection.ended_first |= !connection.has_ended;
        }
        if connection.due == NEVER {
            let wait = connection.pace.timeout << connection.tries;
            connection.due = now + wait.min(super::pace::LONGEST);
        }
    }
    Turn::More
}

/// What is owed without anything to be sent with it.
fn last(connection: &mut Connection, wire: &mut impl Wire, counts: &mut super::Counts) -> Turn {
    if connection.owed != Owed::Now {
        return Turn::Done;
    }
    // Behind everything that was ever sent: what is before it may be acknowledged already.
    let sequence = match connection.state {
        State::Waits => connection.first,
        _ => connection.most,
    };
    match emit(connection, (sequence, &Gathered::default(), false), wire) {
        Sent::Later => Turn::Later,
        _ => {
            counts.sent += 1;
            Turn::Done
        }
    }
}
