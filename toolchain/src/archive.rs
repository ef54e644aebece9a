//! Compiling the many files of a library, as many at once as there are processors, and making archives of them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::driver::tools::Tool;
use crate::driver::{DriverError, Language, run};

/// One compilation.
pub struct Job {
    /// The driver that does it.
    pub language: Language,
    /// The archive that the object goes to.
    pub archive: &'static str,
    /// What is compiled.
    pub source: PathBuf,
    /// Into this.
    pub object: PathBuf,
    /// All options but these two.
    pub options: Vec<OsString>,
}

/// Does all of `jobs`, then makes their archives in `target`. `what` and `origin` are for messages: the library, and whose source it is.
pub fn build(
    jobs: &[Job],
    target: &Path,
    what: &'static str,
    origin: &str,
) -> Result<(), DriverError> {
    let progress = Progress::new(what, origin, jobs.len());
    let mut failures = run_all(jobs, &progress);
    progress.finish();
    if !failures.is_empty() {
        let count = failures.len();
        let (first, message) = failures.swap_remove(0);
        return Err(DriverError::Library {
            what,
            count,
            first,
            message,
        });
    }
    let mut archives: BTreeMap<&str, Vec<&Path>> = BTreeMap::new();
    for job in jobs {
        archives.entry(job.archive).or_default().push(&job.object);
    }
    for (name, objects) in archives {
        make(&target.join(name), &objects)?;
    }
    Ok(())
}

/// Makes an archive of objects.
pub fn make(archive: &Path, objects: &[impl AsRef<Path>]) -> Result<(), DriverError> {
    let mut archiver = Tool::Archiver.command();
    archiver.arg("rcsD").arg(archive);
    archiver.args(objects.iter().map(AsRef::as_ref)).run()?;
    Ok(())
}

/// Compiles; what failed, by name, with the message.
fn run_all(jobs: &[Job], progress: &Progress) -> Vec<(String, String)> {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut arguments = job.options.clone();
                    arguments.extend([
                        "-o".into(),
                        job.object.clone().into(),
                        job.source.clone().into(),
                    ]);
                    if let Err(error) = run(job.language, &arguments)
                        && let Ok(mut failures) = failures.lock()
                    {
                        let name = job.source.display().to_string();
                        failures.push((name, error.to_string()));
                    }
                    let name = job.source.file_name().unwrap_or_default();
                    progress.step(&name.to_string_lossy());
                }
            });
        }
    });
    let mut failures = failures.into_inner().unwrap_or_default();
    failures.sort();
    failures
}

/// A bar on a terminal; elsewhere one line at the beginning and one at the end.
struct Progress {
    bar: ProgressBar,
    plain: bool,
    what: &'static str,
}

impl Progress {
    /// Announces that `what` is built of `count` files of `source`.
    fn new(what: &'static str, source: &str, count: usize) -> Self {
        let plain = !std::io::stderr().is_terminal();
        let bar = ProgressBar::new(count as u64);
        if plain {
            bar.set_draw_target(ProgressDrawTarget::hidden());
            eprintln!("postern: building {what} for extensions, once ({count} files of {source})");
        } else if let Ok(style) = ProgressStyle::with_template(&format!(
            "building {what}, once {{bar:30}} {{pos}}/{{len}} {{msg}}"
        )) {
            bar.set_style(style);
        }
        Self { bar, plain, what }
    }

    /// One file more is done.
    fn step(&self, name: &str) {
        self.bar.set_message(name.to_owned());
        self.bar.inc(1);
    }

    /// All is done.
    fn finish(self) {
        self.bar.finish_and_clear();
        if self.plain {
            eprintln!("postern: {} is built", self.what);
        }
    }
}
