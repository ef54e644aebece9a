//! An address from a server, and its lease (RFC 2131, options of RFC 2132). What arrives is
//! believed only if it answers what was asked: by its number, and by the address of Ethernet.

use core::net::Ipv4Addr;

use postern_exos_abi::network::SERVERS;

use crate::Hardware;
use crate::frame;

/// The client's port, and the server's.
pub const PORTS: [u16; 2] = [68, 67];
/// Bytes of a message of ours.
pub const LENGTH: usize = 300;

const MAGIC: [u8; 4] = [99, 130, 83, 99];
const OPTIONS: usize = 240;

/// Kinds of messages (option 53).
mod kind {
    pub const DISCOVER: u8 = 1;
    pub const OFFER: u8 = 2;
    pub const REQUEST: u8 = 3;
    pub const DECLINE: u8 = 4;
    pub const ACK: u8 = 5;
    pub const NAK: u8 = 6;
}

/// Microseconds of a second.
const SECOND: u64 = 1_000_000;
/// Seconds of a lease at least: a server that gives shorter ones would have us ask all the time.
const SHORTEST: u32 = 60;
/// Times that a server which made an offer is asked for it.
const TRIES: u32 = 4;

/// What a server gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The address.
    pub address: Ipv4Addr,
    /// Bits that the network has in common.
    pub bits: u8,
    /// Who forwards to other networks.
    pub gateway: Option<Ipv4Addr>,
    /// Who answers for names.
    pub servers: [Option<Ipv4Addr>; SERVERS],
    /// The server.
    server: Ipv4Addr,
    /// When the server is asked to renew it, when any server is, and when it ends: microseconds.
    times: [u64; 3],
}

/// What a message says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Said {
    kind: u8,
    address: Option<Ipv4Addr>,
    server: Option<Ipv4Addr>,
    mask: Option<u32>,
    gateway: Option<Ipv4Addr>,
    servers: [Option<Ipv4Addr>; SERVERS],
    seconds: [Option<u32>; 3],
    /// Where options go on: bits of option 52.
    more: u8,
}

/// Reads the answer to a message of a number.
fn read(bytes: &[u8], number: u32, hardware: Hardware) -> Option<Said> {
    let answers = *bytes.first_chunk()? == [2, 1, 6]
        && bytes.get(4..8)? == number.to_be_bytes()
        && bytes.get(28..34)? == hardware
        && bytes.get(236..OPTIONS)? == MAGIC;
    if !answers {
        return None;
    }
    let mut said = Said {
        address: frame::address(bytes, 16).filter(|address| is_host(*address)),
        ..Said::default()
    };
    said.options(bytes.get(OPTIONS..)?)?;
    // Options may go on where names of a file and of the server are otherwise.
    let more = said.more;
    for (bit, place) in [(1, 108..236), (2, 44..108)] {
        if more & bit != 0 {
            said.options(bytes.get(place)?)?;
        }
    }
    (said.kind != 0).then_some(said)
}

impl Said {
    /// Reads options: each is a byte, a length and so many bytes; 0 is none, 255 the end. Nothing
    /// if one is cut off.
    fn options(&mut self, mut rest: &[u8]) -> Option<()> {
        while let [code, behind @ ..] = rest {
            match *code {
                0 => rest = behind,
                255 => break,
                code => {
                    let (length, behind) = behind.split_first()?;
                    let value = behind.get(..usize::from(*length))?;
                    self.option(code, value);
                    rest = behind.get(usize::from(*length)..)?;
                }
            }
        }
        Some(())
    }

    fn option(&mut self, code: u8, value: &[u8]) {
        let word = || Some(u32::from_be_bytes(*value.first_chunk()?));
        let address = || frame::address(value, 0).filter(|address| is_host(*address));
        match code {
            1 => self.mask = word(),
            3 => self.gateway = address(),
            6 => {
                let all = value
                    .chunks_exact(4)
                    .filter_map(|four| frame::address(four, 0));
                let hosts = all.filter(|address| is_host(*address));
                for (place, server) in self.servers.iter_mut().zip(hosts) {
                    *place = Some(server);
                }
            }
            51 => self.seconds[2] = word(),
            52 => self.more = value.first().copied().unwrap_or(0),
            53 => self.kind = value.first().copied().unwrap_or(0),
            54 => self.server = address(),
            58 => self.seconds[0] = word(),
            59 => self.seconds[1] = word(),
            _ => {}
        }
    }

