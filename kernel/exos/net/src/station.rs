//! This machine's address, however it is had, and its neighbours: what the service `net` decides.
//! It is given frames and the time, and says what to send and what is known.

use core::net::Ipv4Addr;

use postern_exos_abi::network::{Place, SERVERS, counter, state};

use crate::arp::{self, Message, Operation};
use crate::dhcp::{self, Client};
use crate::frame::{self, Datagram, ETHERNET, Frame, IP, LONGEST, Part, kind};
use crate::neighbours::{FRESH, Heard, Neighbours};
use crate::nobody::{Answered, Nobody, Way};
use crate::pieces::{self, Pieces};
use crate::settings::{How, Settings};
use crate::{EVERYBODY, Hardware};

/// Neighbours that are asked for at a time, at most.
const ASKED: usize = 16;
/// Times that one is asked for, and microseconds between.
const TRIES: u32 = 3;
const SECOND: u64 = 1_000_000;
/// An address is defended once in so long (RFC 5227, 2.4).
const DEFEND: u64 = 10 * SECOND;

/// A neighbour that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    address: Ipv4Addr,
    tries: u32,
    due: u64,
}

/// What is decided.
#[derive(Debug)]
pub struct Station {
    hardware: Hardware,
    settings: Settings,
    client: Client,
    /// The address, if there is one.
    address: Option<Ipv4Addr>,
    conflict: Option<u64>,
    /// Whether questions for this machine's address are answered here, and not by a handler.
    answers: bool,
    neighbours: Neighbours,
    nobody: Nobody,
    pieces: Pieces,
    asked: [Option<Asked>; ASKED],
    /// When a server of RARP is asked again, and neighbours are looked at.
    due: [u64; 2],
    /// Counts, as the page has them.
    pub counters: [u64; counter::COUNT],
}

impl Station {
    /// Nothing is known but the settings. The seed is where numbers of messages begin.
    pub fn new(hardware: Hardware, settings: Settings, seed: u32) -> Station {
        let address = match settings.how {
            How::Is(address) => Some(address),
            _ => None,
        };
        Station {
            hardware,
            settings,
            client: Client::new(hardware, seed),
            address,
            conflict: None,
            answers: true,
            neighbours: Neighbours::new(),
            nobody: Nobody::default(),
            pieces: Pieces::default(),
            asked: [None; ASKED],
            due: [0; 2],
            counters: [0; counter::COUNT],
        }
    }

    /// Whether a handler answers questions for the address from now on.
    pub fn set_answered(&mut self, answered: bool) {
        self.answers = !answered;
    }

    /// Who is where.
    pub fn neighbours(&self) -> &Neighbours {
        &self.neighbours
    }

    /// What all others are told.
    pub fn place(&self) -> Place {
        let lease = self.client.lease();
        let mut servers = self.settings.servers;
        let leased = lease.map_or([None; SERVERS], |lease| lease.servers);
        for server in leased.into_iter().flatten() {
            if let Some(free) = servers.iter_mut().find(|place| place.is_none())
                && !self.settings.servers.contains(&Some(server))
            {
                *free = Some(server);
            }
        }
        Place {
            state: match (self.address, self.conflict) {
                (None, _) => state::ASKS,
                (Some(_), None) => state::HAS,
                (Some(_), Some(_)) => state::CONFLICT,
            },
            address: self.address.unwrap_or(Ipv4Addr::UNSPECIFIED),
            bits: lease.map_or(self.settings.bits, |lease| lease.bits),
            gateway: self
                .settings
                .gateway
                .or(lease.and_then(|lease| lease.gateway)),
            servers,
            hardware: self.hardware,
        }
    }

    fn own(&self) -> (Hardware, Ipv4Addr) {
        (self.hardware, self.address.unwrap_or(Ipv4Addr::UNSPECIFIED))
    }

    fn count(&mut self, what: usize) {
        if let Some(count) = self.counters.get_mut(what) {
            *count += 1;
        }
    }

