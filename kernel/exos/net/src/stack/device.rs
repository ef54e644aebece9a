//! Frames for smoltcp, and what is refused before it.

use core::net::Ipv4Addr;

use smoltcp::iface::SocketSet;
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;

use super::raw::Queue;
use super::socket::{Address, Body, Socket};
use super::{Counters, Neighbourhood, SOCKETS, View};
use crate::Hardware;
use crate::frame::{self, CARRIES, Datagram, ETHERNET, Frame, Malformed, SHORTEST, kind, protocol};

/// Frames that have come.
pub trait Arrivals {
    /// The first one.
    fn first(&self) -> Option<&[u8]>;
    /// It was seen: the next one is the first.
    fn next(&mut self);
}

/// Frames that go.
pub trait Departures {
    /// A place for a frame, of [`LONGEST`](frame::LONGEST) bytes, if there is one now.
    fn place(&mut self) -> Option<&mut [u8]>;
    /// Sends so many bytes of it.
    fn send(&mut self, length: usize);
}

/// Why a frame was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is no datagram of IP, or its lengths do not fit.
    Header = 0,
    /// The header's sum is wrong.
    Sum = 1,
    /// A piece of a datagram.
    Piece = 2,
    /// It is not for this machine, or from nobody that can be answered.
    Address = 3,
    /// A connection for a port at which there is no room for more now.
    Full = 4,
}

/// Who asked for connections, so many: twice what a backlog has, for some listeners.
const ASKED: usize = 64;
/// Addresses of Ethernet that were seen where frames came from.
const SEEN: usize = 16;

/// Datagrams that were not taken, of which is told at a time.
const RETURNED: usize = 8;

/// What somebody says of a datagram of UDP that went out from here (RFC 792).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returned {
    /// The port that it came from.
    pub port: u16,
    /// Whom it was for.
    pub to: Address,
    /// Why it was not taken: the message's code.
    pub code: u8,
}

impl Returned {
    /// Reads a control message.
    fn read(datagram: &Datagram<'_>, view: &View) -> Option<Returned> {
        const UNREACHABLE: u8 = 3;
        let message = datagram.carries;
        if frame::sum(&[message]) != 0 {
            return None;
        }
        let (&[kind, code], sent) = (message.first_chunk()?, message.get(8..)?);
        let is_ours = view.is_own(frame::address(sent, 12)?);
        let plain = *sent.first()? == 0x45 && *sent.get(9)? == protocol::UDP;
        (kind == UNREACHABLE && plain && is_ours).then_some(Returned {
            port: frame::half(sent, 20)?,
            to: Address {
                host: frame::address(sent, 16)?,
                port: frame::half(sent, 22)?,
            },
            code,
        })
    }
}

/// What looks at frames first.
pub struct Gate {
    pub view: View,
    pub counters: Counters,
    /// Somebody to be asked for.
    pub wanted: Option<Ipv4Addr>,
    seen: [(Ipv4Addr, Hardware); SEEN],
    turn: usize,
    /// Ports at which somebody listens, and connections that there is room for.
    listeners: [(u16, u16); SOCKETS],
    count: usize,
    /// Who asked for connections last, in their order.
    asked: [Address; ASKED],
    asks: usize,
    /// What was said of datagrams since somebody looked.
    pub returned: [Option<Returned>; RETURNED],
}

impl Gate {
    pub fn new(view: View) -> Gate {
        Gate {
            view,
            counters: Counters::default(),
            wanted: None,
            seen: [(Ipv4Addr::UNSPECIFIED, [0; 6]); SEEN],
            turn: 0,
            listeners: [(0, 0); SOCKETS],
            count: 0,
            asked: [Address::NONE; ASKED],
            asks: 0,
            returned: [None; RETURNED],
        }
    }

    /// How early somebody asked for a connection, among those that are remembered.
    pub fn order(&self, of: Address) -> usize {
        let oldest_first = (0..ASKED).map(|step| (self.asks + step) % ASKED);
        let mut all = oldest_first.filter_map(|at| self.asked.get(at));
        all.position(|asked| *asked == of).unwrap_or(0)
    }

    fn note(&mut self, from: Address) {
        if !self.asked.contains(&from)
            && let Some(place) = self.asked.get_mut(self.asks)
        {
            *place = from;
            self.asks = (self.asks + 1) % ASKED;
        }
    }

