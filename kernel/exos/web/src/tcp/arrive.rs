//! What a segment does (RFC 9293, section 3.10.7.4), in the order of that section.

use super::connection::{NEVER, Owed, State};
use super::pace::Do;
use super::sequence::{before, from};
use super::{Arrived, SOON, Tcp};
use crate::frame::{self, ACK, FIN, RST, SYN, Segment};

impl Tcp {
    /// A frame came. What it brought is told; what is to be sent for it waits for [`Tcp::flush`].
    pub fn input(&mut self, bytes: &[u8], now: u64) -> Option<Arrived> {
        let segment = match frame::read(bytes, (self.own.station, self.own.address)) {
            Ok(segment) => segment,
            Err(_) => {
                self.counts.wrong += 1;
                return None;
            }
        };
        self.counts.arrived += 1;
        let arrived = self.segment(&segment, now)?;
        // Where the data stand in the frame, and not only in the segment.
        let begin = segment.data.as_ptr() as usize - bytes.as_ptr() as usize;
        Some(Arrived {
            data: arrived.data.start + begin..arrived.data.end + begin,
            ..arrived
        })
    }

    fn segment(&mut self, segment: &Segment<'_>, now: u64) -> Option<Arrived> {
        let Some(slot) = self.table.find(&self.key, segment) else {
            return self.arrive_strange(segment, now);
        };
        match self.table.get(slot)?.state {
            State::Free => None,
            State::Half => self.arrive_half(slot, segment, now),
            State::Open => self.arrive_open(slot, segment, now, false),
            State::Waits => self.arrive_late(slot, segment, now),
        }
    }

    /// It has no connection, unless it opens one.
    fn arrive_strange(&mut self, segment: &Segment<'_>, now: u64) -> Option<Arrived> {
        let slot = self.stranger(segment, now)?;
        self.arrive_open(slot, segment, now, true)
    }

    /// Both sides have ended.
    fn arrive_late(&mut self, slot: u16, segment: &Segment<'_>, now: u64) -> Option<Arrived> {
        let connection = self.table.get_mut(slot)?;
        if segment.flags & RST != 0 {
            // It would end what protects the next connection (RFC 1337).
            return None;
        }
        if segment.flags & SYN != 0 && before(connection.expected, segment.sequence) {
            // A new one may begin behind the old one (RFC 9293, section 3.10.7.4, RFC 6191).
            self.remove(slot);
            return self.arrive_strange(segment, now);
        }
        if segment.flags & FIN != 0 || segment.flags & SYN != 0 {
            connection.owed = Owed::Now;
            self.touch(slot);
        }
        None
    }

    /// It is not open yet.
    fn arrive_half(&mut self, slot: u16, segment: &Segment<'_>, now: u64) -> Option<Arrived> {
        let connection = self.table.get_mut(slot)?;
        if segment.flags & RST != 0 {
            if segment.sequence == connection.expected {
                self.remove(slot);
            }
            return None;
        }
        if segment.flags & SYN != 0 {
            // The same once more: our answer was lost.
            if segment.sequence.wrapping_add(1) == connection.expected {
                connection.owed = Owed::Now;
                self.touch(slot);
            }
            return None;
        }
        if segment.flags & ACK == 0 {
            return None;
        }
        if segment.acknowledged != connection.next || connection.next == connection.first {
            self.arrive_strange(segment, now);
            return None;
        }
        connection.state = State::Open;
        connection.first = connection.next;
        connection.due = NEVER;
        connection.tries = 0;
        connection.progress = now;
        connection.window = u32::from(segment.window) << connection.scale;
        connection.widest = connection.window;
        connection.told = (segment.sequence, segment.acknowledged);
        self.next_due = self.next_due.min(connection.deadline);
        self.half_open -= 1;
        self.counts.opened += 1;
        self.arrive_open(slot, segment, now, true)
    }

    fn arrive_open(
        &mut self,
        slot: u16,
        segment: &Segment<'_>,
        now: u64,
        opened: bool,
    ) -> Option<Arrived> {
        let arrived = self.follow(slot, segment, now);
        match (opened, &arrived) {
            (true, _) => {
                let (data, ended) = arrived.unwrap_or((0..0, false));
                Some(Arrived {
                    slot,
                    opened,
                    data,
                    ended,
                })
            }
            (false, _) => arrived.map(|(data, ended)| Arrived {
                slot,
                opened,
                data,
                ended,
            }),
        }
    }