    /// The lease that is acknowledged at a time.
    fn lease(&self, now: u64) -> Option<Lease> {
        let mask = self.mask.unwrap_or(0xffff_ff00);
        let bits = mask.leading_ones();
        // Ones, then zeros.
        if mask.count_ones() != bits || !(1..=30).contains(&bits) {
            return None;
        }
        // Neither the network itself nor everybody in it; and who forwards is another one, in it.
        let (address, host) = (self.address?, u32::MAX >> bits);
        if [0, host].contains(&(u32::from(address) & host)) {
            return None;
        }
        let is_near = |other: &Ipv4Addr| {
            *other != address && (u32::from(*other) ^ u32::from(address)) & mask == 0
        };
        let all = self.seconds[2].unwrap_or(u32::MAX).max(SHORTEST);
        let second = self.seconds[1]
            .unwrap_or(all / 8 * 7)
            .clamp(SHORTEST / 4 * 3, all);
        let first = self.seconds[0]
            .unwrap_or(all / 2)
            .clamp(SHORTEST / 2, second);
        let at = |seconds: u32| now.saturating_add(u64::from(seconds) * SECOND);
        Some(Lease {
            address,
            bits: bits as u8,
            gateway: self.gateway.filter(is_near),
            servers: self.servers,
            server: self.server?,
            times: [at(first), at(second), at(all)],
        })
    }
}

fn is_host(address: Ipv4Addr) -> bool {
    !(address.is_unspecified()
        || address.is_broadcast()
        || address.is_multicast()
        || address.is_loopback())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Any server is asked for an offer.
    Asks,
    /// One that made an offer is asked for it.
    Wants(Ipv4Addr, Ipv4Addr),
    /// There is a lease.
    Has(Lease),
}

/// Who asks.
#[derive(Debug)]
pub struct Client {
    hardware: Hardware,
    state: State,
    /// The number of what was asked last.
    number: u32,
    tries: u32,
    /// When it is asked again.
    due: u64,
    /// How often in a row a server did not give what it had offered, and the last such server.
    failures: u32,
    shunned: Option<Ipv4Addr>,
    /// The last offer, of which others may still come.
    offer: Option<(Ipv4Addr, Ipv4Addr)>,
}

/// A message that is to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Asks {
    /// Its bytes.
    pub bytes: [u8; LENGTH],
    /// From this address.
    pub from: Ipv4Addr,
    /// To this one.
    pub to: Ipv4Addr,
}

impl Client {
    /// Nobody was asked yet. Messages have numbers from this one on.
    pub fn new(hardware: Hardware, number: u32) -> Client {
        Client {
            hardware,
            state: State::Asks,
            number,
            tries: 0,
            due: 0,
            failures: 0,
            shunned: None,
            offer: None,
        }
    }

    /// What a server gave.
    pub fn lease(&self) -> Option<&Lease> {
        match &self.state {
            State::Has(lease) => Some(lease),
            _ => None,
        }
    }

    /// When [`Client::tick`] is due.
    pub fn due(&self) -> u64 {
        self.due
    }

    /// What is to be asked now, if anything.
    pub fn tick(&mut self, now: u64) -> Option<Asks> {
        if now < self.due {
            return None;
        }
        let nobody = Ipv4Addr::UNSPECIFIED;
        match self.state {
            State::Asks => {
                if let Some((address, server)) = self.offer.take() {
                    self.want(now, address, server);
                    return self.tick(now);
                }
                self.again(now);
                Some(self.message(kind::DISCOVER, nobody, None))
            }
            State::Wants(_, server) if self.tries >= TRIES => {
                self.failed(now, server);
                self.tick(now)
            }
            State::Wants(address, server) => {
                self.again(now);
                Some(self.message(kind::REQUEST, nobody, Some((address, Some(server)))))
            }
            State::Has(lease) if now >= lease.times[2] => {
                self.begin(now);
                self.tick(now)
            }
            State::Has(lease) => {
                self.number = self.number.wrapping_add(1);
                // Half of what is left, but a minute at least (RFC 2131, 4.4.5).
                let [_, second, end] = lease.times;
                let to = if now < second { second } else { end };
                self.due = (now + (to - now) / 2).max(now + 60 * SECOND).min(to);
                let mut asks = self.message(kind::REQUEST, lease.address, None);
                if now < second {
                    asks.to = lease.server;
                }
                Some(asks)
            }
        }
    }

    /// From the beginning.
    fn begin(&mut self, now: u64) {
        self.state = State::Asks;
        self.tries = 0;
        self.offer = None;
        self.due = now;
        self.number = self.number.wrapping_add(0x9e37_79b9);
    }

    /// A server did not give what it had offered, or takes it away: everybody is asked, at once the
    /// first time, and then after 1, 3, 7, 15 and 31 seconds.
    fn failed(&mut self, now: u64, server: Ipv4Addr) {
        self.shunned = Some(server);
        let wait = (SECOND << self.failures.min(5)) - SECOND;
        self.failures = self.failures.saturating_add(1);
        self.begin(now + wait);
    }