    /// When [`Station::tick`] is due, in microseconds.
    pub fn due(&self) -> u64 {
        let asked = self.asked.iter().flatten().map(|asked| asked.due).min();
        let own = match self.settings.how {
            How::Dhcp => self.client.due(),
            How::Rarp if self.address.is_none() => self.due[0],
            _ => u64::MAX,
        };
        own.min(asked.unwrap_or(u64::MAX)).min(self.due[1])
    }

    /// Does what is due.
    pub fn tick(&mut self, now: u64, out: &mut impl FnMut(&[u8])) {
        match self.settings.how {
            How::Dhcp => {
                if let Some(asks) = self.client.tick(now) {
                    self.tell_server(&asks, out);
                }
                let address = self.client.lease().map(|lease| lease.address);
                if self.address.is_some() && address.is_none() {
                    self.moved(None, now, out);
                }
            }
            How::Rarp if self.address.is_none() && now >= self.due[0] => {
                self.due[0] = now + SECOND;
                out(&arp::who_am_i(self.hardware));
            }
            _ => {}
        }
        if now >= self.due[1] {
            // At first, too: an address of the settings is announced.
            if self.due[1] == 0 && self.address.is_some() {
                self.moved(self.address, now, out);
            }
            self.due[1] = now + 5 * SECOND;
            self.look_at_neighbours(now, out);
        }
        self.ask_again(now, out);
    }

    /// Sends a message of DHCP, to the server alone if its address of Ethernet is known.
    fn tell_server(&mut self, asks: &dhcp::Asks, out: &mut impl FnMut(&[u8])) {
        let known = self.neighbours.find(asks.to).map(|known| known.hardware);
        let hardware = [known.unwrap_or(EVERYBODY), self.hardware];
        let mut bytes = [0; LONGEST];
        let length = frame::udp(
            &mut bytes,
            hardware,
            [asks.from, asks.to],
            dhcp::PORTS,
            &asks.bytes,
        );
        if let Some(frame) = length.and_then(|length| bytes.get(..length)) {
            out(frame);
        }
    }

    /// Has another address from now on, which everybody is told.
    fn moved(&mut self, address: Option<Ipv4Addr>, now: u64, out: &mut impl FnMut(&[u8])) {
        if self.address != address {
            self.neighbours.forget_all();
            self.asked = [None; ASKED];
        }
        self.address = address;
        self.conflict = None;
        if let Some(address) = address {
            out(&arp::question(self.own(), address));
            let place = self.place();
            for wanted in [place.gateway, place.servers[0]].into_iter().flatten() {
                self.ask(now, wanted, out);
            }
        }
    }

    /// Somebody here wants to send to a neighbour.
    pub fn ask(&mut self, now: u64, address: Ipv4Addr, out: &mut impl FnMut(&[u8])) {
        let near = self.next(address) == Some(address);
        let is_asked = self
            .asked
            .iter()
            .flatten()
            .any(|asked| asked.address == address);
        if self.address.is_none() || !near || self.address == Some(address) || is_asked {
            return;
        }
        let Some(free) = self.asked.iter_mut().find(|place| place.is_none()) else {
            return self.count(counter::REFUSED);
        };
        *free = Some(Asked {
            address,
            tries: 0,
            due: now,
        });
        self.ask_again(now, out);
    }

    fn ask_again(&mut self, now: u64, out: &mut impl FnMut(&[u8])) {
        let own = self.own();
        let mut silent = 0;
        for place in &mut self.asked {
            let Some(asked) = place else { continue };
            if now < asked.due {
                continue;
            }
            if asked.tries >= TRIES {
                self.neighbours.forget(asked.address);
                *place = None;
                silent += 1;
                continue;
            }
            asked.tries += 1;
            asked.due = now + SECOND;
            self.counters[counter::ASKED] += 1;
            out(&arp::question(own, asked.address));
        }
        self.counters[counter::SILENT] += silent;
    }

