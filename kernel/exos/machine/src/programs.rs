//! The programs in C below `kernel/exos/programs`: each `.c` file is one, named by its stem, and so
//! is each folder of several. They are compiled as many at once as there are processors, and again
//! only if something has changed that they are made of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use postern_toolchain::project::{Project, ProjectError};
use thiserror::Error;

use crate::cc::{CcError, PageTable, Tools};
use crate::place;

/// Why there are no programs.
#[derive(Debug, Error)]
pub enum ProgramsError {
    /// Nothing can be compiled.
    #[error(transparent)]
    Cc(#[from] CcError),
    /// Some could not be compiled; what the compiler says.
    #[error("programs that could not be compiled:\n{0}")]
    Failed(String),
    /// The description of other people's program, or its sources.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// A file or folder.
    #[error("{path}: {1}", path = .0.display())]
    File(PathBuf, std::io::Error),
}

fn file(path: &Path) -> impl FnOnce(std::io::Error) -> ProgramsError {
    let path = path.to_owned();
    move |error| ProgramsError::File(path, error)
}

/// A program to be made.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its name in the archive.
    pub name: String,
    /// Its sources.
    pub sources: Vec<PathBuf>,
    /// More options for the compiler.
    pub flags: Vec<String>,
    /// Its page table.
    pub page_table: PageTable,
}

impl Program {
    /// Whether it measures; others are started by those that do.
    pub fn measures(&self) -> bool {
        let texts = self.sources.iter().map(std::fs::read_to_string);
        texts.flatten().any(|text| text.contains("measure.h"))
    }
}

/// Options of all of ours.
const FLAGS: &[&str] = &["-O2", "-Wall", "-Wextra", "-std=gnu17"];

/// Folders of programs.
pub const FOLDERS: &[&str] = &[
    "shell", "tools", "services", "network", "tests", "demo", "bench", "machine",
];

/// The folder of extensions among programs.
const EXTENSION: &str = "extension";

fn is_c(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "c")
}

/// What is in a folder, sorted; nothing if it is not there.
fn listed(path: &Path) -> Result<Vec<PathBuf>, ProgramsError> {
    let entries = match std::fs::read_dir(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(file(path))?,
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<Result<_, _>>().map_err(file(path))?;
    paths.sort();
    Ok(paths)
}

/// The shell and its tools, by name.
pub fn commands() -> Result<Vec<Program>, ProgramsError> {
    let mut programs = of("shell")?;
    programs.extend(of("tools")?);
    Ok(programs)
}

/// Other people's programs, unmodified: each folder of `programs/foreign` has a description as
/// those of extensions are, whose sources are in crates, which cargo fetches once.
pub fn foreign() -> Result<Vec<Program>, ProgramsError> {
    let mut programs = Vec::new();
    for folder in listed(&place::sources().join("programs/foreign"))? {
        let project = Project::load(&folder)?;
        let units = project.units(&mut |_| {})?;
        // Of one description all sources have the same options.
        let flags = units.first().map_or(&[][..], |unit| &unit.flags[..]);
        let flags = flags.iter().map(|flag| flag.to_string_lossy().into_owned());
        programs.push(Program {
            name: project.name().to_owned(),
            flags: flags.collect(),
            sources: units.into_iter().map(|unit| unit.path).collect(),
            page_table: PageTable::Linear,
        });
    }
    Ok(programs)
}

/// The programs in a folder, by name.
pub fn of(folder: &str) -> Result<Vec<Program>, ProgramsError> {
    let path = place::sources().join("programs").join(folder);
    let mut programs = Vec::new();
    for source in listed(&path)? {
        let Some(stem) = source.file_stem().and_then(|stem| stem.to_str()) else {
            continue;
        };
        let sources = match source.is_dir() {
            // Extensions are compiled otherwise.
            true if stem == EXTENSION => continue,
            true => listed(&source)?
                .into_iter()
                .filter(|source| is_c(source))
                .collect(),
            false if is_c(&source) => vec![source.clone()],
            false => continue,
        };
        programs.push(Program {
            name: stem.to_owned(),
            sources,
            flags: FLAGS.iter().map(|flag| (*flag).to_owned()).collect(),
            page_table: PageTable::Linear,
        });
    }
    programs.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(programs)
}

/// What names of programs with an inverted page table end with, and of their figures.
pub const INVERTED: &str = "-inverted";

/// The same, and once more with an inverted page table those of a name.
pub fn with_inverted(mut programs: Vec<Program>, name: &str) -> Vec<Program> {
    let again: Vec<_> = programs
        .iter()
        .filter(|program| program.name == name)
        .map(|program| Program {
            name: program.name.clone() + INVERTED,
            page_table: PageTable::Inverted,
            ..program.clone()
        })
        .collect();
    programs.extend(again);
    programs
}

/// The programs of all folders.
pub fn all() -> Result<Vec<Program>, ProgramsError> {
    let mut programs = Vec::new();
    for folder in FOLDERS {
        programs.extend(of(folder)?);
    }
    Ok(programs)
}

/// What has come of programs.
#[derive(Clone, Debug, Default)]
pub struct Made {
    /// Names and ELF files.
    pub programs: BTreeMap<String, Vec<u8>>,
    /// What could not be compiled, with the compiler's words.
    pub failures: Vec<String>,
}

/// Compiles what has changed, and returns names and ELF files. The library was built before.
pub fn make(programs: &[Program]) -> Result<Vec<(String, Vec<u8>)>, ProgramsError> {
    let made = make_some(programs)?;
    match made.failures.is_empty() {
        true => Ok(made.programs.into_iter().collect()),
        false => Err(ProgramsError::Failed(made.failures.join("\n"))),
    }
}

/// The same with what could be compiled, and words about what could not.
pub fn make_some(programs: &[Program]) -> Result<Made, ProgramsError> {
    let folder = place::target().join("programs");
    std::fs::create_dir_all(&folder).map_err(file(&folder))?;
    let tools = Tools::find()?;
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = one(&tools, program, &folder).map_err(|e| e.to_string());
                    if let Ok(mut results) = results.lock() {
                        results.push((program.name.clone(), result));
                    }
                }
            });
        }
    });
    let mut made = Made::default();
    for (name, result) in results.into_inner().unwrap_or_default() {
        match result {
            Ok(bytes) => drop(made.programs.insert(name, bytes)),
            Err(error) => made.failures.push(format!("{name}: {error}")),
        }
    }
    made.failures.sort();
    Ok(made)
}

