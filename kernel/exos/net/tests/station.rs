//! The service's decisions: addresses by RARP and DHCP, neighbours, and somebody else with the
//! address.

use std::net::Ipv4Addr;

use postern_exos_abi::network::{counter, state};
use postern_exos_net::arp::{Message, Operation};
use postern_exos_net::frame::{self, Datagram, Frame};
use postern_exos_net::settings::Settings;
use postern_exos_net::station::Station;
use postern_exos_net::{EVERYBODY, Hardware, dhcp};

const OWN: Hardware = [2, 0, 0, 0, 0, 1];
const OTHER: Hardware = [2, 0, 0, 0, 0, 2];
const LIAR: Hardware = [2, 0, 0, 0, 0, 9];
const SECOND: u64 = 1_000_000;

fn address(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

fn station(settings: &str) -> Station {
    Station::new(
        OWN,
        Settings::read(settings.as_bytes()).expect("settings"),
        5,
    )
}

/// What it sends at a time.
fn tick(station: &mut Station, now: u64) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    station.tick(now, &mut |frame| sent.push(frame.to_vec()));
    sent
}

/// What it sends when it hears a message.
fn tell(station: &mut Station, now: u64, message: Message, to: Hardware) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    station.frame(now, &message.frame(to), &mut |frame| {
        sent.push(frame.to_vec())
    });
    sent
}

fn message(
    operation: Operation,
    sender: (Hardware, Ipv4Addr),
    target: (Hardware, Ipv4Addr),
) -> Message {
    Message {
        operation,
        sender,
        target,
    }
}

#[test]
fn rarp_gives_an_address() {
    let mut station = station("address rarp");
    let asked = tick(&mut station, 1);
    let asked = Message::read(&Frame::read(&asked[0]).expect("a frame")).expect("a question");
    assert_eq!(asked.operation, Operation::ReverseRequest);
    let reply = |hardware| {
        message(
            Operation::ReverseReply,
            (OTHER, address(1)),
            (hardware, address(2)),
        )
    };
    // Another machine's address is not this one's.
    tell(&mut station, 2, reply(LIAR), OWN);
    assert_eq!(station.place().state, state::ASKS);
    tell(&mut station, 3, reply(OWN), OWN);
    let place = station.place();
    assert_eq!((place.state, place.address), (state::HAS, address(2)));
    // It is had once.
    let later = message(
        Operation::ReverseReply,
        (LIAR, address(1)),
        (OWN, address(7)),
    );
    tell(&mut station, 4, later, OWN);
    assert_eq!(station.place().address, address(2));
}

#[test]
fn dhcp_gives_an_address_and_all_else() {
    let mut station = station("");
    let mut sent = tick(&mut station, 1);
    for now in [2, 3] {
        let frame = Frame::read(&sent[0]).expect("a frame");
        let datagram = Datagram::read(frame.carries).expect("a datagram");
        let (ports, asked) = frame::read_udp(&datagram).expect("ports");
        assert_eq!((ports, frame.to), ([68, 67], EVERYBODY));
        let offers = [address(15), address(2), address(2), address(3)];
        let answer = dhcp::answer(asked, offers, 600).expect("an answer");
        let mut bytes = [0; 1514];
        let hosts = [address(2), Ipv4Addr::BROADCAST];
        let length = frame::udp(&mut bytes, [OWN, OTHER], hosts, [67, 68], &answer).expect("room");
        sent.clear();
        station.frame(now, &bytes[..length], &mut |frame| {
            sent.push(frame.to_vec())
        });
    }
    let place = station.place();
    assert_eq!(
        (place.state, place.address, place.bits),
        (state::HAS, address(15), 24)
    );
    assert_eq!(
        (place.gateway, place.servers[0]),
        (Some(address(2)), Some(address(3)))
    );
    // The address is announced, and the gateway asked for.
    assert_eq!(sent.len(), 3);
}

#[test]
fn only_who_is_asked_is_believed() {
    let mut station = station("address 10.0.0.2/24");
    tick(&mut station, 1);
    let says = |hardware| message(Operation::Reply, (hardware, address(1)), (OWN, address(2)));
    let mut sent = Vec::new();
    station.ask(SECOND, address(1), &mut |frame| sent.push(frame.to_vec()));
    assert_eq!(sent.len(), 1);
    tell(&mut station, SECOND, says(OTHER), OWN);
    assert_eq!(
        station.neighbours().find(address(1)).expect("it").hardware,
        OTHER
    );
    // A lie has the address itself asked for; the answer to that holds.
    let asked = tell(&mut station, 2 * SECOND, says(LIAR), OWN);
    assert_eq!(
        station.neighbours().find(address(1)).expect("it").hardware,
        OTHER
    );
    assert_eq!(asked.len(), 1);
    tell(&mut station, 2 * SECOND, says(OTHER), OWN);
    assert_eq!(
        station.neighbours().find(address(1)).expect("it").hardware,
        OTHER
    );
    // After a minute it is asked for anew, and who is silent is forgotten.
    for second in 3..90 {
        tick(&mut station, second * SECOND);
    }
    assert!(station.neighbours().find(address(1)).is_none());
    assert_eq!(station.counters[counter::SILENT], 1);
}

