//! `demo`: the demonstration, with the shares of the processor drawn.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use postern_aegis_machine::emulator::Machine;
use postern_aegis_machine::{place, plot, said, software};

use crate::command::{self, Outcome};

/// Run the demonstration, and draw the trace of its shares
#[derive(Args)]
pub struct Arguments {
    /// How many processors
    #[arg(short, long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8))]
    processors: u32,
    /// Where to draw the trace
    #[arg(long, value_name = "FILE.svg")]
    trace: Option<PathBuf>,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Outcome {
    command::build()?;
    let software = software::prepare("demo", &[], &place::target())?;
    let machine = Machine {
        processors: arguments.processors,
        limit: Duration::from_secs(300),
        network: true,
        disk: true,
        ..Machine::default()
    };
    let ended = command::show(&machine, &software, &["trace"])?;
    let trace = said::trace(ended.lines.iter().map(String::as_str));
    if trace.points.is_empty() {
        command::progress("no trace of shares was said");
        return Ok(false);
    }
    let path = arguments.trace.clone();
    let path = path.unwrap_or_else(|| place::target().join("shares.svg"));
    std::fs::write(&path, plot::svg(&trace, plot::SHARES))?;
    print!("\n{}", plot::text(&trace, plot::SHARES));
    println!(
        "\n{} slices; the same as a picture: {}",
        plot::shares(&trace),
        path.display()
    );
    Ok(ended.status.is_well())
}
