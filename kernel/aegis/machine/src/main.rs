//! `aegis-machine`: builds Aegis, packs what it boots with, and runs it in an emulator.
//!
//! One module per subcommand; what they share stands in [`command`].
#![forbid(unsafe_code)]

mod bench;
mod boot;
mod command;
mod demo;
mod tests;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use postern_aegis_machine::{bless, reference};

/// Build, pack and boot Aegis in an emulator.
#[derive(Parser)]
#[command(
    name = "aegis-machine",
    version,
    max_term_width = 120,
    after_help = "\
Exit status: 0 if all went well, 1 if the machine or a test says otherwise, 2 for wrong options or what is missing.

Examples:
  aegis-machine boot                  the monitor, with this terminal on the serial line
  aegis-machine boot hello -p 2       a root program by its name, on two processors
  aegis-machine bench --json          figures as data"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the kernel and its programs
    Build,
    Pack(boot::PackArguments),
    Boot(boot::Arguments),
    Demo(demo::Arguments),
    Test(tests::Arguments),
    Bench(bench::Arguments),
    Calls(CallsArguments),
}

/// Print the tables of calls and errors, as the book has them
#[derive(Args)]
struct CallsArguments {
    /// Write them into the book instead
    #[arg(long)]
    bless: bool,
}

fn calls(arguments: &CallsArguments) -> command::Outcome {
    match arguments.bless {
        true => bless::page()?,
        false => print!("{}\n{}", reference::calls(), reference::errors()),
    }
    Ok(true)
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Build => command::build().map(|()| true),
        Command::Pack(arguments) => boot::pack(&arguments).map(|()| true),
        Command::Boot(arguments) => boot::boot(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Test(arguments) => tests::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Calls(arguments) => calls(&arguments),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("aegis-machine: {error}");
            ExitCode::from(2)
        }
    }
}
