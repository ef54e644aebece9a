//! What is known of a connection.

use alloc::vec::Vec;

use super::pace::Pace;
use super::sequence::from;
use crate::frame::{Segment, Template};

/// A time that never comes.
pub const NEVER: u64 = u64::MAX;

/// Stretches that can wait to be sent, at most: heads and what follows them.
pub const STRETCHES: usize = 6;

/// Bytes of an object that are to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// The object.
    pub object: u32,
    /// The first byte.
    pub from: u64,
    /// How many.
    pub length: u64,
}

/// Where a connection is in its life. States of RFC 9293 beyond that follow from who has ended
/// what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is none.
    Free,
    /// A SYN came.
    Half,
    /// Both sides know of each other.
    Open,
    /// Both have ended, and what comes late is still known.
    Waits,
}

/// Whether something that came is still to be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owed {
    /// Nothing.
    Nothing,
    /// Before long, or with what is sent next (RFC 9293, section 3.8.6.3).
    Soon,
    /// Now.
    Now,
}

/// A connection.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(super) state: State,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) from_port: u16,
    pub(super) port: u16,
    pub(super) template: Template,

    /// The number of the byte that is expected next.
    pub(super) expected: u32,
    /// The end of the window that the other side knows.
    pub(super) edge: u32,
    /// Bytes that may come.
    pub(super) room: u16,
    pub(super) has_ended: bool,
    pub(super) owed: Owed,

    /// The first number that is not acknowledged, the next to be sent, the highest that was sent.
    pub(super) first: u32,
    pub(super) next: u32,
    pub(super) most: u32,
    /// The other side's window, its scale, the widest so far, and when it was told.
    pub(super) window: u32,
    pub(super) scale: u8,
    /// Whether our SYN may say a scale: only if the other's did (RFC 7323, section 2.2).
    pub(super) scales: bool,
    pub(super) widest: u32,
    pub(super) told: (u32, u32),
    pub(super) mss: u16,
    pub(super) queue: [Stretch; STRETCHES],
    pub(super) stretches: usize,
    /// Bytes of the first stretch that are acknowledged.
    pub(super) done: u64,
    /// Bytes that are not acknowledged, sent or not.
    pub(super) queued: u64,
    /// It is to end behind these; the end was acknowledged; it was sent before the other's came.
    pub(super) ends: bool,
    pub(super) end_known: bool,
    pub(super) ended_first: bool,
    /// The first segment is to be sent again; a byte is to be sent into no window.
    pub(super) again: bool,
    pub(super) probe: bool,
    pub(super) pace: Pace,
    pub(super) tries: u8,

    pub(super) due: u64,
    pub(super) acknowledge: u64,
    pub(super) deadline: u64,
    /// When bytes were acknowledged last, or there was nothing to be sent.
    pub(super) progress: u64,
    pub(super) pending: bool,
}

impl Connection {
    pub(super) fn none() -> Connection {
        Connection {
            state: State::Free,
            from: 0,
            to: 0,
            from_port: 0,
            port: 0,
            template: Template::new(([0; 6], 0, 0), ([0; 6], 0, 0)),
            expected: 0,
            edge: 0,
            room: 0,
            has_ended: false,
            owed: Owed::Nothing,
            first: 0,
            next: 0,
            most: 0,
            window: 0,
            scale: 0,
            scales: false,
            widest: 0,
            told: (0, 0),
            mss: 536,
            queue: [Stretch::default(); STRETCHES],
            stretches: 0,
            done: 0,
            queued: 0,
            ends: false,
            end_known: false,
            ended_first: false,
            again: false,
            probe: false,
            pace: Pace::new(536),
            tries: 0,
            due: NEVER,
            acknowledge: NEVER,
            deadline: NEVER,
            progress: 0,
            pending: false,
        }
    }

    /// Whether a segment is one of its own.
    pub(super) fn is_of(&self, segment: &Segment<'_>) -> bool {
        self.state != State::Free
            && (self.from, self.to) == (segment.from, segment.to)
            && (self.from_port, self.port) == (segment.from_port, segment.port)
    }

    /// Numbers that are under way, an end among them.
    pub(super) fn flight(&self) -> u32 {
        from(self.first, self.next)
    }

    /// Whether the end is under way.
    pub(super) fn end_is_sent(&self) -> bool {
        u64::from(self.flight()) > self.queued
    }

    /// Bytes that were not sent yet.
    pub(super) fn unsent(&self) -> u64 {
        self.queued.saturating_sub(self.flight().into())
    }

    /// Stretches that can be added.
    pub(super) fn places(&self) -> usize {
        match self.ends || self.state != State::Open {
            true => 0,
            false => STRETCHES - self.stretches,
        }
    }

    pub(super) fn add(&mut self, stretch: Stretch) -> bool {
        match self.queue.get_mut(self.stretches) {
            Some(place) if stretch.length > 0 => {
                *place = stretch;
                self.stretches += 1;
                self.queued += stretch.length;
                true
            }
            _ => false,
        }
    }

    /// Bytes are acknowledged: objects of which nothing is needed any more.
    pub(super) fn take(&mut self, bytes: u64, released: &mut Vec<u32>) {
        self.queued -= bytes.min(self.queued);
        self.done += bytes;
        while let Some(stretch) = self.queue[..self.stretches].first()
            && self.done >= stretch.length
        {
            self.done -= stretch.length;
            released.push(stretch.object);
            self.queue.copy_within(1.., 0);
            self.stretches -= 1;
        }
    }

    /// All objects that it still needed.
    pub(super) fn drop_all(&mut self, released: &mut Vec<u32>) {
        let all = self.queue[..self.stretches].iter();
        released.extend(all.map(|stretch| stretch.object));
        (self.stretches, self.done, self.queued) = (0, 0, 0);
    }

    /// What is to be sent from so many bytes behind the first one on: stretches that are left.
    pub(super) fn behind(&self, mut skip: u64) -> impl Iterator<Item = Stretch> + '_ {
        skip += self.done;
        self.queue[..self.stretches]
            .iter()
            .filter_map(move |stretch| {
                let skipped = skip.min(stretch.length);
                skip -= skipped;
                (skipped < stretch.length).then_some(Stretch {
                    object: stretch.object,
                    from: stretch.from + skipped,
                    length: stretch.length - skipped,
                })
            })
    }
}
