//! Lines that programs in a machine say for this side, one thing each. All others are for people.
//!
//! | line | what |
//! |---|---|
//! | `test NAME ok`, `test NAME FAILED: WHY`, `test NAME skipped: WHY` | a test has ended so |
//! | `figure NAME INSTRUCTIONS [REPEATS]` | a figure, and how often it was done in each measurement: once, if nothing else is said |
//! | `figure NAME busy REPEATS` | the same of something that waits: the emulator's plugin counts the instructions that were executed meanwhile |
//! | `note TEXT` | what belongs to figures in words |
//! | `trace-of LABEL LABEL …` | whom the numbers of traces are of |
//! | `trace TICK NUMBER NUMBER …` | slices that each has had up to a tick |

use std::collections::BTreeMap;

/// Instructions that take a real processor hundreds of cycles, by how often they were executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heavy {
    /// Loads of CR3: the address space changes.
    pub cr3: u64,
    /// Returns from interrupts.
    pub iret: u64,
    /// Writes of model-specific registers.
    pub wrmsr: u64,
}

/// A figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Instructions.
    pub instructions: u64,
    /// How many times that was done in a measurement.
    pub repeats: u64,
    /// Heavy instructions of a whole measurement, if they were counted.
    pub heavy: Option<Heavy>,
}

impl std::fmt::Display for Figure {
    /// `308 (0 0 0)`: instructions, and loads of CR3, irets and wrmsrs of each.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.instructions)?;
        let Some(heavy) = self.heavy else {
            return Ok(());
        };
        let each = |number: u64| match number.is_multiple_of(self.repeats) {
            true => (number / self.repeats).to_string(),
            false => format!("{:.1}", number as f64 / self.repeats as f64),
        };
        write!(
            f,
            " ({} {} {})",
            each(heavy.cr3),
            each(heavy.iret),
            each(heavy.wrmsr)
        )
    }
}

/// Figures by their names.
pub type Figures = BTreeMap<String, Figure>;

/// The figures among lines; the last one of a name counts. Lines of `bench/aegis/count.c` belong to
/// them in turn: instructions, loads of CR3, irets, wrmsrs of a measurement. Where there were
/// no marks the first is the greatest number, and nothing is known.
pub fn figures<'a>(lines: impl IntoIterator<Item = &'a str>, counts: &str) -> Figures {
    let found = lines.into_iter().filter_map(|line| {
        let mut words = line.strip_prefix("figure ")?.split_whitespace();
        let (name, instructions) = (words.next()?, words.next()?);
        let instructions = match instructions {
            "busy" => None,
            number => Some(number.parse().ok()?),
        };
        let repeats = words.next().and_then(|word| word.parse().ok());
        Some((name.to_owned(), instructions, repeats.unwrap_or(1).max(1)))
    });
    let mut counts = counts.lines();
    let counted = found.filter_map(|(name, instructions, repeats)| {
        let counted = counts.next().and_then(counted);
        let figure = Figure {
            instructions: instructions.or(counted.map(|(all, _)| all / repeats))?,
            repeats,
            heavy: counted.map(|(_, heavy)| heavy),
        };
        Some((name, figure))
    });
    counted.collect()
}

/// A line of the plugin's: all instructions of a measurement, and the heavy ones among them.
fn counted(line: &str) -> Option<(u64, Heavy)> {
    let numbers: Vec<u64> = line
        .split(' ')
        .map_while(|word| word.parse().ok())
        .collect();
    match numbers[..] {
        [u64::MAX, ..] => None,
        [all, cr3, iret, wrmsr] => Some((all, Heavy { cr3, iret, wrmsr })),
        _ => None,
    }
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
            "figure pipe 7 20",
            "figure last 1",
        ];
        let found = figures(lines, "35 0 0 0\n150 20 30 0\n18446744073709551615 0 0 0\n");
        let shown: Vec<_> = found
            .into_iter()
            .map(|(name, figure)| format!("{name} {figure}"))
            .collect();
        assert_eq!(shown, ["last 1", "null 30 (0 0 0)", "pipe 7 (1 1.5 0)"]);
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
