//! The library's memory and string functions against the C library of the host.
//!
//! The same loop of calls is built confined, where it calls the extension's own functions, and
//! native, where it calls the host's. The host's choose their code by the processor; an extension's
//! use 16-byte vectors, or 32-byte ones when its flags allow AVX2, and the memory gate for long
//! ranges. So there are three confined builds: each kind of vectors, and 16 bytes without the gate.

use postern::{Domain, Image, Offset, Placement};
use postern_figures::clock::best_of;
use postern_figures::figure::{Figure, Goal};
use postern_figures::kernels::{Build, build_both};
use postern_figures::trusted::library::Library;
use std::hint::black_box;
use std::path::Path;

/// Function, its number in `memory.c`, and what its time may be at most over the host's from 1 KiB
/// on, where there is a goal.
const FUNCTIONS: [(&str, u32, Option<f64>); 8] = [
    ("memcpy", 0, Some(WRITES)),
    ("memcpy-ahead", 7, Some(WRITES)),
    ("memmove", 6, Some(WRITES)),
    ("memset", 1, Some(WRITES)),
    ("memcmp", 2, Some(READS)),
    ("strlen", 3, Some(READS)),
    ("memchr", 4, Some(READS)),
    ("strcmp", 5, None),
];

/// The goal for copies and fills from 1 KiB on.
const WRITES: f64 = 1.1;
/// The goal for comparisons and searches from 1 KiB on, and for copies and fills of 256 bytes.
const READS: f64 = 1.3;

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

/// Bytes off a page.
const SHIFTS: [u32; 2] = [0, 5];

/// About as many bytes are worked on in one turn.
const BYTES: u32 = 1 << 18;
const ROUNDS: usize = 25;

/// Name in the figures, and flags of the build.
const BUILDS: [(&str, &[&str]); 3] = [
    ("sse2", &["-O2", "-fno-builtin"]),
    ("avx2", &["-O2", "-fno-builtin", "-mavx2"]),
    (
        "no-gate",
        &["-O2", "-fno-builtin", "-fpostern-no-memory-gate"],
    ),
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
        if name == "sse2" {
            figures.extend(host(&build)?);
        }
    }
    Ok(figures)
}

/// The host's own copies into a domain and out of it, with their checks, over the C library's.
fn host(files: &Build) -> Result<Vec<Figure>, String> {
    let image = Image::load(&files.extension).map_err(|e| e.to_string())?;
    let domain = Domain::builder(&image).build().map_err(|e| e.to_string())?;
    let place = domain.func::<fn() -> Offset>("place");
    let place = place.map_err(|e| e.to_string())?.call();
    let place = place.map_err(|e| e.to_string())?;
    let mut figures = Vec::new();
    for size in SIZES {
        let count = (BYTES / size).clamp(1, 1024);
        let bytes = size as usize;
        let from = vec![3u8; bytes];
        let (mut own, mut read) = (vec![1u8; bytes], vec![2u8; bytes]);
        let (mut refused, mut lost) = (false, false);
        let times = best_of(
            ROUNDS,
            [
                &mut || {
                    for _ in 0..count {
                        black_box(&mut own).copy_from_slice(black_box(&from));
                    }
                },
                &mut || {
                    for _ in 0..count {
                        refused |= domain.write(place, black_box(&from)).is_err();
                    }
                },
                &mut || {
                    for _ in 0..count {
                        lost |= domain.read(place, black_box(&mut read)).is_err();
                    }
                },
            ],
        );
        if refused || lost || read != from {
            return Err(format!("a copy of {size} bytes is not what was copied"));
        }
        let [base, write, read] = times.map(|t| t * 1e9 / f64::from(count));
        for (way, value) in [("write", write), ("read", read)] {
            let how = "a copy by the host, with its checks; baseline: the host's memcpy";
            let name = format!("memory.host.{way}.{size}");
            figures.push(Figure::plain(name, value, "ns", how).against(base));
        }
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
    for (name, number, long) in FUNCTIONS {
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
            let goal = match size {
                1024.. => long,
                256 => long.filter(|goal| *goal == WRITES).and(Some(READS)),
                _ => None,
            };
            for (place, row) in ["hot", "window"].iter().zip(rows) {
                if *place == "hot" && !first.is_hot() {
                    continue;
                }
                let figure = Figure::plain(
                    format!("memory.{build}.{name}.{size}.{place}"),
                    row[0],
                    "ns",
                    "over the host's C library, aligned or five bytes off, whichever is worse",
                )
                .against(row[1]);
                figures.push(match goal {
                    Some(goal) if build != "no-gate" => figure.goal(Goal::RatioAtMost(goal)),
                    _ => figure,
                });
            }
        }
    }
    Ok(figures)
}
