//! What a function has of its own: a quantum and a recovery.

use postern_runtime::code::Recovery;
use std::time::Duration;

/// What a function has of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) quantum: Option<Duration>,
    pub(crate) recovery: Option<Recovery>,
}

impl Settings {
    /// As entries have them: nanoseconds, and the recovery's number.
    pub(crate) fn words(&self) -> (u64, u32) {
        let nanoseconds = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX).max(1);
        let recovery = self.recovery.map_or(0, |r| r as u32);
        (self.quantum.map_or(0, nanoseconds), recovery)
    }
}
