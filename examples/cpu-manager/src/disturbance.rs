//! When the disturbance is active: a Poisson process that a Markov chain modulates. It is silent
//! for exponential times, and then active for a geometric number of steps.

use serde::{Deserialize, Serialize};

/// Mean time between two bursts, in milliseconds.
const BETWEEN: f64 = 1500.0;
/// A step of a burst, in milliseconds; after each, it goes on with probability 4/5.
const STEP: u64 = 100;
const GOES_ON: f64 = 0.8;
/// No burst is longer, in milliseconds: whoever shares the processor gets it back.
pub const LONGEST: u64 = 1500;

/// One time of activity, in milliseconds from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Burst {
    /// When it begins.
    pub start: u64,
    /// When it ends.
    pub end: u64,
}

/// All bursts of so many seconds, in order, apart from each other; the first second has none. The
/// same seed has the same bursts.
pub fn bursts(seed: u64, seconds: u64) -> Vec<Burst> {
    let mut random = fastrand::Rng::with_seed(seed);
    let end = seconds.saturating_mul(1000);
    let mut bursts = Vec::new();
    let mut now = 1000u64;
    loop {
        // 1 - f64() is above 0, so the logarithm is finite.
        let silent = -(1.0 - random.f64()).ln() * BETWEEN;
        now = now.saturating_add((silent as u64).max(STEP));
        if now >= end {
            return bursts;
        }
        let mut length = STEP;
        while length < LONGEST && random.f64() < GOES_ON {
            length += STEP;
        }
        let burst = Burst {
            start: now,
            end: (now + length).min(end),
        };
        now = burst.end;
        bursts.push(burst);
    }
}