    /// A connection is open: data, and whether nothing more comes, if something was new.
    fn follow(
        &mut self,
        slot: u16,
        segment: &Segment<'_>,
        now: u64,
    ) -> Option<(core::ops::Range<usize>, bool)> {
        let connection = self.table.get_mut(slot)?;
        let room = from(connection.expected, connection.edge);
        let length = segment.data.len() as u32 + u32::from(segment.flags & FIN != 0);
        let offset = segment.sequence.wrapping_sub(connection.expected);
        let in_window = offset < room.max(1);
        if segment.flags & RST != 0 {
            // Exactly the next number, or it is asked (RFC 5961, section 3.2).
            if offset == 0 {
                self.counts.lost += 1;
                self.remove(slot);
            } else if in_window {
                self.challenge(slot, now);
            }
            return None;
        }
        if segment.flags & SYN != 0 {
            // RFC 5961, section 4.2.
            self.challenge(slot, now);
            return None;
        }
        if segment.flags & ACK == 0 {
            return None;
        }
        // Some of it lies in the window, or it is what is expected next.
        let last = offset.wrapping_add(length.saturating_sub(1));
        if !in_window && (length == 0 || last >= room.max(1)) {
            self.counts.disordered += 1;
            self.answer(slot, length > 0, now);
            return None;
        }
        // RFC 5961, section 5.2.
        let oldest = connection
            .first
            .wrapping_sub(connection.widest.max(1 << 16));
        if before(connection.most, segment.acknowledged) || before(segment.acknowledged, oldest) {
            self.challenge(slot, now);
            return None;
        }
        self.acknowledged(slot, segment, length, now);
        let connection = self.table.get_mut(slot)?;
        if connection.state != State::Open {
            return None;
        }
        if length == 0 {
            return None;
        }
        if connection.has_ended || before(connection.expected, segment.sequence) {
            // A hole is before it, which is not kept open; or nothing can come any more.
            self.counts.disordered += 1;
            self.answer(slot, true, now);
            return None;
        }
        let skip = from(segment.sequence, connection.expected) as usize;
        let begin = skip.min(segment.data.len());
        let end = segment.data.len().min(begin + room as usize);
        let ended = segment.flags & FIN != 0 && end == segment.data.len();
        let taken = (end - begin) as u32 + u32::from(ended);
        if taken == 0 {
            // All of it was there, or there is no room.
            self.counts.disordered += 1;
            self.answer(slot, true, now);
            return None;
        }
        connection.expected = connection.expected.wrapping_add(taken);
        if before(connection.edge, connection.expected) {
            connection.edge = connection.expected;
        }
        connection.has_ended |= ended;
        // Each second segment at once (RFC 9293, section 3.8.6.3), and an end.
        connection.owed = match connection.owed {
            Owed::Nothing if !ended => Owed::Soon,
            _ => Owed::Now,
        };
        if connection.owed == Owed::Soon {
            connection.acknowledge = now + SOON;
            self.next_due = self.next_due.min(now + SOON);
        }
        self.touch(slot);
        if ended && connection_is_done(self, slot) {
            self.finish(slot, now);
        }
        Some((begin..end, ended))
    }

    /// What an acknowledgement says.
    fn acknowledged(&mut self, slot: u16, segment: &Segment<'_>, length: u32, now: u64) {
        let Some(connection) = self.table.get_mut(slot) else {
            return;
        };
        let ack = segment.acknowledged;
        let window = u32::from(segment.window) << connection.scale;
        let (flight, same) = (connection.flight(), window == connection.window);
        let wider = window > connection.window;
        // An older segment says nothing of the window (RFC 9293, section 3.10.7.4).
        let (told, told_ack) = connection.told;
        let news =
            before(told, segment.sequence) || told == segment.sequence && !before(ack, told_ack);
        if news && !before(ack, connection.first) {
            connection.window = window;
            connection.widest = connection.widest.max(window);
            connection.told = (segment.sequence, ack);
        }
        if before(connection.first, ack) {
            let bytes = from(connection.first, ack);
            let data = u64::from(bytes).min(connection.queued);
            connection.end_known |= u64::from(bytes) > connection.queued;
            connection.take(data, &mut self.released);
            connection.first = ack;
            if before(connection.next, ack) {
                connection.next = ack;
            }
            connection.tries = 0;
            connection.progress = now;
            connection.probe = false;
            let left = connection.flight();
            let mss = connection.mss;
            let does = connection.pace.acknowledged(ack, bytes, left, mss, now);
            connection.again |= does == Do::Again && left > 0;
            connection.due = match left {
                0 => NEVER,
                _ => now + connection.pace.timeout,
            };
            self.next_due = self.next_due.min(connection.due);
            let done = connection.end_known && connection.has_ended;
            self.touch(slot);
            if done {
                self.finish(slot, now);
            }
        } else if ack == connection.first && flight > 0 && length == 0 && same {
            let (next, mss) = (connection.most, connection.mss);
            let does = connection.pace.duplicate(flight, next, mss);
            connection.again |= does == Do::Again;
            self.touch(slot);
        } else if wider {
            // Nothing was under way, or the window was closed: on with it.
            if flight == 0 {
                connection.due = NEVER;
            }
            self.touch(slot);
        }
    }

    /// Both sides have ended, and know it. Who ended first waits.
    fn finish(&mut self, slot: u16, now: u64) {
        match self.table.get(slot).is_some_and(|c| c.ended_first) {
            true => self.wait(slot, now),
            false => self.remove(slot),
        }
    }

    /// Says what is expected, since somebody does not know it; nobody answers an answer for ever.
    fn answer(&mut self, slot: u16, owed: bool, now: u64) {
        if (owed || self.may_challenge(now))
            && let Some(connection) = self.table.get_mut(slot)
        {
            connection.owed = Owed::Now;
            self.touch(slot);
        }
    }

    fn challenge(&mut self, slot: u16, now: u64) {
        self.answer(slot, false, now);
    }
}

fn connection_is_done(tcp: &Tcp, slot: u16) -> bool {
    tcp.table.get(slot).is_some_and(|c| c.end_known)
}