    /// Notes how many connections each port has room for.
    pub fn count_listeners(&mut self, set: &SocketSet<'_>, sockets: &[Option<Socket>]) {
        self.count = 0;
        for socket in sockets.iter().flatten() {
            let Body::Listener(handles) = &socket.body else {
                continue;
            };
            let waits = |handle: &&_| set.get::<tcp::Socket>(**handle).is_listening();
            let room = handles.iter().filter(waits).count() as u16;
            if let Some(place) = self.listeners.get_mut(self.count) {
                *place = (socket.port(), room);
                self.count += 1;
            }
        }
    }

    /// The datagram of a frame, if it may be looked at.
    fn admit<'a>(&mut self, bytes: &'a [u8]) -> Result<Datagram<'a>, Refused> {
        let frame = Frame::read(bytes).ok_or(Refused::Header)?;
        if frame.kind != kind::IP {
            return Err(Refused::Header);
        }
        let datagram = Datagram::read(frame.carries).map_err(|error| match error {
            Malformed::Header => Refused::Header,
            Malformed::Sum => Refused::Sum,
            Malformed::Piece => Refused::Piece,
        })?;
        let (from, to) = (datagram.from, datagram.to);
        let nobody = from.is_unspecified() || from.is_broadcast() || from.is_multicast();
        // Frames that this machine sends to itself are those of its own address of Ethernet: the
        // kernel passes no others of that address.
        let inside = frame.from == self.view.hardware;
        let local = self.view.is_own(from) || to.is_loopback();
        if !self.view.is_own(to) || nobody || local && !inside {
            return Err(Refused::Address);
        }
        self.admit_segment(&datagram)?;
        // An address of a group is nobody's.
        if !inside
            && frame.from[0] & 1 == 0
            && let Some(next) = self.view.next(from)
        {
            self.see(next, frame.from);
        }
        Ok(datagram)
    }

    /// Refuses new connections for which there is no room now, silently: they are asked for again.
    fn admit_segment(&mut self, datagram: &Datagram<'_>) -> Result<(), Refused> {
        const SYN: u8 = 2;
        const ACK_OR_RESET: u8 = 0x14;
        let bytes = datagram.carries;
        let flags = bytes.get(13).copied().unwrap_or(0);
        if datagram.protocol != protocol::TCP || flags & (SYN | ACK_OR_RESET) != SYN {
            return Ok(());
        }
        let port = frame::half(bytes, 2).unwrap_or(0);
        let listeners = self.listeners.get_mut(..self.count).unwrap_or_default();
        match listeners.iter_mut().find(|(listens, _)| *listens == port) {
            Some((_, 0)) => Err(Refused::Full),
            Some((_, room)) => {
                *room -= 1;
                self.note(Address {
                    host: datagram.from,
                    port: frame::half(bytes, 0).unwrap_or(0),
                });
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Hears that a datagram which went out was not taken.
    fn hear(&mut self, datagram: &Datagram<'_>) {
        let free = self.returned.iter_mut().find(|place| place.is_none());
        if let (Some(returned), Some(free)) = (Returned::read(datagram, &self.view), free) {
            *free = Some(returned);
        }
    }

    fn see(&mut self, address: Ipv4Addr, hardware: Hardware) {
        if let Some(known) = self.seen.iter_mut().find(|(known, _)| *known == address) {
            known.1 = hardware;
            return;
        }
        self.turn = (self.turn + 1) % SEEN;
        if let Some(place) = self.seen.get_mut(self.turn) {
            *place = (address, hardware);
        }
    }

    /// The address of Ethernet to send to: as ARP has it, or as it was seen.
    fn find(&mut self, to: Ipv4Addr, neighbours: &impl Neighbourhood) -> Option<Hardware> {
        if self.view.is_own(to) {
            return Some(self.view.hardware);
        }
        let next = self.view.next(to)?;
        let seen = |gate: &Gate| {
            let mut seen = gate.seen.iter();
            let found = seen.find(|(address, _)| *address == next)?;
            Some(found.1)
        };
        let found = neighbours.find(next).or_else(|| seen(self));
        if found.is_none() {
            self.wanted = Some(next);
            self.counters.lost += 1;
        }
        found
    }
}

/// The device that smoltcp sees: datagrams of IP.
pub struct Device<'a, A, D, N> {
    pub arrivals: &'a mut A,
    pub departures: &'a mut D,
    pub neighbours: &'a N,
    pub gate: &'a mut Gate,
    pub raw: &'a mut Queue,
}

fn capabilities() -> DeviceCapabilities {
    let mut capabilities = DeviceCapabilities::default();
    capabilities.medium = Medium::Ip;
    capabilities.max_transmission_unit = CARRIES;
    capabilities
}

impl<A: Arrivals, D: Departures, N: Neighbourhood> Device<'_, A, D, N> {
    /// Whether the first frame is for smoltcp; `None`: there is none.
    fn look(&mut self) -> Option<bool> {
        let bytes = self.arrivals.first()?;
        self.gate.counters.came += 1;
        match self.gate.admit(bytes) {
            Ok(datagram) if datagram.protocol == protocol::ICMP => {
                self.raw.put(&datagram);
                self.gate.hear(&datagram);
            }
            Ok(_) => return Some(true),
            Err(refused) => {
                if let Some(count) = self.gate.counters.refused.get_mut(refused as usize) {
                    *count += 1;
                }
            }
        }
        Some(false)
    }
}

