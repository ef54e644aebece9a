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
}
