//! Compiling the C library: every file through this driver, as many at once as there are processors.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::announce::Progress;
use super::parts::{FLAGS, FOLDERS, MENDED, SMALL_VARIANTS, SOURCES, create};
use super::source::Source;
use super::{SysrootError, is_source, makefile};
use crate::driver::tools::Tool;
use crate::driver::{DriverError, Language, run};
use crate::library;

/// One compilation.
pub struct Job {
    /// The driver that does it.
    pub language: Language,
    /// Where the object goes.
    pub archive: &'static str,
    /// What is compiled.
    pub source: PathBuf,
    /// Into this.
    pub object: PathBuf,
    /// All options but these two.
    pub options: Vec<OsString>,
}

/// Makes the folder `target` with `libc.a` and `libm.a`.
pub fn build(source: &Source, include: &Path, target: &Path) -> Result<(), DriverError> {
    let scratch = target.join("scratch");
    create(&scratch)?;
    let root = source.unpack(&scratch)?;
    mend(&root)?;
    let objects = scratch.join("objects");
    create(&objects)?;
    let mut jobs = Vec::new();
    let ours = scratch.join("ours");
    library::write(&ours, SOURCES)?;
    for (name, _) in SOURCES {
        if is_source(Path::new(name)) {
            jobs.push(Job {
                language: Language::C,
                archive: "libc.a",
                source: ours.join(name),
                object: objects.join(format!("postern-{name}.o")),
                // Debug information: the signature of `sys` is read from there.
                options: ["-g", "-fno-builtin"].map(OsString::from).to_vec(),
            });
        }
    }
    for folder in FOLDERS {
        let path = root.join(folder.path);
        let rules = path.join("Makefile.am");
        let text = std::fs::read_to_string(&rules).map_err(|source| DriverError::File {
            path: rules.clone(),
            source,
        })?;
        for unit in makefile::units(&text) {
            if unit.object.starts_with(SMALL_VARIANTS)
                || folder
                    .without
                    .split_whitespace()
                    .any(|name| name == unit.source)
            {
                continue;
            }
            let mut options: Vec<OsString> = folder.flags.iter().map(Into::into).collect();
            options.push("-g0".into());
            options.extend(unit.defines.iter().map(Into::into));
            options.extend(["-I".into(), path.clone().into(), "-I".into()]);
            options.push(root.join("libm/common").into());
            jobs.push(Job {
                language: Language::C,
                archive: folder.archive,
                source: path.join(&unit.source),
                object: objects.join(format!(
                    "{}-{}.o",
                    folder.path.replace('/', "-"),
                    unit.object
                )),
                options,
            });
        }
    }
    let mut headers = OsString::from("-fpostern-include=");
    headers.push(include);
    for job in &mut jobs {
        let flags = FLAGS.iter().map(OsString::from);
        job.options.splice(0..0, flags);
        job.options.push(headers.clone());
    }
    let progress = Progress::new("the C library", "newlib", jobs.len());
    let failures = run_all(&jobs, &progress);
    progress.finish();
    if let Some((first, message)) = failures.first() {
        return Err(SysrootError::Compile {
            count: failures.len(),
            first: first.clone(),
            message: message.clone(),
        }
        .into());
    }
    let mut archives: BTreeMap<&str, Vec<&Path>> = BTreeMap::new();
    for job in &jobs {
        archives.entry(job.archive).or_default().push(&job.object);
    }
    for (name, objects) in archives {
        Tool::Archiver
            .command()
            .arg("rcsD")
            .arg(target.join(name))
            .args(objects)
            .run()?;
    }
    std::fs::remove_dir_all(&scratch).map_err(|source| DriverError::File {
        path: scratch,
        source,
    })
}

/// Writes corrections into the unpacked source.
fn mend(root: &Path) -> Result<(), DriverError> {
    for (files, wrong, right) in MENDED {
        for name in files.split_whitespace() {
            let path = root.join(name);
            let file = |source| DriverError::File {
                path: path.clone(),
                source,
            };
            let text = std::fs::read(&path).map_err(file)?;
            let text = String::from_utf8_lossy(&text);
            if !text.contains(wrong) {
                return Err(SysrootError::Source {
                    path,
                    reason: format!("`{wrong}` is not in it, so that it is not of version 3.3.0"),
                }
                .into());
            }
            std::fs::write(&path, text.replace(wrong, right)).map_err(file)?;
        }
    }
    Ok(())
}

/// Compiles; what failed, by name, with the message.
pub fn run_all(jobs: &[Job], progress: &Progress) -> Vec<(String, String)> {
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
