//! `exos-cc`: a compiler for programs of ExOS.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use postern_exos_machine::build;
use postern_exos_machine::cc::{self, CcError, Request, Tools};
use postern_toolchain::sysroot::Sysroot;
use postern_toolchain::tools::{Tool, ToolError};

fn run() -> Result<(), CcError> {
    match cc::read(std::env::args_os().skip(1))? {
        Request::Help => println!("{}", cc::HELP),
        Request::Version => {
            let gcc = Tool::Gcc.command().arg("-dumpfullversion").answer()?;
            println!("exos-cc {} (gcc {gcc})", env!("CARGO_PKG_VERSION"));
        }
        Request::PrintSysroot => println!("{}", Sysroot::exos()?.path().display()),
        Request::Compile(compile) => {
            if compile.links {
                build::library()?;
            }
            Tools::find()?.command(&compile).run_visibly()?;
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        // It has said why.
        Err(CcError::Tool(ToolError::Failed { .. })) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("exos-cc: {error}");
            ExitCode::from(2)
        }
    }
}