/// A program's file, compiled if it is older than what it is made of.
fn one(tools: &Tools, program: &Program, folder: &Path) -> Result<Vec<u8>, ProgramsError> {
    let to = folder.join(program.name.replace('/', "-"));
    let (rules, how) = (beside(&to, ".d"), beside(&to, ".how"));
    let words = format!("{program:?} {tools:?}");
    let same = std::fs::read_to_string(&how).is_ok_and(|before| before == words);
    if !same || !is_fresh(&to, &rules, &program.sources) {
        // In another folder until all is whole: somebody else may make the same.
        let scratch = tempfile::tempdir_in(folder).map_err(file(folder))?;
        let path = |name: &str| scratch.path().join(name);
        let mut flags: Vec<&str> = program.flags.iter().map(String::as_str).collect();
        flags.push("-MMD");
        let made = path("program");
        tools.program(&program.sources, &flags, program.page_table, &made)?;
        std::fs::write(path("how"), words).map_err(file(&how))?;
        let included = included(scratch.path())?;
        std::fs::write(path("rules"), included).map_err(file(&rules))?;
        for (from, to) in [("rules", &rules), ("program", &to), ("how", &how)] {
            std::fs::rename(path(from), to).map_err(file(to))?;
        }
    }
    std::fs::read(&to).map_err(file(&to))
}

/// A file beside a program.
fn beside(program: &Path, end: &str) -> PathBuf {
    let mut path = program.as_os_str().to_owned();
    path.push(end);
    path.into()
}

/// The files that the compiler's rules in a folder name, which it writes for each source.
fn included(folder: &Path) -> Result<String, ProgramsError> {
    let mut all = String::new();
    for rules in listed(folder)? {
        if rules.extension().is_some_and(|end| end == "d") {
            let text = std::fs::read_to_string(&rules).map_err(file(&rules))?;
            let text = text.replace("\\\n", " ");
            all += text.split_once(": ").map_or("", |(_, files)| files);
        }
    }
    Ok(all)
}

/// Whether a program is newer than its sources, what they include, the library and the link script.
fn is_fresh(program: &Path, rules: &Path, sources: &[PathBuf]) -> bool {
    let changed = |path: &Path| -> Option<SystemTime> {
        std::fs::metadata(path)
            .and_then(|found| found.modified())
            .ok()
    };
    let (Some(made), Ok(rules)) = (changed(program), std::fs::read_to_string(rules)) else {
        return false;
    };
    let others = [place::library(), crate::cc::script()];
    rules
        .split_whitespace()
        .map(PathBuf::from)
        .chain(sources.iter().cloned())
        .chain(others)
        .all(|path| changed(&path).is_some_and(|time| time <= made))
}
