//! Raw sockets for control messages: datagrams with their headers, as they came.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use postern_exos_abi::errno::{self, Errno};

use super::{Departures, Neighbourhood, Stack};
use crate::frame::{self, Datagram, ETHERNET, IP, SHORTEST, kind, protocol};

/// Datagrams that wait for a reader, at most.
const WAIT: usize = 8;
/// Bytes of each that are kept.
const ROOM: usize = 1500;

/// Datagrams that wait. Their memory is taken when the first socket is made.
pub struct Queue {
    memory: Vec<u8>,
    lengths: [usize; WAIT],
    first: usize,
    count: usize,
}

impl Queue {
    pub const fn new() -> Queue {
        Queue {
            memory: Vec::new(),
            lengths: [0; WAIT],
            first: 0,
            count: 0,
        }
    }

    /// Somebody reads from now on.
    pub fn open(&mut self) {
        self.memory.resize(WAIT * ROOM, 0);
        self.count = 0;
    }

    /// Nobody reads any more.
    pub fn close(&mut self) {
        self.memory = Vec::new();
        self.count = 0;
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// One more, if there is a place and a reader.
    pub fn put(&mut self, datagram: &Datagram<'_>) {
        let at = (self.first + self.count) % WAIT;
        let bytes = datagram.whole;
        let place = self
            .memory
            .get_mut(at * ROOM..)
            .and_then(|place| place.get_mut(..bytes.len()));
        if let (Some(place), Some(length)) = (place, self.lengths.get_mut(at))
            && self.count < WAIT
            && bytes.len() <= ROOM
        {
            place.copy_from_slice(bytes);
            *length = bytes.len();
            self.count += 1;
        }
    }

    /// The first one's bytes; how many there were of it.
    fn take(&mut self, to: &mut [u8], peek: bool) -> Option<(usize, Ipv4Addr)> {
        let length = *self.lengths.get(self.first).filter(|_| self.count != 0)?;
        let bytes = self.memory.get(self.first * ROOM..)?.get(..length)?;
        let from = frame::address(bytes, 12)?;
        let count = length.min(to.len());
        to.get_mut(..count)?.copy_from_slice(bytes.get(..count)?);
        if !peek {
            self.first = (self.first + 1) % WAIT;
            self.count -= 1;
        }
        Some((count, from))
    }
}

impl Stack {
    /// Sends a control message: the header of IP is made here.
    pub fn send_raw(
        &mut self,
        bytes: &[u8],
        to: Ipv4Addr,
        departures: &mut impl Departures,
        neighbours: &impl Neighbourhood,
    ) -> Result<usize, Errno> {
        let next = self.view.next(to).ok_or(errno::NETUNREACH)?;
        let own = self.view.is_own(next).then_some(self.view.hardware);
        let found = own.or_else(|| neighbours.find(next));
        let hardware = found.ok_or(errno::HOSTUNREACH)?;
        let length = ETHERNET + IP + bytes.len();
        let all = length.max(SHORTEST);
        let place = departures.place().ok_or(errno::AGAIN)?;
        let frame = place.get_mut(..all).ok_or(errno::MSGSIZE)?;
        frame.fill(0);
        let ip = frame::ip(self.view.from(to), to, protocol::ICMP, 0, bytes.len());
        let ethernet = frame::ethernet(hardware, self.view.hardware, kind::IP);
        let parts = [&ethernet[..], &ip[..], bytes];
        let mut at = 0;
        for part in parts {
            let end = at + part.len();
            frame
                .get_mut(at..end)
                .ok_or(errno::MSGSIZE)?
                .copy_from_slice(part);
            at = end;
        }
        departures.send(all);
        self.gate.counters.went += 1;
        Ok(bytes.len())
    }

    /// A control message with its header of IP, and who sent it.
    pub fn receive_raw(&mut self, to: &mut [u8], peek: bool) -> Result<(usize, Ipv4Addr), Errno> {
        self.raw.take(to, peek).ok_or(errno::AGAIN)
    }
}
