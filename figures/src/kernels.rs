//! Run time of confined code against the same sources built natively.
//!
//! The kernels are C files of the project (`examples/kernels`), each with one function that does a
//! fixed amount of work and returns a checksum. Both builds come from `postern cc -O2` in this very
//! run; a checksum that differs ends the benchmark.
//!
//! Where the same instructions happen to lie in a cache line can change their speed by a fifth
//! (measured: `tak`, natively), which says nothing about confinement. So each build exists in four
//! placements, and the best of the four counts, for both.

use crate::comparison::{self, Comparison, Times};
use crate::figure::Figure;
use postern_toolchain::Language;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// File, function, source.
pub const SOURCES: [(&str, &str, &str); 8] = [
    ("fib", "fib", include_str!("../../examples/kernels/fib.c")),
    ("tak", "tak", include_str!("../../examples/kernels/tak.c")),
    (
        "chase",
        "chase",
        include_str!("../../examples/kernels/chase.c"),
    ),
    (
        "qsort",
        "qsort_records",
        include_str!("../../examples/kernels/qsort.c"),
    ),
    (
        "matmul",
        "matmul",
        include_str!("../../examples/kernels/matmul.c"),
    ),
    ("crc", "crc", include_str!("../../examples/kernels/crc.c")),
    (
        "sha256",
        "sha256",
        include_str!("../../examples/kernels/sha256.c"),
    ),
    (
        "gray",
        "gray",
        include_str!("../../examples/kernels/gray.c"),
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

/// `source` with `bytes` (a multiple of 16) of other functions before its own, which begin a cache
/// line.
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
    let note = "over gcc -O2, the best of four placements of the code";
    let mut rows = Comparison::new("kernels", note);
    for kernel in kernels {
        rows.add(kernel.name, &measure(kernel)?);
    }
    Ok(rows.figures(1.03, 1.12))
}

/// Runs all builds of a kernel and compares their results.
pub fn measure(kernel: &Kernel) -> Result<Times, String> {
    let mut best = Times {
        native: f64::INFINITY,
        hot: None,
        window: f64::INFINITY,
    };
    for build in &kernel.builds {
        let times = comparison::measure(
            &build.extension,
            &build.native,
            kernel.function,
            Some(DEADLINE),
            ROUNDS,
        )
        .map_err(|e| format!("kernel {}: {e}", kernel.name))?;
        best.native = best.native.min(times.native);
        best.window = best.window.min(times.window);
        best.hot = times.hot.map(|hot| best.hot.unwrap_or(hot).min(hot));
    }
    Ok(best)
}
