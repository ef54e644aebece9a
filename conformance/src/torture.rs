//! All tests with all option sets: native and confined, compared, counted.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread::ScopedJoinHandle;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::exclusions::Exclusions;
use crate::native;
use crate::place::PlaceError;
use crate::program::{Outcome, Program};
use crate::suite::Test;
use crate::worker::{self, Worker};

/// The option sets: a name without spaces and the options. (Without `-g0` the confined build has
/// debug information.)
pub const SETS: &[(&str, &[&str])] = &[
    ("O0", &["-O0", "-g0"]),
    ("O2", &["-O2"]),
    ("O3", &["-O3"]),
    ("v3", &["-O2", "-march=x86-64-v3", "-g0"]),
    ("O1", &["-O1"]),
    ("Os", &["-Os"]),
    ("Og", &["-Og", "-g"]),
    ("O3-v3", &["-O3", "-march=x86-64-v3"]),
    ("frame", &["-O2", "-fno-omit-frame-pointer"]),
    ("unroll", &["-O3", "-funroll-all-loops", "-fpeel-loops"]),
    ("wrapv", &["-O2", "-fwrapv"]),
    (
        "undefined",
        &[
            "-O2",
            "-fsanitize=undefined",
            "-fsanitize-undefined-trap-on-error",
        ],
    ),
];

/// The sets that `make conformance` runs.
pub const USUAL: &[&str] = &["O0", "O2", "O3", "v3"];

/// The options of the set `name`.
pub fn set(name: &str) -> Option<&'static [&'static str]> {
    SETS.iter().find(|(n, _)| *n == name).map(|(_, o)| *o)
}

/// What is to be done.
pub struct Plan {
    /// The tests.
    pub tests: Vec<Test>,
    /// Names of option sets.
    pub sets: Vec<&'static str>,
    /// Worker processes.
    pub jobs: usize,
    /// The command that serves as a worker.
    pub worker: PathBuf,
    /// Options and sources for confined builds only.
    pub confined: Vec<String>,
    /// Draw a progress bar.
    pub progress: bool,
}

/// What came of one test with one option set.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Both ended the same way.
    Passed,
    /// It does not pass, and the list of exclusions says so: the class.
    Excluded(String),
    /// Nothing can be said, because it does not succeed natively.
    Skipped,
    /// A difference: what was expected and what was found.
    Failed(String),
}

/// Counts of one option set.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Counts {
    /// Same ends.
    pub passed: usize,
    /// Excluded, by class.
    pub excluded: BTreeMap<String, usize>,
    /// Differences.
    pub failed: usize,
    /// Not successful natively.
    pub skipped: usize,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let classes: Vec<String> = self
            .excluded
            .iter()
            .map(|(class, n)| format!("{class} {n}"))
            .collect();
        write!(
            f,
            "passed {}, excluded {}{}, failed {}, skipped natively {}",
            self.passed,
            self.excluded.values().sum::<usize>(),
            if classes.is_empty() {
                String::new()
            } else {
                format!(" ({})", classes.join(", "))
            },
            self.failed,
            self.skipped
        )
    }
}

/// The result of a plan.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// By option set.
    pub counts: BTreeMap<String, Counts>,
    /// Test, option set and what was wrong.
    pub failures: Vec<(String, String, String)>,
}

/// Why a plan was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum TortureError {
    /// Something is missing.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The C library of extensions.
    #[error("the C library of extensions: {0}")]
    Library(String),
    /// A worker process.
    #[error("a worker process: {0}")]
    Worker(#[from] std::io::Error),
}

/// Carries out `plan`.
///
/// # Errors
/// Only what keeps it from being carried out; differences are in the report.
pub fn run(plan: &Plan, exclusions: &Exclusions) -> Result<Report, TortureError> {
    let mut queue: VecDeque<(usize, &str, Program)> = VecDeque::new();
    for set_name in &plan.sets {
        let options = set(set_name).unwrap_or_default();
        for (index, test) in plan.tests.iter().enumerate() {
            queue.push_back((index, set_name, test.program(options, &plan.confined)));
        }
    }
    worker::prepare().map_err(TortureError::Library)?;
    let bar = bar(queue.len() as u64, plan.progress);
    let queue = Mutex::new(queue);
    let report = Mutex::new(Report::default());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.jobs.max(1))
            .map(|_| {
                scope.spawn(|| -> Result<(), TortureError> {
                    let mut worker = Worker::new(plan.worker.clone())?;
                    while let Some((index, set, program)) = lock(&queue).pop_front() {
                        let name = &plan.tests[index].name;
                        let verdict = one(&mut worker, name, set, &program, exclusions)?;
                        if let Verdict::Failed(why) = &verdict {
                            bar.suspend(|| println!("FAILED {name} {set}: {why}"));
                        }
                        lock(&report).add(name, set, verdict);
                        bar.inc(1);
                    }
                    Ok(())
                })
            })
            .collect();
        joined(threads)
    })?;
    bar.finish_and_clear();
    let mut report = report.into_inner().unwrap_or_else(|e| e.into_inner());
    report.failures.sort();
    Ok(report)
}

/// What all threads came to: the first error, if there was one.
pub(crate) fn joined(
    threads: Vec<ScopedJoinHandle<'_, Result<(), TortureError>>>,
) -> Result<(), TortureError> {
    let mut outcome = Ok(());
    for thread in threads {
        match thread.join() {
            Ok(result) => outcome = outcome.and(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    outcome
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

pub(crate) fn bar(length: u64, visible: bool) -> ProgressBar {
    if !visible {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {elapsed} (left: {eta})");
    ProgressBar::new(length).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn one(
    worker: &mut Worker,
    name: &str,
    set: &str,
    program: &Program,
    exclusions: &Exclusions,
) -> Result<Verdict, TortureError> {
    let expected = native::run(program)?;
    if !expected.succeeded() {
        return Ok(Verdict::Skipped);
    }
    let got = worker.run(program)?;
    let died = matches!(got, Outcome::HostDied(_));
    Ok(match exclusions.find(name, set) {
        Some(exclusion) if got == expected => Verdict::Failed(format!(
            "it passes, but is excluded ({}); take it off the list",
            exclusion.reason
        )),
        Some(exclusion) if !died => Verdict::Excluded(exclusion.class.clone()),
        _ if got == expected => Verdict::Passed,
        _ => Verdict::Failed(match got {
            Outcome::Exited { .. } => format!("{got}; natively {expected}"),
            _ => got.to_string(),
        }),
    })
}

impl Report {
    fn add(&mut self, name: &str, set: &str, verdict: Verdict) {
        let counts = self.counts.entry(set.to_owned()).or_default();
        match verdict {
            Verdict::Passed => counts.passed += 1,
            Verdict::Excluded(class) => *counts.excluded.entry(class).or_default() += 1,
            Verdict::Skipped => counts.skipped += 1,
            Verdict::Failed(why) => {
                counts.failed += 1;
                self.failures.push((name.to_owned(), set.to_owned(), why));
            }
        }
    }
}
