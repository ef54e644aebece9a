//! The server's side of TCP (RFC 9293): connections that others open, requests in order, and
//! answers whose segments are pieces of memory, sent again from where they stand.
//!
//! | module | what |
//! |---|---|
//! | [`sequence`] | numbers that go round |
//! | [`pace`] | timeouts, congestion |
//! | [`connection`] | what is known of each |
//! | `table` | where it is found |
//! | `listen` | who opens one: half-open ones are few, then there are cookies (RFC 4987, section 3.6) |
//! | `arrive` | what a segment does |
//! | `send` | what is sent, and when |
//!
//! What is decided where the standards leave a choice: segments that come out of order are not kept
//! (they come again); what is far from the window is answered, not obeyed (RFC 5961); a window of
//! nothing is asked again and again, but not for longer than [`STALL`]; timestamps and SACK are not
//! offered.

pub mod connection;
pub mod pace;
pub mod sequence;

mod arrive;
mod listen;
mod send;
mod table;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use crate::frame::{Fields, Template};
use crate::keyed::Key;
use connection::{Connection, NEVER, State, Stretch};
use table::Table;

/// A client that takes nothing for so long is left.
pub const STALL: u64 = 60_000_000;
/// How long a connection that has ended is known (RFC 9293, section 3.6.1: twice the longest life
/// of a segment, for which 30 s are taken). Fewer, if others want its place.
const WAITS: u64 = 60_000_000;
/// Data that came is acknowledged within this time (RFC 9293: below 500 ms).
const SOON: u64 = 40_000;
/// Timeouts in a row after which there is nobody.
const TRIES: u8 = 8;
/// The same before a connection is open.
const TRIES_HALF: u8 = 3;
/// Answers without a connection that wait to be sent.
const REPLIES: usize = 16;
/// Answers to strangers in a second (RFC 5961, section 7).
const CHALLENGES: u32 = 100;

/// Who we are, and how much is kept.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    /// The station.
    pub station: [u8; 6],
    /// The address.
    pub address: u32,
    /// The port that is listened at.
    pub port: u16,
    /// Connections at most, at most 16,384.
    pub connections: usize,
    /// Of those, half-open ones.
    pub half_open: usize,
    /// Bytes that may come before they are taken.
    pub room: u16,
    /// Microseconds until the first request.
    pub patience: u64,
}

/// What there was so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Segments that arrived.
    pub arrived: u64,
    /// Frames that were none.
    pub wrong: u64,
    /// Segments that were sent.
    pub sent: u64,
    /// Of those, again.
    pub again: u64,
    /// Connections that were opened.
    pub opened: u64,
    /// Of those, by cookies.
    pub by_cookie: u64,
    /// Connections that were reset, or left.
    pub lost: u64,
    /// Segments that came out of order, or twice.
    pub disordered: u64,
}

/// What a frame did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// The connection's place.
    pub slot: u16,
    /// It was opened by it.
    pub opened: bool,
    /// Where data stand in the frame that came in order: they are taken.
    pub data: Range<usize>,
    /// Nothing more will come.
    pub ended: bool,
}

/// An answer without a connection.
#[derive(Clone, Copy, Debug)]
struct Reply {
    template: Template,
    fields: Fields,
    options: Option<[u8; 8]>,
}

/// All connections of a port.
#[derive(Debug)]
pub struct Tcp {
    own: Own,
    key: Key,
    table: Table,
    pending: VecDeque<u16>,
    replies: Vec<Reply>,
    /// Objects that are needed no more.
    pub released: Vec<u32>,
    /// Connections that are no more.
    pub gone: Vec<u16>,
    /// Connections whose time is over: nothing is sent, and nothing has come.
    pub expired: Vec<u16>,
    next_due: u64,
    half_open: usize,
    /// When the last cookie was sent.
    cookies: u64,
    challenges: (u64, u32),
    /// What there was so far.
    pub counts: Counts,
}

impl Tcp {
    /// None yet, with a secret.
    pub fn new(own: Own, key: Key) -> Tcp {
        let connections = own.connections.clamp(1, 1 << 14);
        Tcp {
            own,
            key,
            table: Table::new(connections),
            pending: VecDeque::with_capacity(connections),
            replies: Vec::with_capacity(REPLIES),
            released: Vec::with_capacity(64),
            gone: Vec::with_capacity(connections),
            expired: Vec::with_capacity(connections),
            next_due: NEVER,
            half_open: 0,
            cookies: 0,
            challenges: (0, 0),
            counts: Counts::default(),
        }
    }

    /// Connections that are not free.
    pub fn count(&self) -> usize {
        self.table.count()
    }

    /// When [`Tcp::tick`] has something to do.
    pub fn next_due(&self) -> u64 {
        self.next_due
    }