    /// Asks a server for what it has offered.
    fn want(&mut self, now: u64, address: Ipv4Addr, server: Ipv4Addr) {
        self.state = State::Wants(address, server);
        self.tries = 0;
        self.due = now;
    }

    /// An offer. The first one is taken; but if that went wrong, every other time the last one of a
    /// second, and the server with which it went wrong only if nobody else offers anything.
    fn offered(&mut self, now: u64, address: Ipv4Addr, server: Ipv4Addr) {
        if self.shunned == Some(server) && self.tries <= 1 {
            return;
        }
        if self.failures.is_multiple_of(2) {
            return self.want(now, address, server);
        }
        if self.offer.is_none() {
            self.due = self.due.min(now + SECOND);
        }
        self.offer = Some((address, server));
    }

    /// After two seconds, and then twice as long, up to a minute.
    fn again(&mut self, now: u64) {
        self.due = now + ((2 * SECOND) << self.tries.min(5)).min(64 * SECOND);
        self.tries += 1;
    }

    /// Takes an answer: whether there is a lease that is new or longer.
    pub fn answered(&mut self, now: u64, bytes: &[u8]) -> bool {
        let Some(said) = read(bytes, self.number, self.hardware) else {
            return false;
        };
        match (self.state, said.kind) {
            (State::Asks, kind::OFFER) => {
                if let (Some(address), Some(server)) = (said.address, said.server)
                    && self.tries > 0
                {
                    self.offered(now, address, server);
                }
            }
            (State::Wants(address, server), kind::ACK) if said.server == Some(server) => {
                let is_same = said.address == Some(address);
                if is_same && self.acknowledged(now, &said) {
                    return true;
                }
                self.failed(now, server);
            }
            (State::Has(lease), kind::ACK) if said.address == Some(lease.address) => {
                return self.acknowledged(now, &said);
            }
            (State::Wants(_, server), kind::NAK) if said.server == Some(server) => {
                self.failed(now, server);
            }
            (State::Has(lease), kind::NAK) if said.server == Some(lease.server) => {
                self.failed(now, lease.server);
            }
            _ => {}
        }
        false
    }

    fn acknowledged(&mut self, now: u64, said: &Said) -> bool {
        let lease = said.lease(now);
        if let Some(lease) = lease {
            self.state = State::Has(lease);
            self.due = lease.times[0];
            (self.failures, self.shunned) = (0, None);
        }
        lease.is_some()
    }

    /// Somebody else has the address: the server is told, and asked for another one in ten seconds
    /// (RFC 2131, 3.1.5).
    pub fn decline(&mut self, now: u64) -> Option<Asks> {
        let State::Has(lease) = self.state else {
            return None;
        };
        let offer = (lease.address, Some(lease.server));
        let told = self.message(kind::DECLINE, Ipv4Addr::UNSPECIFIED, Some(offer));
        self.begin(now + 10 * SECOND);
        Some(told)
    }

    fn message(
        &self,
        kind: u8,
        own: Ipv4Addr,
        offer: Option<(Ipv4Addr, Option<Ipv4Addr>)>,
    ) -> Asks {
        let mut bytes = [0; LENGTH];
        let mut put = |at: usize, what: &[u8]| {
            if let Some(place) = bytes.get_mut(at..at + what.len()) {
                place.copy_from_slice(what);
            }
        };
        put(0, &[1, 1, 6]);
        put(4, &self.number.to_be_bytes());
        put(12, &own.octets());
        put(28, &self.hardware);
        put(236, &MAGIC);
        // The kind, and that mask, gateway, servers and times are wanted.
        put(OPTIONS, &[53, 1, kind, 55, 6, 1, 3, 6, 51, 58, 59]);
        let mut at = OPTIONS + 11;
        if let Some((address, server)) = offer {
            put(at, &[50, 4]);
            put(at + 2, &address.octets());
            at += 6;
            if let Some(server) = server {
                put(at, &[54, 4]);
                put(at + 2, &server.octets());
                at += 6;
            }
        }
        put(at, &[255]);
        Asks {
            bytes,
            from: own,
            to: Ipv4Addr::BROADCAST,
        }
    }
}

