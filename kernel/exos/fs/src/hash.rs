//! XXH64 (Collet, *xxHash fast digest algorithm*, version 0.1.1): the sum under every block of the
//! file system's own. It is no secret and no signature; it finds what a disk lost or mixed up.

const P1: u64 = 0x9e37_79b1_85eb_ca87;
const P2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const P3: u64 = 0x1656_67b1_9e37_79f9;
const P4: u64 = 0x85eb_ca77_c2b2_ae63;
const P5: u64 = 0x27d4_eb2f_1656_67c5;

const fn round(sum: u64, word: u64) -> u64 {
    sum.wrapping_add(word.wrapping_mul(P2))
        .rotate_left(31)
        .wrapping_mul(P1)
}

const fn merge(sum: u64, lane: u64) -> u64 {
    (sum ^ round(0, lane)).wrapping_mul(P1).wrapping_add(P4)
}

/// The sum of bytes.
pub fn xxh64(bytes: &[u8], seed: u64) -> u64 {
    let (stripes, rest) = bytes.as_chunks::<32>();
    let mut sum = seed.wrapping_add(P5);
    if !stripes.is_empty() {
        let mut lanes = [
            seed.wrapping_add(P1).wrapping_add(P2),
            seed.wrapping_add(P2),
            seed,
            seed.wrapping_sub(P1),
        ];
        for stripe in stripes {
            for (lane, word) in lanes.iter_mut().zip(stripe.as_chunks::<8>().0) {
                *lane = round(*lane, u64::from_le_bytes(*word));
            }
        }
        let [a, b, c, d] = lanes;
        sum = a
            .rotate_left(1)
            .wrapping_add(b.rotate_left(7))
            .wrapping_add(c.rotate_left(12))
            .wrapping_add(d.rotate_left(18));
        for lane in lanes {
            sum = merge(sum, lane);
        }
    }
    sum = sum.wrapping_add(bytes.len() as u64);
    let (words, rest) = rest.as_chunks::<8>();
    for word in words {
        sum ^= round(0, u64::from_le_bytes(*word));
        sum = sum.rotate_left(27).wrapping_mul(P1).wrapping_add(P4);
    }
    let (words, rest) = rest.as_chunks::<4>();
    for word in words {
        sum ^= u64::from(u32::from_le_bytes(*word)).wrapping_mul(P1);
        sum = sum.rotate_left(23).wrapping_mul(P2).wrapping_add(P3);
    }
    for byte in rest {
        sum ^= u64::from(*byte).wrapping_mul(P5);
        sum = sum.rotate_left(11).wrapping_mul(P1);
    }
    sum = (sum ^ sum >> 33).wrapping_mul(P2);
    sum = (sum ^ sum >> 29).wrapping_mul(P3);
    sum ^ sum >> 32
}

/// A name's sum, as entries of folders have it.
pub fn name(name: &[u8]) -> u32 {
    xxh64(name, 0) as u32
}
