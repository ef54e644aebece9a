//! Run time of real programs, confined against native.
//!
//! zlib, bzip2, LZ4, Zstandard, Lua and SQLite, as their crates have them, each with a file that
//! does a fixed piece of work and returns a checksum (`examples/programs`). `postern build` makes
//! both builds, with `-O2`; they stay in the user's cache, so that only the first run takes
//! minutes. A checksum that differs from the native one ends the benchmark.

use postern_figures::comparison::{self, Comparison};
use postern_figures::figure::Figure;
use postern_toolchain::project::{Built, Event, Options, Project};
use std::path::Path;

/// A row of [`PROGRAMS`].
macro_rules! program {
    ($name:literal $(, $more:literal)*) => {
        ($name, &[
            ("postern.toml", include_str!(concat!("../../examples/programs/", $name, "/postern.toml"))),
            ("work.c", include_str!(concat!("../../examples/programs/", $name, "/work.c"))),
            $(($more, include_str!(concat!("../../examples/programs/", $name, "/", $more))),)*
        ])
    };
}

/// Name, and the files of its folder.
pub const PROGRAMS: [(&str, &[(&str, &str)]); 6] = [
    program!("zlib"),
    program!("bzip2"),
    program!("lz4"),
    program!("zstd", "no_cpuid.h"),
    program!("lua"),
    program!("sqlite", "files.c"),
];

/// What the programs work on.
const CORPUS: &str = include_str!("../../examples/programs/corpus.h");

const ROUNDS: usize = 15;

/// The figures of the group.
pub fn figures() -> Result<Vec<Figure>, String> {
    let mut rows = Comparison::new("programs", "over gcc -O2, a shared object");
    for (name, files) in PROGRAMS {
        let built = build(name, files)?.1;
        let native = built.native.as_deref().ok_or("there is no native build")?;
        let times = comparison::measure(&built.extension, native, "work", None, ROUNDS)
            .map_err(|e| format!("{name}: {e}"))?;
        rows.add(name, &times);
    }
    Ok(rows.figures(1.02, 1.10))
}

/// Builds a program in the user's cache, or finds it up to date.
pub fn build(name: &str, files: &[(&str, &str)]) -> Result<(Project, Built), String> {
    let folder = postern_toolchain::cache().join("bench");
    let project = folder.join(name);
    let write = |path: &Path, text: &str| {
        // What has not changed keeps its time, so that nothing is compiled again.
        if std::fs::read_to_string(path).is_ok_and(|old| old == text) {
            return Ok(());
        }
        std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
    };
    std::fs::create_dir_all(&project).map_err(|e| format!("{}: {e}", project.display()))?;
    write(&folder.join("corpus.h"), CORPUS)?;
    for (file, text) in files {
        write(&project.join(file), text)?;
    }
    let options = Options::new(project.join("build")).native();
    let mut told = false;
    let mut tell = |event: &Event| match event {
        Event::Plan { stale: 1.., .. } if !told => {
            told = true;
            eprintln!("postern bench: building {name}, confined and native");
        }
        Event::Failed { messages, .. } => eprintln!("{messages}"),
        _ => {}
    };
    let project = Project::load(&project).map_err(|e| e.to_string())?;
    let built = project.build(&options, &mut tell);
    built
        .map(|built| (project, built))
        .map_err(|e| e.to_string())
}