    /// Asks anew for those that are wanted and were not heard of for long.
    fn look_at_neighbours(&mut self, now: u64, out: &mut impl FnMut(&[u8])) {
        self.neighbours.forget_old(now);
        let mut old = [None; ASKED / 2];
        let all = self.neighbours.places().iter().flatten();
        let stale = all.filter(|known| known.wanted && now.saturating_sub(known.heard) > FRESH);
        for (place, known) in old.iter_mut().zip(stale) {
            *place = Some(known.address);
        }
        for address in old.into_iter().flatten() {
            self.ask(now, address, out);
        }
        if self
            .conflict
            .is_some_and(|since| now.saturating_sub(since) > 2 * DEFEND)
        {
            self.conflict = None;
        }
    }

    /// A frame came.
    pub fn frame(&mut self, now: u64, bytes: &[u8], out: &mut impl FnMut(&[u8])) {
        self.count(counter::FRAMES);
        let Some(frame) = Frame::read(bytes) else {
            return self.count(counter::MALFORMED);
        };
        match frame.kind {
            kind::ARP | kind::RARP => match Message::read(&frame) {
                Some(message) => self.message(now, &frame, &message, out),
                None => self.count(counter::MALFORMED),
            },
            kind::IP => self.datagram(now, &frame, out),
            _ => self.count(counter::MALFORMED),
        }
    }

    /// What nobody else wanted, or what a server says.
    fn datagram(&mut self, now: u64, frame: &Frame<'_>, out: &mut impl FnMut(&[u8])) {
        let Ok((datagram, part)) = Datagram::read_part(frame.carries) else {
            return self.count(counter::MALFORMED);
        };
        if part.is_piece() {
            if let Ok(way) = self.way(frame, &datagram) {
                self.piece(now, way, (&datagram, part), out);
            }
            return;
        }
        match frame::read_udp(&datagram) {
            Some(([67, 68], carries)) => self.told_by_server(now, carries, out),
            _ => match self.way(frame, &datagram) {
                Ok(way) => match self.nobody.answer(now, way, &datagram, out) {
                    Answered::Echo => self.count(counter::ECHOES),
                    Answered::Closed => self.count(counter::CLOSED),
                    Answered::Silent => {}
                },
                Err(()) => self.count(counter::MALFORMED),
            },
        }
    }

    /// How what came is answered, if it was for this machine alone, and from somebody.
    fn way(&self, frame: &Frame<'_>, datagram: &Datagram<'_>) -> Result<Way, ()> {
        let own = |address: Ipv4Addr| address.is_loopback() || self.address == Some(address);
        let (from, to) = (datagram.from, datagram.to);
        let nobody = from.is_unspecified() || from.is_broadcast() || from.is_multicast();
        let inside = frame.from == self.hardware;
        let local = own(from) || to.is_loopback();
        let wrong = nobody || !own(to) || frame.to != self.hardware || frame.from[0] & 1 != 0;
        if wrong || local && !inside {
            return Err(());
        }
        // What was put together here comes from inside, and its sender is elsewhere.
        let next = match inside && !own(from) {
            true => self.next(from).and_then(|next| self.neighbours.find(next)),
            false => None,
        };
        Ok(Way {
            own: self.hardware,
            to: next.map_or(frame.from, |known| known.hardware),
        })
    }

    /// Who gets frames for an address.
    fn next(&self, address: Ipv4Addr) -> Option<Ipv4Addr> {
        let place = self.place();
        let mask = u32::MAX << (32 - u32::from(place.bits.clamp(1, 32)));
        match (u32::from(place.address) ^ u32::from(address)) & mask {
            0 => Some(address),
            _ => place.gateway,
        }
    }

