//! Wasmtime beside Postern, in the same process and the same run: calls, callbacks, the kernels of `postern bench`, and codecs of other
//! people. Modules run in both: in Wasmtime, and as extensions by wasm2c.
//!
//! Clock, table, kernels and baselines are those of `postern bench`, file by file. Wasmtime is at its defaults (Cranelift, guard
//! pages for bounds), and once more with epochs, its cheapest way to end a call that takes too long, which Postern always can.

mod calls;
#[path = "../../cli/src/bench/clock.rs"]
#[allow(dead_code)]
mod clock;
mod codecs;
#[path = "../../cli/src/bench/comparison.rs"]
#[allow(dead_code)]
mod comparison;
#[path = "../../cli/src/bench/figure.rs"]
#[allow(dead_code)]
mod figure;
#[path = "../../cli/src/bench/kernels.rs"]
#[allow(dead_code)]
mod kernels;
mod native;
mod wasm;

use std::process::ExitCode;

fn main() -> ExitCode {
    let json = std::env::args().any(|argument| argument == "--json");
    let figures = calls::figures().and_then(|mut figures| {
        figures.extend(wasm::figures()?);
        Ok(figures)
    });
    match figures {
        Ok(figures) if json => print!("{}", figure::json(&figures)),
        Ok(figures) => print!("{}", figure::table(&figures)),
        Err(error) => {
            eprintln!("peers: {error}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
