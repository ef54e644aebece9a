//! Frames that are nearly right: valid ones of all layers, changed at random by a seed, and made by
//! hand where a random change would not come to.

use fastrand::Rng;
use postern_exos_net::arp::{Message, Operation};
use postern_exos_net::frame::{self, ETHERNET, IP, SHORTEST, protocol};
use postern_exos_net::{EVERYBODY, dhcp};

use crate::answers::{datagram, echo};
use crate::guest::{GUEST, OWN};

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const PSH: u8 = 8;
const ACK: u8 = 16;

/// A segment for the guest, with a right sum.
pub fn segment(
    ports: [u16; 2],
    numbers: [u32; 2],
    flags: u8,
    options: &[u8],
    data: &[u8],
) -> Vec<u8> {
    let mut tcp = Vec::new();
    tcp.extend(ports[0].to_be_bytes());
    tcp.extend(ports[1].to_be_bytes());
    tcp.extend(numbers[0].to_be_bytes());
    tcp.extend(numbers[1].to_be_bytes());
    let words = 5 + options.len().div_ceil(4);
    tcp.extend([(words << 4) as u8, flags, 0x20, 0, 0, 0, 0, 0]);
    tcp.extend(options);
    tcp.resize(words * 4, 0);
    tcp.extend(data);
    let mut all = datagram(protocol::TCP, &tcp);
    mend(&mut all);
    all
}

/// A datagram of UDP for a port of the guest's.
pub fn udp(ports: [u16; 2], data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; frame::LONGEST];
    let length = frame::udp(&mut bytes, [GUEST.0, OWN.0], [OWN.1, GUEST.1], ports, data);
    bytes.truncate(length.expect("room"));
    bytes
}

