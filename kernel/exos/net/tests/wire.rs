//! Two stacks on one wire that loses, repeats and changes frames, and one that is sent nonsense.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::net::Ipv4Addr;
use std::rc::Rc;

use postern_exos_abi::errno::{self, Errno};
use postern_exos_net::Hardware;
use postern_exos_net::frame::{self, ETHERNET, IP, LONGEST, kind, protocol};
use postern_exos_net::ports::Claim;
use postern_exos_net::stack::{
    Address, Arrivals, Departures, Ground, Kind, Neighbourhood, Refused, Side, Stack, View,
};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

type Queue = Rc<RefCell<VecDeque<Vec<u8>>>>;

struct In {
    queue: Queue,
    first: Option<Vec<u8>>,
}

impl In {
    fn look(&mut self) {
        if self.first.is_none() {
            self.first = self.queue.borrow_mut().pop_front();
        }
    }
}

impl Arrivals for In {
    fn first(&self) -> Option<&[u8]> {
        self.first.as_deref()
    }

    fn next(&mut self) {
        self.first = None;
        self.look();
    }
}

/// Frames go to the other side, unless chance has it otherwise.
struct Out {
    queue: Queue,
    bytes: Vec<u8>,
    random: Random,
    bad: u64,
}

impl Departures for Out {
    fn place(&mut self) -> Option<&mut [u8]> {
        (self.queue.borrow().len() < 32).then_some(&mut self.bytes[..])
    }

    fn send(&mut self, length: usize) {
        let mut frame = self.bytes[..length].to_vec();
        let chance = self.random.next() % 100;
        if chance < self.bad {
            match chance % 3 {
                0 => return,
                1 => self.queue.borrow_mut().push_back(frame.clone()),
                _ => {
                    let at = self.random.next() as usize % length;
                    frame[at] ^= 1 << (self.random.next() % 8);
                }
            }
        }
        self.queue.borrow_mut().push_back(frame);
    }
}

struct Here(u16);

impl Ground for Here {
    fn claim(&mut self, claim: Claim) -> Result<(), Errno> {
        match claim {
            Claim::Tcp(9) => Err(errno::ADDRINUSE),
            _ => Ok(()),
        }
    }

    fn leave(&mut self, _: Claim) {}

    fn own(&self) -> u16 {
        self.0
    }

    fn random(&mut self) -> u32 {
        7
    }
}

struct Known(HashMap<Ipv4Addr, Hardware>);

impl Neighbourhood for Known {
    fn find(&self, address: Ipv4Addr) -> Option<Hardware> {
        self.0.get(&address).copied()
    }
}

struct Host {
    stack: Stack,
    arrivals: In,
    departures: Out,
    ground: Here,
    known: Known,
}

