//! How long a client is waited for: never long at once, and in all not longer than one takes that
//! manages a least number of bytes in a second. Who sends or takes one byte at a time is no better
//! than who does nothing.
//!
//! Only time counts for which the client kept the server waiting, so that a program which takes its
//! time costs the client nothing.

use std::time::Duration;

/// The limits of one direction.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Longest time without a byte.
    pub idle: Duration,
    /// Bytes in a second, on the whole; 0 is no such limit.
    pub rate: u64,
}

/// What a client has used of it.
#[derive(Debug)]
pub struct Waited {
    timeouts: Timeouts,
    time: Duration,
    bytes: u64,
}

impl Timeouts {
    /// Nothing so far.
    pub fn begin(self) -> Waited {
        Waited {
            timeouts: self,
            time: Duration::ZERO,
            bytes: 0,
        }
    }
}

impl Waited {
    /// How long the client may keep the server waiting now.
    pub fn left(&self) -> Duration {
        let Timeouts { idle, rate } = self.timeouts;
        match rate {
            0 => idle,
            rate => {
                let earned = Duration::from_secs_f64(self.bytes as f64 / rate as f64);
                idle.saturating_add(earned)
                    .saturating_sub(self.time)
                    .min(idle)
            }
        }
    }

    /// It kept the server waiting for so long.
    pub fn waited(&mut self, time: Duration) {
        self.time += time;
    }

    /// So many bytes came, or went.
    pub fn moved(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// For how long it kept the server waiting in all.
    pub fn time(&self) -> Duration {
        self.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_drips_has_no_more_time_than_its_bytes_take() {
        let idle = Duration::from_secs(10);
        let mut waited = Timeouts { idle, rate: 100 }.begin();
        assert_eq!(waited.left(), idle);
        // A byte a second: each earns a hundredth.
        for second in 1..=10 {
            waited.waited(Duration::from_secs(1));
            waited.moved(1);
            let left = Duration::from_millis((10 - second) * 1000 + second * 10);
            assert_eq!(waited.left(), left);
        }
        waited.waited(Duration::from_secs(1));
        assert_eq!(waited.left(), Duration::ZERO);
        // One that manages the rate has all its time each time.
        let mut waited = Timeouts { idle, rate: 100 }.begin();
        for _ in 0..1000 {
            waited.waited(Duration::from_secs(9));
            waited.moved(900);
            assert_eq!(waited.left(), idle);
        }
        let mut waited = Timeouts { idle, rate: 0 }.begin();
        waited.waited(idle * 1000);
        assert_eq!(waited.left(), idle);
    }
}
