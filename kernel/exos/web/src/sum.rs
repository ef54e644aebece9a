//! One's complement sums of 16-bit words (RFC 1071). Sums of parts are added to the sum of the
//! whole, so that what was summed once is never looked at again.

/// A sum, not yet complemented. Two sums of the same bytes are the same, but that 0 and 0xffff both
/// stand for zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(pub u16);

fn folded(mut sum: u64) -> u16 {
    sum = (sum & 0xffff_ffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum as u16
}

/// A sum of words of 64 bits, which is one of 16 bits, too: 2^64 is 1 in both.
fn added(sum: u64, word: u64) -> u64 {
    let (sum, carries) = sum.overflowing_add(word);
    sum + u64::from(carries)
}

impl Sum {
    /// The sum of bytes; behind an odd number of them stands a zero.
    pub fn of(bytes: &[u8]) -> Sum {
        let (words, rest) = bytes.as_chunks::<8>();
        // In the processor's order: a sum's bytes are swapped with all words' (RFC 1071, section
        // 2).
        let mut sum = 0u64;
        for word in words {
            sum = added(sum, u64::from_ne_bytes(*word));
        }
        let mut last = [0; 8];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        Sum(u16::from_be(folded(added(sum, u64::from_ne_bytes(last)))))
    }

    /// With a word more.
    #[must_use]
    pub fn word(self, word: u16) -> Sum {
        Sum(folded(u64::from(self.0) + u64::from(word)))
    }

    /// With two words more.
    #[must_use]
    pub fn double(self, words: u32) -> Sum {
        Sum(folded(u64::from(self.0) + u64::from(words)))
    }

    /// With bytes behind an even number of others.
    #[must_use]
    pub fn and(self, other: Sum) -> Sum {
        self.word(other.0)
    }

    /// What these bytes' sum is behind an odd number of others.
    #[must_use]
    pub fn shifted(self) -> Sum {
        Sum(self.0.swap_bytes())
    }

    /// What stands in headers.
    pub fn complement(self) -> u16 {
        !self.0
    }

    /// Whether bytes that contain their own checksum have this sum.
    pub fn is_right(self) -> bool {
        self.0 == 0xffff
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn slow(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u32::from(*b));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn sums_are_those_of_single_words() {
        let mut random = fastrand::Rng::with_seed(1);
        for length in 0..300 {
            let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            assert_eq!(Sum::of(&bytes).0, slow(&bytes), "{length}");
            let cut = random.usize(..=length);
            let (one, other) = bytes.split_at(cut);
            let other = Sum::of(other);
            let other = if cut % 2 == 1 { other.shifted() } else { other };
            assert_eq!(Sum::of(one).and(other).0, slow(&bytes));
        }
        assert_eq!(Sum::of(&[0xff; 4096]).0, 0xffff);
    }
}
