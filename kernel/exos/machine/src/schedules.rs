//! Figure 3: what `programs/demo/figure3.c` says of processes that one of them schedules.

use postern_aegis_machine::plot;
use postern_aegis_machine::said::{self, Trace};

/// A policy, and what it made of the shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Its name.
    pub policy: String,
    /// Counters, in thousands, slice by slice.
    pub trace: Trace,
}

/// What is drawn: counters over slices.
pub const AXES: plot::Axes = plot::Axes {
    up: "1000",
    right: "slices",
};

/// The schedules among lines: a trace behind each line `schedule POLICY`.
pub fn among(lines: &[String]) -> Vec<Schedule> {
    let parts = lines.split_inclusive(|line| line.starts_with("schedule "));
    let mut policy = None;
    let mut found = Vec::new();
    for part in parts {
        let next = part
            .last()
            .and_then(|line| line.strip_prefix("schedule "))
            .map(str::to_owned);
        let trace = said::trace(part.iter().map(String::as_str));
        if let Some(policy) = std::mem::replace(&mut policy, next)
            && !trace.points.is_empty()
        {
            found.push(Schedule { policy, trace });
        }
    }
    found
}

/// A schedule's ratios and its figure as text.
pub fn text(schedule: &Schedule) -> String {
    let shares = plot::shares(&schedule.trace);
    let drawn = plot::text(&schedule.trace, AXES);
    format!("{}, {shares}\n\n{drawn}", schedule.policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_schedule_has_its_own_trace() {
        let lines = "booted\nschedule round\ntrace-of 3 1\ntrace 0 0 0\ntrace 1 5 0\nratio 1\n\
                     schedule nothing\nschedule stride\ntrace-of 3 1\ntrace 0 0 0\ntrace 4 15 5\n";
        let lines: Vec<String> = lines.lines().map(str::to_owned).collect();
        let found = among(&lines);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].policy, "round");
        assert_eq!(found[0].trace.points, [(0, vec![0, 0]), (1, vec![5, 0])]);
        assert_eq!(found[1].policy, "stride");
        assert!(text(&found[1]).starts_with("stride, 3.00 : 1.00\n"));
        assert!(among(&lines[2..6]).is_empty());
    }
}
