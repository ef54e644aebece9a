//! Restart policies: when a domain that a fault has closed begins anew.
//!
//! The runtime asks them when a call finds its domain closed ([`postern_runtime::restart`]); a pool
//! asks them of the domains that come back.

use postern_runtime::restart::{FaultStreak, Outlook, RestartRule};
use std::time::Duration;

/// What happens after a fault.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RestartPolicy {
    /// The domain stays closed until the host resets it.
    #[default]
    Never,
    /// The next call finds the domain in the image's first state.
    Immediate,
    /// As `Immediate`, but calls are refused for a while, longer after each fault.
    BackOff(BackOff),
}

/// How long a domain rests after faults in a row. A domain that goes without a fault for as long as
/// `most`, after its rest, begins at `first` again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackOff {
    /// Rest after the first fault. Default: 100 ms.
    pub first: Duration,
    /// By how much each further rest is longer. Default: 2.
    pub factor: u32,
    /// Longest rest. Default: 30 s.
    pub most: Duration,
    /// After so many faults in a row the domain stays closed until the host resets it. Default:
    /// never.
    pub give_up_after: Option<u32>,
}

impl Default for BackOff {
    fn default() -> Self {
        BackOff {
            first: Duration::from_millis(100),
            factor: 2,
            most: Duration::from_secs(30),
            give_up_after: None,
        }
    }
}

impl BackOff {
    /// Rests of `first` after one fault, twice as long after each further one, and `most` at last.
    ///
    /// ```
    /// use postern_supervision::{BackOff, RestartPolicy};
    /// use std::time::Duration;
    ///
    /// // 10 ms, 30 ms, 90 ms, 100 ms, and then it stays closed.
    /// let rests = BackOff::new(Duration::from_millis(10), Duration::from_millis(100))
    ///     .factor(3)
    ///     .give_up_after(5);
    /// let policy = RestartPolicy::from(rests);
    /// assert!(matches!(policy, RestartPolicy::BackOff(b) if b.give_up_after == Some(5)));
    /// ```
    pub fn new(first: Duration, most: Duration) -> BackOff {
        BackOff {
            first,
            most,
            ..BackOff::default()
        }
    }

    /// By how much each further rest is longer than the one before.
    pub fn factor(mut self, factor: u32) -> BackOff {
        self.factor = factor;
        self
    }

    /// How many faults in a row close the domain until the host resets it.
    pub fn give_up_after(mut self, faults: u32) -> BackOff {
        self.give_up_after = Some(faults);
        self
    }

    /// The rest after the fault that is number `in_row`, from 1.
    fn rest(&self, in_row: u32) -> Duration {
        let factor = self.factor.saturating_pow(in_row.saturating_sub(1));
        self.first.saturating_mul(factor).min(self.most)
    }
}

impl From<BackOff> for RestartPolicy {
    fn from(rests: BackOff) -> RestartPolicy {
        RestartPolicy::BackOff(rests)
    }
}

impl RestartRule for RestartPolicy {
    fn restarts(&self) -> bool {
        *self != RestartPolicy::Never
    }

    fn fault(&self, streak: &mut FaultStreak, now: Duration) {
        let RestartPolicy::BackOff(back_off) = self else {
            return;
        };
        if now >= streak.rests_until.saturating_add(back_off.most) {
            streak.faults = 0;
        }
        streak.faults = streak.faults.saturating_add(1);
        streak.rests_until = now.saturating_add(back_off.rest(streak.faults));
    }

    fn outlook(&self, streak: &FaultStreak, now: Duration) -> Outlook {
        match self {
            RestartPolicy::Never => Outlook::Stays,
            RestartPolicy::Immediate => Outlook::Now,
            RestartPolicy::BackOff(b) if b.give_up_after.is_some_and(|n| streak.faults >= n) => {
                Outlook::Stays
            }
            RestartPolicy::BackOff(_) => match streak.rests_until.saturating_sub(now) {
                Duration::ZERO => Outlook::Now,
                left => Outlook::Rests(left),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_grow_to_the_most_and_calm_forgets() {
        let ms = Duration::from_millis;
        let policy = RestartPolicy::BackOff(BackOff {
            first: ms(10),
            factor: 3,
            most: ms(100),
            give_up_after: Some(6),
        });
        let (mut streak, mut now) = (FaultStreak::default(), ms(1_000_000));
        for rest in [10, 30, 90, 100, 100] {
            policy.fault(&mut streak, now);
            assert_eq!(policy.outlook(&streak, now), Outlook::Rests(ms(rest)));
            now += ms(rest);
            assert_eq!(policy.outlook(&streak, now), Outlook::Now);
        }
        // Calm for as long as the longest rest.
        now += ms(100);
        policy.fault(&mut streak, now);
        assert_eq!(policy.outlook(&streak, now), Outlook::Rests(ms(10)));
        for _ in 0..5 {
            policy.fault(&mut streak, now);
        }
        assert_eq!(policy.outlook(&streak, now + ms(500)), Outlook::Stays);
        assert_eq!(RestartPolicy::Immediate.outlook(&streak, now), Outlook::Now);
        assert_eq!(RestartPolicy::Never.outlook(&streak, now), Outlook::Stays);
    }

    #[test]
    fn no_policy_overflows() {
        let policy = RestartPolicy::BackOff(BackOff {
            first: Duration::MAX,
            factor: u32::MAX,
            most: Duration::MAX,
            give_up_after: None,
        });
        let mut streak = FaultStreak::default();
        for _ in 0..3 {
            policy.fault(&mut streak, Duration::MAX);
        }
        assert_eq!(policy.outlook(&streak, Duration::MAX), Outlook::Now);
    }
}
