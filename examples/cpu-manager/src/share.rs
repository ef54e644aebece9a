//! Targets: so many milliseconds of every so many.

use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// A client's target: processor time in every period, both in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Processor time, 1 ms to a period.
    pub target: u64,
    /// The period, 1 ms to 1 s: what the kernel's quotas may be.
    pub period: u64,
}

impl Share {
    /// The target as a part of a processor, 0 to 1.
    pub fn part(self) -> f64 {
        self.target as f64 / self.period as f64
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{} ms", self.target / 1000, self.period / 1000)
    }
}

impl FromStr for Share {
    type Err = String;

    /// `TARGET/PERIOD` in whole milliseconds.
    fn from_str(text: &str) -> Result<Share, String> {
        let wrong = || {
            format!(
                "`{text}` is no share: write TARGET/PERIOD in milliseconds, as 40/400, \
                 with 1 <= TARGET <= PERIOD <= 1000"
            )
        };
        let (target, period) = text.split_once('/').ok_or_else(wrong)?;
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        let (target, period) = (number(target)?, number(period)?);
        if target < 1 || target > period || period > 1000 {
            return Err(wrong());
        }
        Ok(Share {
            target: target * 1000,
            period: period * 1000,
        })
    }
}
