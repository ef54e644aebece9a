//! Answers for what nobody has: a reset for segments, a control message for datagrams and for other
//! protocols (RFC 9293, section 3.10.7.1; RFC 1122, section 3.2.2), and echoes.
//!
//! Nothing is answered that was for many, or that is an error itself, and errors are told
//! [`EACH_SECOND`] times a second at most.

use core::net::Ipv4Addr;

use crate::Hardware;
use crate::frame::{self, Datagram, ETHERNET, IP, SHORTEST, kind, protocol};

/// Errors that are told in a second.
pub const EACH_SECOND: u32 = 200;
const SECOND: u64 = 1_000_000;
/// Bytes of an answer at most: a page, to this machine itself.
const ROOM: usize = 4096;

/// Whose answers they are, and to whom: addresses of Ethernet.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// This machine's.
    pub own: Hardware,
    /// Where an answer goes.
    pub to: Hardware,
}

/// What was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// An echo.
    Echo,
    /// That nobody is there.
    Closed,
    /// Nothing.
    Silent,
}

/// How many errors may be told still.
#[derive(Debug, Default)]
pub struct Nobody {
    begun: u64,
    told: u32,
}

impl Nobody {
    /// Answers a datagram that nobody wants, at a time in microseconds.
    pub fn answer(
        &mut self,
        now: u64,
        way: Way,
        datagram: &Datagram<'_>,
        out: &mut impl FnMut(&[u8]),
    ) -> Answered {
        let mut frame = [0; ROOM];
        let body = frame.get_mut(ETHERNET + IP..).unwrap_or_default();
        let message = datagram.carries;
        let (made, what) = match datagram.protocol {
            protocol::ICMP => (echo(message, body), Answered::Echo),
            protocol::TCP => (reset(datagram, body), Answered::Closed),
            protocol::UDP => match frame::read_udp(datagram) {
                Some(_) => (unreachable(datagram.whole, PORT, body), Answered::Closed),
                None => (None, Answered::Silent),
            },
            _ => (
                unreachable(datagram.whole, PROTOCOL, body),
                Answered::Closed,
            ),
        };
        let Some(length) = made else {
            return Answered::Silent;
        };
        if what == Answered::Closed && !self.may_tell(now) {
            return Answered::Silent;
        }
        let of = match datagram.protocol {
            protocol::TCP => protocol::TCP,
            _ => protocol::ICMP,
        };
        let header = frame::ip(datagram.to, datagram.from, of, 0, length);
        let head = frame::ethernet(way.to, way.own, kind::IP);
        for (to, from) in frame.iter_mut().zip(head.iter().chain(&header)) {
            *to = *from;
        }
        let all = (ETHERNET + IP + length).max(SHORTEST);
        out(frame.get(..all).unwrap_or_default());
        what
    }

    fn may_tell(&mut self, now: u64) -> bool {
        if now.saturating_sub(self.begun) >= SECOND {
            (self.begun, self.told) = (now, 0);
        }
        self.told += 1;
        self.told <= EACH_SECOND
    }
}

/// The answer to an echo: how many bytes it has.
fn echo(message: &[u8], to: &mut [u8]) -> Option<usize> {
    let right = message.get(..2)? == [8, 0] && frame::sum(&[message]) == 0;
    let to = to.get_mut(..message.len()).filter(|_| right)?;
    to.copy_from_slice(message);
    finish(to, &[], 2, &[0])
}

/// Stores a type, and the sum of a message and what stands before it.
fn finish(message: &mut [u8], before: &[u8], at: usize, kind: &[u8]) -> Option<usize> {
    message.get_mut(..kind.len())?.copy_from_slice(kind);
    message.get_mut(at..at + 2)?.fill(0);
    let sum = frame::sum(&[before, message]);
    message
        .get_mut(at..at + 2)?
        .copy_from_slice(&sum.to_be_bytes());
    Some(message.len())
}

const PROTOCOL: u8 = 2;
const PORT: u8 = 3;

/// That a datagram was not taken: its header and eight bytes are said again.
fn unreachable(whole: &[u8], code: u8, to: &mut [u8]) -> Option<usize> {
    let header = usize::from(whole.first()? & 15) * 4;
    let said = whole.get(..(header + 8).min(whole.len()))?;
    let message = to.get_mut(..8 + said.len())?;
    message.fill(0);
    message.get_mut(8..)?.copy_from_slice(said);
    finish(message, &[], 2, &[3, code])
}

/// The reset that answers a segment.
fn reset(datagram: &Datagram<'_>, to: &mut [u8]) -> Option<usize> {
    const FIN: u8 = 1;
    const SYN: u8 = 2;
    const RESET: u8 = 4;
    const ACK: u8 = 16;
    let (segment, host): (&[u8], [Ipv4Addr; 2]) = (datagram.carries, [datagram.from, datagram.to]);
    let pseudo = frame::pseudo(host[0], host[1], protocol::TCP, segment.len());
    let ports: [u8; 4] = *segment.first_chunk()?;
    let number: [u8; 4] = *segment.get(4..)?.first_chunk()?;
    let heard: [u8; 4] = *segment.get(8..)?.first_chunk()?;
    let header = usize::from(segment.get(12)? >> 4) * 4;
    let flags = *segment.get(13)?;
    let carries = segment.get(header..).filter(|_| header >= 20)?;
    if flags & RESET != 0 || frame::sum(&[&pseudo, segment]) != 0 {
        return None;
    }
    let [from, of] = [[ports[0], ports[1]], [ports[2], ports[3]]];
    let counts = [SYN, FIN].into_iter().filter(|flag| flags & flag != 0);
    let next = u32::from_be_bytes(number)
        .wrapping_add(carries.len() as u32)
        .wrapping_add(counts.count() as u32);
    let answer = to.get_mut(..20)?;
    answer.fill(0);
    answer.get_mut(..2)?.copy_from_slice(&of);
    answer.get_mut(2..4)?.copy_from_slice(&from);
    let said = match flags & ACK {
        0 => RESET | ACK,
        _ => RESET,
    };
    match flags & ACK {
        0 => answer.get_mut(8..12)?.copy_from_slice(&next.to_be_bytes()),
        _ => answer.get_mut(4..8)?.copy_from_slice(&heard),
    }
    answer.get_mut(12..14)?.copy_from_slice(&[0x50, said]);
    let pseudo = frame::pseudo(host[1], host[0], protocol::TCP, 20);
    finish(answer, &pseudo, 16, &[])
}
