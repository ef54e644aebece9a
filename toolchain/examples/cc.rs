//! `postern cc` and (with `++` as the first argument) `postern c++` without the rest of the
//! command.

use std::ffi::OsString;
use std::process::ExitCode;

use postern_toolchain::{Language, main as drive};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match args.split_first() {
        Some((first, rest)) if first == "++" => drive(Language::Cxx, rest),
        _ => drive(Language::C, &args),
    }
}
