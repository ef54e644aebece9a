//! `postern bench`: what Postern costs on this machine.
//!
//! The command has the groups that every user can measure. All others are in a program of their
//! own, `postern-bench`, which needs compilers, servers and other people's programs to compare
//! with; where it has been built, this command hands its arguments on to it.

use clap::Args;
use postern_figures::command::{self, list, names};
use postern_figures::{CORE, program};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::output::{self, Failure, Outcome, REFUSED, SUCCESS};

/// Measure what Postern costs.
#[derive(Args)]
#[command(after_help = "\
Each line is: name, value, unit, baseline, ratio, goal, verdict (ok or short), and how it was measured. A cycle is one step of a
chain of dependent register additions. Without NAME, the command's own groups are measured: gates, kernels (which compiles C with
`postern cc`), domains and fault. All others are those of the program postern-bench, which `make bench-build` makes in Postern's
sources; it is looked for beside this command, in the sources' bench/target/release and on the PATH. --list names all.

Exit status: 0; with --check 1 if a figure is short of its goal; 2 if a measurement is impossible here.

Example:
  postern bench gates fault --check")]
pub struct Arguments {
    #[command(flatten)]
    asked: command::Arguments,
}

/// Where the sources have the program with all groups, seen from where they have the command.
const IN_SOURCES: &str = "../../bench/target/release";

/// Runs the command.
pub fn run(Arguments { asked }: &Arguments) -> Outcome {
    let others = program::find(program::GROUPS, IN_SOURCES);
    match others {
        Some(others) if asked.list || !asked.names_only(CORE) => return Err(hand_on(&others)),
        Some(_) => {}
        None if asked.list => {
            output::print(&list(CORE))?;
            output::complain(&absent());
            return Ok(SUCCESS);
        }
        None => {
            if let Some(name) = asked.unknown(CORE) {
                let message = format!(
                    "no figure of {} begins with `{name}`; {}",
                    names(CORE),
                    absent()
                );
                return Err(Failure::unusable(message));
            }
            if asked.all {
                return Err(Failure::unusable(absent()));
            }
        }
    }
    let report = asked.measure(CORE).map_err(Failure::unusable)?;
    output::print(&report.text)?;
    Ok(if report.short { REFUSED } else { SUCCESS })
}

/// What to do for the other groups.
fn absent() -> String {
    format!(
        "other groups are those of {}, which is not here: `make bench-build` in Postern's sources builds it",
        program::GROUPS
    )
}

/// Becomes the program with all groups; returns only if it cannot be run.
fn hand_on(others: &Path) -> Failure {
    let this = std::env::current_exe();
    let made = |file: &Path| file.metadata().and_then(|data| data.modified()).ok();
    if let Ok(this) = &this
        && made(others) < made(this)
    {
        output::complain(&format!(
            "{} is older than this command: what it measures may be, too (`make bench-build`)",
            others.display()
        ));
    }
    let mut command = Command::new(others);
    // Behind `postern bench`.
    command.args(std::env::args_os().skip(2));
    if let Ok(this) = this {
        command.env(program::COMMAND, this);
    }
    let error = command.exec();
    Failure::unusable(format!("cannot run {}: {error}", others.display()))
}
