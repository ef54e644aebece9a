//! The command `postern-conformance`: GCC's tests and random programs, native against confined. A
//! development tool.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use postern_conformance::exclusions::Exclusions;
use postern_conformance::{csmith, suite, torture, worker};

/// Compares confined programs with native ones
#[derive(Parser)]
#[command(name = "postern-conformance")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run GCC's own execution tests (gcc.c-torture/execute)
    Torture(Torture),
    /// Run random programs of csmith
    Csmith(Csmith),
    /// Serve as a worker process (used by the other commands)
    #[command(hide = true)]
    Worker,
}

#[derive(clap::Args)]
struct Torture {
    /// Option sets, separated by commas, or `all`
    #[arg(long, value_delimiter = ',', default_values_t = torture::USUAL.iter().map(|s| (*s).to_owned()))]
    options: Vec<String>,
    /// Only tests whose name contains one of these, separated by commas
    #[arg(long, value_delimiter = ',')]
    filter: Vec<String>,
    /// The programs of gcc.dg/torture and g++.dg/torture, too
    #[arg(long)]
    more: bool,
    /// Only every Nth test
    #[arg(long, default_value_t = 1)]
    sample: usize,
    /// Worker processes
    #[arg(long, default_value_t = cores())]
    jobs: usize,
    /// Options and sources for confined builds only, separated by spaces
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    confined: String,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Csmith {
    /// How many programs
    #[arg(long, short = 'n', default_value_t = 100)]
    count: u64,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Worker processes
    #[arg(long, default_value_t = cores())]
    jobs: usize,
    /// Where the sources of failing seeds are kept
    #[arg(long, default_value = "target/csmith")]
    keep: PathBuf,
    /// Options and sources for confined builds only, separated by spaces
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    confined: String,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get)
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Torture(arguments) => torture_tests(&arguments),
        Command::Csmith(arguments) => random_programs(&arguments),
        Command::Worker => worker::serve().map(|()| true).map_err(Into::into),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("postern-conformance: {error}");
            ExitCode::from(2)
        }
    }
}

type Outcome = Result<bool, Box<dyn std::error::Error>>;

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn myself() -> std::io::Result<PathBuf> {
    std::env::current_exe()
}

fn torture_tests(arguments: &Torture) -> Outcome {
    let mut sets = Vec::new();
    for (name, _) in torture::SETS {
        if arguments.options.iter().any(|o| o == name || o == "all") {
            sets.push(*name);
        }
    }
    if let Some(unknown) = arguments
        .options
        .iter()
        .find(|o| *o != "all" && torture::set(o).is_none())
    {
        let names: Vec<&str> = torture::SETS.iter().map(|(name, _)| *name).collect();
        return Err(format!(
            "unknown option set `{unknown}`; there are {}",
            names.join(", ")
        )
        .into());
    }
    let exclusions = Exclusions::ours()?;
    let all = suite::tests()?;
    let names: Vec<&str> = all.iter().map(|test| test.name.as_str()).collect();
    let unknown = exclusions.unknown(&names);
    let found = all.len();
    let tests = all
        .iter()
        .filter(|test| arguments.more || !test.more)
        .filter(|test| {
            let asked = |part: &String| test.name.contains(part);
            arguments.filter.is_empty() || arguments.filter.iter().any(asked)
        })
        .step_by(arguments.sample.max(1))
        .cloned()
        .collect();
    let plan = torture::Plan {
        tests,
        sets,
        jobs: arguments.jobs,
        worker: myself()?,
        confined: words(&arguments.confined),
        progress: !arguments.json,
    };
    let report = torture::run(&plan, &exclusions)?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{} of {found} tests", plan.tests.len());
        for (set, counts) in &report.counts {
            println!("{set}: {counts}");
        }
    }
    for name in &unknown {
        eprintln!("postern-conformance: the exclusion `{name}` names no test");
    }
    Ok(report.failures.is_empty() && unknown.is_empty())
}

fn random_programs(arguments: &Csmith) -> Outcome {
    let report = csmith::run(&csmith::Plan {
        first: arguments.seed,
        count: arguments.count,
        jobs: arguments.jobs,
        worker: myself()?,
        confined: words(&arguments.confined),
        keep: arguments.keep.clone(),
        progress: !arguments.json,
    })?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        let mut seeds: Vec<u64> = report.failures.iter().map(|(seed, _, _)| *seed).collect();
        seeds.dedup();
        println!(
            "seeds {} to {}: passed {}, failed {}, skipped {}",
            arguments.seed,
            arguments.seed + arguments.count.max(1) - 1,
            report.passed,
            seeds.len(),
            report.skipped
        );
    }
    Ok(report.failures.is_empty())
}
