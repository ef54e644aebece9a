//! `bench`: instructions of the paper's experiments, beside Linux in the same emulator.

use std::error::Error;

use clap::Args;
use postern_aegis_machine::figures::{Column, Report};
use postern_aegis_machine::linux::{Linux, LinuxError};
use postern_aegis_machine::plot;
use postern_exos_machine::{budgets, build, figures, linux, measure, place, schedules};

/// Count instructions of the paper's experiments, and of the same programs under Linux
#[derive(Args)]
pub struct Arguments {
    /// Print data in place of tables
    #[arg(long)]
    json: bool,
    /// Print the table of the book
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Leave out Linux
    #[arg(long)]
    no_linux: bool,
    /// Only programs whose name contains this
    #[arg(long, default_value = "", value_name = "WORD")]
    only: String,
    /// Which of Debian's kernels stands beside: 6.1 or 6.12
    #[arg(long, default_value = "6.12", value_name = "VERSION")]
    linux: String,
    /// Write the figures over the budgets in the source, and print nothing
    #[arg(long, conflicts_with_all = ["json", "check", "only"])]
    bless: bool,
    /// Exit status 1 when a goal is missed
    #[arg(long)]
    check: bool,
}

/// Measures and prints.
pub fn run(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    let progress = |words: &str| eprintln!("exos-machine: {words}");
    progress("building");
    build::all()?;
    let folder = place::target();
    progress("counting ExOS' instructions");
    let measured = measure::all(&arguments.only, &folder)?;
    if arguments.bless {
        budgets::bless(&measured.figures)?;
        progress("the budgets are what was counted");
        return Ok(true);
    }
    let mut report = Report {
        name: "ExOS",
        tables: figures::TABLES,
        aegis: measured.figures,
        linux: Vec::new(),
    };
    for mitigations_off in [false, true] {
        if arguments.no_linux {
            break;
        }
        let system = Linux {
            version: arguments.linux.clone(),
            mitigations_off,
        };
        let title = match mitigations_off {
            false => format!("Linux {}", system.version),
            true => "mitigations=off".to_owned(),
        };
        progress(&format!("counting Linux's instructions: {title}"));
        match linux::measure(&system, &folder) {
            Err(error @ LinuxError::Kernel(_)) => {
                progress(&error.to_string());
                break;
            }
            baseline => {
                let figures = baseline?.figures;
                report.linux.push(Column { title, figures });
            }
        }
    }
    match (arguments.json, arguments.markdown) {
        (true, _) => print!("{}", report.json()),
        (_, true) => print!("{}", report.markdown()),
        _ => {
            println!(
                "Instructions, counted by the emulator; in brackets loads of CR3, irets and wrmsrs."
            );
            println!("The ratio is of instructions, Linux's as it comes over ExOS'.\n");
            print!("{}", report.text());
            if !measured.shares.points.is_empty() {
                let path = folder.join("shares.svg");
                std::fs::write(&path, plot::svg(&measured.shares, schedules::AXES))?;
                println!(
                    "Figure 3: counters of processes with shares 3:2:1, {}\n",
                    plot::shares(&measured.shares)
                );
                print!("{}", plot::text(&measured.shares, schedules::AXES));
                println!("\nThe same as a picture: {}", path.display());
            }
        }
    }
    Ok(!arguments.check || report.is_well())
}
