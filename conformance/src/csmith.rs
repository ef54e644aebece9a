//! Random programs: csmith makes them free of undefined behaviour, so every correct compilation
//! prints one checksum.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::ProgressBar;
use serde::Serialize;

use crate::native;
use crate::place::PlaceError;
use crate::program::{Outcome, Program};
use crate::torture::{TortureError, bar, joined, lock, set};
use crate::worker::{self, Worker};

/// Its headers.
pub const HEADERS: &str = "/usr/include/csmith";

/// The option sets that are compared.
pub const SETS: &[&str] = &["O0", "O1", "O2", "O3", "Os", "v3"];

/// Native builds at these levels must agree, or nothing is known about the seed.
const NATIVE: &[&str] = &["-O0", "-O2"];

/// Seconds that a native run may take before the seed is passed over.
const NATIVE_SECONDS: u64 = 2;

/// Shapes of programs, one after the other.
const SHAPES: &[&[&str]] = &[
    &["--max-funcs", "5"],
    &["--float", "--max-funcs", "4"],
    &[
        "--packed-struct",
        "--max-funcs",
        "6",
        "--max-block-depth",
        "3",
    ],
    &[
        "--inline-function",
        "--max-funcs",
        "8",
        "--max-expr-complexity",
        "6",
    ],
];

/// What is to be done.
pub struct Plan {
    /// The first seed.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// Worker processes.
    pub jobs: usize,
    /// The command that serves as a worker.
    pub worker: PathBuf,
    /// Where sources of failing seeds are kept.
    pub keep: PathBuf,
    /// Options and sources for confined builds only.
    pub confined: Vec<String>,
    /// Draw a progress bar.
    pub progress: bool,
}

/// The result.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Seeds for which every confined build printed the native checksum.
    pub passed: u64,
    /// Seeds that run too long natively, or about which native builds disagree.
    pub skipped: u64,
    /// Seed, option set and what was wrong.
    pub failures: Vec<(u64, String, String)>,
}

/// Whether csmith and its headers are there.
///
/// # Errors
/// The package to install.
pub fn present() -> Result<(), PlaceError> {
    let missing = |what, path: &str, package| {
        Err(PlaceError::Missing {
            what,
            path: path.to_owned(),
            package,
        })
    };
    if !Path::new(HEADERS).join("csmith.h").exists() {
        return missing("csmith's headers", HEADERS, "libcsmith-dev");
    }
    if Command::new("csmith").arg("--version").output().is_err() {
        return missing("csmith", "the path", "csmith");
    }
    Ok(())
}

/// Carries out `plan`.
///
/// # Errors
/// Only what keeps it from being carried out.
pub fn run(plan: &Plan) -> Result<Report, TortureError> {
    present()?;
    let next = AtomicU64::new(plan.first);
    worker::prepare().map_err(TortureError::Library)?;
    let bar = bar(plan.count, plan.progress);
    let report = Mutex::new(Report::default());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.jobs.max(1))
            .map(|_| scope.spawn(|| thread(plan, &next, &bar, &report)))
            .collect();
        joined(threads)
    })?;
    bar.finish_and_clear();
    let mut report = report.into_inner().unwrap_or_else(|e| e.into_inner());
    report.failures.sort();
    Ok(report)
}

fn thread(
    plan: &Plan,
    next: &AtomicU64,
    bar: &ProgressBar,
    report: &Mutex<Report>,
) -> Result<(), TortureError> {
    let mut worker = Worker::new(plan.worker.clone())?;
    let scratch = tempfile::tempdir()?;
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= plan.first + plan.count {
            return Ok(());
        }
        let source = scratch.path().join(format!("seed-{seed}.c"));
        generate(seed, &source)?;
        match one(&source, &plan.confined, &mut worker)? {
            None => lock(report).skipped += 1,
            Some(differences) if differences.is_empty() => lock(report).passed += 1,
            Some(differences) => {
                std::fs::create_dir_all(&plan.keep)?;
                let kept = plan.keep.join(format!("seed-{seed}.c"));
                std::fs::copy(&source, &kept)?;
                for (set, why) in differences {
                    bar.suspend(|| {
                        println!("FAILED seed {seed} {set}: {why} ({})", kept.display())
                    });
                    lock(report).failures.push((seed, set.to_owned(), why));
                }
            }
        }
        std::fs::remove_file(&source)?;
        bar.inc(1);
    }
}

/// Writes the program of a seed.
///
/// # Errors
/// csmith cannot be run, or says why not.
pub fn generate(seed: u64, to: &Path) -> Result<(), PlaceError> {
    let shape = SHAPES[(seed % SHAPES.len() as u64) as usize];
    let output = Command::new("csmith")
        .arg("--seed")
        .arg(seed.to_string())
        .arg("--concise")
        .args(shape)
        .arg("--output")
        .arg(to)
        .current_dir(to.parent().unwrap_or(Path::new(".")))
        .output()
        .map_err(PlaceError::file(to))?;
    if output.status.success() {
        return Ok(());
    }
    Err(PlaceError::Command {
        command: "csmith",
        messages: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

fn program(source: &Path, options: &[&str], confined: &[String]) -> Program {
    let mut flags: Vec<String> = ["-w", "-isystem", HEADERS].map(str::to_owned).to_vec();
    flags.extend(options.iter().map(|&o| o.to_owned()));
    Program {
        sources: vec![source.to_owned()],
        flags,
        confined: confined.to_vec(),
        seconds: NATIVE_SECONDS,
    }
}

/// How the program ends natively; none if that takes long, or if native builds disagree.
///
/// # Errors
/// Files that cannot be read or written.
pub fn natively(source: &Path) -> Result<Option<Outcome>, PlaceError> {
    let mut expected: Option<Outcome> = None;
    for level in NATIVE {
        let outcome = native::build_and_run(&program(source, &[level], &[]))?;
        if !outcome.succeeded() || expected.as_ref().is_some_and(|e| *e != outcome) {
            return Ok(None);
        }
        expected = Some(outcome);
    }
    Ok(expected)
}

/// The differences, by option set; none if native builds say nothing.
fn one(
    source: &Path,
    confined: &[String],
    worker: &mut Worker,
) -> Result<Option<Vec<(&'static str, String)>>, TortureError> {
    let Some(expected) = natively(source)? else {
        return Ok(None);
    };
    let mut differences = Vec::new();
    for name in SETS {
        let mut program = program(source, set(name).unwrap_or_default(), confined);
        program.seconds = 20 * NATIVE_SECONDS;
        let got = worker.run(&program)?;
        if got != expected {
            differences.push((*name, format!("{got}; natively {expected}")));
        }
    }
    Ok(Some(differences))
}
