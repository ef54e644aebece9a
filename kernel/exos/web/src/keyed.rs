//! SipHash-2-4 (Aumasson and Bernstein, 2012) of three words: what strangers cannot tell without
//! the key, for first sequence numbers (RFC 6528), cookies and places in tables.

/// A secret.
#[derive(Clone, Copy, Debug)]
pub struct Key(pub [u64; 2]);

fn round(v: &mut [u64; 4]) {
    let [a, b, c, d] = v;
    *a = a.wrapping_add(*b);
    *c = c.wrapping_add(*d);
    *b = b.rotate_left(13) ^ *a;
    *d = d.rotate_left(16) ^ *c;
    *a = a.rotate_left(32);
    *c = c.wrapping_add(*b);
    *a = a.wrapping_add(*d);
    *b = b.rotate_left(17) ^ *c;
    *d = d.rotate_left(21) ^ *a;
    *c = c.rotate_left(32);
}

impl Key {
    /// The hash of words, as of their bytes from the lowest on.
    pub fn hash(&self, words: &[u64]) -> u64 {
        let [one, two] = self.0;
        let mut v = [
            one ^ 0x736f_6d65_7073_6575,
            two ^ 0x646f_7261_6e64_6f6d,
            one ^ 0x6c79_6765_6e65_7261,
            two ^ 0x7465_6462_7974_6573,
        ];
        let length = (words.len() as u64 * 8) << 56;
        for word in words.iter().chain([&length]) {
            v[3] ^= word;
            round(&mut v);
            round(&mut v);
            v[0] ^= word;
        }
        v[2] ^= 0xff;
        for _ in 0..4 {
            round(&mut v);
        }
        v[0] ^ v[1] ^ v[2] ^ v[3]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector of the paper's reference: key 00 01 … 0f, messages 00 01 ….
    #[test]
    fn it_is_siphash() {
        let key = Key([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
        assert_eq!(key.hash(&[]), 0x726f_db47_dd0e_0e31);
        assert_eq!(key.hash(&[0x0706_0504_0302_0100]), 0x93f5_f579_9a93_2462);
    }
}
