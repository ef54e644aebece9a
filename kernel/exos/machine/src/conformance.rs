//! GCC's own execution tests (`gcc.c-torture/execute`) at -O2, each as a process of ExOS.

use std::collections::BTreeMap;

use postern_conformance::exclusions::{Exclusions, Malformed};
use postern_conformance::place::PlaceError;
use postern_conformance::suite;
use thiserror::Error;

use crate::cc::PageTable;
use crate::each::{self, EachError, End, Plan};
use crate::programs::{self, Program, ProgramsError};

/// Why nothing was tested.
#[derive(Debug, Error)]
pub enum ConformanceError {
    /// The tests are not there.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The list of exclusions.
    #[error(transparent)]
    Exclusions(#[from] Malformed),
    /// Nothing could be compiled.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// Nothing could be run.
    #[error(transparent)]
    Each(#[from] EachError),
}

/// What has come of it.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many ended as they should.
    pub passed: usize,
    /// How many are excluded, by class.
    pub excluded: BTreeMap<String, usize>,
    /// Which did not, and how they ended.
    pub failed: Vec<(String, String)>,
}

/// The tests that cannot pass, each with its reason.
pub fn exclusions() -> Result<Exclusions, Malformed> {
    Exclusions::parse(include_str!("../exclusions.txt"))
}

/// The tests as programs: all, or each `step`th of those whose names contain a word.
pub fn tests(only: &str, step: usize) -> Result<Vec<Program>, PlaceError> {
    let tests = suite::tests()?.into_iter();
    let tests = tests.filter(|test| !test.more && test.name.contains(only));
    let programs = tests.step_by(step.max(1)).map(|test| {
        let built = test.program(&["-O2"], &[]);
        Program {
            name: test.name,
            sources: built.sources,
            flags: built.flags,
            page_table: PageTable::Linear,
        }
    });
    Ok(programs.collect())
}

/// Runs tests. One that is excluded must not pass.
pub fn run(tests: &[Program], plan: Plan) -> Result<Report, ConformanceError> {
    let exclusions = exclusions()?;
    let made = programs::make_some(tests)?;
    let files: Vec<_> = made.programs.into_iter().collect();
    let ended = each::run(plan, &files, &[])?;
    let mut report = Report::default();
    for test in tests {
        let how = match ended.get(&test.name) {
            Some(ended) if ended.end == End::Exit(0) => None,
            Some(ended) => Some(ended.end.to_string()),
            None => {
                let begin = format!("{}: ", test.name);
                let words = made
                    .failures
                    .iter()
                    .find_map(|words| words.strip_prefix(&begin));
                Some(format!("not built: {}", words.unwrap_or_default()))
            }
        };
        match (how, exclusions.find(&test.name, "O2")) {
            (None, None) => report.passed += 1,
            (Some(how), None) => report.failed.push((test.name.clone(), how)),
            (Some(_), Some(exclusion)) => {
                *report.excluded.entry(exclusion.class.clone()).or_default() += 1;
            }
            (None, Some(_)) => {
                let how = "passes, but is excluded: take it off the list".to_owned();
                report.failed.push((test.name.clone(), how));
            }
        }
    }
    Ok(report)
}
