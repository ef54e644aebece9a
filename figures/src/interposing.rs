//! System calls of an unmodified program under an agent that lets all pass, beside the program
//! alone and under strace.

mod probe;

use crate::figure::{Figure, Goal};
use postern_image::ImageBuilder;
use postern_interpose::Interposer;
use probe::Probe;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Times that a program is started one after the other.
const STARTS: u32 = 40;
/// Of which the best counts.
const ROUNDS: usize = 5;
/// How a shell runs a program, its second word, with its output in a file, its third.
const INTO_FILE: &str = "exec \"$0\" >\"$1\"";

/// Who sees the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Nobody,
    /// An agent; places that make calls are rewritten.
    Agent,
    /// An agent, by the kernel's signal for each call.
    Signal,
    Strace,
}

/// With the last part of a figure's name, and what is measured. The first is the baseline.
const ALL: [(&str, By, &str); 4] = [
    ("native", By::Nobody, "by the program alone"),
    (
        "agent",
        By::Agent,
        "under an agent that lets all calls pass",
    ),
    (
        "signal",
        By::Signal,
        "the same, each by the kernel's signal (`--slow`)",
    ),
    ("strace", By::Strace, "under `strace -f -o /dev/null`"),
];

/// Runs a program with arguments so, until all that it started has ended.
fn run(by: By, agent: &Path, program: &str, arguments: &[&OsStr]) -> Result<(), String> {
    let status = match by {
        By::Nobody => Command::new(program).args(arguments).status(),
        By::Strace => Command::new("strace")
            .args(["-f", "-o", "/dev/null", program])
            .args(arguments)
            .status(),
        By::Agent | By::Signal => {
            let interposer = Interposer::new(agent);
            let interposer = match by {
                By::Signal => interposer.slow(),
                _ => interposer,
            };
            let status = interposer.run(OsStr::new(program), arguments);
            Ok(status.map_err(|error| error.to_string())?)
        }
    };
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{program}: {status}")),
        Err(error) => Err(format!("{program}: {error}")),
    }
}

/// An agent that lets all calls pass.
fn agent(directory: &Path) -> Result<PathBuf, String> {
    // xor %eax, %eax; ret
    let mut builder = ImageBuilder::new([0x31, 0xc0, 0xc3]);
    let signature = "i(p)".parse().map_err(|error| format!("{error}"))?;
    builder.export("pt_agent", 0, Some(signature));
    let file = builder.build().map_err(|error| error.to_string())?;
    let path = directory.join("agent.px");
    std::fs::write(&path, file).map_err(|error| error.to_string())?;
    Ok(path)
}

fn is_there(program: &str) -> bool {
    let version = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    version.is_ok_and(|status| status.success())
}

/// The figures; what is built goes to the directory.
pub fn figures(directory: &Path) -> Result<Vec<Figure>, String> {
    let agent = agent(directory)?;
    let strace = is_there("strace");
    if !strace {
        eprintln!("interpose.*.strace is left out: there is no strace here");
    }
    let all = || {
        ALL.into_iter()
            .filter(|(_, by, _)| strace || *by != By::Strace)
    };
    let mut figures = Vec::new();
    for probe in Probe::ALL {
        let program = probe.write(directory)?;
        let output = directory.join("cycles");
        let mut found = Vec::new();
        for (name, by, what) in all() {
            let arguments = [
                OsStr::new("-c"),
                INTO_FILE.as_ref(),
                program.as_ref(),
                output.as_ref(),
            ];
            run(by, &agent, "sh", &arguments)?;
            found.push((name, by, what, probe.cycles(&output)?));
        }
        let of = |by: By| found.iter().find(|one| one.1 == by).map(|one| one.3);
        let native = of(By::Nobody).ok_or("no baseline")?;
        for (name, by, what, cycles) in &found {
            let call = probe.name();
            let how = format!("a call of {call} {what}, over the program alone");
            let figure = Figure::plain(format!("interpose.{call}.{name}"), *cycles, "cycles", how);
            let figure = figure.against(native);
            figures.push(match by {
                By::Agent => figure.goal(Goal::RatioAtMost(1.4)),
                _ => figure,
            });
        }
        if let Some((agent, strace)) = of(By::Agent).zip(of(By::Strace)) {
            let how = format!(
                "a call of {} under an agent, over one under strace",
                probe.name()
            );
            let name = format!("interpose.{}.beside-strace", probe.name());
            let figure = Figure::plain(name, agent, "cycles", how).against(strace);
            figures.push(figure.goal(Goal::RatioAtMost(0.02)));
        }
    }
    figures.extend(starts(&agent, all())?);
    Ok(figures)
}

/// How long a program takes to start and end, of many that a shell starts one after the other.
fn starts(
    agent: &Path,
    all: impl Iterator<Item = (&'static str, By, &'static str)>,
) -> Result<Vec<Figure>, String> {
    let script = format!("i=0; while [ $i -lt {STARTS} ]; do /bin/true; i=$((i+1)); done");
    let mut figures: Vec<Figure> = Vec::new();
    for (name, by, what) in all {
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            run(by, agent, "sh", &[OsStr::new("-c"), script.as_ref()])?;
            best = best.min(begun.elapsed().as_secs_f64() / f64::from(STARTS));
        }
        let native = figures.first().map_or(best * 1e3, |first| first.value);
        let how = format!("start and end of /bin/true {what}, of {STARTS} by a shell");
        let name = format!("interpose.start.{name}");
        let figure = Figure::plain(name, best * 1e3, "ms", how).against(native);
        figures.push(match by {
            By::Agent => figure.goal(Goal::AtMost(native + 5.0)),
            _ => figure,
        });
    }
    Ok(figures)
}
