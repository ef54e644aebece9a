//! `bench`: instructions of the paper's experiments, beside Linux in the same emulator.

use std::error::Error;
use std::path::Path;

use clap::Args;
use postern_aegis_machine::compare::Options;
use postern_aegis_machine::figures::Report;
use postern_aegis_machine::plot;
use postern_aegis_machine::said::Trace;
use postern_exos_machine::{budgets, build, cold, figures, linux, measure, place, schedules};

/// Count instructions of the paper's experiments, and of the same programs under Linux
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    options: Options,
    /// Only programs whose name contains this
    #[arg(
        long,
        default_value = "",
        value_name = "WORD",
        conflicts_with = "bless"
    )]
    only: String,
}

/// Measures and prints.
pub fn run(Arguments { options, only }: &Arguments) -> Result<bool, Box<dyn Error>> {
    let progress = |words: &str| eprintln!("exos-machine: {words}");
    progress("building");
    build::all()?;
    let folder = place::target();
    progress("counting ExOS' instructions");
    let mut measured = measure::all(only, &folder)?;
    if options.bless {
        budgets::bless(&measured.figures)?;
        progress("the budgets are what was counted");
        return Ok(true);
    }
    if cold::NAME.contains(only.as_str()) {
        let figure = cold::of_exos(&folder)?;
        measured.figures.insert(cold::NAME.to_owned(), figure);
    }
    let others = options.others(progress, |system| linux::measure(system, &folder))?;
    let report = Report {
        name: "ExOS",
        tables: figures::TABLES,
        aegis: measured.figures,
        linux: others.columns,
    };
    options.print(&report, || draw(&measured.shares, &folder))?;
    Ok(options.is_well(&report))
}

/// Draws Figure 3, if it was measured: here, and as a picture.
fn draw(shares: &Trace, folder: &Path) -> std::io::Result<()> {
    if shares.points.is_empty() {
        return Ok(());
    }
    let path = folder.join("shares.svg");
    std::fs::write(&path, plot::svg(shares, schedules::AXES))?;
    println!(
        "Figure 3: counters of processes with shares 3:2:1, {}\n",
        plot::shares(shares)
    );
    print!("{}", plot::text(shares, schedules::AXES));
    println!("\nThe same as a picture: {}", path.display());
    Ok(())
}
