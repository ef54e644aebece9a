//! `test` and `conformance`: programs as processes, and how they ended.

use std::error::Error;

use clap::Args;
use postern_exos_machine::each::{End, Plan};
use postern_exos_machine::{build, conformance, inside};

/// Run the tests inside the machine, each as a process
#[derive(Args)]
pub struct Arguments {
    /// How many processors; without it, one and then two
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8))]
    processors: Option<u32>,
    /// Only tests whose name contains this
    #[arg(long, default_value = "", value_name = "WORD")]
    only: String,
    /// Tests that choose at random do so for some minutes
    #[arg(long)]
    long: bool,
}

/// Runs the tests of `programs/tests`.
pub fn run(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    eprintln!("exos-machine: building");
    build::all()?;
    let mut well = true;
    let processors = arguments.processors;
    for processors in processors.map_or(vec![1, 2], |number| vec![number]) {
        eprintln!("exos-machine: tests, {processors} processors");
        let ended = inside::run(processors, &arguments.only, arguments.long)?;
        let passed = ended.values().filter(|ended| ended.end == End::Exit(0));
        let passed = passed.count();
        for (name, ended) in &ended {
            match ended.end {
                End::Exit(0) => println!("test {name} ok"),
                _ => println!("{}\ntest {name} {}", ended.said.join("\n"), ended.end),
            }
        }
        println!("{passed} of {} tests passed", ended.len());
        well &= passed == ended.len();
    }
    Ok(well)
}

/// Run GCC's own execution tests, compiled at -O2, each as a process
#[derive(Args)]
pub struct Conformance {
    /// How many processors
    #[arg(short, long, default_value_t = 1, value_name = "N")]
    processors: u32,
    /// Only tests whose name contains this
    #[arg(long, default_value = "", value_name = "WORD")]
    only: String,
    /// Only each so-many-th test
    #[arg(long, default_value_t = 1, value_name = "N")]
    step: usize,
}

/// Runs them.
pub fn conformance(arguments: &Conformance) -> Result<bool, Box<dyn Error>> {
    eprintln!("exos-machine: building");
    build::all()?;
    let tests = conformance::tests(&arguments.only, arguments.step)?;
    eprintln!("exos-machine: {} tests of GCC's", tests.len());
    let plan = Plan {
        processors: arguments.processors,
        seconds: 30,
        many: 200,
        machines: std::thread::available_parallelism().map_or(2, usize::from),
    };
    let report = conformance::run(&tests, plan)?;
    for (name, how) in &report.failed {
        println!("FAILED {name}: {how}");
    }
    let excluded: Vec<String> = report
        .excluded
        .iter()
        .map(|(class, count)| format!("{class} {count}"))
        .collect();
    println!(
        "passed {}, excluded {} ({}), failed {}",
        report.passed,
        report.excluded.values().sum::<usize>(),
        excluded.join(", "),
        report.failed.len()
    );
    Ok(report.failed.is_empty())
}
