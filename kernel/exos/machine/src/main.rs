//! `exos-machine`: builds ExOS, packs programs, and boots them in an emulator.
#![forbid(unsafe_code)]

mod bench;
mod tests;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use postern_aegis_machine::emulator::Machine;
use postern_exos_machine::{build, extensions, place, programs, software};

/// Build ExOS and boot programs on it in an emulator.
#[derive(Parser)]
#[command(name = "exos-machine", version, max_term_width = 120)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Boot(Boot),
    Test(tests::Arguments),
    Bench(bench::Arguments),
    Conformance(tests::Conformance),
}

/// Boot a program as the first process
#[derive(Args)]
struct Boot {
    /// What the first process is called with
    #[arg(default_value = "sh")]
    line: String,
    /// Files for the archive: `NAME=PATH`
    #[arg(short, long = "file", value_name = "NAME=PATH")]
    files: Vec<String>,
    /// How many processors
    #[arg(short, long, default_value_t = 1)]
    processors: u32,
    /// End the machine after so many seconds; without it, the terminal is the serial line
    #[arg(short, long, value_name = "SECONDS")]
    limit: Option<u64>,
}

fn boot(arguments: &Boot) -> Result<bool, Box<dyn Error>> {
    build::all()?;
    let made = programs::make_some(&programs::all()?)?;
    for words in made.failures {
        eprintln!("exos-machine: left out: {words}");
    }
    let mut files: Vec<_> = made.programs.into_iter().collect();
    files.extend(extensions::make()?);
    files.push(("init".to_owned(), arguments.line.clone().into_bytes()));
    for file in &arguments.files {
        let (name, path) = file.split_once('=').ok_or("a file is NAME=PATH")?;
        files.push((name.to_owned(), std::fs::read(PathBuf::from(path))?));
    }
    let software = software::prepare(&files, &place::target())?;
    let mut machine = Machine {
        processors: arguments.processors,
        ..Machine::default()
    };
    let status = match arguments.limit {
        None => machine.attend(&software)?,
        Some(limit) => {
            machine.limit = Duration::from_secs(limit);
            machine.run(&software, |line| println!("{line}"))?.status
        }
    };
    eprintln!("exos-machine: {status}");
    Ok(status.is_well())
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Boot(arguments) => boot(&arguments),
        Command::Test(arguments) => tests::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Conformance(arguments) => tests::conformance(&arguments),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("exos-machine: {error}");
            ExitCode::from(2)
        }
    }
}
