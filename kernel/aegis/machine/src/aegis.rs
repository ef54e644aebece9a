//! Aegis's own figures: of its operations in a machine that runs the same each time, and of what
//! waits for a peer in another one, whose time goes on while nobody runs.

use std::path::Path;
use std::time::Duration;

use thiserror::Error;

use crate::count::{self, CountError};
use crate::emulator::Machine;
use crate::said::{self, Figures};
use crate::software::{self, SoftwareError};
use crate::status::Status;

/// Why there are no figures.
#[derive(Debug, Error)]
pub enum AegisError {
    /// There is nothing to boot.
    #[error(transparent)]
    Software(#[from] SoftwareError),
    /// It cannot be run and counted.
    #[error(transparent)]
    Count(#[from] CountError),
    /// The program did not come to its end.
    #[error("{said}\n{status}")]
    Failed {
        /// How the machine ended.
        status: Status,
        /// What it said.
        said: String,
    },
}

/// What takes how long inside.
pub fn operations(folder: &Path) -> Result<Figures, AegisError> {
    measure(folder, &[], &alone())
}

/// What takes how long with somebody outside.
pub fn messages(folder: &Path) -> Result<Figures, AegisError> {
    let machine = Machine {
        waits: true,
        network: true,
        ..alone()
    };
    measure(folder, &[("network".to_owned(), String::new())], &machine)
}

fn alone() -> Machine {
    Machine {
        counted: true,
        limit: Duration::from_secs(180),
        ..Machine::default()
    }
}

fn measure(
    folder: &Path,
    parameters: &software::Parameters,
    machine: &Machine,
) -> Result<Figures, AegisError> {
    let software = software::prepare("bench", parameters, folder)?;
    let (ended, counts) = count::run(machine, &software, folder)?;
    match ended.status.is_well() {
        true => Ok(said::figures(
            ended.lines.iter().map(String::as_str),
            &counts,
        )),
        false => Err(AegisError::Failed {
            status: ended.status,
            said: ended.lines.join("\n"),
        }),
    }
}
