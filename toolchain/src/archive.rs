//! Compiling the many files of a library, as many at once as there are processors, and making
//! archives of them.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::compile::{Compilation, CompileOptions, Headers, Language, Source};
use crate::error::CompileError;
use crate::tools::{Tool, ToolError};

/// Why a library for extensions is not there.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// A file of it could not be compiled or written.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// newlib's source is not on this machine.
    #[error(
        "the C library's source was not found: install it with `apt install newlib-source`, or let POSTERN_NEWLIB name its archive \
         (newlib-3.3.0.tar.xz) or an unpacked folder; with -ffreestanding it is not needed"
    )]
    NoSource,
    /// A source is there, but is not what it should be.
    #[error("{}: {reason}", path.display())]
    Source {
        /// The archive or folder.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The C++ compiler has no headers where they should be.
    #[error("{}: g++'s headers are not there; install g++", .0.display())]
    NoHeaders(PathBuf),
    /// Files of it could not be compiled.
    #[error("{count} files of {what} could not be compiled; the first is {first}: {message}")]
    Files {
        /// Which library.
        what: &'static str,
        /// How many files.
        count: usize,
        /// The first one's name.
        first: String,
        /// What was said about it.
        message: String,
    },
}

impl From<ToolError> for LibraryError {
    fn from(error: ToolError) -> Self {
        Self::Compile(error.into())
    }
}

/// One compilation.
pub struct Job {
    /// Of sources whose name does not tell.
    pub language: Language,
    /// The archive that the object goes to.
    pub archive: &'static str,
    /// What is compiled.
    pub source: PathBuf,
    /// Into this.
    pub object: PathBuf,
    /// The compiler's options.
    pub options: CompileOptions,
    /// Compiled as it is, not confined.
    pub plain: bool,
}

impl Job {
    fn source(&self) -> Source {
        match self.source.extension() {
            Some(ending) if ending == "s" => Source::Assembly(self.source.clone()),
            _ => Source::Text(self.source.clone(), None),
        }
    }

    /// The language whose headers it sees, if any.
    pub fn headers_for(&self) -> Option<Language> {
        self.source().language(self.language)
    }

    /// Compiles it with `headers`.
    pub fn run(&self, headers: Option<&Headers>) -> Result<(), CompileError> {
        if self.plain {
            return self.run_plain(headers);
        }
        let source = self.source();
        let compilation = Compilation::new(self.language, &self.options, false)?;
        let text = compilation.confined(&source, headers, &self.object)?;
        compilation.assemble(&text, &source, &self.object)
    }

    fn run_plain(&self, headers: Option<&Headers>) -> Result<(), CompileError> {
        let mut compiler = self.language.compiler();
        compiler.args(["-c", "-nostdinc"]).args(&self.options.flags);
        for folder in headers.iter().flat_map(|headers| &headers.folders) {
            compiler.arg("-isystem").arg(folder);
        }
        compiler.arg("-o").arg(&self.object).arg(&self.source);
        Ok(compiler.run()?)
    }
}

/// Does all of `jobs` with `headers`, then makes their archives in `target`. `what` and `origin`
/// are for messages: the library, and whose source it is.
pub fn build(
    jobs: &[Job],
    headers: &Headers,
    target: &Path,
    what: &'static str,
    origin: &str,
) -> Result<(), LibraryError> {
    let progress = Progress::new(what, origin, jobs.len());
    let mut failures = run_all(jobs, headers, &progress);
    progress.finish();
    if !failures.is_empty() {
        let count = failures.len();
        let (first, message) = failures.swap_remove(0);
        return Err(LibraryError::Files {
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
pub fn make(archive: &Path, objects: &[impl AsRef<Path>]) -> Result<(), ToolError> {
    let mut archiver = Tool::Archiver.command();
    archiver.arg("rcsD").arg(archive);
    archiver.args(objects.iter().map(AsRef::as_ref)).run()?;
    Ok(())
}

/// Compiles; what failed, by name, with the message.
fn run_all(jobs: &[Job], headers: &Headers, progress: &Progress) -> Vec<(String, String)> {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = job.run(Some(headers))
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