    /// A piece of a datagram: with the last one it is sent to who wants it, as from here.
    fn piece(
        &mut self,
        now: u64,
        way: Way,
        (datagram, part): (&Datagram<'_>, Part),
        out: &mut impl FnMut(&[u8]),
    ) {
        let Some(whole) = self.pieces.put(now, datagram, part) else {
            return;
        };
        let mut bytes = [0; ETHERNET + IP + pieces::ROOM];
        let head = frame::ethernet(way.own, way.own, kind::IP);
        let all = ETHERNET + whole.len();
        for (to, from) in bytes.iter_mut().zip(head.iter().chain(whole)) {
            *to = *from;
        }
        out(bytes.get(..all.max(frame::SHORTEST)).unwrap_or_default());
        self.count(counter::JOINED);
    }

    fn told_by_server(&mut self, now: u64, carries: &[u8], out: &mut impl FnMut(&[u8])) {
        if self.settings.how == How::Dhcp && self.client.answered(now, carries) {
            self.count(counter::LEASES);
            let address = self.client.lease().map(|lease| lease.address);
            if address != self.address {
                self.moved(address, now, out);
            }
        }
        // An offer is accepted at once.
        self.tick(now, out);
    }

    fn message(
        &mut self,
        now: u64,
        frame: &Frame<'_>,
        message: &Message,
        out: &mut impl FnMut(&[u8]),
    ) {
        self.count(counter::ARP);
        let (hardware, address) = message.sender;
        let group = hardware[0] & 1 != 0 || hardware == [0; 6];
        let nobody = address.is_broadcast() || address.is_multicast() || address.is_loopback();
        // Whoever speaks for another has no good reason here.
        if group || nobody || frame.from != hardware {
            return self.count(counter::MALFORMED);
        }
        if hardware == self.hardware {
            return;
        }
        match message.operation {
            Operation::ReverseReply => self.told(now, message, out),
            Operation::ReverseRequest => {}
            Operation::Request | Operation::Reply => {
                if self.address == Some(address) {
                    return self.contested(now, out);
                }
                self.heard(now, message, out);
            }
        }
    }

    /// A server says which address this machine has.
    fn told(&mut self, now: u64, message: &Message, out: &mut impl FnMut(&[u8])) {
        let (hardware, address) = message.target;
        let nobody = address.is_unspecified() || address.is_broadcast() || address.is_multicast();
        let asked = self.settings.how == How::Rarp && self.address.is_none();
        if asked && hardware == self.hardware && !nobody && !address.is_loopback() {
            self.count(counter::LEASES);
            self.moved(Some(address), now, out);
        }
    }

    /// Somebody else says that it has this machine's address (RFC 5227, 2.4): it is told once, and
    /// then the address is given up, if there can be another one.
    fn contested(&mut self, now: u64, out: &mut impl FnMut(&[u8])) {
        self.count(counter::CONFLICTS);
        let Some(address) = self.address else { return };
        match self.conflict {
            Some(since) if now.saturating_sub(since) < DEFEND => {
                if let Some(told) = self.client.decline(now) {
                    self.tell_server(&told, out);
                    self.moved(None, now, out);
                }
            }
            _ => {
                self.conflict = Some(now);
                out(&arp::question(self.own(), address));
            }
        }
    }

    /// A neighbour asks for this machine, or answers.
    fn heard(&mut self, now: u64, message: &Message, out: &mut impl FnMut(&[u8])) {
        let (hardware, address) = message.sender;
        let for_us = self.address.is_some() && self.address == Some(message.target.1);
        let is_asked = |place: &Option<Asked>| place.is_some_and(|asked| asked.address == address);
        let asked = self.asked.iter_mut().find(|place| is_asked(place));
        let was_asked = asked.is_some();
        if let Some(place) = asked {
            *place = None;
        }
        let known = self.neighbours.find(address).copied();
        let fresh = known.is_some_and(|known| {
            known.hardware != hardware && now.saturating_sub(known.heard) < FRESH
        });
        if fresh && !was_asked {
            // Nobody asked: it may be a lie, so the address itself is asked for.
            self.ask(now, address, out);
        } else if !address.is_unspecified() && (for_us || was_asked || known.is_some()) {
            match self.neighbours.hear(address, hardware, now, was_asked) {
                Heard::Moved => self.count(counter::MOVED),
                Heard::Refused => self.count(counter::REFUSED),
                Heard::Same | Heard::New => {}
            }
        }
        if for_us && message.operation == Operation::Request && self.answers {
            out(&arp::answer(self.own(), message));
        }
    }
}
