//! `cpu-manager`: holds processes to their shares of a processor by a confined controller, in three
//! placements, and draws what came of it.
//!
//! `cargo run --release -p postern-example-cpu-manager -- --plot shares.svg`
#![allow(missing_docs)]
#![forbid(unsafe_code)]

use clap::{Parser, ValueEnum};
use postern_example_cpu_manager::error::Error;
use postern_example_cpu_manager::experiment::{self, Options, Placement, Policy};
use postern_example_cpu_manager::report::{self, Run};
use postern_example_cpu_manager::setup::Ticks;
use postern_example_cpu_manager::share::Share;
use postern_example_cpu_manager::{extension, plot, roles};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Hold processes to their shares of a processor by a confined controller
#[derive(Parser)]
#[command(name = "cpu-manager")]
struct Arguments {
    /// Where the manager is
    #[arg(long, value_enum, default_value = "all")]
    placement: Placements,
    /// Seconds of each placement
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// What disturbs the clients
    #[arg(long, value_enum, default_value = "markov")]
    disturbance: Disturbance,
    /// How the disturbance is scheduled when a burst begins
    #[arg(long, value_enum, default_value = "fifo")]
    policy: PolicyName,
    /// A client, with processor time and period in ms; once for each
    #[arg(long, value_name = "TARGET/PERIOD")]
    share: Vec<Share>,
    /// Milliseconds between two looks of the manager
    #[arg(long, default_value_t = 10)]
    tick: u64,
    /// What ticks of threads and upcalls are made of
    #[arg(long, value_enum, default_value = "timer")]
    ticks: TicksName,
    /// Gains of the controller, in 256ths
    #[arg(long, value_name = "P,I,D", value_delimiter = ',', num_args = 1)]
    gains: Vec<i32>,
    /// Seed of the disturbance's times
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The processor on which all of it happens; without it, the last one that is allowed
    #[arg(long)]
    cpu: Option<usize>,
    /// A client that ends early, and when; clients are counted from 0
    #[arg(long, value_name = "CLIENT@MS", value_parser = ends)]
    ends: Vec<(usize, u64)>,
    /// Draw shares over time
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Print all of it as JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print shares over time as comma-separated values
    #[arg(long)]
    csv: bool,
    /// Say nothing of progress
    #[arg(long)]
    quiet: bool,
    /// The extension, built from manager.c; without it, it is built now if need be
    #[arg(long)]
    extension: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Placements {
    /// A real-time process of its own
    Process,
    /// A real-time thread of the host
    Thread,
    /// A handler that interrupts whoever is current
    Upcall,
    /// One after the other
    All,
}

#[derive(Clone, Copy, ValueEnum)]
enum Disturbance {
    None,
    /// A process that computes in bursts: exponential times between them, geometric lengths
    Markov,
}

#[derive(Clone, Copy, ValueEnum)]
enum TicksName {
    /// Timers of the interrupted threads' own processor time; a thread that sleeps
    Timer,
    /// The library's events
    Event,
}

#[derive(Clone, Copy, ValueEnum)]
enum PolicyName {
    Fifo,
    Rr,
    Other,
}

fn ends(text: &str) -> Result<(usize, u64), String> {
    let parts = text.split_once('@');
    let parts = parts.and_then(|(client, time)| client.parse().ok().zip(time.parse().ok()));
    parts.ok_or_else(|| format!("`{text}` is no end: write CLIENT@MILLISECONDS, as 1@4000"))
}

fn main() -> ExitCode {
    // As a process of an experiment; it is told all else on its standard input.
    let role = std::env::args_os()
        .nth(1)
        .is_some_and(|a| a == roles::ARGUMENT);
    let result = if role {
        roles::play()
    } else {
        run(&Arguments::parse())
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cpu-manager: {error}");
            // As clap's.
            ExitCode::from(if matches!(error, Error::Options(_)) {
                2
            } else {
                1
            })
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Error> {
    let placements = match arguments.placement {
        Placements::Process => vec![Placement::Process],
        Placements::Thread => vec![Placement::Thread],
        Placements::Upcall => vec![Placement::Upcall],
        Placements::All => vec![Placement::Process, Placement::Thread, Placement::Upcall],
    };
    let policy = match arguments.policy {
        PolicyName::Fifo => Policy::Fifo,
        PolicyName::Rr => Policy::RoundRobin,
        PolicyName::Other => Policy::Other,
    };
    let gains = match arguments.gains[..] {
        [] => None,
        [p, i, d] => Some([p, i, d]),
        _ => return Err(Error::Options("there are three gains: P,I,D".to_owned())),
    };
    let paper = [(40, 400), (100, 500), (60, 200)].map(|(target, period)| Share {
        target: target * 1000,
        period: period * 1000,
    });
    let shares = match arguments.share[..] {
        [] => paper.to_vec(),
        ref shares => shares.to_vec(),
    };
    let program = std::env::current_exe();
    let mut options = Options {
        placement: Placement::Process,
        seconds: arguments.seconds,
        shares,
        disturbance: match arguments.disturbance {
            Disturbance::None => None,
            Disturbance::Markov => Some((arguments.seed, policy)),
        },
        tick: arguments.tick,
        ticks: match arguments.ticks {
            TicksName::Timer => Ticks::Timer,
            TicksName::Event => Ticks::Event,
        },
        gains,
        cpu: arguments.cpu,
        ends: arguments.ends.clone(),
        program: program.map_err(|error| Error::system("this program", error))?,
        extension: match &arguments.extension {
            Some(path) => path.clone(),
            None => extension::build(&Path::new(env!("CARGO_MANIFEST_DIR")).join("build"))?,
        },
    };
    let mut runs: Vec<Run> = Vec::new();
    for placement in placements {
        options.placement = placement;
        let name = placement.name();
        runs.push(experiment::run(&options, |second| {
            if !arguments.quiet {
                eprintln!("{name}: {second} of {} s", options.seconds);
            }
        })?);
    }
    if let Some(path) = &arguments.plot {
        plot::draw(path, &runs)?;
    }
    if arguments.json {
        let text = serde_json::to_string(&runs);
        println!(
            "{}",
            text.map_err(|error| Error::Options(error.to_string()))?
        );
    } else if arguments.csv {
        print!("{}", report::csv(&runs));
    } else {
        print!("{}", report::table(&runs));
    }
    Ok(())
}
