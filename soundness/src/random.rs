//! What the campaigns draw from a generator besides numbers. A run can be repeated from its seed.

use fastrand::Rng;

/// Draws.
pub trait Draw {
    /// True `percent` times in a hundred.
    fn chance(&mut self, percent: u32) -> bool;

    /// One of the members of a slice that is not empty.
    fn pick<T: Copy>(&mut self, from: &[T]) -> T;

    /// The number of one of the set bits of `set`; 0 if there are none.
    fn bit(&mut self, set: u8) -> u8;

    /// Any word, or one or two floating-point numbers, most of which arithmetic has to say
    /// something about.
    fn hostile(&mut self) -> u64;
}

impl Draw for Rng {
    fn chance(&mut self, percent: u32) -> bool {
        self.u32(..100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.usize(..from.len())]
    }

    fn bit(&mut self, set: u8) -> u8 {
        let nth = self.usize(..set.count_ones().max(1) as usize);
        let mut bits = (0..8).filter(|bit| set >> bit & 1 == 1);
        bits.nth(nth).unwrap_or(0)
    }

    fn hostile(&mut self) -> u64 {
        let sign = self.u64(..);
        let mut single = || {
            let numbers = [
                0x7fc0_0000, // NaN, then a signalling one
                0x7f80_0001,
                0x7f80_0000, // infinity
                0x7f7f_ffff,
                0x0080_0000, // the least normal number
                0x0000_0001, // denormal
                0x0040_0000,
                0x3f80_0000,
                0x3eaa_aaab,
                0,
            ];
            self.pick::<u32>(&numbers) ^ self.u32(..) & 1 << 31
        };
        let singles = u64::from(single()) << 32 | u64::from(single());
        let doubles: [u64; 8] = [
            0x7ff8_0000_0000_0000,
            0x7ff0_0000_0000_0001,
            0x7ff0_0000_0000_0000,
            0x7fef_ffff_ffff_ffff,
            0x0010_0000_0000_0000,
            1,
            0x0008_0000_0000_0000,
            0x3fd5_5555_5555_5555,
        ];
        match self.u32(..4) {
            0 => singles,
            1 => self.pick(&doubles) ^ sign & 1 << 63,
            _ => self.u64(..),
        }
    }
}
