//! ExOS' own figures: each program of `programs/bench` alone in a machine that runs the same each
//! time, so that none depends on those before it.

use std::path::Path;
use std::time::Duration;

use postern_aegis_machine::count::{self, CountError};
use postern_aegis_machine::emulator::Machine;
use postern_aegis_machine::said::{self, Figures, Trace};
use postern_aegis_machine::status::Status;
use thiserror::Error;

use crate::executed::ExecutedError;
use crate::extensions::{self, ExtensionsError};
use crate::programs::{self, INVERTED, Program, ProgramsError};
use crate::schedules;
use crate::software::{self, SoftwareError};

/// Why there are no figures.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// There are no programs.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// An extension cannot be made.
    #[error(transparent)]
    Extensions(#[from] ExtensionsError),
    /// There is nothing to boot.
    #[error(transparent)]
    Software(#[from] SoftwareError),
    /// It cannot be run and counted.
    #[error(transparent)]
    Count(#[from] CountError),
    /// Its start cannot be counted.
    #[error(transparent)]
    Executed(#[from] ExecutedError),
    /// A program did not come to its end.
    #[error("{program}: {status}; it said:\n{said}")]
    Failed {
        /// Which.
        program: String,
        /// How the machine ended.
        status: Status,
        /// What it said.
        said: String,
    },
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Instructions by row.
    pub figures: Figures,
    /// Counters of Figure 3, slice by slice.
    pub shares: Trace,
}

/// The program that is measured with both page tables.
const BOTH: &str = "memory";

/// The programs that measure, and those that they start.
pub fn programs() -> Result<Vec<Program>, ProgramsError> {
    Ok(programs::with_inverted(programs::of("bench")?, BOTH))
}

/// Runs the programs whose names contain a word.
pub fn all(only: &str, folder: &Path) -> Result<Measured, MeasureError> {
    let mut programs = programs()?;
    programs.retain(|program| !program.measures() || program.name.contains(only));
    let extensions = extensions::make()?;
    let files = programs::make(&programs)?;
    let measuring = |name: &str| {
        let program = programs.iter().find(|program| program.name == name);
        program.is_some_and(Program::measures)
    };
    let mut measured = Measured::default();
    let machine = Machine {
        counted: true,
        limit: Duration::from_secs(180),
        ..Machine::default()
    };
    for (name, _) in files.iter().filter(|(name, _)| measuring(name)) {
        let mut files = files.clone();
        files.extend(extensions.clone());
        files.push(("init".to_owned(), name.clone().into_bytes()));
        let software = software::prepare(&files, folder)?;
        let (ended, counts) = count::run(&machine, &software, folder)?;
        if !ended.status.is_well() {
            return Err(MeasureError::Failed {
                program: name.clone(),
                status: ended.status,
                said: ended.lines.join("\n"),
            });
        }
        let lines = || ended.lines.iter().map(String::as_str);
        let end = if name.ends_with(INVERTED) {
            INVERTED
        } else {
            ""
        };
        let figures = said::figures(lines(), &counts).into_iter();
        measured
            .figures
            .extend(figures.map(|(row, figure)| (row + end, figure)));
        // The last one is stride scheduling's.
        if let Some(schedule) = schedules::among(&ended.lines).pop() {
            measured.shares = schedule.trace;
        }
    }
    Ok(measured)
}
