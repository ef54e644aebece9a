//! All sources of a project, several at once.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, mpsc};

use super::sources::Unit;
use super::stamp::Stamp;
use super::{Event, Options, ProjectError};
use crate::compile::Language;
use crate::driver::run_captured;

/// The objects, in the order of the sources.
pub struct Done {
    pub objects: Vec<PathBuf>,
    /// How many were compiled now.
    pub compiled: usize,
}

/// One source that has to be compiled.
struct Job<'a> {
    unit: &'a Unit,
    arguments: Vec<OsString>,
    stamp: Stamp,
}

/// Compiles those units whose objects in `folder` are not fresh.
pub fn all(
    units: &[Unit],
    folder: &Path,
    options: &Options,
    tools: &str,
    native: bool,
    tell: &mut dyn FnMut(&Event),
) -> Result<Done, ProjectError> {
    let mut objects = Vec::new();
    let mut jobs = VecDeque::new();
    for unit in units {
        let object = folder.join(&unit.object);
        let arguments = arguments(unit, &object, native);
        let stamp = Stamp::new(&object, &object.with_extension("stamp"), &arguments, tools);
        if !stamp.is_fresh_with(&object.with_extension("d")) {
            jobs.push_back(Job {
                unit,
                arguments,
                stamp,
            });
        }
        objects.push(object);
    }
    let compiled = jobs.len();
    tell(&Event::Plan {
        stale: compiled,
        total: units.len(),
    });
    let workers = options.jobs.clamp(1, compiled.max(1));
    let queue = Mutex::new(jobs);
    let mut failed = Vec::new();
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..workers {
            let (sender, queue) = (sender.clone(), &queue);
            scope.spawn(move || {
                loop {
                    let job = queue
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .pop_front();
                    let Some(job) = job else { return };
                    let event = compile(job, options.colour, native);
                    if sender.send(event).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for event in receiver {
            if let Event::Failed { source, .. } = &event {
                failed.push(source.clone());
            }
            tell(&event);
        }
    });
    if !failed.is_empty() {
        failed.sort();
        let total = units.len();
        return Err(ProjectError::Sources { failed, total });
    }
    Ok(Done { objects, compiled })
}

fn arguments(unit: &Unit, object: &Path, native: bool) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["-c".into(), "-MMD".into(), "-MF".into()];
    arguments.push(object.with_extension("d").into());
    arguments.extend(unit.flags.iter().cloned());
    if native {
        arguments.push("--native".into());
    }
    arguments.extend(["-o".into(), object.into(), unit.path.clone().into()]);
    arguments
}

fn compile(job: Job<'_>, colour: bool, native: bool) -> Event {
    let source = job.unit.name.clone();
    let language = if job.unit.is_cxx {
        Language::Cxx
    } else {
        Language::C
    };
    let mut arguments = job.arguments;
    if colour {
        arguments.insert(0, "-fdiagnostics-color=always".into());
    }
    let outcome = job
        .stamp
        .begin()
        .map_err(|error| error.to_string())
        .and_then(|()| run_captured(language, &arguments).map_err(|error| error.to_string()));
    match outcome {
        Ok(messages) => Event::Compiled {
            source,
            messages,
            native,
        },
        Err(messages) => {
            job.stamp.forget();
            Event::Failed { source, messages }
        }
    }
}
