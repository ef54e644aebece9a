//! What the hot window brings, to a domain that is made there and to one that is moved there, and
//! what a move costs.

use postern::{Domain, Func, HotWindow, Image, Offset, Placement, hot_window};
use postern_figures::clock::{best_mean, best_of, geometric_mean, time};
use postern_figures::figure::Figure;
use postern_figures::kernels::SOURCES;
use postern_toolchain::Language;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Kernels of different kinds: pointers, records, numbers.
const KERNELS: [&str; 3] = ["chase", "qsort", "sha256"];
const ROUNDS: usize = 6;
const MOVES: u32 = 50;
/// Pages that the larger domain has written.
const LARGE: usize = 16 << 20;

type Kernel = Func<fn() -> u64>;

/// The figures of the group.
pub fn figures(directory: &Path) -> Result<Vec<Figure>, String> {
    let mut figures = Vec::new();
    let (mut made, mut moved) = (Vec::new(), Vec::new());
    for (name, function, source) in SOURCES.iter().filter(|s| KERNELS.contains(&s.0)) {
        let [file, extension] = ["c", "px"].map(|e| directory.join(format!("{name}.{e}")));
        std::fs::write(&file, source).map_err(|e| e.to_string())?;
        let build = postern_toolchain::Build::new(Language::C).file(&file);
        let build = build.flags(["-O2"]).output(&extension);
        build.run().map_err(|e| e.to_string())?;
        let image = Image::load(&extension).map_err(|e| e.to_string())?;
        if !matches!(hot_window(), HotWindow::Free | HotWindow::Taken) {
            eprintln!("postern bench: the hot window is not free, so nothing can be moved there");
            return Ok(figures);
        }
        let (other, hot, there) = measure(&image, function)?;
        for (place, seconds, ratios) in [("hot", hot, &mut made), ("moved", there, &mut moved)] {
            ratios.push(seconds / other);
            figures.push(
                Figure::plain(
                    format!("placement.{name}.{place}"),
                    seconds * 1e3,
                    "ms",
                    "over the same domain in another window",
                )
                .against(other * 1e3),
            );
        }
    }
    for (place, ratios) in [("hot", made), ("moved", moved)] {
        let how = format!("geometric mean of {} kernels", ratios.len());
        let mean = geometric_mean(&ratios);
        figures.push(
            Figure::plain(format!("placement.mean.{place}"), mean, "times", how).against(1.0),
        );
    }
    figures.extend(moves(directory)?);
    Ok(figures)
}

fn kernel(image: &Image, function: &str, placement: Placement) -> Result<(Domain, Kernel), String> {
    let builder = Domain::builder(image).placement(placement);
    let domain = builder
        .deadline(Some(Duration::from_secs(60)))
        .build()
        .map_err(|e| e.to_string())?;
    let function = domain.func(function).map_err(|e| e.to_string())?;
    Ok((domain, function))
}

/// Seconds elsewhere, in the hot window from the beginning, and in the hot window after moves to
/// and fro.
fn measure(image: &Image, function: &str) -> Result<(f64, f64, f64), String> {
    let (still, still_call) = kernel(image, function, Placement::Cold)?;
    let wanted = still_call.call().map_err(|e| e.to_string())?;
    let run = |call: &Kernel| match call.call() {
        Ok(found) => assert_eq!(
            found, wanted,
            "a kernel computes something else after a move"
        ),
        Err(error) => panic!("{error}"),
    };
    let (made, made_call) = kernel(image, function, Placement::Hot)?;
    let [other, hot] = best_of(ROUNDS, [&mut || run(&still_call), &mut || run(&made_call)]);
    made.set_placement(Placement::Cold);
    for placement in [Placement::Hot, Placement::Cold, Placement::Hot] {
        still.set_placement(placement);
    }
    if !still.is_hot() {
        return Err("the domain was not moved".into());
    }
    let [again, there] = best_of(ROUNDS, [&mut || run(&made_call), &mut || run(&still_call)]);
    Ok((other.min(again), hot, there))
}

/// What a move costs, and what it does to threads that call meanwhile.
fn moves(directory: &Path) -> Result<Vec<Figure>, String> {
    let [file, extension] = ["next.c", "next.px"].map(|name| directory.join(name));
    let source = "static long n; long next(void) { return __atomic_add_fetch(&n, 1, 5); }";
    std::fs::write(&file, source).map_err(|e| e.to_string())?;
    let build = postern_toolchain::Build::new(Language::C).file(&file);
    build.output(&extension).run().map_err(|e| e.to_string())?;
    let image = Image::load(&extension).map_err(|e| e.to_string())?;
    let domain = Domain::builder(&image).placement(Placement::Cold);
    let domain = domain.build().map_err(|e| e.to_string())?;
    let next: Func<fn() -> i64> = domain.func("next").map_err(|e| e.to_string())?;
    next.call().map_err(|e| e.to_string())?;
    let there_and_back = || -> Result<Duration, String> {
        let (spent, ()) = time(|| {
            domain.set_placement(Placement::Hot);
            domain.set_placement(Placement::Cold);
        });
        Ok(spent / 2)
    };
    let small = best_mean(5, MOVES, there_and_back)?;
    let heap = Offset(image.tables().layout.heap_start);
    domain
        .write(heap, &vec![1; LARGE])
        .map_err(|e| e.to_string())?;
    let large = best_mean(5, MOVES, there_and_back)?;

    let before = domain.counters().moves;
    let stop = AtomicBool::new(false);
    let (mut calls, mut rounds) = (0u64, 0u32);
    let (spent, ()) = time(|| {
        std::thread::scope(|scope| {
            let caller = scope.spawn(|| {
                let mut calls = 0u64;
                while !stop.load(Ordering::Relaxed) && next.call().is_ok() {
                    calls += 1;
                }
                calls
            });
            while domain.counters().moves < before + 2 * u64::from(MOVES) && rounds < 100_000 {
                let placement = [Placement::Hot, Placement::Cold][rounds as usize % 2];
                domain.set_placement(placement);
                rounds += 1;
            }
            stop.store(true, Ordering::Relaxed);
            calls = caller.join().unwrap_or(0);
        });
    });
    let made = domain.counters().moves - before;
    let last = next.call().map_err(|e| e.to_string())?;
    if last as u64 != calls + 2 {
        return Err(format!("of {calls} calls {last} arrived"));
    }
    let (small, large) = (small * 1e6, large * 1e6);
    let held = "one move, nobody inside";
    Ok(vec![
        Figure::plain("placement.move.small", small, "us", held),
        Figure::plain(
            "placement.move.16-MiB",
            large,
            "us",
            "the same with 16 MiB of written heap",
        )
        .against(small),
        Figure::plain(
            "placement.move.under-load",
            spent.as_secs_f64() * 1e6 / made.max(1) as f64,
            "us",
            format!("{made} moves while a thread makes {calls} calls; all of them arrive"),
        ),
    ])
}
