//! `test`: the programs that test the kernel from inside, on one processor and on two.

use std::time::Duration;

use clap::Args;
use postern_aegis_machine::emulator::Machine;
use postern_aegis_machine::{place, said, software};

use crate::command::{self, Outcome};

/// Run the tests inside the machine, and the program that calls at random
#[derive(Args)]
pub struct Arguments {
    /// How many processors; without it, one and then two
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8))]
    processors: Option<u32>,
    /// How long calls at random are made; 0: not at all
    #[arg(short, long, default_value_t = 15)]
    seconds: u64,
    /// Where random calls begin; what a failed run says is what repeats it
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs them.
pub fn run(arguments: &Arguments) -> Outcome {
    command::build()?;
    let mut well = true;
    let processors = arguments
        .processors
        .map_or(vec![1, 2], |number| vec![number]);
    for processors in processors {
        let machine = |seconds| Machine {
            processors,
            limit: Duration::from_secs(120 + 4 * seconds),
            network: true,
            disk: true,
            ..Machine::default()
        };
        command::progress(&format!("tests, {processors} processors"));
        let software = software::prepare("tests", &[], &place::target())?;
        let ended = command::show(&machine(0), &software, &[])?;
        let tests = said::tests(ended.lines.iter().map(String::as_str));
        let passed = tests.iter().filter(|test| test.passed).count();
        println!("{passed} of {} tests passed", tests.len());
        well &= ended.status.is_well() && passed == tests.len();
        if arguments.seconds > 0 {
            command::progress(&format!(
                "calls at random, {processors} processors, seed {}",
                arguments.seed
            ));
            let parameters = [
                ("seed".to_owned(), arguments.seed.to_string()),
                ("seconds".to_owned(), arguments.seconds.to_string()),
            ];
            let software = software::prepare("fuzz", &parameters, &place::target())?;
            let ended = command::show(&machine(arguments.seconds), &software, &[])?;
            well &= ended.status.is_well();
        }
    }
    Ok(well)
}
