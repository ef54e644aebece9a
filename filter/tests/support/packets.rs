//! Packets at random: every protocol that the language knows, well made, then cut short and
//! changed.

use fastrand::Rng;

/// A packet and its length on the wire.
pub struct Packet {
    pub bytes: Vec<u8>,
    pub wire: u32,
}

/// Addresses and ports that expressions name, too.
pub const HOSTS: [[u8; 4]; 4] = [
    [10, 0, 0, 1],
    [10, 1, 2, 3],
    [192, 168, 1, 255],
    [224, 0, 0, 251],
];
pub const PORTS: [u16; 8] = [22, 53, 80, 443, 6000, 6081, 8080, 65535];
pub const MACS: [[u8; 6]; 3] = [[2, 0, 0, 0, 0, 1], [0xff; 6], [1, 0, 0x5e, 0, 0, 0xfb]];

pub fn packets(seed: u64, count: usize) -> Vec<Packet> {
    let mut random = Rng::with_seed(seed);
    (0..count).map(|_| packet(&mut random)).collect()
}

pub fn packet(r: &mut Rng) -> Packet {
    let mut bytes = Vec::new();
    frame(r, &mut bytes, 0);
    if r.usize(..3) == 0 {
        let length = r.usize(..60);
        bytes.extend((0..length).map(|_| r.u8(..)));
    }
    let mut wire = bytes.len() as u32;
    if r.usize(..3) == 0 {
        for _ in 0..1 + r.usize(..3) {
            let at = r.usize(..bytes.len().min(80));
            let any = r.u8(..);
            bytes[at] = r
                .choice([0, 1, 4, 6, 17, 44, 51, 0x45, 0x60, 0x81, 0xff, any])
                .unwrap();
        }
    }
    if r.usize(..3) == 0 {
        bytes.truncate(r.usize(..bytes.len() + 1));
    }
    if r.usize(..10) == 0 {
        wire += r.u32(..2000);
    }
    Packet { bytes, wire }
}

fn put16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_be_bytes());
}

fn frame(r: &mut Rng, out: &mut Vec<u8>, depth: usize) {
    for _ in 0..2 {
        let mac = r.choice(MACS).unwrap();
        out.extend_from_slice(&mac);
    }
    ether_type(r, out, depth);
}

fn ether_type(r: &mut Rng, out: &mut Vec<u8>, depth: usize) {
    match r.usize(..if depth < 3 { 24 } else { 16 }) {
        0..8 => {
            put16(out, 0x0800);
            ip4(r, out, depth);
        }
        8..12 => {
            put16(out, 0x86dd);
            ip6(r, out, depth);
        }
        12 | 13 => {
            put16(out, r.choice([0x0806, 0x8035]).unwrap());
            out.extend_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1]);
            for _ in 0..2 {
                out.extend_from_slice(&MACS[0]);
                out.extend(r.choice(HOSTS).unwrap());
            }
        }
        14 => llc(r, out),
        15 => {
            let kind = r
                .choice([
                    0x8137, 0x809b, 0x80f3, 0x6003, 0x6004, 0x6007, 0x6001, 0x6002, 0x8863, 0x9000,
                ])
                .unwrap();
            put16(out, kind);
            let first = r.choice([0x02, 0x06, 0x81, 0x05]).unwrap();
            out.extend_from_slice(&[4, 0, first, r.choice([0x02, 0x06, 1]).unwrap()]);
            out.extend((0..30).map(|_| r.choice([0, 1, 5, 0x04, 0x28]).unwrap()));
        }
        16..20 => {
            put16(out, r.choice([0x8100, 0x88a8, 0x9100]).unwrap());
            put16(out, r.choice([5, 100, 0x2064, 0xfff]).unwrap());
            ether_type(r, out, depth + 1);
        }
        20 | 21 => {
            put16(out, 0x8847);
            loop {
                let last = r.bool();
                let label: u32 = r.choice([16, 1000, 0xfffff]).unwrap();
                out.extend_from_slice(&(label << 12 | u32::from(last) << 8 | 64).to_be_bytes());
                if last {
                    break;
                }
            }
            if r.usize(..3) == 0 {
                ip6(r, out, depth + 1)
            } else {
                ip4(r, out, depth + 1)
            }
        }
        _ => {
            put16(out, 0x8864);
            out.extend_from_slice(&[0x11, 0]);
            put16(out, r.choice([1, 7]).unwrap());
            put16(out, 100);
            match r.usize(..3) {
                0 => {
                    put16(out, 0x57);
                    ip6(r, out, depth + 1);
                }
                1 => {
                    put16(out, r.choice([0x2b, 0x281, 0x23, 0xc021]).unwrap());
                    ip4(r, out, depth + 1);
                }
                _ => {
                    put16(out, 0x21);
                    ip4(r, out, depth + 1);
                }
            }
        }
    }
}

