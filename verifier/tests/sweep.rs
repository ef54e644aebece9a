//! The opcode space through the verifier; whatever it accepts is compared with three general
//! decoders.
//!
//! Legacy encodings are enumerated: prefixes, REX, map, opcode, ModRM and a choice of SIB bytes.
//! VEX encodings are drawn at random, with every second and third byte. `POSTERN_SWEEP=n`
//! multiplies the random part by n.

mod oracles;

use std::collections::BTreeMap;

use oracles::Oracles;
use postern_verifier::{Segment, next};

/// What stands before REX: the accepted orders and many that are wrong.
const PREFIXES: &[&[u8]] = &[
    &[],
    &[0x65, 0x67],
    &[0x65],
    &[0x67],
    &[0x64, 0x67],
    &[0x67, 0x65],
    &[0x65, 0x67, 0x66],
    &[0x65, 0x67, 0xf3],
    &[0x65, 0x67, 0xf2],
    &[0x65, 0x67, 0xf0],
    &[0x65, 0x67, 0x66, 0xf0],
    &[0x65, 0x67, 0x66, 0xf3],
    &[0x65, 0x67, 0x66, 0xf2],
    &[0x65, 0x67, 0xf3, 0x66],
    &[0x65, 0x67, 0xf2, 0xf0],
    &[0x65, 0x67, 0x65],
    &[0x66],
    &[0xf3],
    &[0xf2],
    &[0xf0],
    &[0x66, 0xf3],
    &[0x66, 0xf2],
    &[0xf3, 0xf2],
    &[0x2e],
    &[0x3e],
    &[0x66, 0x66],
];
const REX: &[Option<u8>] = &[
    None,
    Some(0x40),
    Some(0x41),
    Some(0x42),
    Some(0x44),
    Some(0x48),
    Some(0x4d),
    Some(0x4f),
];
const MAPS: &[&[u8]] = &[&[], &[0x0f], &[0x0f, 0x38], &[0x0f, 0x3a]];
/// No index; base rsp; displacement without base; index without base; rsp's number as index and
/// base; both.
const SIBS: &[u8] = &[0x20, 0x24, 0x25, 0x45, 0x64, 0x88];
const TAIL: [u8; 12] = [
    0x44, 0x33, 0x22, 0x11, 0x88, 0x77, 0x66, 0x55, 0x04, 0x03, 0x02, 0x01,
];

/// How often the random part is done.
fn factor() -> u64 {
    let wish = std::env::var("POSTERN_SWEEP").ok();
    wish.and_then(|n| n.parse().ok()).unwrap_or(1)
}

#[derive(Default)]
struct Tally {
    tried: u64,
    accepted: u64,
    complaints: BTreeMap<String, (u64, Vec<u8>)>,
}

impl Tally {
    fn try_one(&mut self, oracles: &mut Oracles, bytes: &[u8]) {
        self.tried += 1;
        let Ok(seen) = next(bytes, 0, Segment::Gs) else {
            return;
        };
        self.accepted += 1;
        if let Err(what) = oracles.check(bytes, &seen) {
            let example = bytes[..seen.length].to_vec();
            self.complaints.entry(what).or_insert((0, example)).0 += 1;
        }
    }

    fn finish(&self, what: &str) {
        println!(
            "{what}: {} encodings tried, {} accepted and compared",
            self.tried, self.accepted
        );
        for (complaint, (count, example)) in &self.complaints {
            println!("  {complaint}: {count} times, as {example:02x?}");
        }
        assert!(
            self.complaints.is_empty(),
            "{what}: decoders disagree with the verifier"
        );
    }
}

#[test]
fn legacy_encodings_agree_with_other_decoders() {
    let mut oracles = Oracles::new();
    let mut tally = Tally::default();
    for prefix in PREFIXES {
        for rex in REX {
            for map in MAPS {
                let mut bytes = prefix.to_vec();
                bytes.extend(rex);
                bytes.extend(*map);
                let at = bytes.len();
                bytes.extend([0; 3]);
                bytes.extend(TAIL);
                for opcode in 0..=255u8 {
                    bytes[at] = opcode;
                    for modrm in 0..=255u8 {
                        bytes[at + 1] = modrm;
                        let sibs = if modrm & 7 == 4 && modrm < 0xc0 {
                            SIBS
                        } else {
                            &SIBS[..1]
                        };
                        for sib in sibs {
                            bytes[at + 2] = *sib;
                            tally.try_one(&mut oracles, &bytes);
                        }
                    }
                }
            }
        }
    }
    tally.finish("legacy");
    assert!(tally.accepted > 500_000, "the sweep has lost its reach");
}

