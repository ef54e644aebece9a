//! Run time of confined code against the same sources built natively.
//!
//! The kernels are C files of the project (`examples/kernels`), each with one function that does a fixed amount of work and
//! returns a checksum. Both builds come from `postern cc -O2` in this very run; a checksum that differs ends the benchmark.
//!
//! Where the same instructions happen to lie in a cache line can change their speed by a fifth (measured: `tak`, natively), which
//! says nothing about confinement. So each build exists in four placements, and the best of the four counts, for both.

use super::clock::{best_of, geometric_mean};
use super::figure::{Figure, Goal};
use super::native::library::Library;
use postern::{CallError, Domain, Image, Placement};
use postern_toolchain::Language;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// File, function, source.
pub const SOURCES: [(&str, &str, &str); 8] = [
    (
        "fib",
        "fib",
        include_str!("../../../examples/kernels/fib.c"),
    ),
    (
        "tak",
        "tak",
        include_str!("../../../examples/kernels/tak.c"),
    ),
    (
        "chase",
        "chase",
        include_str!("../../../examples/kernels/chase.c"),
    ),
    (
        "qsort",
        "qsort_records",
        include_str!("../../../examples/kernels/qsort.c"),
    ),
    (
        "matmul",
        "matmul",
        include_str!("../../../examples/kernels/matmul.c"),
    ),
    (
        "crc",
        "crc",
        include_str!("../../../examples/kernels/crc.c"),
    ),
    (
        "sha256",
        "sha256",
        include_str!("../../../examples/kernels/sha256.c"),
    ),
    (
        "gray",
        "gray",
        include_str!("../../../examples/kernels/gray.c"),
    ),
];

/// Bytes by which code is moved within its cache line.
const PLACEMENTS: [usize; 4] = [0, 16, 32, 48];

const ROUNDS: usize = 12;

/// Far above what a kernel takes, and still a deadline.
const DEADLINE: Duration = Duration::from_secs(60);

/// A kernel in all builds.
pub struct Kernel {
    /// Name of the source without `.c`.
    pub name: &'static str,
    /// The exported function, `unsigned long f(void)`.
    pub function: &'static str,
    /// One for each placement.
    pub builds: Vec<Build>,
}

/// The same source confined and native.
pub struct Build {
    /// The extension file.
    pub extension: PathBuf,
    /// The shared object.
    pub native: PathBuf,
}

/// Builds `source` as `name` in `directory`, confined and native, with the same options.
pub fn build_both(
    directory: &Path,
    name: &str,
    source: &str,
    options: &[&str],
) -> Result<Build, String> {
    let [file, extension, native] =
        ["c", "px", "so"].map(|e| directory.join(format!("{name}.{e}")));
    std::fs::write(&file, source).map_err(|e| format!("{}: {e}", file.display()))?;
    let build = |output: &Path| {
        postern_toolchain::Build::new(Language::C)
            .file(&file)
            .flags(options)
            .output(output)
    };
    build(&extension).run().map_err(|e| e.to_string())?;
    build(&native).native().run().map_err(|e| e.to_string())?;
    Ok(Build { extension, native })
}

/// Builds all kernels in `directory`.
pub fn build(directory: &Path) -> Result<Vec<Kernel>, String> {
    let build = |&(name, function, source): &(&'static str, &'static str, &str)| {
        let place = |&bytes: &usize| {
            build_both(
                directory,
                &format!("{name}.{bytes}"),
                &moved(name, source, bytes),
                &["-O2", "-fno-function-sections"],
            )
        };
        Ok(Kernel {
            name,
            function,
            builds: PLACEMENTS
                .iter()
                .map(place)
                .collect::<Result<_, String>>()?,
        })
    };
    SOURCES.iter().map(build).collect()
}

/// `source` with `bytes` (a multiple of 16) of other functions before its own, which begin a cache line.
fn moved(name: &str, source: &str, bytes: usize) -> String {
    let mut before = String::from(".p2align 6\\n");
    for i in 0..bytes / 16 {
        before.push_str(&format!(
            ".globl before_{i}\\nbefore_{i}: ret\\n.p2align 4\\n"
        ));
    }
    format!("__asm__(\"{before}\");\n#line 1 \"{name}.c\"\n{source}")
}

/// The figures of the group.
pub fn figures(kernels: &[Kernel]) -> Result<Vec<Figure>, String> {
    let (mut figures, mut hot_ratios, mut window_ratios) = (Vec::new(), Vec::new(), Vec::new());
    for kernel in kernels {
        let best = measure(kernel)?;
        let mut row = |place: &str, seconds: f64, ratios: &mut Vec<f64>| {
            ratios.push(seconds / best.native);
            figures.push(
                Figure::plain(
                    format!("kernels.{}.{place}", kernel.name),
                    seconds * 1e3,
                    "ms",
                    "over gcc -O2, the best of four placements of the code",
                )
                .against(best.native * 1e3),
            );
        };
        if let Some(hot) = best.hot {
            row("hot", hot, &mut hot_ratios);
        }
        row("window", best.window, &mut window_ratios);
    }
    for (place, ratios, goal) in [("hot", &hot_ratios, 1.03), ("window", &window_ratios, 1.12)] {
        if ratios.is_empty() {
            eprintln!("postern bench: the hot window is not free, so nothing is measured in it");
            continue;
        }
        let how = format!("geometric mean over gcc -O2 of {} kernels", ratios.len());
        figures.push(
            Figure::plain(
                format!("kernels.mean.{place}"),
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

/// The best times of one build, or of all.
#[derive(Clone, Copy)]
pub struct Times {
    /// Seconds of the shared object.
    pub native: f64,
    /// Seconds in the hot window, if it is free.
    pub hot: Option<f64>,
    /// Seconds in another window.
    pub window: f64,
}

/// Runs all builds of a kernel and compares their results.
pub fn measure(kernel: &Kernel) -> Result<Times, String> {
    let mut best = Times {
        native: f64::INFINITY,
        hot: None,
        window: f64::INFINITY,
    };
    for build in &kernel.builds {
        let times = measure_build(kernel.function, build)
            .map_err(|e| format!("kernel {}: {e}", kernel.name))?;
        best.native = best.native.min(times.native);
        best.window = best.window.min(times.window);
        best.hot = times.hot.map(|hot| best.hot.unwrap_or(hot).min(hot));
    }
    Ok(best)
}

fn measure_build(function: &str, build: &Build) -> Result<Times, String> {
    let library = Library::open(&build.native)?;
    let native = library.kernel(function)?;
    let image = Image::load(&build.extension).map_err(|e| e.to_string())?;
    let domain = |placement| {
        let domain = Domain::builder(&image)
            .placement(placement)
            .deadline(Some(DEADLINE))
            .build()
            .map_err(|e| e.to_string())?;
        let function = domain
            .func::<fn() -> u64>(function)
            .map_err(|e| e.to_string())?;
        Ok::<_, String>((domain, function))
    };
    let (first, hot) = domain(Placement::Hot)?;
    let (_second, window) = domain(Placement::Cold)?;
    // Kernels begin anew with each call, so every result must be the first native one.
    let wanted = native();
    let wrong = RefCell::new(None);
    let expect = |result: Result<u64, CallError>| match result {
        Ok(found) if found == wanted => {}
        Ok(found) => {
            let message = format!(
                "one build computes {found:#x}, the native one {wanted:#x}: the rewriter is wrong"
            );
            wrong.replace(Some(message));
        }
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
