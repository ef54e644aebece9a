//! `demo`: a shell with a disk and a web server, then a script of the shell that shows what
//! programs have, then Figure 3 of the paper, run and drawn.

mod outside;
mod served;

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use postern_aegis_machine::emulator::Machine;
use postern_aegis_machine::plot;
use postern_exos_machine::{build, extensions, place, programs, schedules, software};

/// Show what there is: a shell, a disk, a web server with code of others, the paper's experiments
#[derive(Args)]
pub struct Arguments {
    /// How many processors
    #[arg(short, long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8))]
    processors: u32,
    /// Where to draw the shares, a picture for each policy; by default where ExOS is built
    #[arg(long, value_name = "FOLDER")]
    figures: Option<PathBuf>,
}

/// The program that shows it.
const PROGRAM: &str = "figure3";

/// A program of the script that is there with both page tables.
const BOTH: &str = "cat";

/// Runs everything.
pub fn run(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    eprintln!("exos-machine: building");
    build::all()?;
    let begun = Instant::now();
    println!("ExOS: what an operating system does, as a library in each program.");
    println!("Lines with a bar are the machine's serial line; the rest is this side.\n");
    served::run(arguments.processors)?;
    let well = script(arguments)? & figure(arguments)?;
    let seconds = begun.elapsed().as_secs();
    match well {
        true => println!("All of it held, in {seconds} seconds. `make exos` boots to the shell."),
        false => println!("Not all of it held: see above."),
    }
    Ok(well)
}

/// The script: processes, pagers, extensions, ends.
fn script(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    let path = place::sources().join("programs/demo/demo.sh");
    let script = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut programs = programs::commands()?;
    programs.extend(programs::of("demo")?);
    let mut files = programs::make(&programs::with_inverted(programs, BOTH))?;
    files.push(("init".to_owned(), b"sh demo.sh".to_vec()));
    files.push(("demo.sh".to_owned(), script));
    files.extend(extensions::make()?);
    let folder = tempfile::tempdir()?;
    let software = software::prepare(&files, folder.path())?;
    let machine = Machine {
        processors: arguments.processors,
        limit: Duration::from_secs(120),
        ..Machine::default()
    };
    let print = |line: &str| {
        // Its own headings have numbers.
        let number = line
            .split_once(". ")
            .map(|(number, _)| number.parse::<u32>());
        if line.starts_with("aegis: ") {
            return;
        }
        match line.is_empty() || matches!(number, Some(Ok(_))) {
            true => println!("{line}"),
            false => println!("  | {line}"),
        }
    };
    let ended = machine.run(&software, print)?;
    println!("  {}\n", ended.status);
    Ok(ended.status.is_well())
}

/// Figure 3.
fn figure(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    let mut programs = programs::of("demo")?;
    programs.retain(|program| program.name == PROGRAM);
    let mut files = programs::make(&programs)?;
    files.push(("init".to_owned(), PROGRAM.as_bytes().to_vec()));
    let folder = tempfile::tempdir()?;
    let software = software::prepare(&files, folder.path())?;
    let machine = Machine {
        processors: arguments.processors,
        counted: true,
        limit: Duration::from_secs(60),
        ..Machine::default()
    };
    println!("13. Figure 3 of the paper: a scheduler of the program's own gives 3 : 2 : 1.");
    let ended = machine.run(&software, |_| {})?;
    let schedules = schedules::among(&ended.lines);
    if schedules.is_empty() {
        println!("{}", ended.lines.join("\n"));
    }
    let figures = arguments.figures.clone().unwrap_or_else(place::target);
    for schedule in &schedules {
        let path = figures.join(format!("{}.svg", schedule.policy));
        std::fs::write(&path, plot::svg(&schedule.trace, schedules::AXES))?;
        print!("{}", schedules::text(schedule));
        println!("\nThe same as a picture: {}\n", path.display());
    }
    println!("  {}\n", ended.status);
    Ok(ended.status.is_well() && !schedules.is_empty())
}
