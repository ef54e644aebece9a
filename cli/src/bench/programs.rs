//! Run time of real programs, confined against native.
//!
//! zlib, bzip2, LZ4, Zstandard, Lua and SQLite, as their crates have them, each with a file that does a fixed piece of work and
//! returns a checksum (`examples/programs`). `postern build` makes both builds, with `-O2`; they stay in the user's cache, so
//! that only the first run takes minutes. A checksum that differs from the native one ends the benchmark.

use super::clock::{best_of, geometric_mean};
use super::figure::{Figure, Goal};
use super::kernels::Times;
use super::native::library::Library;
use postern::{CallError, Domain, Image, Placement};
use postern_toolchain::project::{Built, Event, Options, Project};
use std::cell::RefCell;
use std::path::Path;

/// A row of [`PROGRAMS`].
macro_rules! program {
    ($name:literal $(, $more:literal)*) => {
        ($name, &[
            ("postern.toml", include_str!(concat!("../../../examples/programs/", $name, "/postern.toml"))),
            ("work.c", include_str!(concat!("../../../examples/programs/", $name, "/work.c"))),
            $(($more, include_str!(concat!("../../../examples/programs/", $name, "/", $more))),)*
        ])
    };
}

/// Name and files.
const PROGRAMS: [(&str, &[(&str, &str)]); 6] = [
    program!("zlib"),
    program!("bzip2"),
    program!("lz4"),
    program!("zstd", "no_cpuid.h"),
    program!("lua"),
    program!("sqlite", "files.c"),
];

/// What the programs work on.
const CORPUS: &str = include_str!("../../../examples/programs/corpus.h");

const ROUNDS: usize = 15;

/// The figures of the group.
pub fn figures() -> Result<Vec<Figure>, String> {
    let folder = postern_toolchain::cache().join("bench");
    let (mut figures, mut hot_ratios, mut window_ratios) = (Vec::new(), Vec::new(), Vec::new());
    for (name, files) in PROGRAMS {
        let built = build(&folder, name, files)?;
        let Times {
            native,
            hot,
            window,
        } = measure(&built).map_err(|e| format!("{name}: {e}"))?;
        let mut row = |place: &str, seconds: f64, ratios: &mut Vec<f64>| {
            ratios.push(seconds / native);
            let name = format!("programs.{name}.{place}");
            figures.push(
                Figure::plain(name, seconds * 1e3, "ms", "over gcc -O2, a shared object")
                    .against(native * 1e3),
            );
        };
        if let Some(hot) = hot {
            row("hot", hot, &mut hot_ratios);
        }
        row("window", window, &mut window_ratios);
    }
    for (place, ratios, goal) in [("hot", &hot_ratios, 1.02), ("window", &window_ratios, 1.10)] {
        if ratios.is_empty() {
            eprintln!("postern bench: the hot window is not free, so nothing is measured in it");
            continue;
        }
        let how = format!("geometric mean over gcc -O2 of {} programs", ratios.len());
        figures.push(
            Figure::plain(
                format!("programs.mean.{place}"),
                geometric_mean(ratios),
                "times",
                how,
            )
            .against(1.0)
            .goal(Goal::RatioAtMost(goal)),
        );
    }
    Ok(figures)
}

/// Builds a program, or finds it up to date.
fn build(folder: &Path, name: &str, files: &[(&str, &str)]) -> Result<Built, String> {
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
    Project::load(&project)
        .and_then(|project| {
            project.build(&options, &mut |event| match event {
                Event::Plan { stale: 1.., .. } if !told => {
                    told = true;
                    eprintln!("postern bench: building {name}, confined and native");
                }
                Event::Failed { messages, .. } => eprintln!("{messages}"),
                _ => {}
            })
        })
        .map_err(|e| e.to_string())
}

/// Best times of the native build, in the hot window if that is free, and in another.
fn measure(built: &Built) -> Result<Times, String> {
    let native = built.native.as_deref().ok_or("there is no native build")?;
    let library = Library::open(native)?;
    let native = library.kernel("work")?;
    let image = Image::load(&built.extension).map_err(|e| e.to_string())?;
    let domain = |placement| {
        let domain = Domain::builder(&image)
            .placement(placement)
            .deadline(None)
            .build()
            .map_err(|e| e.to_string())?;
        let function = domain
            .func::<fn() -> u64>("work")
            .map_err(|e| e.to_string())?;
        Ok::<_, String>((domain, function))
    };
    let (first, hot) = domain(Placement::Hot)?;
    let (_second, window) = domain(Placement::Cold)?;
    let wanted = native();
    let wrong = RefCell::new(None);
    let expect = |result: Result<u64, CallError>| match result {
        Ok(found) if found == wanted => {}
        Ok(found) => drop(wrong.replace(Some(format!(
            "one build computes {found:#x}, the native one {wanted:#x}: the rewriter is wrong"
        )))),
        Err(error) => drop(wrong.replace(Some(error.to_string()))),
    };
    let [native, hot, window] = best_of(
        ROUNDS,
        [
            &mut || expect(Ok(native())),
            &mut || expect(hot.call()),
            &mut || expect(window.call()),
        ],
    );
    match wrong.into_inner() {
        Some(wrong) => Err(wrong),
        None => Ok(Times {
            native,
            hot: first.is_hot().then_some(hot),
            window,
        }),
    }
}
