//! Sums of frames that neither the kernel nor a device has checked.

/// Bytes that are summed in lanes of 32 bits before these are added up: no lane overflows.
const BLOCK: usize = 64 << 10;

/// The sum of big-endian words of 16 bits in ones' complement. The inner loop is one that the
/// compiler makes vector instructions of.
pub fn sum(bytes: &[u8]) -> u64 {
    let mut total = 0u64;
    for block in bytes.chunks(BLOCK) {
        let pairs = block.chunks_exact(2);
        if let [last] = pairs.remainder() {
            total += u64::from(*last) << 8;
        }
        let words = pairs.map(|pair| u32::from(u16::from_le_bytes([pair[0], pair[1]])));
        let low = fold(u64::from(words.fold(0u32, u32::wrapping_add)));
        // The sum of swapped words is the swapped sum.
        total += u64::from(low.swap_bytes());
    }
    total
}

/// The same in 16 bits.
pub fn fold(mut total: u64) -> u16 {
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// Whether the sum of a TCP segment or a UDP datagram in this packet of IPv4 is right; packets of
/// which it cannot be told are somebody else's to judge.
pub fn is_right(packet: &[u8]) -> bool {
    const TCP: u8 = 6;
    const UDP: u8 = 17;
    let Some(head) = packet.get(..20) else {
        return true;
    };
    let length = usize::from(head[0] & 15) * 4;
    let whole = usize::from(u16::from_be_bytes([head[2], head[3]]));
    let is_part = u16::from_be_bytes([head[6], head[7]]) & 0x3fff != 0;
    let protocol = head[9];
    let Some(body) = packet.get(length..whole).filter(|_| !is_part) else {
        return true;
    };
    let unsummed = protocol == UDP && body.get(6..8) == Some(&[0, 0]);
    if !matches!(protocol, TCP | UDP) || unsummed {
        return true;
    }
    let pseudo = sum(&head[12..20]) + u64::from(protocol) + body.len() as u64;
    fold(pseudo + sum(body)) == 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(bytes: &[u8]) -> u16 {
        let words = bytes.chunks(2).map(|pair| {
            let low = pair.get(1).copied().unwrap_or(0);
            u64::from(u16::from_be_bytes([pair[0], low]))
        });
        fold(words.sum())
    }

    #[test]
    fn sums_are_those_of_words() {
        let bytes: Vec<u8> = (0..200_001u32)
            .map(|at| (at * 7 + at / 251) as u8)
            .collect();
        for length in [0, 1, 2, 3, 20, 1459, 1460, 65_535, 65_536, 65_537, 200_001] {
            assert_eq!(
                fold(sum(&bytes[..length])),
                plain(&bytes[..length]),
                "{length}"
            );
        }
        assert_eq!(fold(sum(&[0xff; 65_536])), 0xffff);
    }
}