fn llc(r: &mut Rng, out: &mut Vec<u8>) {
    put16(out, r.choice([100, 1500, 46]).unwrap());
    let access = r
        .choice([0xaa, 0xfe, 0x42, 0xe0, 0xf0, 0x06, 0xff])
        .unwrap();
    out.extend_from_slice(&[access, access]);
    out.push(r.choice([3, 1, 5, 9, 0, 0x63, 0xaf, 0xe3]).unwrap());
    if access == 0xaa {
        out.extend(r.choice([[0u8, 0, 0], [8, 0, 7]]).unwrap());
        put16(out, r.choice([0x809b, 0x80f3, 0x8137, 0x0800]).unwrap());
    }
    out.push(r.choice([0x81, 0x82, 0x83]).unwrap());
    out.extend_from_slice(&[0, 1, 0]);
    out.push(r.choice([15, 16, 17, 18, 20, 24, 25, 26, 27]).unwrap());
    out.extend_from_slice(&[0; 30]);
}

fn ip4(r: &mut Rng, out: &mut Vec<u8>, depth: usize) {
    let options = if r.usize(..4) == 0 { r.usize(..11) } else { 0 };
    let protocol = r
        .choice([6, 6, 6, 17, 17, 17, 132, 1, 2, 9, 50, 51, 103, 112, 58, 99])
        .unwrap();
    out.extend_from_slice(&[0x45 + options as u8, r.choice([0, 0x10]).unwrap()]);
    put16(out, 60);
    put16(out, 1);
    put16(
        out,
        if r.usize(..5) == 0 {
            r.choice([1, 0x2000, 0x2001, 0x4000]).unwrap()
        } else {
            0
        },
    );
    out.extend_from_slice(&[64, protocol, 0, 0]);
    for _ in 0..2 {
        out.extend(r.choice(HOSTS).unwrap());
    }
    out.extend((0..4 * options).map(|_| 1));
    transport(r, out, protocol, depth);
}

pub fn six(n: usize) -> [u8; 16] {
    let mut address = [0; 16];
    let first: [u8; 6] = if n == 2 {
        [0xff, 2, 0, 0, 0, 0]
    } else {
        [0x20, 1, 0x0d, 0xb8, 0, n as u8]
    };
    address[..6].copy_from_slice(&first);
    address[15] = 1;
    address
}

fn ip6(r: &mut Rng, out: &mut Vec<u8>, depth: usize) {
    let mut protocol = r.choice([6, 6, 17, 17, 132, 58, 58, 59, 103, 50]).unwrap();
    out.extend_from_slice(&[0x60, 0, 0, 0, 0, 40]);
    let at = out.len();
    out.extend_from_slice(&[protocol, 64]);
    for _ in 0..2 {
        out.extend_from_slice(&six(r.usize(..3)));
    }
    let mut next = at;
    while r.usize(..4) == 0 {
        let header = r.choice([0, 43, 44, 60]).unwrap();
        out[next] = header;
        next = out.len();
        let units = if header == 44 { 0 } else { r.usize(..2) };
        out.extend_from_slice(&[protocol, units as u8]);
        out.extend((0..6 + 8 * units).map(|_| 0u8));
        if r.usize(..10) == 0 {
            protocol = 59;
            out[next] = 59;
        }
    }
    transport(r, out, protocol, depth);
}

fn transport(r: &mut Rng, out: &mut Vec<u8>, protocol: u8, depth: usize) {
    let (src, mut dst) = (r.choice(PORTS).unwrap(), r.choice(PORTS).unwrap());
    let tunnel = protocol == 17 && depth < 2 && r.usize(..4) == 0;
    if tunnel {
        dst = 6081;
    }
    match protocol {
        6 => {
            put16(out, src);
            put16(out, dst);
            out.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 0, 0x50]);
            out.push(r.choice([2, 0x10, 0x12, 1, 4, 0x18]).unwrap());
            out.extend_from_slice(&[1, 0, 0, 0, 0, 0]);
            let payload = r.choice(["GET / HTTP/1.1\r\n", "", "SSH-2.0"]).unwrap();
            out.extend_from_slice(payload.as_bytes());
        }
        17 => {
            put16(out, src);
            put16(out, dst);
            put16(out, 40);
            put16(out, 0);
            if tunnel {
                geneve(r, out, depth);
            }
        }
        132 => {
            put16(out, src);
            put16(out, dst);
            out.extend_from_slice(&[0; 12]);
        }
        1 => out.extend_from_slice(&[
            r.choice([0, 3, 8, 11]).unwrap(),
            r.choice([0, 1]).unwrap(),
            0,
            0,
            0,
            1,
            0,
            1,
        ]),
        58 => out.extend_from_slice(&[
            r.choice([1, 128, 129, 135, 136]).unwrap(),
            0,
            0,
            0,
            0,
            1,
            0,
            1,
        ]),
        _ => out.extend((0..16).map(|_| r.u8(..))),
    }
}

fn geneve(r: &mut Rng, out: &mut Vec<u8>, depth: usize) {
    let options = r.usize(..3);
    let version = if r.usize(..10) == 0 { 0x40 } else { 0 };
    out.extend_from_slice(&[version | options as u8, 0]);
    let ethernet = r.bool();
    let six = r.usize(..3) == 0;
    put16(
        out,
        if ethernet {
            0x6558
        } else if six {
            0x86dd
        } else {
            0x0800
        },
    );
    out.extend_from_slice(&[0, 0, r.choice([1, 7]).unwrap(), 0]);
    out.extend((0..4 * options).map(|_| 0xab));
    if ethernet {
        frame(r, out, depth + 1);
    } else if six {
        ip6(r, out, depth + 1);
    } else {
        ip4(r, out, depth + 1);
    }
}