#[test]
fn vex_encodings_agree_with_other_decoders() {
    let mut oracles = Oracles::new();
    let mut tally = Tally::default();
    let mut random = fastrand::Rng::with_seed(0x9e37_79b9_7f4a_7c15);
    for _ in 0..factor() * 100 {
        for second in 0..=255u8 {
            for opcode in 0..=255u8 {
                let r = random.u64(..).to_le_bytes();
                let mut bytes = Vec::with_capacity(24);
                if r[0] & 1 != 0 {
                    bytes.extend([0x65, 0x67]);
                }
                if r[0] & 2 != 0 {
                    bytes.extend([0xc5, second]);
                } else {
                    // One of the three maps, three times in four.
                    let map = if r[0] & 12 != 0 {
                        1 + r[1] % 3
                    } else {
                        r[1] & 31
                    };
                    bytes.extend([0xc4, r[2] & 0xe0 | map, second]);
                }
                bytes.extend([opcode, r[3], r[4]]);
                bytes.extend(TAIL);
                tally.try_one(&mut oracles, &bytes);
            }
        }
    }
    tally.finish("VEX");
    assert!(tally.accepted > 100_000, "the sweep has lost its reach");
}

#[test]
fn random_bytes_agree_with_other_decoders() {
    let mut oracles = Oracles::new();
    let mut tally = Tally::default();
    let mut random = fastrand::Rng::with_seed(0x2545_f491_4f6c_dd1d);
    for _ in 0..factor() * 4_000_000 {
        let (a, b, c) = (random.u64(..), random.u64(..), random.u64(..));
        let mut bytes = [a.to_le_bytes(), b.to_le_bytes(), c.to_le_bytes()].concat();
        if a >> 60 < 8 {
            bytes[..2].copy_from_slice(&[0x65, 0x67]);
        }
        tally.try_one(&mut oracles, &bytes);
    }
    tally.finish("random");
    assert!(tally.accepted > 100_000, "the sweep has lost its reach");
}

/// Each decoder must object when hostile bytes stand in for what the verifier accepted, or
/// agreement means nothing.
#[test]
fn decoders_object_to_what_is_wrong() {
    let plain = [0x65, 0x67, 0x8b, 0x04, 0x88, 0, 0, 0]; // mov eax, gs:[eax+ecx*4]
    let short = [0x8b, 0xc1, 0, 0]; // mov eax, ecx
    let mut oracles = Oracles::new();
    for (accepted, hostile, objecting) in [
        (&plain[..], &[0x65, 0x67, 0x8b, 0x04, 0x8c, 0, 0, 0][..], 3), // base esp
        (&plain, &[0x64, 0x67, 0x8b, 0x04, 0x88, 0, 0, 0], 3),         // fs
        (&plain, &[0x65, 0x48, 0x8b, 0x04, 0x88, 0, 0, 0], 3),         // 64-bit address
        (&plain, &[0x65, 0x67, 0x8b, 0x44, 0x88, 0, 0, 0], 3),         // longer
        (&short, &[0x8b, 0x01, 0, 0], 3),                              // memory after all
        (&short, &[0x8b, 0xc4, 0, 0], 3),                              // esp
        (&short, &[0x8e, 0xc1, 0, 0], 3),                              // a segment register
        (&short, &[0x0f, 0x05, 0, 0], 1), // syscall: not every decoder lists what it does
        (&short, &[0xfc, 0x90, 0, 0], 3), // cld, and the length
        (&short, &[0xff, 0xe0, 0, 0], 1), // jmp *%rax
    ] {
        let seen = next(accepted, 0, Segment::Gs).unwrap();
        assert_eq!(oracles.check(accepted, &seen), Ok(()));
        let objections = oracles
            .each(hostile, &seen)
            .into_iter()
            .filter(Result::is_err)
            .count();
        assert!(objections >= objecting, "{hostile:02x?}: {objections}");
    }
}
