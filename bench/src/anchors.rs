//! What else could stand between two protection domains, beside a protected call.

use postern::{Domain, Image};
use postern_figures::clock::best_of;
use postern_figures::figure::Figure;
use postern_figures::trusted::{cycle, memory, process};
use postern_image::ImageBuilder;
use std::hint::black_box;

const COUNT: u64 = 20_000;

/// The figures of the group.
pub fn figures() -> Result<Vec<Figure>, String> {
    let mut builder = ImageBuilder::new([0x8d, 0x47, 0x01, 0xc3]); // lea 1(%rdi), %eax; ret
    builder.export("null", 0, Some("i(i)".parse().map_err(|e| format!("{e}"))?));
    let file = builder.build().map_err(|e| e.to_string())?;
    let image = Image::from_bytes(&file).map_err(|e| e.to_string())?;
    let domain = Domain::builder(&image).build().map_err(|e| e.to_string())?;
    let null = domain
        .func::<fn(i32) -> i32>("null")
        .map_err(|e| e.to_string())?;
    let plain = black_box(cycle::add_one as extern "C" fn(i32) -> i32);
    let mut x = 0;
    let [chain, protected, call, system, protect] = best_of(
        20,
        [
            &mut || cycle::chain(10 * COUNT),
            &mut || (0..COUNT).for_each(|_| x = null.call(x).unwrap_or(0)),
            &mut || {
                black_box((0..COUNT).fold(0, |x, _| black_box(plain)(x)));
            },
            &mut || process::system_calls(COUNT),
            &mut || memory::protect_and_back(COUNT / 10),
        ],
    );
    let pipe = process::pipe_round_trip(20, 500)?;
    let cycle = chain / (10 * COUNT) as f64;
    let cycles = |seconds: f64, count: u64| seconds / count as f64 / cycle;
    let protected = cycles(protected, COUNT);
    let row = |name: &str, cycles: f64, how: &str| {
        Figure::plain(
            format!("anchors.{name}"),
            cycles,
            "cycles",
            format!("{how}, over a whole protected call"),
        )
        .against(protected)
    };
    Ok(vec![
        Figure::plain(
            "anchors.clock",
            1e-9 / cycle,
            "GHz",
            "additions in a nanosecond: what a cycle is here",
        ),
        row("call", cycles(call, COUNT), "a plain indirect call"),
        row("syscall", cycles(system, COUNT), "getppid"),
        row(
            "mprotect",
            cycles(protect, COUNT / 10 * 2),
            "one page that is there, writable or not",
        ),
        row(
            "pipe",
            cycles(pipe, 1),
            "one byte to another process on the same core and back",
        ),
    ])
}
