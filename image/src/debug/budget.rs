//! How long a query may take.
//!
//! Invariant: whoever pays for each step ends after [`STEPS`] of them, whatever the file says.

/// Steps that a query may take before it gives up, each at most some tens of nanoseconds.
pub const STEPS: u32 = 8_000_000;

/// The query's budget is spent, or the debug information is damaged; both end it.
pub(super) struct Stop;

impl From<gimli::Error> for Stop {
    fn from(_: gimli::Error) -> Stop {
        Stop
    }
}

/// Steps that a query may still take.
pub(super) struct Budget(pub(super) u32);

impl Budget {
    pub(super) fn pay(&mut self, steps: usize) -> Result<(), Stop> {
        // What cannot be paid spends the rest, so that a caller who goes on with the next unit
        // stops there.
        let left = u32::try_from(steps)
            .ok()
            .and_then(|steps| self.0.checked_sub(steps));
        self.0 = left.unwrap_or(0);
        left.map(drop).ok_or(Stop)
    }
}
