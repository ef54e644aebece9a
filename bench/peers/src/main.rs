//! Peers: Wasmtime and wasm2c beside Postern, in the same process and the same run: calls,
//! callbacks, the kernels and the programs of `postern bench`.
//!
//! Clock, kernels, programs and baselines are those of `postern bench`. Wasmtime is at its defaults
//! (Cranelift, guard pages for bounds), and once more with epochs, its cheapest way to end a call
//! that takes too long, which Postern always can. E-code's kernels are beside gcc, tcc and
//! Wasmtime, compiling, too (`ecode`). Besides, the programs with parts of the confinement left out
//! (`ablations`), which is where the time goes.
//!
//! `cargo run --release -p postern-peers -- calls|kernels|programs|ecode|ablations` measures one
//! group, `programs lua` one program of it; `--json` prints data in place of tables.

#![forbid(unsafe_code)]

mod ablations;
mod calls;
mod contest;
mod ecode;
mod module;
mod programs;

use contest::Contest;
use postern_figures::figure::{self, Figure};
use std::process::ExitCode;

/// A group of figures and its table.
type Measured = Result<(Vec<Figure>, String), String>;

fn calls(_: &[String]) -> Measured {
    calls::figures().map(|figures| (figures.clone(), figure::table(&figures)))
}

fn contest(contest: Contest) -> Measured {
    Ok((contest.figures(), contest.table()))
}

fn ablations(only: &[String]) -> Measured {
    let this = std::env::current_exe().map_err(|e| e.to_string())?;
    ablations::table(&this, only).map(|table| (Vec::new(), table))
}

/// A group's name, and what measures it: all of its programs, or those that are named.
type Group = (&'static str, fn(&[String]) -> Measured);

const GROUPS: [Group; 5] = [
    ("calls", calls),
    ("kernels", |only| contest(contest::kernels(only)?)),
    ("programs", |only| contest(contest::programs(only)?)),
    ("ecode", |only| {
        ecode::table(only).map(|table| (table.figures(), table.table()))
    }),
    ("ablations", ablations),
];

fn main() -> ExitCode {
    // The ablations want the compiler as a process.
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if let [first, rest @ ..] = arguments.as_slice()
        && first == "cc"
    {
        return postern_toolchain::main(postern_toolchain::Language::C, rest);
    }
    let (options, names): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|word| word.starts_with("--"));
    let json = options.iter().any(|option| option == "--json");
    let is_group = |word: &String| GROUPS.iter().any(|(name, _)| name == word);
    let (groups, only): (Vec<String>, Vec<String>) = names.into_iter().partition(is_group);
    let mut all = Vec::new();
    for (name, measure) in GROUPS {
        if !groups.is_empty() && !groups.iter().any(|wanted| wanted == name) {
            continue;
        }
        match measure(&only) {
            Ok((figures, _)) if json => all.extend(figures),
            Ok((_, table)) => println!("{table}"),
            Err(error) => {
                eprintln!("peers: {name}: {error}");
                return ExitCode::from(2);
            }
        }
    }
    if json {
        print!("{}", figure::json(&all));
    }
    ExitCode::SUCCESS
}
