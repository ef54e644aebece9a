//! `bench`: instructions of the kernel's operations, beside Linux in the same emulator.

use clap::Args;
use postern_aegis_machine::figures::{Column, Report};
use postern_aegis_machine::linux::{Linux, LinuxError};
use postern_aegis_machine::{aegis, bless, place, plot};

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
    let folder = place::target();
    command::progress("counting Aegis's instructions");
    let mut aegis = aegis::operations(&folder)?;
    command::progress("counting Aegis's instructions: messages");
    aegis.extend(aegis::messages(&folder)?);
    if arguments.bless {
        bless::budgets(&aegis)?;
        command::progress("the budgets are what was counted; now `aegis-machine calls --bless`");
        return Ok(true);
    }
    let mut report = Report {
        aegis,
        ..Report::default()
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
            draw(&report)?;
        }
    }
    Ok(!arguments.check || report.is_well())
}

/// Draws Figure 2: here, and as a picture.
fn draw(report: &Report) -> std::io::Result<()> {
    let trace = report.latency();
    let path = place::target().join("latency.svg");
    std::fs::write(&path, plot::svg(&trace, plot::LATENCY))?;
    println!("\nFigure 2: from arrival to answer, in thousands of instructions\n");
    print!("{}", plot::text(&trace, plot::LATENCY));
    println!("\nThe same as a picture: {}", path.display());
    Ok(())
}