fn address(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

fn hardware(last: u8) -> Hardware {
    [2, 0, 0, 0, 0, last]
}

fn pair(bad: u64) -> [Host; 2] {
    let (one, two) = (Queue::default(), Queue::default());
    let host = |last: u8, comes: &Queue, goes: &Queue| {
        let view = View {
            address: address(last),
            bits: 24,
            gateway: None,
            hardware: hardware(last),
        };
        let other = 3 - last;
        Host {
            stack: Stack::new(view, last.into()),
            arrivals: In {
                queue: comes.clone(),
                first: None,
            },
            departures: Out {
                queue: goes.clone(),
                bytes: vec![0; LONGEST],
                random: Random(last.into()),
                bad,
            },
            ground: Here(last.into()),
            known: Known(HashMap::from([(address(other), hardware(other))])),
        }
    };
    [host(1, &one, &two), host(2, &two, &one)]
}

impl Host {
    fn poll(&mut self, now: u64) {
        self.arrivals.look();
        let (arrivals, departures) = (&mut self.arrivals, &mut self.departures);
        self.stack.poll(now, arrivals, departures, &self.known);
        self.stack.tend(&mut self.ground);
    }
}

fn bytes(count: usize) -> Vec<u8> {
    let mut random = Random(5);
    (0..count).map(|_| random.next() as u8).collect()
}

/// A connection that carries bytes to their end over a wire of so many bad frames in a hundred.
fn carry(bad: u64, count: usize) {
    let [mut client, mut server] = pair(bad);
    let sent = bytes(count);
    let listens = server.stack.socket(Kind::Stream).expect("a socket");
    let at = Address {
        host: address(2),
        port: 80,
    };
    server
        .stack
        .bind(listens, at, &mut server.ground)
        .expect("a port");
    server
        .stack
        .listen(listens, 4, &mut server.ground)
        .expect("a listener");
    let asks = client.stack.socket(Kind::Stream).expect("a socket");
    let asked = client.stack.connect(asks, at, &mut client.ground);
    assert_eq!(asked, Err(errno::INPROGRESS));
    let (mut got, mut done, mut accepted, mut now) = (Vec::new(), 0, None, 0);
    let mut piece = [0; 3000];
    loop {
        now += 1000;
        client.poll(now);
        server.poll(now);
        if done < sent.len() && client.stack.connected(asks).is_ok() {
            done += client.stack.send(asks, &sent[done..]).unwrap_or(0);
            if done == sent.len() {
                client.stack.shutdown(asks, Side::Write).expect("an end");
            }
        }
        if accepted.is_none() {
            accepted = server.stack.accept(listens).ok().map(|(new, _)| new);
        }
        if let Some(new) = accepted {
            match server.stack.receive(new, &mut piece, false) {
                Ok(0) => break,
                Ok(more) => got.extend_from_slice(&piece[..more]),
                Err(error) => assert_eq!(error, errno::AGAIN),
            }
        }
        assert!(now < 600_000_000, "{} of {} bytes", got.len(), sent.len());
    }
    assert!(got == sent);
}

#[test]
fn connections_carry_over_good_and_bad_wires() {
    carry(0, 1 << 20);
    carry(5, 200_000);
    carry(20, 50_000);
}

#[test]
fn datagrams_go_there_and_back() {
    let [mut one, mut two] = pair(0);
    let to = Address {
        host: address(2),
        port: 7,
    };
    let serves = two.stack.socket(Kind::Datagram).expect("a socket");
    two.stack.bind(serves, to, &mut two.ground).expect("a port");
    let asks = one.stack.socket(Kind::Datagram).expect("a socket");
    for length in [0, 1, 60, 1472] {
        let sent = bytes(length);
        one.stack
            .send_to(asks, &sent, Some(to), &mut one.ground)
            .expect("sent");
        one.poll(1);
        two.poll(1);
        let mut got = [0; 2000];
        let (count, all, from) = two.stack.receive_from(serves, &mut got, false).expect("it");
        assert_eq!((count, all), (length, length));
        assert_eq!(got[..count], sent[..]);
        two.stack
            .send_to(serves, &got[..count], Some(from), &mut two.ground)
            .expect("sent");
        two.poll(2);
        one.poll(2);
        let (count, _, _) = one
            .stack
            .receive_from(asks, &mut got, false)
            .expect("it back");
        assert_eq!(count, length);
    }
    let long = one
        .stack
        .send_to(asks, &bytes(1473), Some(to), &mut one.ground);
    assert_eq!(long, Err(errno::MSGSIZE));
}

/// A segment to port 80 with flags, and a right sum if wanted.
fn segment(from: u32, port: u16, flags: u8, random: &mut Random) -> Vec<u8> {
    let source = Ipv4Addr::from(0x0a00_0000 | from);
    let mut tcp = vec![0; 20];
    tcp[..2].copy_from_slice(&port.to_be_bytes());
    tcp[3] = 80;
    tcp[4..8].copy_from_slice(&(random.next() as u32).to_be_bytes());
    tcp[8..12].copy_from_slice(&(random.next() as u32).to_be_bytes());
    (tcp[12], tcp[13], tcp[14]) = (0x50, flags, 16);
    let pseudo = frame::pseudo(source, address(2), protocol::TCP, 20);
    let sum = frame::sum(&[&pseudo, &tcp]);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    let mut all = frame::ethernet(hardware(2), hardware(9), kind::IP).to_vec();
    all.extend(frame::ip(source, address(2), protocol::TCP, 0, 20));
    all.extend(tcp);
    all
}

#[test]
fn a_flood_of_requests_takes_no_more_than_the_backlog() {
    let [mut client, mut server] = pair(0);
    let at = Address {
        host: address(2),
        port: 80,
    };
    let listens = server.stack.socket(Kind::Stream).expect("a socket");
    server
        .stack
        .bind(listens, at, &mut server.ground)
        .expect("a port");
    server
        .stack
        .listen(listens, 8, &mut server.ground)
        .expect("a listener");
    let mut random = Random(3);
    for round in 0..2000 {
        let frame = segment(100 + round % 100, round as u16 + 1, 2, &mut random);
        server.arrivals.queue.borrow_mut().push_back(frame);
        server.poll(u64::from(round) * 10);
        // What the server answers, nobody hears.
        client.arrivals.queue.borrow_mut().clear();
    }
    assert_eq!(
        server.stack.counters().refused[Refused::Full as usize],
        2000 - 8
    );
    // They were never confirmed, so there is room again.
    for second in 1..20 {
        server.poll(second * 1_000_000);
        client.arrivals.queue.borrow_mut().clear();
    }
    let asks = client.stack.socket(Kind::Stream).expect("a socket");
    let _ = client.stack.connect(asks, at, &mut client.ground);
    for step in 0..20 {
        client.poll(30_000_000 + step * 1000);
        server.poll(30_000_000 + step * 1000);
    }
    assert_eq!(client.stack.connected(asks), Ok(()));
    assert!(server.stack.accept(listens).is_ok());
}

#[test]
fn no_frames_are_too_bad() {
    let rounds = if std::env::var_os("POSTERN_LONG").is_some() {
        5_000_000
    } else {
        100_000
    };
    let [client, mut server] = pair(0);
    let at = Address {
        host: address(2),
        port: 80,
    };
    let listens = server.stack.socket(Kind::Stream).expect("a socket");
    server
        .stack
        .bind(listens, at, &mut server.ground)
        .expect("a port");
    server
        .stack
        .listen(listens, 8, &mut server.ground)
        .expect("a listener");
    let raw = server.stack.socket(Kind::Raw).expect("a socket");
    let mut random = Random(11);
    let mut piece = [0; 2000];
    for round in 0..rounds {
        let mut frame = match random.next() % 4 {
            0 => (0..random.next() % 1600)
                .map(|_| random.next() as u8)
                .collect(),
            1 => {
                let mut udp = vec![0; LONGEST];
                let length = random.next() as usize % 1000;
                let ports = [random.next() as u16, 80 + (random.next() % 2) as u16];
                let hosts = [address(1), address(2)];
                let made = frame::udp(
                    &mut udp,
                    [hardware(2), hardware(1)],
                    hosts,
                    ports,
                    &bytes(length),
                );
                udp.truncate(made.unwrap_or(0));
                udp
            }
            _ => {
                let flags = random.next() as u8;
                let port = 1 + (random.next() % 3) as u16;
                segment(1, port, flags, &mut random)
            }
        };
        for _ in 0..random.next() % 3 {
            if !frame.is_empty() {
                let at = random.next() as usize % frame.len();
                frame[at] ^= 1 << (random.next() % 8);
            }
        }
        if random.next().is_multiple_of(2) && frame.len() >= ETHERNET + IP {
            // A right sum of the header, so that what is behind it is looked at.
            frame[ETHERNET + 10..ETHERNET + 12].fill(0);
            let length = (usize::from(frame[ETHERNET] & 15) * 4).max(IP);
            let sum = frame::sum(&[frame.get(ETHERNET..ETHERNET + length).unwrap_or_default()]);
            frame[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&sum.to_be_bytes());
        }
        if random.next().is_multiple_of(4) {
            let keep = random.next() as usize % (frame.len() + 1);
            frame.truncate(keep);
        }
        server.arrivals.queue.borrow_mut().push_back(frame);
        server.poll(round * 100);
        client.arrivals.queue.borrow_mut().clear();
        let _ = server.stack.receive_raw(&mut piece, false);
        if let Ok((new, _)) = server.stack.accept(listens) {
            let _ = server.stack.receive(new, &mut piece, false);
            server.stack.close(new, &mut server.ground);
        }
    }
    let _ = raw;
    let counters = server.stack.counters();
    assert!(counters.came > 0 && counters.refused.iter().take(3).all(|count| *count > 0));
    assert!(server.stack.leaving() <= 32);
}

#[test]
fn ports_are_one_sockets() {
    let [mut one, _] = pair(0);
    let at = |port| Address {
        host: Ipv4Addr::UNSPECIFIED,
        port,
    };
    let first = one.stack.socket(Kind::Stream).expect("a socket");
    let second = one.stack.socket(Kind::Stream).expect("a socket");
    assert_eq!(
        one.stack.bind(first, at(9), &mut one.ground),
        Err(errno::ADDRINUSE)
    );
    assert_eq!(one.stack.bind(first, at(80), &mut one.ground), Ok(()));
    assert_eq!(
        one.stack.bind(second, at(80), &mut one.ground),
        Err(errno::ADDRINUSE)
    );
    one.stack.close(first, &mut one.ground);
    assert_eq!(one.stack.bind(second, at(80), &mut one.ground), Ok(()));
}
