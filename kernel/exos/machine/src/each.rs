//! Programs as processes, one after the other: many in a machine, and a fresh machine for those
//! that are left when one has brought it down.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use postern_aegis_machine::emulator::{EmulatorError, Machine};
use postern_aegis_machine::status::Status;
use thiserror::Error;

use crate::extensions::ExtensionsError;
use crate::programs::{self, ProgramsError};
use crate::software::{self, SoftwareError};

/// Why nothing was run.
#[derive(Debug, Error)]
pub enum EachError {
    /// There is no program that starts the others.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// An extension that the programs load cannot be made.
    #[error(transparent)]
    Extensions(#[from] ExtensionsError),
    /// There is nothing to boot.
    #[error(transparent)]
    Software(#[from] SoftwareError),
    /// The emulator.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
    /// Nothing was started.
    #[error("the machine started no program: {status}; it said:\n{said}")]
    Nothing {
        /// How it ended.
        status: Status,
        /// What it said.
        said: String,
    },
    /// A folder for what is booted.
    #[error("no folder for what is booted: {0}")]
    Folder(std::io::Error),
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With a status.
    Exit(u8),
    /// By a signal.
    Signal(u8),
    /// It ran longer than it was given.
    Late,
    /// It was not started, or nobody knows how it ended.
    Lost(String),
    /// It brought the machine down.
    Machine(Status),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Exit(126) => f.write_str("was not started"),
            End::Exit(status) => write!(f, "ended with status {status}"),
            End::Signal(number) => write!(f, "was ended by signal {number}"),
            End::Late => f.write_str("took too long"),
            End::Lost(why) => write!(f, "was lost: {why}"),
            End::Machine(status) => write!(f, "brought the machine down: {status}"),
        }
    }
}

/// A program's end, and what was said from its begin on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub end: End,
    /// Lines, its own and others'.
    pub said: Vec<String>,
}

/// How programs are run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Processors of each machine.
    pub processors: u32,
    /// Seconds that each program has.
    pub seconds: u32,
    /// Programs in a machine at most.
    pub many: usize,
    /// Machines at a time.
    pub machines: usize,
}

/// Names and contents of files.
pub type Files = [(String, Vec<u8>)];

/// Runs programs, each as a process; `more` are files that they find besides.
pub fn run(plan: Plan, files: &Files, more: &Files) -> Result<BTreeMap<String, Ended>, EachError> {
    let runner = programs::make(&programs::of("machine")?)?;
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let queue = Mutex::new(
        names
            .chunks(plan.many.max(1))
            .map(<[&str]>::to_vec)
            .collect(),
    );
    let all = Mutex::new(BTreeMap::new());
    let worker = || -> Result<(), EachError> {
        let folder = tempfile::tempdir().map_err(EachError::Folder)?;
        while let Some(names) = take(&queue) {
            let chosen = files
                .iter()
                .filter(|(name, _)| names.contains(&name.as_str()));
            let mut booted: Vec<_> = chosen.chain(&runner).chain(more).cloned().collect();
            booted.push((
                "each.list".to_owned(),
                (names.join("\n") + "\n").into_bytes(),
            ));
            let line = format!("each each.list {}", plan.seconds);
            booted.push(("init".to_owned(), line.into_bytes()));
            let ended = boot(plan, &booted, names.len(), folder.path())?;
            let left: Vec<&str> = names
                .iter()
                .copied()
                .filter(|name| !ended.contains_key(*name))
                .collect();
            lock(&all).extend(ended);
            if !left.is_empty() {
                lock(&queue).push(left);
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..plan.machines.max(1))
            .map(|_| scope.spawn(worker))
            .collect();
        let mut outcome = Ok(());
        for worker in workers {
            match worker.join() {
                Ok(result) => outcome = outcome.and(result),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        outcome
    })?;
    Ok(all.into_inner().unwrap_or_else(|e| e.into_inner()))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

fn take<T>(queue: &Mutex<Vec<T>>) -> Option<T> {
    lock(queue).pop()
}

/// One machine: how those ended that it started, at least one.
fn boot(
    plan: Plan,
    files: &Files,
    count: usize,
    folder: &Path,
) -> Result<BTreeMap<String, Ended>, EachError> {
    let software = software::prepare(files, folder)?;
    let machine = Machine {
        processors: plan.processors,
        // Every run of one processor is the same, however loaded the host is.
        counted: plan.processors == 1,
        memory: 512,
        limit: Duration::from_secs(60 + u64::from(plan.seconds) * count as u64),
        disk: true,
        ..Machine::default()
    };
    let ended = machine.run(&software, |_| ())?;
    let read = read(&ended.lines, ended.status);
    match read.is_empty() {
        true => Err(EachError::Nothing {
            status: ended.status,
            said: ended.lines.join("\n"),
        }),
        false => Ok(read),
    }
}

/// The ends among a machine's lines; who has begun and not ended has brought it down.
pub fn read(lines: &[String], status: Status) -> BTreeMap<String, Ended> {
    let mut all = BTreeMap::new();
    let mut current: Option<(String, Vec<String>)> = None;
    for line in lines {
        if let Some(name) = line.strip_prefix("begin ") {
            current = Some((name.to_owned(), Vec::new()));
        } else if let Some((name, said)) = &mut current {
            let rest = line.strip_prefix("ended ");
            let rest = rest.and_then(|rest| rest.strip_prefix(name.as_str()));
            if let Some(end) = rest.and_then(end_of) {
                let said = std::mem::take(said);
                all.insert(name.clone(), Ended { end, said });
                current = None;
            } else {
                said.push(line.clone());
            }
        }
    }
    if let Some((name, said)) = current {
        let end = End::Machine(status);
        all.insert(name, Ended { end, said });
    }
    all
}

fn end_of(words: &str) -> Option<End> {
    let (kind, rest) = words
        .trim_start()
        .split_once(' ')
        .unwrap_or((words.trim(), ""));
    match kind {
        "exit" => Some(End::Exit(rest.parse().ok()?)),
        "signal" => Some(End::Signal(rest.parse().ok()?)),
        "late" => Some(End::Late),
        "lost" => Some(End::Lost(rest.to_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_from_what_programs_say() {
        let lines = "aegis: 1 processors\nbegin a\nended b exit 0\nword\n\nended a exit 3\nbegin b\n\n\
                     ended b signal 11\nbegin c\nended c late\nbegin d\nended d lost No more\nbegin e\nhalf";
        let lines: Vec<String> = lines.lines().map(str::to_owned).collect();
        let read = read(&lines, Status::Panic);
        let shown: Vec<_> = read
            .iter()
            .map(|(name, ended)| format!("{name} {} {}", ended.end, ended.said.len()))
            .collect();
        let wanted = [
            "a ended with status 3 3",
            "b was ended by signal 11 1",
            "c took too long 0",
            "d was lost: No more 0",
            "e brought the machine down: the kernel panicked: its backtrace stands above 1",
        ];
        assert_eq!(shown, wanted);
    }
}