/// What a server answers; for tests, and for peers that are servers.
pub fn answer(asked: &[u8], offers: [Ipv4Addr; 4], seconds: u32) -> Option<[u8; LENGTH]> {
    let [address, server, gateway, names] = offers;
    let option = asked.get(OPTIONS..OPTIONS + 3)?;
    let kind = match option {
        [53, 1, kind::DISCOVER] => kind::OFFER,
        [53, 1, kind::REQUEST] => kind::ACK,
        _ => return None,
    };
    let mut bytes = [0; LENGTH];
    bytes
        .get_mut(..OPTIONS)?
        .copy_from_slice(asked.get(..OPTIONS)?);
    bytes[0] = 2;
    bytes[16..20].copy_from_slice(&address.octets());
    let parts: [&[u8]; 11] = [
        &[53, 1, kind],
        &[54, 4],
        &server.octets(),
        &[51, 4],
        &seconds.to_be_bytes(),
        &[1, 4, 255, 255, 255, 0, 3, 4],
        &gateway.octets(),
        &[6, 4],
        &names.octets(),
        &[0],
        &[255],
    ];
    let all = parts.into_iter().flatten();
    for (to, from) in bytes.get_mut(OPTIONS..)?.iter_mut().zip(all) {
        *to = *from;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HARDWARE: Hardware = [0x52, 0x54, 0, 0, 0, 1];
    const OFFERS: [Ipv4Addr; 4] = [
        Ipv4Addr::new(10, 0, 2, 15),
        Ipv4Addr::new(10, 0, 2, 2),
        Ipv4Addr::new(10, 0, 2, 2),
        Ipv4Addr::new(10, 0, 2, 3),
    ];

    fn leased(seconds: u32) -> (Client, u64) {
        let mut client = Client::new(HARDWARE, 77);
        let mut now = 1000;
        for _ in 0..2 {
            let asks = client.tick(now).expect("a question");
            assert_eq!(asks.to, Ipv4Addr::BROADCAST);
            let answer = answer(&asks.bytes, OFFERS, seconds).expect("an answer");
            client.answered(now, &answer);
            now += 10;
        }
        (client, now)
    }

    #[test]
    fn a_lease_is_had_renewed_and_lost() {
        let (mut client, now) = leased(600);
        let lease = *client.lease().expect("a lease");
        assert_eq!((lease.address, lease.bits), (OFFERS[0], 24));
        assert_eq!(
            (lease.gateway, lease.servers[0]),
            (Some(OFFERS[2]), Some(OFFERS[3]))
        );
        assert!(client.tick(now + 299 * SECOND).is_none());
        // Half of it has gone: the server is asked, and then everybody.
        let asks = client.tick(now + 300 * SECOND).expect("a question");
        assert_eq!((asks.from, asks.to), (OFFERS[0], OFFERS[1]));
        let asks = client.tick(now + 530 * SECOND).expect("a question");
        assert_eq!(asks.to, Ipv4Addr::BROADCAST);
        let answer = answer(&asks.bytes, OFFERS, 600).expect("an answer");
        assert!(client.answered(now + 531 * SECOND, &answer));
        assert!(client.tick(now + 800 * SECOND).is_none());
        client.tick(now + 1200 * SECOND);
        assert!(client.tick(now + 1132 * SECOND + 600 * SECOND).is_some());
        assert!(client.lease().is_none());
    }

    #[test]
    fn what_nobody_asked_for_is_no_answer() {
        let mut client = Client::new(HARDWARE, 77);
        let asks = client.tick(0).expect("a question");
        let good = answer(&asks.bytes, OFFERS, 600).expect("an answer");
        for at in [0, 1, 2, 4, 7, 28, 33, 236, 239] {
            let mut bad = good;
            bad[at] ^= 1;
            client.answered(1, &bad);
            assert_eq!(client.state, State::Asks, "{at}");
        }
        client.answered(1, &good);
        assert!(matches!(client.state, State::Wants(..)));
        // Another server's acknowledgement.
        let asks = client.tick(1).expect("a question");
        let others = [OFFERS[0], Ipv4Addr::new(10, 0, 2, 9), OFFERS[2], OFFERS[3]];
        let other = answer(&asks.bytes, others, 600).expect("an answer");
        assert!(!client.answered(2, &other));
        assert!(client.lease().is_none());
    }

    #[test]
    fn no_bytes_are_too_bad() {
        let mut seed = 1u64;
        for round in 0..20_000u32 {
            let (mut client, now) = leased(round % 100);
            let asks = client.tick(now + 3000 * SECOND).expect("a question");
            let mut bytes = answer(&asks.bytes, OFFERS, round).expect("an answer");
            for _ in 0..1 + round % 8 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = (seed >> 33) as usize % LENGTH;
                bytes[at] = (seed >> 20) as u8;
            }
            let length = (seed >> 40) as usize % (LENGTH + 1);
            client.answered(now, &bytes[..length]);
            client.answered(now, &bytes);
            client.tick(now + 4000 * SECOND);
        }
    }

    #[test]
    fn a_conflict_is_declined() {
        let (mut client, now) = leased(600);
        let told = client.decline(now).expect("a word");
        assert_eq!(told.bytes[OPTIONS + 2], kind::DECLINE);
        assert!(client.tick(now + 9 * SECOND).is_none());
        assert!(client.tick(now + 10 * SECOND).is_some());
    }
}
