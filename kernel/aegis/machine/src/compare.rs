//! What `bench` has in common wherever a system of ours stands beside Linux: options, Linux's
//! columns, and how all of it is printed.

use clap::Args;

use crate::figures::{Column, Report};
use crate::linux::{Baseline, Linux, LinuxError};

/// Options of a comparison.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Print data in place of tables
    #[arg(long)]
    json: bool,
    /// Print the table of the book
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Leave out Linux
    #[arg(long)]
    no_linux: bool,
    /// Which of Debian's kernels stands beside: 6.1 or 6.12
    #[arg(long, default_value = "6.12", value_name = "VERSION")]
    linux: String,
    /// Write the figures over the budgets in the source, and print nothing
    #[arg(long, conflicts_with_all = ["json", "check"])]
    pub bless: bool,
    /// Exit status 1 when a goal is missed
    #[arg(long)]
    check: bool,
}

/// Linux's side.
#[derive(Clone, Debug, Default)]
pub struct Others {
    /// As it comes, and without what it does about faults of processors.
    pub columns: Vec<Column>,
    /// What it does about them.
    pub notes: Vec<String>,
}

impl Options {
    /// Has Linux measured, unless it is left out or its kernel was not fetched.
    pub fn others(
        &self,
        progress: impl Fn(&str),
        measure: impl Fn(&Linux) -> Result<Baseline, LinuxError>,
    ) -> Result<Others, LinuxError> {
        let mut others = Others::default();
        for mitigations_off in [false, true] {
            if self.no_linux {
                break;
            }
            let linux = Linux {
                version: self.linux.clone(),
                mitigations_off,
            };
            let title = match mitigations_off {
                false => format!("Linux {}", linux.version),
                true => "mitigations=off".to_owned(),
            };
            progress(&format!("counting Linux's instructions: {title}"));
            let baseline = match measure(&linux) {
                Err(error @ LinuxError::Kernel(_)) => {
                    progress(&error.to_string());
                    break;
                }
                baseline => baseline?,
            };
            let notes = baseline.notes.into_iter();
            others.notes.extend(notes.filter(|_| !mitigations_off));
            let figures = baseline.figures;
            others.columns.push(Column { title, figures });
        }
        Ok(others)
    }

    /// Prints a report as it is asked for. For people only, `more` says the rest.
    pub fn print<E>(&self, report: &Report, more: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        match (self.json, self.markdown) {
            (true, _) => print!("{}", report.json()),
            (_, true) => print!("{}", report.markdown()),
            _ => {
                println!(
                    "Instructions, counted by the emulator; in brackets loads of CR3, irets and wrmsrs."
                );
                println!(
                    "The ratio is of instructions, Linux's as it comes over {}'s.\n",
                    report.name
                );
                print!("{}", report.text());
                more()?;
            }
        }
        Ok(())
    }

    /// Whether all is well, as far as that is asked.
    pub fn is_well(&self, report: &Report) -> bool {
        !self.check || report.is_well()
    }
}
