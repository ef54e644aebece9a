//! A generator of pseudo-random numbers (xorshift with a multiplication), so that a run can be repeated from its seed.

/// The state.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator whose sequence depends on the seed only.
    pub fn new(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        random.next();
        random
    }

    /// 64 random bits.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: u32) -> u32 {
        (((self.next() >> 32) * u64::from(limit)) >> 32) as u32
    }

    /// True `percent` times in a hundred.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// One of the members of a slice that is not empty.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }

    /// One of the set bits of `set`, which is not 0.
    pub fn bit(&mut self, set: u8) -> u8 {
        let mut n = self.below(set.count_ones());
        for bit in 0..8 {
            if set >> bit & 1 == 1 {
                if n == 0 {
                    return bit;
                }
                n -= 1;
            }
        }
        0
    }
}