    /// Whether something waits to be sent.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty() || !self.replies.is_empty()
    }

    fn open(&mut self, slot: u16) -> Option<&mut Connection> {
        let connection = self.table.get_mut(slot)?;
        (connection.state == State::Open).then_some(connection)
    }

    /// The address at the other end.
    pub fn client(&self, slot: u16) -> u32 {
        self.table.get(slot).map_or(0, |connection| connection.from)
    }

    /// Places for stretches that a connection has.
    pub fn places(&self, slot: u16) -> usize {
        self.table.get(slot).map_or(0, Connection::places)
    }

    /// Whether everything is acknowledged that was to be sent.
    pub fn is_idle(&self, slot: u16) -> bool {
        self.table.get(slot).is_none_or(|c| c.queued == 0)
    }

    /// Bytes of an object are to be sent. If there is no place, it is released.
    pub fn send(&mut self, slot: u16, stretch: Stretch, now: u64) -> bool {
        let added = self.open(slot).is_some_and(|connection| {
            if connection.queued == 0 {
                if now.saturating_sub(connection.progress) > connection.pace.timeout {
                    connection.pace.rested(connection.mss);
                }
                connection.progress = now;
                connection.deadline = connection.deadline.min(now + STALL);
            }
            connection.places() > 0 && connection.add(stretch)
        });
        match added {
            true => self.touch(slot),
            false => self.released.push(stretch.object),
        }
        added
    }

    /// It is to end behind what is to be sent.
    pub fn end(&mut self, slot: u16, now: u64) {
        if let Some(connection) = self.open(slot) {
            connection.ends = true;
            connection.progress = connection.progress.max(now);
            connection.deadline = now + STALL;
            self.next_due = self.next_due.min(now + STALL);
            self.touch(slot);
        }
    }

    /// Resets a connection.
    pub fn abort(&mut self, slot: u16) {
        if let Some(connection) = self.open(slot) {
            let reply = Reply {
                template: connection.template,
                fields: Fields {
                    sequence: connection.next,
                    acknowledged: connection.expected,
                    flags: crate::frame::RST | crate::frame::ACK,
                    window: 0,
                },
                options: None,
            };
            self.reply(reply);
            self.counts.lost += 1;
            self.remove(slot);
        }
    }

    /// How many bytes may come before they are taken: what was promised before stays so.
    pub fn set_room(&mut self, slot: u16, room: u16) {
        if let Some(connection) = self.open(slot) {
            let known = sequence::from(connection.expected, connection.edge);
            let mss = u32::from(connection.mss);
            // Who waits for room is told, once it is worth it (RFC 9293, section 3.8.6.2.2).
            let told = known < mss && u32::from(room) >= known + mss;
            connection.room = room;
            if told {
                connection.owed = connection::Owed::Now;
                self.touch(slot);
            }
        }
    }

    /// When a connection is over on which nothing is to be sent and nothing has come.
    pub fn set_deadline(&mut self, slot: u16, time: u64) {
        if let Some(connection) = self.open(slot) {
            connection.deadline = time;
            self.next_due = self.next_due.min(time);
        }
    }

    /// It is looked at by the next [`Tcp::flush`].
    fn touch(&mut self, slot: u16) {
        if let Some(connection) = self.table.get_mut(slot)
            && !connection.pending
        {
            connection.pending = true;
            self.pending.push_back(slot);
        }
    }

    fn reply(&mut self, reply: Reply) {
        // Nobody waits for them: the sender comes again.
        if self.replies.len() < REPLIES {
            self.replies.push(reply);
        }
    }

    /// Whether a stranger may be answered now.
    fn may_challenge(&mut self, now: u64) -> bool {
        let (since, count) = &mut self.challenges;
        if now.saturating_sub(*since) > 1_000_000 {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count <= CHALLENGES
    }

    /// Forgets a connection.
    fn remove(&mut self, slot: u16) {
        if let Some(connection) = self.table.get_mut(slot) {
            match connection.state {
                State::Free => return,
                State::Half => self.half_open -= 1,
                State::Open => self.gone.push(slot),
                State::Waits => {}
            }
            connection.drop_all(&mut self.released);
            self.table.remove(slot);
        }
    }

    /// Both sides have ended: what comes late is still known for a while.
    fn wait(&mut self, slot: u16, now: u64) {
        if let Some(connection) = self.table.get_mut(slot) {
            if connection.state == State::Open {
                self.gone.push(slot);
            }
            connection.state = State::Waits;
            connection.drop_all(&mut self.released);
            connection.due = NEVER;
            connection.acknowledge = NEVER;
            connection.deadline = now + WAITS;
            self.next_due = self.next_due.min(connection.deadline);
        }
    }
}
