//! `lua-playground FILE…` runs scripts that nobody has read; without files it reads lines.
//!
//! `cargo run --release -p postern-example-lua-playground -- --stress 10000` says how many scripts
//! it runs in a second.
#![allow(missing_docs)]

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use postern::Image;
use postern_example_lua_playground::{Limits, Playground};
use postern_toolchain::project::{Options, Project};

/// Run Lua scripts that nobody has read, each in a domain that is as new
#[derive(Parser)]
#[command(name = "lua-playground")]
struct Arguments {
    /// Scripts; without any, lines from standard input
    files: Vec<PathBuf>,
    /// Longest time of a script, in milliseconds
    #[arg(long, default_value_t = 1000)]
    deadline: u64,
    /// Memory of a script, in MiB
    #[arg(long, default_value_t = 64)]
    heap: u64,
    /// Run the scripts (or a short one) so many times, and print how fast that was
    #[arg(long, value_name = "TIMES")]
    stress: Option<u32>,
    /// The interpreter, as `postern build` makes it; without it, it is built now if need be
    #[arg(long)]
    extension: Option<PathBuf>,
}

type Error = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("lua-playground: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool, Error> {
    let extension = match &arguments.extension {
        Some(path) => path.clone(),
        None => {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
            let options = Options::new(folder.join("build"));
            Project::load(folder)?
                .build(&options, &mut |_| {})?
                .extension
        }
    };
    let image = Image::load(extension)?;
    let limits = Limits {
        deadline: Duration::from_millis(arguments.deadline),
        heap: arguments.heap << 20,
        ..Limits::default()
    };
    let playground = Playground::new(&image, limits)?;
    let mut scripts = Vec::new();
    for file in &arguments.files {
        scripts.push((file.display().to_string(), std::fs::read(file)?));
    }
    match arguments.stress {
        Some(times) => stress(&playground, scripts, times),
        None if scripts.is_empty() => lines(&playground),
        None => Ok(files(&playground, &scripts)?),
    }
}

fn files(playground: &Playground, scripts: &[(String, Vec<u8>)]) -> std::io::Result<bool> {
    let mut well = true;
    for (name, script) in scripts {
        let outcome = playground.run(name, script);
        std::io::stdout().write_all(&playground.take_output())?;
        if let Err(error) = outcome {
            well = false;
            println!("{name}: {error}");
        }
    }
    Ok(well)
}

fn lines(playground: &Playground) -> Result<bool, Error> {
    let mut input = std::io::stdin().lock();
    let person = std::io::stdin().is_terminal();
    let mut line = Vec::new();
    loop {
        if person {
            print!("> ");
            std::io::stdout().flush()?;
        }
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(true);
        }
        let outcome = playground.line(line.trim_ascii_end());
        std::io::stdout().write_all(&playground.take_output())?;
        if let Err(error) = outcome {
            println!("{error}");
        }
    }
}

fn stress(
    playground: &Playground,
    mut scripts: Vec<(String, Vec<u8>)>,
    times: u32,
) -> Result<bool, Error> {
    if scripts.is_empty() {
        let short = "local t = {} for i = 1, 100 do t[i] = i * i end print(#t, t[100])";
        scripts.push(("short".to_owned(), short.into()));
    }
    let mut failed = 0;
    let start = Instant::now();
    for (name, script) in scripts.iter().cycle().take(times as usize) {
        failed += u32::from(playground.run(name, script).is_err());
        playground.take_output();
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{times} scripts in {seconds:.2} s, {:.0} in a second, {failed} of them ended or failed",
        f64::from(times) / seconds
    );
    Ok(failed == 0)
}
