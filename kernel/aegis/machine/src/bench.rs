//! `bench`: instructions of the kernel's operations, beside Linux in the same emulator.

use std::time::Duration;

use clap::Args;
use postern_aegis_machine::emulator::Machine;
use postern_aegis_machine::figures::{Column, Report};
use postern_aegis_machine::linux::{Linux, LinuxError};
use postern_aegis_machine::{bless, count, place, said, software};

use crate::command::{self, Outcome};

/// Count instructions of the kernel's operations, and of Linux's in the same emulator
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
    /// Which of Debian's kernels stands beside: 6.1 or 6.12
    #[arg(long, default_value = "6.12", value_name = "VERSION")]
    linux: String,
    /// Write the figures over the budgets in the source, and print nothing
    #[arg(long, conflicts_with_all = ["json", "check"])]
    bless: bool,
    /// Exit status 1 when a goal is missed
    #[arg(long)]
    check: bool,
}

/// Measures and prints.
pub fn run(arguments: &Arguments) -> Outcome {
    command::build()?;
    let software = software::prepare("bench", &[], &place::target())?;
    let machine = Machine {
        counted: true,
        limit: Duration::from_secs(300),
        network: true,
        disk: true,
        ..Machine::default()
    };
    command::progress("counting Aegis's instructions");
    let (ended, counts) = count::run(&machine, &software, &place::target())?;
    if !ended.status.is_well() {
        println!("{}", ended.lines.join("\n"));
        command::progress(&ended.status.to_string());
        return Ok(false);
    }
    let aegis = said::figures(ended.lines.iter().map(String::as_str), &counts);
    if arguments.bless {
        bless::budgets(&aegis)?;
        command::progress("the budgets are what was counted; now `aegis-machine calls --bless`");
        return Ok(true);
    }
    let mut report = Report {
        aegis,
        linux: Vec::new(),
    };
    let mut notes = Vec::new();
    for mitigations_off in [false, true] {
        if arguments.no_linux {
            break;
        }
        let linux = Linux {
            version: arguments.linux.clone(),
            mitigations_off,
        };
        let title = match mitigations_off {
            false => format!("Linux {}", linux.version),
            true => "mitigations=off".to_owned(),
        };
        command::progress(&format!("counting Linux's instructions: {title}"));
        match linux.measure() {
            Err(error @ LinuxError::Kernel(_)) => {
                command::progress(&error.to_string());
                break;
            }
            measured => {
                let baseline = measured?;
                notes.extend(baseline.notes.into_iter().filter(|_| !mitigations_off));
                report.linux.push(Column {
                    title,
                    figures: baseline.figures,
                });
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
            println!("The ratio is of instructions, Linux's as it comes over Aegis's.\n");
            print!("{}", report.text());
            for note in notes {
                println!("Linux as it comes: {note}");
            }
        }
    }
    Ok(!arguments.check || report.is_well())
}
