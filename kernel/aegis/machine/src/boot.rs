//! `pack` and `boot`: any root program, by its name.

use std::error::Error;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use postern_aegis_machine::emulator::{DEBUGGER, Machine};
use postern_aegis_machine::{place, software};

use crate::command::{self, Outcome};

/// Write what the kernel is booted with to a file
#[derive(Args)]
pub struct PackArguments {
    /// The root environment's program
    root: String,
    /// Where to write it
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// A small file of the archive: `seed=5`
    #[arg(short, long = "set", value_name = "NAME=VALUE", value_parser = parameter)]
    parameters: Vec<(String, String)>,
}

/// Boot a root program
#[derive(Args)]
pub struct Arguments {
    /// The root environment's program
    #[arg(default_value = "monitor")]
    root: String,
    /// How many processors
    #[arg(short, long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8))]
    processors: u32,
    /// Count instructions: a nanosecond of the machine's is one, and every run is the same
    #[arg(short, long)]
    counted: bool,
    /// End the machine after so many seconds; without it, the terminal is the serial line
    #[arg(short, long, value_name = "SECONDS")]
    limit: Option<u64>,
    /// Wait for gdb before the first instruction
    #[arg(short, long)]
    gdb: bool,
    /// A small file of the archive: `seed=5`
    #[arg(short, long = "set", value_name = "NAME=VALUE", value_parser = parameter)]
    parameters: Vec<(String, String)>,
}

/// A parameter as it is written on the command line.
pub fn parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it is NAME=VALUE")?;
    match name.is_empty() {
        true => Err("the name is empty".to_owned()),
        false => Ok((name.to_owned(), value.to_owned())),
    }
}

/// Writes a package.
pub fn pack(arguments: &PackArguments) -> Result<(), Box<dyn Error>> {
    command::build()?;
    let bytes = software::package(&arguments.root, &arguments.parameters)?;
    Ok(std::fs::write(&arguments.output, bytes)?)
}

/// Boots a root program, at the terminal or for some time.
pub fn boot(arguments: &Arguments) -> Outcome {
    command::build()?;
    let software = software::prepare(&arguments.root, &arguments.parameters, &place::target())?;
    let mut machine = Machine {
        processors: arguments.processors,
        counted: arguments.counted,
        debugged: arguments.gdb,
        network: true,
        disk: true,
        ..Machine::default()
    };
    if arguments.gdb {
        eprintln!(
            "aegis-machine: the machine waits for gdb; in another terminal:\n  \
             gdb {} -ex 'target remote {DEBUGGER}' -ex 'hbreak kernel_first' -ex continue",
            software.kernel.display()
        );
    }
    let Some(limit) = arguments.limit else {
        if std::io::stdin().is_terminal() {
            eprintln!("aegis-machine: this terminal is the serial line; Ctrl-A, then X leaves");
        }
        let status = machine.attend(&software)?;
        eprintln!("\naegis-machine: {status}");
        return Ok(status.is_well());
    };
    machine.limit = Duration::from_secs(limit);
    let ended = command::show(&machine, &software, &[])?;
    Ok(ended.status.is_well())
}
