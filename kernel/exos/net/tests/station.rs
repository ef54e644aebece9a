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
