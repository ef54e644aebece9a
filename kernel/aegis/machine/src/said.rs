//! Lines that programs in a machine say for this side, one thing each. All others are for people.
//!
//! | line | what |
//! |---|---|
//! | `test NAME ok`, `test NAME FAILED: WHY`, `test NAME skipped: WHY` | a test has ended so |
//! | `figure NAME NUMBER` | a figure: instructions, if nothing else is said |
//! | `note TEXT` | what belongs to figures in words |
//! | `trace-of LABEL LABEL …` | whom the numbers of traces are of |
//! | `trace TICK NUMBER NUMBER …` | slices that each has had up to a tick |

use std::collections::BTreeMap;

/// Figures by their names.
pub type Figures = BTreeMap<String, u64>;

/// The figures among lines; the last one of a name counts.
pub fn figures<'a>(lines: impl IntoIterator<Item = &'a str>) -> Figures {
    let found = lines.into_iter().filter_map(|line| {
        let mut words = line.strip_prefix("figure ")?.split_whitespace();
        let (name, number) = (words.next()?, words.next()?);
        Some((name.to_owned(), number.parse().ok()?))
    });
    found.collect()
}

/// The notes among lines.
pub fn notes<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let found = lines
        .into_iter()
        .filter_map(|line| line.strip_prefix("note "));
    found.map(str::to_owned).collect()
}

/// A test that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// Its name.
    pub name: String,
    /// Whether it held.
    pub passed: bool,
    /// Why it did not, or was left out.
    pub why: String,
}

/// The tests among lines, in their order.
pub fn tests<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<Test> {
    let found = lines.into_iter().filter_map(|line| {
        let (name, verdict) = line.strip_prefix("test ")?.split_once(' ')?;
        let (verdict, why) = verdict.split_once(": ").unwrap_or((verdict, ""));
        let passed = match verdict {
            "ok" | "skipped" => true,
            "FAILED" => false,
            _ => return None,
        };
        let (name, why) = (name.to_owned(), why.to_owned());
        Some(Test { name, passed, why })
    });
    found.collect()
}

/// How many slices some environments had, tick by tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Who they are.
    pub labels: Vec<String>,
    /// Ticks, and the slices of each up to then.
    pub points: Vec<(u64, Vec<u64>)>,
}

/// The trace among lines. Points that have not a number for each label are left out.
pub fn trace<'a>(lines: impl IntoIterator<Item = &'a str>) -> Trace {
    let mut trace = Trace::default();
    for line in lines {
        if let Some(labels) = line.strip_prefix("trace-of ") {
            trace.labels = labels.split_whitespace().map(str::to_owned).collect();
        } else if let Some(numbers) = line.strip_prefix("trace ") {
            let numbers: Vec<u64> = numbers
                .split_whitespace()
                .map_while(|word| word.parse().ok())
                .collect();
            if let [tick, counts @ ..] = &numbers[..]
                && counts.len() == trace.labels.len()
            {
                trace.points.push((*tick, counts.to_vec()));
            }
        }
    }
    trace
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_told_from_prose() {
        let lines = [
            "figure null 30",
            "a figure null 31",
            "figure",
            "figure x",
            "figure y z",
            "figure map 7 each",
        ];
        let found = figures(lines);
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [("map".into(), 7), ("null".into(), 30)]
        );
        assert_eq!(
            notes(["note retbleed: untrained", "noted"]),
            ["retbleed: untrained"]
        );
    }

    #[test]
    fn tests_tell_how_they_ended() {
        let found = super::tests([
            "test pages.forged ok",
            "test slices FAILED: 3 slices, not 2",
            "test of nothing",
            "test fpu skipped: one processor",
        ]);
        let ended: Vec<_> = found
            .iter()
            .map(|test| (&*test.name, test.passed, &*test.why))
            .collect();
        let wanted = [
            ("pages.forged", true, ""),
            ("slices", false, "3 slices, not 2"),
            ("fpu", true, "one processor"),
        ];
        assert_eq!(ended, wanted);
    }

    #[test]
    fn a_trace_is_whole_points() {
        let found = trace([
            "trace-of a b",
            "trace 1 0 0",
            "trace 2 1",
            "trace 7 3 1",
            "traces",
        ]);
        assert_eq!(found.labels, ["a", "b"]);
        assert_eq!(found.points, [(1, vec![0, 0]), (7, vec![3, 1])]);
    }
}
