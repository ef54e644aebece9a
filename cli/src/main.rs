//! The command `postern`: compile, judge, inspect and run extensions, and see whether this machine
//! serves.
//!
//! One module per subcommand; [`output`] has the exit codes and what all share on the terminal.
#![forbid(unsafe_code)]

mod bench;
mod build;
mod cc;
mod demux;
mod doctor;
mod ecode;
mod filter;
mod inspect;
mod interpose;
mod judgement;
mod kernel;
mod llvm;
mod number;
mod output;
mod run;
mod serve;
mod share;
mod sysroot;
mod top;
mod verify;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

/// Run code that you do not trust next to data that you care about.
#[derive(Parser)]
#[command(
    name = "postern",
    version,
    max_term_width = 120,
    after_help = "\
Examples:
  postern cc -O2 -o calc.px calc.c
  postern run calc.px add 2 3

`postern COMMAND --help` shows a command's options, exit status and example."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compile C to an extension; takes the arguments of gcc
    #[command(override_usage = "postern cc [GCC OPTIONS] FILE...", after_help = cc::HELP)]
    Cc,
    /// Compile C++ to an extension; takes the arguments of g++
    #[command(name = "c++", override_usage = "postern c++ [G++ OPTIONS] FILE...", after_help = cc::HELP)]
    Cxx,
    Build(build::Arguments),
    Ecode(Box<ecode::Arguments>),
    Verify(verify::Arguments),
    Inspect(inspect::Arguments),
    Run(Box<run::Arguments>),
    Interpose(interpose::Arguments),
    Filter(Box<filter::Arguments>),
    Demux(demux::Arguments),
    Kernel(Box<kernel::Arguments>),
    Serve(serve::Arguments),
    Share(share::Arguments),
    Top(top::Arguments),
    Bench(bench::Arguments),
    Doctor(doctor::Arguments),
    Sysroot(sysroot::Arguments),
    Llvm(llvm::Arguments),
}

fn main() -> ExitCode {
    // The compilers' arguments are not ours to read, but for a question that gcc cannot answer.
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some((command, rest)) = arguments.split_first()
        && let Some(language) = cc::language(command)
        && rest != ["--help"]
    {
        return cc::run(language, rest);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error)
            if error.use_stderr()
                && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand =>
        {
            let text = error.to_string();
            output::complain(text.strip_prefix("error: ").unwrap_or(&text).trim_end());
            return ExitCode::from(output::UNUSABLE);
        }
        // Help and version are asked for, not errors.
        Err(error) => error.exit(),
    };
    let outcome = match cli.command {
        Command::Cc => return cc::run(postern_toolchain::Language::C, &[]),
        Command::Cxx => return cc::run(postern_toolchain::Language::Cxx, &[]),
        Command::Build(arguments) => build::run(&arguments),
        Command::Ecode(arguments) => ecode::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Interpose(arguments) => interpose::run(&arguments),
        Command::Filter(arguments) => filter::run(&arguments),
        Command::Demux(arguments) => demux::run(&arguments),
        Command::Kernel(arguments) => kernel::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Share(arguments) => share::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Sysroot(arguments) => sysroot::run(&arguments),
        Command::Llvm(arguments) => llvm::run(&arguments),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure.report(),
    }
}