/// Makes all sums of a datagram right that are where its header says.
pub fn mend(bytes: &mut [u8]) {
    let Some(head) = bytes.get(ETHERNET..ETHERNET + IP) else {
        return;
    };
    let header = usize::from(head[0] & 15) * 4;
    let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
    let Some(whole) = bytes.get_mut(ETHERNET..ETHERNET + length) else {
        return;
    };
    let Some(head) = whole.get_mut(..header).filter(|head| head.len() >= IP) else {
        return;
    };
    head[10..12].fill(0);
    let sum = frame::sum(&[head]).to_be_bytes();
    head[10..12].copy_from_slice(&sum);
    let (of, first) = (head[9], head[..IP].to_vec());
    let Some(rest) = whole.get_mut(header..) else {
        return;
    };
    let at = match of {
        protocol::TCP => 16,
        protocol::UDP => 6,
        protocol::ICMP => 2,
        _ => return,
    };
    if rest.len() < at + 2 {
        return;
    }
    rest[at..at + 2].fill(0);
    let address = |at: usize| frame::address(&first, at).expect("four bytes");
    let pseudo = frame::pseudo(address(12), address(16), of, rest.len());
    let sum = match of {
        protocol::ICMP => frame::sum(&[rest]),
        _ => frame::sum(&[&pseudo, rest]),
    };
    rest[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

fn some(random: &mut Rng, most: usize) -> Vec<u8> {
    let length = random.usize(..=most);
    (0..length).map(|_| random.u8(..)).collect()
}

/// A port of the guest's at which somebody is, or nobody.
fn port(random: &mut Rng) -> u16 {
    match random.u8(..8) {
        0..3 => 80,
        3..5 => 7,
        5 => 68,
        // The own ports of some process.
        6 => random.u16(0x8000..0x8c00),
        _ => random.u16(..),
    }
}

/// A frame of some layer that is right.
pub fn right(random: &mut Rng) -> Vec<u8> {
    match random.u8(..14) {
        0 => {
            let operation = match random.bool() {
                true => Operation::Request,
                false => Operation::Reply,
            };
            let target = (GUEST.0, GUEST.1);
            let sender = OWN;
            let message = Message {
                operation,
                sender,
                target,
            };
            message
                .frame(if random.bool() { EVERYBODY } else { GUEST.0 })
                .to_vec()
        }
        1 => {
            let operation = match random.bool() {
                true => Operation::ReverseRequest,
                false => Operation::ReverseReply,
            };
            let message = Message {
                operation,
                sender: OWN,
                target: GUEST,
            };
            message.frame(EVERYBODY).to_vec()
        }
        2 => echo(random.u16(..), &some(random, 1400)),
        3 => {
            // That something which went out was not taken.
            let sent = udp([random.u16(0x8000..0x8c00), 53], &some(random, 40));
            let mut message = vec![3, random.u8(..16), 0, 0, 0, 0, 0, 0];
            message.extend(sent.get(ETHERNET..ETHERNET + 28).unwrap_or_default());
            let mut all = datagram(protocol::ICMP, &message);
            mend(&mut all);
            all
        }
        4 => udp([random.u16(..), port(random)], &some(random, 1400)),
        5 => udp([67, 68], &dhcp_answer(random)),
        6 => udp([53, random.u16(0x8000..0x8c00)], &some(random, 300)),
        7 | 8 => {
            let options = [2, 4, 5, 0xb4, 1, 3, 3, 7, 4, 2];
            let port = port(random);
            segment(
                [random.u16(..), port],
                [random.u32(..), 0],
                SYN,
                &options,
                &[],
            )
        }
        9 | 10 => {
            let flags = [
                ACK,
                ACK | PSH,
                ACK | FIN,
                RST,
                RST | ACK,
                FIN,
                0,
                0xff,
                SYN | FIN,
            ];
            let flags = flags[random.usize(..flags.len())];
            let numbers = [random.u32(..), random.u32(..)];
            let data = some(random, 1400);
            segment([random.u16(..), port(random)], numbers, flags, &[], &data)
        }
        11 => piece(random),
        12 => {
            let mut all = datagram(random.u8(..), &some(random, 200));
            mend(&mut all);
            all
        }
        _ => {
            let kinds = [0x86dd, 0x8100, 0x88cc, 0x0600, 0x05dc, 0, 0xffff];
            let of = kinds[random.usize(..kinds.len())];
            let mut all = frame::ethernet(GUEST.0, OWN.0, of).to_vec();
            all.extend(some(random, 1500));
            all.resize(all.len().max(SHORTEST), 0);
            all
        }
    }
}

/// An answer of a server of DHCP to nobody's question.
fn dhcp_answer(random: &mut Rng) -> Vec<u8> {
    let mut asked = vec![0; 240];
    (asked[0], asked[1], asked[2]) = (1, 1, 6);
    asked[28..34].copy_from_slice(&GUEST.0);
    asked[236..].copy_from_slice(&[99, 130, 83, 99]);
    asked.extend([53, 1, if random.bool() { 1 } else { 3 }, 255]);
    asked[4..8].copy_from_slice(&random.u32(..).to_be_bytes());
    let hosts = [GUEST.1, OWN.1, OWN.1, OWN.1];
    let answer = dhcp::answer(&asked, hosts, 600);
    answer.map(|bytes| bytes.to_vec()).unwrap_or_default()
}

/// A piece of a datagram: of few numbers, so that some come together, at any place.
fn piece(random: &mut Rng) -> Vec<u8> {
    let length = 8 * random.usize(1..180);
    let mut all = datagram(protocol::UDP, &vec![random.u8(..); length]);
    all[ETHERNET + 4..ETHERNET + 6].copy_from_slice(&random.u16(..6).to_be_bytes());
    let place = match random.u8(..4) {
        0 => 0,
        1 => random.u16(..0x2000),
        _ => random.u16(..500),
    };
    let more = if random.u8(..4) > 0 { 0x2000 } else { 0 };
    all[ETHERNET + 6..ETHERNET + 8].copy_from_slice(&(more | place).to_be_bytes());
    if place == 0 {
        let ports = [9, port(random)];
        all[ETHERNET + IP..ETHERNET + IP + 2].copy_from_slice(&ports[0].to_be_bytes());
        all[ETHERNET + IP + 2..ETHERNET + IP + 4].copy_from_slice(&ports[1].to_be_bytes());
    }
    let head = &mut all[ETHERNET..ETHERNET + IP];
    head[10..12].fill(0);
    let sum = frame::sum(&[head]).to_be_bytes();
    head[10..12].copy_from_slice(&sum);
    all
}

/// Values at which arithmetic goes wrong.
const EDGES: [u16; 12] = [0, 1, 4, 5, 7, 8, 19, 20, 0x7fff, 0x8000, 0xfffe, 0xffff];

/// Changes a frame: bits, words, lengths, what stands at its end.
pub fn change(random: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..random.usize(1..5) {
        if bytes.is_empty() {
            return;
        }
        // Headers are where it matters most.
        let most = match random.u8(..4) {
            0 => bytes.len(),
            _ => bytes.len().min(70),
        };
        let at = random.usize(..most);
        match random.u8(..8) {
            0..3 => bytes[at] ^= 1 << random.u8(..8),
            3 => bytes[at] = random.u8(..),
            4 | 5 => {
                let edge = EDGES[random.usize(..EDGES.len())].to_be_bytes();
                let at = at & !1;
                for (to, from) in bytes.iter_mut().skip(at).zip(edge) {
                    *to = from;
                }
            }
            6 => bytes.truncate(random.usize(..=bytes.len())),
            _ => {
                let more = some(random, 64);
                bytes.extend(more);
            }
        }
    }
    if random.bool() {
        mend(bytes);
    }
    bytes.truncate(2000);
}

/// Frames that no chance makes.
pub fn by_hand() -> Vec<Vec<u8>> {
    let mut all = vec![
        Vec::from([0; 1]),
        vec![0xff; 13],
        vec![0xff; 14],
        vec![0xff; 1514],
    ];
    let options = |bytes: &[u8], more: &[u8]| {
        // A header of IP with options: they stand behind it, and it is longer.
        let mut frame = datagram(protocol::UDP, &[bytes, more].concat());
        frame[ETHERNET] = 0x40 | (5 + bytes.len() / 4) as u8;
        mend(&mut frame);
        frame
    };
    let body = &udp([9, 7], b"options")[ETHERNET + IP..][..15];
    for bytes in [
        &[1, 1, 1, 0][..],
        &[7, 39, 4, 0, 0, 0, 0, 0],
        &[131, 3, 4, 0],
        &[0x94, 0, 0, 0],
        &[0x44, 255, 255, 255],
        &[1; 40],
    ] {
        all.push(options(bytes, body));
    }
    // A header that is longer than the datagram, and a datagram that is longer than the frame.
    for (at, byte) in [
        (ETHERNET, 0x4f),
        (ETHERNET, 0x40),
        (ETHERNET + 2, 0xff),
        (ETHERNET + 3, 1),
    ] {
        let mut frame = udp([9, 7], b"");
        frame[at] = byte;
        let head = &mut frame[ETHERNET..ETHERNET + IP];
        head[10..12].fill(0);
        let sum = frame::sum(&[head]).to_be_bytes();
        head[10..12].copy_from_slice(&sum);
        all.push(frame);
    }
    // From this machine itself, from everybody, from a group, from a loopback, from nobody.
    for from in [
        [10, 0, 0, 15],
        [255; 4],
        [224, 0, 0, 1],
        [127, 0, 0, 1],
        [0; 4],
        [10, 0, 0, 255],
    ] {
        for mut frame in [
            echo(1, b"whose"),
            udp([9, 7], b"whose"),
            segment([9, 80], [1, 0], SYN, &[], &[]),
            segment([80, 80], [1, 0], SYN, &[], &[]),
        ] {
            frame[ETHERNET + 12..ETHERNET + 16].copy_from_slice(&from);
            mend(&mut frame);
            all.push(frame.clone());
            // And with this machine's address of Ethernet.
            frame[6..12].copy_from_slice(&GUEST.0);
            all.push(frame);
        }
    }
    // For everybody, for a group, for a loopback.
    for to in [[255; 4], [224, 0, 0, 1], [127, 0, 0, 1], [10, 0, 0, 255]] {
        for mut frame in [
            echo(1, b"whom"),
            udp([9, 7], b"whom"),
            segment([9, 80], [1, 0], SYN, &[], &[]),
        ] {
            frame[ETHERNET + 16..ETHERNET + 20].copy_from_slice(&to);
            mend(&mut frame);
            all.push(frame.clone());
            frame[..6].copy_from_slice(&EVERYBODY);
            all.push(frame);
        }
    }
    // Options of TCP that end outside, repeat, or have no length.
    for bytes in [
        &[2, 4, 0, 0][..],
        &[2, 4, 0, 1],
        &[2, 0, 0, 0],
        &[2, 1, 0, 0],
        &[3, 3, 255, 0],
        &[5, 255, 0, 0],
        &[4, 2, 5, 10, 0, 0, 0, 1, 0, 0, 0, 0],
        &[8, 10, 255, 255, 255, 255, 255, 255, 255, 255, 2, 4],
        &[1; 40],
    ] {
        for flags in [SYN, ACK, SYN | ACK, SYN | FIN, SYN | RST] {
            all.push(segment([1000, 80], [7, 7], flags, bytes, b"x"));
            all.push(segment([1000, 7], [7, 7], flags, bytes, b"x"));
        }
    }
    // A header of TCP that is shorter than one, and longer than the segment.
    for words in [0u8, 1, 4, 15] {
        for port in [7, 80] {
            let mut frame = segment([1001, port], [7, 7], SYN, &[], &[]);
            frame[ETHERNET + IP + 12] = words << 4;
            mend(&mut frame);
            all.push(frame);
        }
    }
    // Lengths of UDP: less than a header, more than there is, none.
    for length in [0u16, 1, 7, 8, 9, 0x7fff, 0xffff] {
        let mut frame = udp([9, 7], b"length");
        frame[ETHERNET + IP + 4..ETHERNET + IP + 6].copy_from_slice(&length.to_be_bytes());
        mend(&mut frame);
        all.push(frame);
    }
    all
}
