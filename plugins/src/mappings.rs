//! How many namespaces there is room for: the kernel lets a process have `vm.max_map_count`
//! mappings, and a process that has them all can hardly do anything else.
//!
//! Invariant: a part of them is never taken by namespaces, as far as an estimate that is put right
//! by counting can say.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// MappingBudget that are left for all else: threads, areas, handlers, memory of the server itself.
const RESERVE: usize = 8192;
/// Mappings of a new namespace: twelve, and those of its pictures' area and of threads that enter
/// it.
const MOST_EACH: usize = 18;
/// Those that certainly go with one.
const LEAST_EACH: usize = 12;
/// Counting takes tens of milliseconds when there are many.
const BETWEEN: Duration = Duration::from_secs(1);

/// What is taken, as far as it is known.
pub struct MappingBudget {
    limit: usize,
    state: Mutex<BudgetState>,
}

struct BudgetState {
    taken: usize,
    counters: Option<Instant>,
}

impl MappingBudget {
    /// Those of this process.
    pub fn new() -> MappingBudget {
        let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count");
        let limit = limit.ok().and_then(|text| text.trim().parse().ok());
        MappingBudget::with(limit.unwrap_or(65_530))
    }

    fn with(limit: usize) -> MappingBudget {
        MappingBudget {
            limit,
            state: Mutex::new(BudgetState {
                taken: 0,
                counters: None,
            }),
        }
    }

    /// Takes what a namespace needs.
    ///
    /// # Errors
    /// There is no room; what can be done about it.
    pub fn take(&self) -> Result<(), String> {
        self.take_with(|| {
            let text = std::fs::read("/proc/self/maps").unwrap_or_default();
            text.iter().filter(|b| **b == b'\n').count()
        })
    }

    fn take_with(&self, count: impl Fn() -> usize) -> Result<(), String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let most = self.limit.saturating_sub(RESERVE);
        let full = |state: &BudgetState| state.taken + MOST_EACH > most;
        let due = state
            .counters
            .is_none_or(|at| full(&state) && at.elapsed() > BETWEEN);
        if due {
            (state.taken, state.counters) = (count(), Some(Instant::now()));
        }
        if full(&state) {
            return Err(format!(
                "no room for another namespace: {} of {} mappings are taken, and {RESERVE} are kept for all else; sysctl vm.max_map_count=262144 makes room for ten thousand, or lower plugins.guests_most",
                state.taken, self.limit
            ));
        }
        state.taken += MOST_EACH;
        Ok(())
    }

    /// A namespace is gone.
    pub fn give(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.taken = state.taken.saturating_sub(LEAST_EACH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_never_taken() {
        let mappings = MappingBudget::with(RESERVE + 100);
        let taken = (0..10)
            .take_while(|_| mappings.take_with(|| 30).is_ok())
            .count();
        assert_eq!(taken, 3);
        let error = mappings.take_with(|| 0).unwrap_err();
        assert!(error.contains("vm.max_map_count=262144"), "{error}");
        mappings.give();
        assert!(mappings.take_with(|| 0).is_ok());
        assert!(mappings.take_with(|| 0).is_err());
    }
}