#[test]
fn questions_are_answered_and_an_address_is_defended() {
    let mut station = station("address 10.0.0.2/24");
    assert_eq!(tick(&mut station, 1).len(), 1);
    let asks = message(
        Operation::Request,
        (OTHER, address(1)),
        ([0; 6], address(2)),
    );
    let answers = tell(&mut station, 2, asks, EVERYBODY);
    let answer = Message::read(&Frame::read(&answers[0]).expect("a frame")).expect("an answer");
    assert_eq!(
        (answer.operation, answer.sender),
        (Operation::Reply, (OWN, address(2)))
    );
    let other = message(
        Operation::Request,
        (OTHER, address(1)),
        ([0; 6], address(3)),
    );
    assert!(tell(&mut station, 3, other, EVERYBODY).is_empty());
    let claims = message(Operation::Request, (LIAR, address(2)), ([0; 6], address(2)));
    assert_eq!(tell(&mut station, 4, claims, EVERYBODY).len(), 1);
    assert_eq!(station.place().state, state::CONFLICT);
    // It is told once.
    assert!(tell(&mut station, 5, claims, EVERYBODY).is_empty());
    assert_eq!(station.counters[counter::CONFLICTS], 2);
    tick(&mut station, 30 * SECOND);
    assert_eq!(station.place().state, state::HAS);
}

#[test]
fn no_frames_are_too_bad() {
    let mut station = station("address 10.0.0.2/24");
    let mut seed = 1u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        seed >> 33
    };
    for round in 0..200_000u64 {
        let operation = if next() % 2 == 0 {
            Operation::Reply
        } else {
            Operation::Request
        };
        let sender = ([2, 0, 0, 0, next() as u8, 3], address(next() as u8));
        let mut frame = message(operation, sender, (OWN, address(2)))
            .frame(OWN)
            .to_vec();
        for _ in 0..next() % 4 {
            let at = next() as usize % frame.len();
            frame[at] = next() as u8;
        }
        frame.truncate(next() as usize % 61);
        station.frame(round * 1000, &frame, &mut |_| ());
        station.tick(round * 1000, &mut |_| ());
    }
    assert!(station.counters[counter::MALFORMED] > 0);
}

/// A frame of IP to the station.
fn datagram(protocol: u8, from: Ipv4Addr, carries: &[u8]) -> Vec<u8> {
    let mut bytes = frame::ethernet(OWN, OTHER, frame::kind::IP).to_vec();
    bytes.extend(frame::ip(from, address(1), protocol, 0, carries.len()));
    bytes.extend(carries);
    bytes
}

fn heard(station: &mut Station, now: u64, bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    station.frame(now, bytes, &mut |frame| sent.push(frame.to_vec()));
    sent
}

/// A segment of TCP with a right sum.
fn segment(flags: u8, carries: &[u8]) -> Vec<u8> {
    let mut segment = vec![0; 20];
    segment[..4].copy_from_slice(&[0x12, 0x34, 0, 80]);
    segment[4..8].copy_from_slice(&1000u32.to_be_bytes());
    segment[8..12].copy_from_slice(&77u32.to_be_bytes());
    segment[12..14].copy_from_slice(&[0x50, flags]);
    segment.extend(carries);
    let pseudo = frame::pseudo(address(2), address(1), 6, segment.len());
    let sum = frame::sum(&[&pseudo, &segment]).to_be_bytes();
    segment[16..18].copy_from_slice(&sum);
    segment
}

