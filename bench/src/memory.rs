//! The library's memory and string functions against the C library of the host.
//!
//! The same loop of calls is built confined, where it calls the extension's own functions, and
//! native, where it calls the host's. The host's choose their code by the processor; an extension's
//! use 16-byte vectors, or 32-byte ones when its flags allow AVX2, so there are two confined
//! builds. Neither asks for the memory gate: what long ranges cost there is not in these figures.

use postern::{Domain, Image, Placement};
use postern_figures::clock::best_of;
use postern_figures::figure::{Figure, Goal};
use postern_figures::kernels::{Build, build_both};
use postern_figures::trusted::library::Library;
use std::path::Path;

/// Function, its number in `memory.c`, whether its ratio has a goal.
const FUNCTIONS: [(&str, u32, bool); 7] = [
    ("memcpy", 0, true),
    ("memmove", 6, true),
    ("memset", 1, true),
    ("memcmp", 2, false),
    ("strlen", 3, false),
    ("memchr", 4, false),
    ("strcmp", 5, false),
];

const SIZES: [u32; 9] = [
    16,
    64,
    256,
    1 << 10,
    4 << 10,
    16 << 10,
    64 << 10,
    256 << 10,
    1 << 20,
];

/// The sizes that the goal is about.
const GOAL_FROM: u32 = 64;
const GOAL: f64 = 1.1;

/// Bytes off a page.
const SHIFTS: [u32; 2] = [0, 5];

/// About as many bytes are worked on in one turn.
const BYTES: u32 = 1 << 18;
const ROUNDS: usize = 25;

/// Name in the figures, and flags of the build.
const BUILDS: [(&str, &[&str]); 2] = [
    ("sse2", &["-O2", "-fno-builtin"]),
    ("avx2", &["-O2", "-fno-builtin", "-mavx2"]),
];

/// The figures of the group.
pub fn figures(directory: &Path) -> Result<Vec<Figure>, String> {
    let mut figures = Vec::new();
    for (name, options) in BUILDS {
        if name == "avx2" && !std::arch::is_x86_feature_detected!("avx2") {
            continue;
        }
        let build = build_both(
            directory,
            &format!("memory-{name}"),
            include_str!("memory.c"),
            options,
        )?;
        figures.extend(measure(name, &build)?);
    }
    Ok(figures)
}

type Calls = fn(u32, u32, u32, u32) -> u64;

fn measure(build: &str, files: &Build) -> Result<Vec<Figure>, String> {
    let library = Library::open(&files.native)?;
    let native = library.calls("calls")?;
    let image = Image::load(&files.extension).map_err(|e| e.to_string())?;
    let domain = |placement| {
        let domain = Domain::builder(&image)
            .placement(placement)
            .deadline(None)
            .build()
            .map_err(|e| e.to_string())?;
        let function = domain.func::<Calls>("calls").map_err(|e| e.to_string())?;
        Ok::<_, String>((domain, function))
    };
    let (first, hot) = domain(Placement::Hot)?;
    let (_second, window) = domain(Placement::Cold)?;
    let mut figures = Vec::new();
    for (name, number, held) in FUNCTIONS {
        // The worst ratio that the goal is about: hot, elsewhere.
        let mut worst = [0.0f64; 2];
        for size in SIZES {
            let count = (BYTES / size).clamp(1, 1024);
            // The alignment that compares worse is the one to tell.
            let mut rows = [[0.0f64; 2]; 2];
            for shift in SHIFTS {
                let wanted = native(number, size, shift, count);
                let mut wrong = false;
                let times = best_of(
                    ROUNDS,
                    [
                        &mut || wrong |= native(number, size, shift, count) != wanted,
                        &mut || {
                            std::hint::black_box(hot.call(number, size, shift, count).is_ok());
                        },
                        &mut || {
                            std::hint::black_box(window.call(number, size, shift, count).is_ok());
                        },
                    ],
                );
                for place in [&hot, &window] {
                    wrong |= place.call(number, size, shift, count).ok() != Some(wanted);
                }
                if wrong {
                    return Err(format!("{name} of {size} bytes gives another result"));
                }
                let [base, hot, window] = times.map(|t| t * 1e9 / f64::from(count));
                for (row, value) in rows.iter_mut().zip([hot, window]) {
                    if row[0] == 0.0 || value / base > row[0] / row[1] {
                        *row = [value, base];
                    }
                }
            }
            for ((place, row), worst) in ["hot", "window"].iter().zip(rows).zip(&mut worst) {
                if *place == "hot" && !first.is_hot() {
                    continue;
                }
                if size >= GOAL_FROM {
                    *worst = worst.max(row[0] / row[1]);
                }
                figures.push(
                    Figure::plain(
                        format!("memory.{build}.{name}.{size}.{place}"),
                        row[0],
                        "ns",
                        "over the host's C library, aligned or five bytes off, whichever is worse",
                    )
                    .against(row[1]),
                );
            }
        }
        for (place, worst) in ["hot", "window"].iter().zip(worst) {
            if worst == 0.0 {
                continue;
            }
            let figure = Figure::plain(
                format!("memory.{build}.{name}.worst.{place}"),
                worst,
                "times",
                "the worst ratio from 64 bytes to 1 MiB",
            )
            .against(1.0);
            figures.push(if held {
                figure.goal(Goal::RatioAtMost(GOAL))
            } else {
                figure
            });
        }
    }
    Ok(figures)
}
