//! System calls of an unmodified program under an agent that lets all pass, beside the program
//! alone, the kernel's ways to see them, strace and gVisor.
//!
//! Program and whoever sees its calls are on one processor, where each wakes the other soonest.

mod by;
mod probe;

use crate::figure::{Figure, Goal};
use crate::trusted::dispatch;
use crate::trusted::process::Pinned;
use by::By;
use probe::{CALLS, Probe, ROUNDS};
use std::ffi::OsStr;
use std::path::Path;
use std::time::Instant;

/// Times that a program is started one after the other.
const STARTS: u32 = 40;
/// Rounds of that, in turns, of which the best counts.
const START_ROUNDS: usize = 10;
/// An agent is at most this share of strace: 50 times below it.
const OF_STRACE: f64 = 0.02;

/// The figures; what is built goes to the directory.
pub fn figures(directory: &Path) -> Result<Vec<Figure>, String> {
    let agent = by::agent(directory)?;
    let all = By::here();
    let _pinned = Pinned::new();
    let mut figures = Vec::new();
    for probe in Probe::ALL {
        let program = probe.write(directory)?;
        let output = directory.join("cycles");
        let mut found = Vec::new();
        for &(name, by, what) in &all {
            let cycles = match by {
                By::Dispatch => dispatch::cycles(probe.0, ROUNDS, CALLS),
                by => by
                    .run_into(&agent, &program, &output)
                    .and_then(|()| probe.cycles(&output)),
            };
            match cycles {
                Ok(cycles) => found.push((name, by, what, cycles)),
                // Its sandboxes, and the kernel's ways, are not possible everywhere.
                Err(error) if matches!(by, By::Dispatch | By::Kernel(_) | By::Gvisor) => {
                    eprintln!("interpose.{}.{name} is left out: {error}", probe.name());
                }
                Err(error) => return Err(error),
            }
        }
        let of = |by: By| found.iter().find(|one| one.1 == by).map(|one| one.3);
        let native = of(By::Nobody).ok_or("no baseline")?;
        for (name, by, what, cycles) in &found {
            let how = format!("{} {what}, over the program alone", probe.about());
            let name = format!("interpose.{}.{name}", probe.name());
            let figure = Figure::plain(name, *cycles, "cycles", how).against(native);
            figures.push(match by {
                By::Agent if probe.is_rewritten() => figure.goal(Goal::RatioAtMost(1.4)),
                _ => figure,
            });
        }
        let strace = of(By::Strace).filter(|_| probe.is_rewritten());
        if let Some((agent, strace)) = of(By::Agent).zip(strace) {
            let how = format!("{} under an agent, over one under strace", probe.about());
            let name = format!("interpose.{}.beside-strace", probe.name());
            let figure = Figure::plain(name, agent, "cycles", how).against(strace);
            figures.push(figure.goal(Goal::RatioAtMost(OF_STRACE)));
        }
    }
    figures.extend(starts(&agent, &all)?);
    Ok(figures)
}

/// How long a program takes to start and end, of many that a shell starts one after the other.
fn starts(agent: &Path, all: &[(&'static str, By, &'static str)]) -> Result<Vec<Figure>, String> {
    let script = format!("i=0; while [ $i -lt {STARTS} ]; do /bin/true; i=$((i+1)); done");
    let words = ["sh", "-c", &script].map(OsStr::new);
    // No handler of its own has a program that is executed; a sandbox's own start is no program's.
    let mut all = Vec::from(all);
    all.retain(|(_, by, _)| !matches!(by, By::Dispatch | By::Gvisor));
    let mut best = vec![f64::INFINITY; all.len()];
    for _ in 0..START_ROUNDS {
        for ((_, by, _), best) in all.iter().zip(&mut best) {
            let begun = Instant::now();
            by.run(agent, &words)?;
            *best = best.min(begun.elapsed().as_secs_f64() * 1e3 / f64::from(STARTS));
        }
    }
    let native = best.first().copied().unwrap_or(f64::NAN);
    let figure = |((name, by, what), best): (&(&str, By, &str), &f64)| {
        let how = format!("start and end of /bin/true {what}, of {STARTS} by a shell");
        let name = format!("interpose.start.{name}");
        let figure = Figure::plain(name, *best, "ms", how).against(native);
        match by {
            By::Agent => figure.goal(Goal::AtMost(native + 5.0)),
            _ => figure,
        }
    };
    Ok(all.iter().zip(&best).map(figure).collect())
}