impl<A: Arrivals, D: Departures, N: Neighbourhood> phy::Device for Device<'_, A, D, N> {
    type RxToken<'a>
        = Rx<'a, A>
    where
        Self: 'a;
    type TxToken<'a>
        = Tx<'a, D, N>
    where
        Self: 'a;

    fn receive(&mut self, _: Instant) -> Option<(Rx<'_, A>, Tx<'_, D, N>)> {
        while !self.look()? {
            self.arrivals.next();
        }
        let to = Tx {
            departures: self.departures,
            neighbours: self.neighbours,
            gate: self.gate,
        };
        Some((Rx(self.arrivals), to))
    }

    fn transmit(&mut self, _: Instant) -> Option<Tx<'_, D, N>> {
        self.departures.place()?;
        Some(Tx {
            departures: self.departures,
            neighbours: self.neighbours,
            gate: self.gate,
        })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        capabilities()
    }
}

/// The first frame, which was admitted.
pub struct Rx<'a, A: Arrivals>(&'a mut A);

impl<A: Arrivals> phy::RxToken for Rx<'_, A> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        let frame = self.0.first().unwrap_or_default();
        let result = f(frame.get(ETHERNET..).unwrap_or_default());
        self.0.next();
        result
    }
}

/// A place for a frame.
pub struct Tx<'a, D, N> {
    departures: &'a mut D,
    neighbours: &'a N,
    gate: &'a mut Gate,
}

impl<D: Departures, N: Neighbourhood> phy::TxToken for Tx<'_, D, N> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let place = self
            .departures
            .place()
            .and_then(|place| place.split_at_mut_checked(ETHERNET));
        let Some((head, carries)) = place.filter(|(_, carries)| carries.len() >= length) else {
            // An answer to what came, when too many frames are under way: it is lost.
            self.gate.counters.lost += 1;
            let mut nowhere = [0; CARRIES];
            return f(nowhere.get_mut(..length).unwrap_or_default());
        };
        let (datagram, rest) = carries.split_at_mut(length);
        let result = f(datagram);
        let to = frame::address(datagram, 16).unwrap_or(Ipv4Addr::UNSPECIFIED);
        if let Some(hardware) = self.gate.find(to, self.neighbours) {
            let own = self.gate.view.hardware;
            head.copy_from_slice(&frame::ethernet(hardware, own, kind::IP));
            let all = (ETHERNET + length).max(SHORTEST);
            if let Some(zeros) = rest.get_mut(..all - ETHERNET - length) {
                zeros.fill(0);
            }
            self.departures.send(all);
            self.gate.counters.went += 1;
        }
        result
    }
}

/// No network: what an interface is made with.
pub struct Nowhere;

impl phy::Device for Nowhere {
    type RxToken<'a> = Nothing;
    type TxToken<'a> = Nothing;

    fn receive(&mut self, _: Instant) -> Option<(Nothing, Nothing)> {
        None
    }

    fn transmit(&mut self, _: Instant) -> Option<Nothing> {
        None
    }

    fn capabilities(&self) -> DeviceCapabilities {
        capabilities()
    }
}

/// No frame, and no place for one.
pub struct Nothing;

impl phy::RxToken for Nothing {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&[])
    }
}

impl phy::TxToken for Nothing {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let mut nowhere = [0; CARRIES];
        f(nowhere.get_mut(..length).unwrap_or_default())
    }
}
