//! How fast, and when again: round trips and timeouts (RFC 6298), congestion (RFC 5681, RFC 6582),
//! the first window (RFC 6928). Times are microseconds.

use super::sequence::before;

/// Before anything was measured (RFC 6298, section 2.1).
pub const FIRST: u64 = 1_000_000;
/// The shortest timeout. RFC 6298, section 2.4, wants a second, and lets finer clocks have less.
const SHORTEST: u64 = 300_000;
/// The longest one (section 2.5: at least 60 seconds).
pub const LONGEST: u64 = 60_000_000;
/// What a clock is exact to, at least: events of timers come at ends of slices.
const GRANULE: u64 = 20_000;

/// A connection's pace.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Bytes that may be under way.
    pub window: u32,
    threshold: u32,
    duplicates: u8,
    /// In recovery, until this is acknowledged.
    recovers: Option<u32>,
    round_trip: Option<(u64, u64)>,
    /// The timeout, without what was added for failures.
    pub timeout: u64,
    timed: Option<(u32, u64)>,
}

/// What an acknowledgement is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Do {
    /// Nothing special.
    Nothing,
    /// The first segment that is not acknowledged is sent again.
    Again,
}

impl Pace {
    /// At the beginning, with segments of this size.
    pub fn new(mss: u16) -> Pace {
        Pace {
            window: first_window(mss),
            threshold: u32::MAX,
            duplicates: 0,
            recovers: None,
            round_trip: None,
            timeout: FIRST,
            timed: None,
        }
    }

    /// Bytes up to a number were sent for the first time: one segment at a time is timed.
    pub fn sent(&mut self, end: u32, now: u64) {
        if self.timed.is_none() {
            self.timed = Some((end, now));
        }
    }

    /// Nothing that is under way is timed: it was sent twice (section 3, Karn's algorithm).
    pub fn forget_time(&mut self) {
        self.timed = None;
    }

    fn measured(&mut self, took: u64) {
        let (mean, deviation) = match self.round_trip {
            None => (took, took / 2),
            Some((mean, deviation)) => (
                (7 * mean + took) / 8,
                (3 * deviation + mean.abs_diff(took)) / 4,
            ),
        };
        self.round_trip = Some((mean, deviation));
        self.timeout = (mean + GRANULE.max(4 * deviation)).clamp(SHORTEST, LONGEST);
    }

    /// Bytes up to a number are acknowledged, so many for the first time; `flight` are still under
    /// way.
    pub fn acknowledged(&mut self, end: u32, bytes: u32, flight: u32, mss: u16, now: u64) -> Do {
        if let Some((timed, since)) = self.timed
            && !before(end, timed)
        {
            self.timed = None;
            self.measured(now.saturating_sub(since));
        }
        self.duplicates = 0;
        let mss = u32::from(mss);
        match self.recovers {
            // A part of what was under way: the next hole (RFC 6582, section 3.2, step 3).
            Some(recovers) if before(end, recovers) => {
                let less = self.window.saturating_sub(bytes);
                self.window = (less + if bytes >= mss { mss } else { 0 }).max(mss);
                return Do::Again;
            }
            Some(_) => {
                self.recovers = None;
                self.window = self.threshold.min(flight.max(mss) + mss);
            }
            // Slow start, and congestion avoidance (RFC 5681, section 3.1).
            None if self.window < self.threshold => self.window += bytes.min(mss),
            None => self.window += (mss * mss / self.window.max(1)).max(1),
        }
        self.window = self.window.min(1 << 30);
        Do::Nothing
    }

    /// The same was acknowledged once more (RFC 5681, section 3.2).
    pub fn duplicate(&mut self, flight: u32, next: u32, mss: u16) -> Do {
        let mss = u32::from(mss);
        self.duplicates = self.duplicates.saturating_add(1);
        match (self.recovers, self.duplicates) {
            (Some(_), _) => self.window = (self.window + mss).min(1 << 30),
            (None, 3) => {
                self.threshold = (flight / 2).max(2 * mss);
                self.window = self.threshold + 3 * mss;
                self.recovers = Some(next);
                self.timed = None;
                return Do::Again;
            }
            _ => {}
        }
        Do::Nothing
    }

    /// Nothing was acknowledged in time.
    pub fn timed_out(&mut self, flight: u32, mss: u16) {
        let mss = u32::from(mss);
        self.threshold = (flight / 2).max(2 * mss);
        self.window = mss;
        self.recovers = None;
        self.duplicates = 0;
        self.timed = None;
    }

    /// Nothing was sent for long: what was known of the way is not any more (section 4.1).
    pub fn rested(&mut self, mss: u16) {
        self.window = self.window.min(first_window(mss));
    }
}

fn first_window(mss: u16) -> u32 {
    let mss = u32::from(mss);
    (10 * mss).min((2 * mss).max(14_600))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_grow_and_shrink() {
        let mut pace = Pace::new(1460);
        assert_eq!(pace.window, 14_600);
        assert_eq!(pace.acknowledged(1460, 1460, 13_140, 1460, 0), Do::Nothing);
        assert_eq!(pace.window, 16_060);
        assert_eq!(pace.duplicate(16_060, 20_000, 1460), Do::Nothing);
        assert_eq!(pace.duplicate(16_060, 20_000, 1460), Do::Nothing);
        assert_eq!(pace.duplicate(16_060, 20_000, 1460), Do::Again);
        assert_eq!(pace.window, 8_030 + 3 * 1460);
        assert_eq!(pace.acknowledged(3000, 1540, 14_000, 1460, 0), Do::Again);
        assert_eq!(pace.acknowledged(20_000, 17_000, 0, 1460, 0), Do::Nothing);
        assert_eq!(pace.window, 2 * 1460);
        pace.timed_out(2920, 1460);
        assert_eq!(pace.window, 1460);
    }

    #[test]
    fn timeouts_follow_round_trips() {
        let mut pace = Pace::new(536);
        pace.sent(100, 0);
        pace.acknowledged(100, 100, 0, 536, 400_000);
        assert_eq!(pace.timeout, 400_000 + 4 * 200_000);
        pace.sent(200, 1_000_000);
        pace.forget_time();
        pace.acknowledged(200, 100, 0, 536, 9_000_000);
        assert_eq!(pace.timeout, 1_200_000);
    }
}
