//! `postern-bench`: all groups of figures. `postern bench` hands over to it what it does not
//! measure by itself.

use clap::Parser;
use postern_bench::GROUPS;
use postern_figures::command::{self, list};
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// Measure what Postern costs: all groups
#[derive(Parser)]
#[command(name = "postern bench", max_term_width = 120)]
struct Bench {
    #[command(flatten)]
    asked: command::Arguments,
}

/// Exit code with `--check` if a figure is short of its goal.
const SHORT: u8 = 1;
/// Exit code for what cannot be measured.
const UNUSABLE: u8 = 2;

fn main() -> ExitCode {
    let Bench { asked } = Bench::parse();
    let report = match asked.list {
        true => Ok((list(GROUPS), false)),
        false => asked
            .measure(GROUPS)
            .map(|report| (report.text, report.short)),
    };
    match report {
        Ok((text, short)) => match std::io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                eprintln!("postern: cannot write to stdout: {error}");
                ExitCode::from(UNUSABLE)
            }
            _ if short => ExitCode::from(SHORT),
            _ => ExitCode::SUCCESS,
        },
        Err(error) => {
            eprintln!("postern: {error}");
            ExitCode::from(UNUSABLE)
        }
    }
}
