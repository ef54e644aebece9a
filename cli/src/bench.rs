//! `postern bench`: the project's figures, each against a baseline that was measured in the same run.
//!
//! A group of figures is one module below this one and one row of [`GROUPS`]. Things that are compared take turns and keep
//! their best ([`clock`]); results of confined code are compared with the native build's, and a difference ends the run.

mod anchors;
mod clock;
mod comparison;
mod domains;
mod ecode;
mod fault;
mod figure;
mod filter;
mod footprint;
mod gates;
mod kernels;
mod lending;
mod load;
mod memory;
mod native;
mod peers;
mod placement;
mod policy;
mod programs;
mod serve;
mod sys;
mod transcode;
mod verifier;

use clap::Args;
use std::path::Path;

use crate::output::{self, Failure, Outcome, REFUSED, SUCCESS};
use figure::Figure;

/// Measure what Postern costs.
#[derive(Args)]
#[command(after_help = "\
Each line is: name, value, unit, baseline, ratio, goal, verdict (ok or short), and how it was measured. A cycle is one step of a
chain of dependent register additions. Groups: gates, kernels, memory, placement, programs, verifier, domains, load, fault, ecode, filter, sys, policy, anchors, serve, transcode. The groups kernels, memory,
placement, programs, verifier and load compile C with `postern cc`; serve needs wrk and libfcgi, and is left out where they are
missing unless it is asked for.

Exit status: 0; with --check 1 if a figure is short of its goal; 2 if a measurement is impossible here.

Example:
  postern bench gates --check")]
pub struct Arguments {
    /// Only the groups and figures whose name begins so
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print an array of figures as JSON
    #[arg(long)]
    json: bool,
    /// Exit with 1 if a figure is short of its goal
    #[arg(long)]
    check: bool,
}

type Measured = Result<Vec<Figure>, String>;

/// A group's name, and what measures it; what it builds goes to the directory.
type Group = (&'static str, fn(&Path) -> Measured);

/// All groups, in the order of the table.
const GROUPS: &[Group] = &[
    ("gates", |_| gates::figures()),
    ("kernels", |directory| {
        kernels::figures(&kernels::build(directory)?)
    }),
    ("memory", memory::figures),
    ("placement", placement::figures),
    ("programs", |_| programs::figures()),
    ("verifier", |directory| {
        verifier::figures(&kernels::build(directory)?)
    }),
    ("domains", |_| domains::figures()),
    ("load", load::figures),
    ("fault", |_| fault::figures()),
    ("ecode", ecode::figures),
    ("filter", |_| filter::figures()),
    ("sys", sys::figures),
    ("policy", |_| policy::figures()),
    ("anchors", |_| anchors::figures()),
    ("serve", serve::figures),
    ("transcode", transcode::figures),
];

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    let wanted = arguments.name.as_deref().unwrap_or("");
    let (group, rest) = wanted
        .split_once('.')
        .map_or((wanted, false), |(group, _)| (group, true));
    let chosen = |name: &str| {
        if rest {
            name == group
        } else {
            name.starts_with(group)
        }
    };
    let directory = tempfile::tempdir().map_err(|error| {
        Failure::unusable(format!(
            "cannot make a directory for what the benchmark builds: {error}"
        ))
    })?;
    let mut figures = Vec::new();
    for (name, measure) in GROUPS.iter().filter(|(name, _)| chosen(name)) {
        if wanted.is_empty() && *name == "serve" && !serve::possible() {
            continue;
        }
        let measured = measure(directory.path())
            .map_err(|error| Failure::unusable(format!("bench {name}: {error}")))?;
        figures.extend(
            measured
                .into_iter()
                .filter(|figure| figure.name.starts_with(wanted)),
        );
    }
    if figures.is_empty() {
        let names: Vec<&str> = GROUPS.iter().map(|(name, _)| *name).collect();
        return Err(Failure::unusable(format!(
            "no figure begins with `{wanted}`; the groups are {}",
            names.join(", ")
        )));
    }
    output::print(&if arguments.json {
        figure::json(&figures)
    } else {
        figure::table(&figures)
    })?;
    let short = arguments.check && figures.iter().any(|figure| figure.reached() == Some(false));
    Ok(if short { REFUSED } else { SUCCESS })
}
