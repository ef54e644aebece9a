//! `postern ecode`: compile E-code, have it judged, and show, keep or call what comes of it.

mod judged;
mod listing;
mod report;
mod watch;

use std::path::{Path, PathBuf};

use clap::Args;
use judged::Verdict;
use postern::Image;
use postern_ecode::{Compiler, Options};
use postern_verifier::window::STACK_LOG2;

use crate::output::{self, Failure, Outcome, REFUSED, SUCCESS};
use crate::run;

/// Compile E-code, a subset of C, within microseconds.
#[derive(Args)]
#[command(after_help = "\
Several files make one extension, and may call each other's functions. What is compiled is judged, always.

Exit status: 0 if all is accepted, 1 if a source has errors or the code is refused, 2 if arguments or files cannot be
used; with --run that of `postern run`.

Examples:
  postern ecode filter.ec
  postern ecode filter.ec -S
  postern ecode filter.ec -o filter.px
  postern ecode rules.ec --kernel -o rules.pst
  postern ecode math.ec --run gcd 12 18
  postern ecode math.ec --watch --run gcd 12 18")]
pub struct Arguments {
    /// Sources
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print the machine code with the lines that it was made of
    #[arg(short = 'S', long)]
    assembly: bool,
    /// Write an extension file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Bytes of the data stack, as a power of two
    #[arg(long, value_name = "LOG2", default_value_t = STACK_LOG2.1,
        value_parser = clap::value_parser!(u32).range(i64::from(STACK_LOG2.0)..=i64::from(STACK_LOG2.2)))]
    stack: u32,
    /// A file that sources may include by its name without folders
    #[arg(long, value_name = "FILE")]
    header: Vec<PathBuf>,
    /// Make an image for the kernel: memory through fs, general registers only, no recursion and no
    /// calls through pointers
    #[arg(long, conflicts_with = "run")]
    kernel: bool,
    /// Call a function; takes the arguments and options of `postern run` behind the file, and
    /// stands last
    #[arg(long, num_args = 1.., allow_hyphen_values = true, value_names = ["FUNCTION", "ARG"])]
    run: Vec<String>,
    /// Do it again each time that a file changes, until interrupted
    #[arg(long)]
    watch: bool,
    /// Print functions, sizes and errors as JSON
    #[arg(long, conflicts_with = "assembly")]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    // A wrong call is found before anything is compiled.
    let call = match &arguments.run[..] {
        [] => None,
        words => Some(run::words(&arguments.files[0], words, arguments.json)?),
    };
    if arguments.watch {
        return watch::run(&arguments.files, || once(arguments, call.as_ref()));
    }
    once(arguments, call.as_ref())
}

fn once(arguments: &Arguments, call: Option<&run::Arguments>) -> Outcome {
    let mut compiler = Compiler::new(Options {
        kernel: arguments.kernel,
        ..Options::default()
    });
    for path in &arguments.header {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        compiler.header(&name, output::read(path)?);
    }
    let sources = arguments
        .files
        .iter()
        .map(|path| judged::source(&mut compiler, path))
        .collect::<Result<Vec<_>, _>>()?;
    let verdict = judged::together(&sources, arguments.stack, arguments.kernel);
    let Verdict::Accepted(linked, ..) = &verdict else {
        return report::refused(&sources, &verdict, arguments.json).map(|()| REFUSED);
    };
    if let Some(path) = &arguments.output {
        replace(path, &linked.file)?;
    }
    if arguments.assembly {
        output::print(&listing::of(&sources, linked)?)?;
    }
    let Some(call) = call else {
        if arguments.json || !arguments.assembly && arguments.output.is_none() {
            report::accepted(&sources, &verdict, arguments.json)?;
        }
        return Ok(SUCCESS);
    };
    let image = Image::from_bytes(&linked.file).map_err(|e| Failure::unusable(e.to_string()))?;
    run::image(call, &image)
}

/// Puts a new file in the place of the old one at once, so that whoever loads it never sees a half.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |e| Failure::unusable(format!("cannot write {}: {e}", path.display()));
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let new = path.with_file_name(name);
    std::fs::write(&new, bytes)
        .and_then(|()| std::fs::rename(&new, path))
        .map_err(|error| {
            // What was begun does not stay; whether it was is no matter.
            let _ = std::fs::remove_file(&new);
            failed(error)
        })
}
