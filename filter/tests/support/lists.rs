//! Long lists at random, and packets with what they name.

use fastrand::Rng;

use super::packets::{Packet, packet};

/// Numbers that lists are made of: some side by side, some far away.
fn number(random: &mut Rng) -> u32 {
    match random.usize(..3) {
        0 => random.u32(..64),
        1 => 100 + 3 * random.u32(..50),
        _ => random.choice([0x7fff, 0x8000, 0xfffe, 0xffff]).unwrap(),
    }
}

/// What a number says of a packet.
fn one(random: &mut Rng, what: usize) -> String {
    let n = number(random);
    let (high, low) = (n >> 8, n & 255);
    match what {
        0 => format!("host 10.0.{high}.{low}"),
        1 => format!("ip src host 10.0.{high}.{low}"),
        2 => format!("ip dst host 10.0.{high}.{low}"),
        3 => format!("port {n}"),
        4 => format!("udp dst port {n}"),
        5 => format!("net 10.{low}"),
        6 => format!("ether host 2:0:0:0:{high:x}:{low:x}"),
        7 => format!("ip[4:2] = {n}"),
        8 => format!("ether[{}:2] = {n}", 12 + random.u32(..30)),
        _ => format!("ip[2:2] - ip[4:2] = {n}"),
    }
}

/// An expression with a long list, or with two.
pub fn expression(random: &mut Rng) -> String {
    let count = 2 + random.usize(..90);
    let kinds = [random.usize(..10), random.usize(..10)];
    let mixed = random.bool();
    let members: Vec<String> = (0..count)
        .map(|index| {
            let what = if mixed { index } else { 2 * index / count };
            one(random, kinds[what % 2])
        })
        .collect();
    let list = members.join(" or ");
    match random.usize(..6) {
        0 => format!("not ({list})"),
        1 => format!("len > 60 and ({list})"),
        2 => format!("not ({list}) and ip[8] > 3"),
        3 => format!("({list}) and ({})", one(random, kinds[0])),
        4 => format!("tcp or ({list}) or ip[8] = 64"),
        _ => list,
    }
}

/// A packet whose fields are those of lists, and that may end in the middle of one.
fn listed(random: &mut Rng) -> Packet {
    let mut bytes = vec![0; 64];
    let mut put = |at: usize, random: &mut Rng| {
        let n = number(random);
        bytes[at..at + 2].copy_from_slice(&(n as u16).to_be_bytes());
    };
    for at in [4, 10, 16, 18, 28, 32, 34, 36] {
        put(at, random);
    }
    for at in [0, 6] {
        bytes[at] = 2;
    }
    for at in [26, 30] {
        bytes[at] = 10;
    }
    let kind = random.choice([0x0800u16, 0x0800, 0x0806, 0x86dd]).unwrap();
    bytes[12..14].copy_from_slice(&kind.to_be_bytes());
    bytes[14] = random.choice([0x45, 0x45, 0x46]).unwrap();
    bytes[22] = random.choice([1, 64]).unwrap();
    bytes[23] = random.choice([6, 17]).unwrap();
    bytes[20] = 0;
    let wire = bytes.len() as u32;
    if random.bool() {
        bytes.truncate(12 + random.usize(..30));
    }
    Packet { bytes, wire }
}

pub fn packets(seed: u64, count: usize) -> Vec<Packet> {
    let mut random = Rng::with_seed(seed);
    let mut any = |index| match index % 4 {
        0 => packet(&mut random),
        _ => listed(&mut random),
    };
    (0..count).map(&mut any).collect()
}
