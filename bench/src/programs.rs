//! Run time of real programs, confined against native.
//!
//! zlib, bzip2, LZ4, Zstandard, Lua and SQLite, as their crates have them, each with a file that
//! does a fixed piece of work and returns a checksum (`examples/programs`). `postern build` makes
//! both builds, with `-O2`; they stay in the user's cache, so that only the first run takes
//! minutes. A checksum that differs from the native one ends the benchmark.

use postern::{Domain, Func, Image, Placement};
use postern_figures::clock::best_of;
use postern_figures::comparison::{self, Comparison};
use postern_figures::figure::{Figure, Goal};
use postern_toolchain::project::{Built, Event, Options, Project};
use std::hint::black_box;
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
    let mut gates = Vec::new();
    for (name, files) in PROGRAMS {
        let built = build(name, files, &[])?.1;
        let native = built.native.as_deref().ok_or("there is no native build")?;
        let times = comparison::measure(&built.extension, native, "work", None, ROUNDS)
            .map_err(|e| format!("{name}: {e}"))?;
        rows.add(name, &times);
        gates.push(gate(name, files, &built)?);
    }
    let mut figures = rows.figures(1.02, 1.10);
    figures.extend(gates);
    Ok(figures)
}

/// What the memory gate is worth to a program: its time in a window over that of a link without it.
fn gate(name: &str, files: &[(&str, &str)], with: &Built) -> Result<Figure, String> {
    let without = build(name, files, &["-fpostern-no-memory-gate"])?.1;
    let domain = |path: &Path| {
        let image = Image::load(path).map_err(|e| e.to_string())?;
        let builder = Domain::builder(&image).placement(Placement::Cold);
        let domain = builder.deadline(None).build().map_err(|e| e.to_string())?;
        let work = domain.func::<fn() -> u64>("work");
        Ok::<_, String>((work.map_err(|e| e.to_string())?, domain))
    };
    let (with, without) = (domain(&with.extension)?, domain(&without.extension)?);
    let equal = with.0.call().ok() == without.0.call().ok();
    if !equal {
        return Err(format!("{name} computes another result by the memory gate"));
    }
    let run = |work: &Func<fn() -> u64>| {
        black_box(work.call().is_ok());
    };
    let times = best_of(ROUNDS, [&mut || run(&with.0), &mut || run(&without.0)]);
    let [with, without] = times.map(|seconds| seconds * 1e3);
    let how = "in a window; baseline: linked without the memory gate";
    Ok(
        Figure::plain(format!("programs.{name}.memory-gate"), with, "ms", how)
            .against(without)
            .goal(Goal::RatioAtMost(1.02)),
    )
}

/// Builds a program in the user's cache, or finds it up to date, with more options of the link.
pub fn build(
    name: &str,
    files: &[(&str, &str)],
    link: &[&str],
) -> Result<(Project, Built), String> {
    let folder = postern_toolchain::cache().join("bench");
    let project = folder.join(format!("{name}{}", link.concat()));
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
        let link = format!("[extension]\nlink = {link:?}\n");
        let text = text.replacen("[extension]\n", &link, 1);
        write(&project.join(file), &text)?;
    }
    let options = Options::new(project.join("build"));
    // How it is linked is nothing to a native build.
    let options = match link {
        [] => options.native(),
        _ => options,
    };
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