#[test]
fn what_nobody_has_is_refused() {
    let mut station = station("address 10.0.0.1/24");
    tick(&mut station, 1);
    // A connection that is asked for, and bytes of one that is over.
    for (flags, carries, wanted) in [
        (2, &b""[..], (0u32, 1001u32, 0x14)),
        (0x10, b"hello", (77, 0, 4)),
        (1, b"hello", (0, 1006, 0x14)),
    ] {
        let asks = datagram(6, address(2), &segment(flags, carries));
        let sent = heard(&mut station, 2, &asks);
        let [answer] = &sent[..] else {
            panic!("{sent:?}")
        };
        let answer = Datagram::read(Frame::read(answer).unwrap().carries).unwrap();
        let bytes = answer.carries;
        let pseudo = frame::pseudo(address(1), address(2), 6, bytes.len());
        assert_eq!(frame::sum(&[&pseudo, bytes]), 0);
        assert_eq!((answer.from, answer.to), (address(1), address(2)));
        assert_eq!(&bytes[..4], [0, 80, 0x12, 0x34]);
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!((word(4), word(8), bytes[13]), wanted);
    }
    // A datagram, and another protocol: what came is said again.
    let udp = [0x12, 0x34, 0, 9, 0, 10, 0, 0, 1, 2];
    for (protocol, carries, code) in [(17, &udp[..], 3), (99, b"bytes", 2)] {
        let asks = datagram(protocol, address(2), carries);
        let sent = heard(&mut station, 3, &asks);
        let answer = Datagram::read(Frame::read(&sent[0]).unwrap().carries).unwrap();
        let bytes = answer.carries;
        assert_eq!((answer.protocol, &bytes[..2]), (1, &[3, code][..]));
        assert_eq!(frame::sum(&[bytes]), 0);
        let said = (carries.len() + 20).min(28);
        assert_eq!(bytes[8..8 + said], asks[14..14 + said]);
    }
    // Neither a reset, nor an error, nor what is for many, from nobody, or wrongly summed.
    let mut group = datagram(6, address(2), &segment(2, b""));
    group[..6].copy_from_slice(&EVERYBODY);
    let mut summed = datagram(6, address(2), &segment(2, b""));
    summed[40] ^= 1;
    for silent in [
        datagram(6, address(2), &segment(4, b"")),
        datagram(1, address(2), &[3, 3, 0xfc, 0xfc]),
        datagram(6, Ipv4Addr::BROADCAST, &segment(2, b"")),
        datagram(6, Ipv4Addr::LOCALHOST, &segment(2, b"")),
        datagram(6, address(1), &segment(2, b"")),
        group,
        summed,
    ] {
        assert_eq!(heard(&mut station, 4, &silent), Vec::<Vec<u8>>::new());
    }
    assert_eq!(station.counters[counter::CLOSED], 5);
}

#[test]
fn errors_are_not_told_without_end() {
    let mut station = station("address 10.0.0.1/24");
    tick(&mut station, 1);
    let asks = datagram(6, address(2), &segment(2, b""));
    let told = |station: &mut Station, now: u64| {
        let all = (0..1000).map(|_| heard(station, now, &asks).len());
        all.sum::<usize>()
    };
    assert_eq!(told(&mut station, SECOND), 200);
    assert_eq!(told(&mut station, 3 * SECOND), 200);
}

#[test]
fn echoes_come_back() {
    let mut station = station("address 10.0.0.1/24");
    tick(&mut station, 1);
    let mut echo = vec![8, 0, 0, 0, 1, 2, 3, 4];
    echo.extend(b"whatever");
    let sum = frame::sum(&[&echo]).to_be_bytes();
    echo[2..4].copy_from_slice(&sum);
    let sent = heard(&mut station, 2, &datagram(1, address(2), &echo));
    let answer = Datagram::read(Frame::read(&sent[0]).unwrap().carries).unwrap();
    assert_eq!(answer.carries[0], 0);
    assert_eq!(answer.carries[4..], echo[4..]);
    assert_eq!(frame::sum(&[answer.carries]), 0);
    echo[5] ^= 1;
    assert!(heard(&mut station, 2, &datagram(1, address(2), &echo)).is_empty());
}

#[test]
fn pieces_are_sent_on_as_one() {
    let mut station = station("address 10.0.0.1/24");
    tick(&mut station, 1);
    let carries: Vec<u8> = (0..3000).map(|at| at as u8).collect();
    let piece = |range: std::ops::Range<usize>, more: bool| {
        let mut frame = datagram(17, address(2), &carries[range.clone()]);
        let field = (range.start / 8) as u16 | u16::from(more) << 13;
        frame[20..22].copy_from_slice(&field.to_be_bytes());
        frame[24..26].fill(0);
        let sum = frame::sum(&[&frame[14..34]]).to_be_bytes();
        frame[24..26].copy_from_slice(&sum);
        frame
    };
    assert!(heard(&mut station, 2, &piece(1480..3000, false)).is_empty());
    let sent = heard(&mut station, 2, &piece(0..1480, true));
    let joined = Frame::read(&sent[0]).unwrap();
    assert_eq!((joined.to, joined.from), (OWN, OWN));
    assert_eq!(Datagram::read(joined.carries).unwrap().carries, carries);
}
