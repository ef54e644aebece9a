//! `bench`: instructions of the kernel's operations, beside Linux in the same emulator.

use clap::Args;
use postern_aegis_machine::compare::Options;
use postern_aegis_machine::figures::Report;
use postern_aegis_machine::linux::Linux;
use postern_aegis_machine::{aegis, bless, place, plot};

use crate::command::{self, Outcome};

/// Count instructions of the kernel's operations, and of Linux's in the same emulator
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    options: Options,
}

/// Measures and prints.
pub fn run(Arguments { options }: &Arguments) -> Outcome {
    command::build()?;
    let folder = place::target();
    command::progress("counting Aegis's instructions");
    let mut aegis = aegis::operations(&folder)?;
    command::progress("counting Aegis's instructions: messages");
    aegis.extend(aegis::messages(&folder)?);
    if options.bless {
        bless::budgets(&aegis)?;
        command::progress("the budgets are what was counted; now `aegis-machine calls --bless`");
        return Ok(true);
    }
    let others = options.others(command::progress, Linux::measure)?;
    let report = Report {
        aegis,
        linux: others.columns,
        ..Report::default()
    };
    options.print(&report, || {
        for note in others.notes {
            println!("Linux as it comes: {note}");
        }
        draw(&report)
    })?;
    Ok(options.is_well(&report))
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
