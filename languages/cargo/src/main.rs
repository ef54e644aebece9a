//! `cargo postern`: Rust crates as extensions.
//!
//! The stable compiler writes bitcode of the crate and of all that it uses, std included, as it
//! does for its own optimisation of whole programs ([`bitcode`]). From there on it is `postern
//! cc`'s: code generation, rewriting, linking and the verifier ([`extension`]).
#![forbid(unsafe_code)]

mod bitcode;
mod build;
mod error;
mod extension;
mod library;
mod names;
mod new;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand};

use build::Build;
use error::Error;

/// Rust crates as extensions of Postern
#[derive(Parser)]
#[command(bin_name = "cargo", version)]
enum Cargo {
    /// Build Rust crates as extensions, run and test them
    #[command(subcommand)]
    Postern(Action),
}

#[derive(Subcommand)]
enum Action {
    /// Make a crate that is an extension
    New {
        /// Its folder, and its name
        path: PathBuf,
        /// It uses std
        #[arg(long)]
        std: bool,
    },
    /// Build the crate in this folder as an extension
    Build(Build),
    /// Build it, and call a function of it, or its main, by `postern run`
    Run {
        #[command(flatten)]
        build: Build,
        /// What `postern run` is told after the extension's name
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "ARG"
        )]
        arguments: Vec<String>,
    },
    /// Run the crate's own unit tests, confined
    Test {
        #[command(flatten)]
        build: Build,
        /// What the tests' program is told
        #[arg(last = true, value_name = "ARG")]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    let Cargo::Postern(action) = Cargo::parse();
    let outcome = match &action {
        Action::New { path, std } => new::make(path, *std).map(|()| 0),
        Action::Build(build) => extension::build(build, bitcode::Kind::Crate).map(|image| {
            println!("{}", image.display());
            0
        }),
        Action::Run { build, arguments } => extension::build(build, bitcode::Kind::Crate)
            .and_then(|image| run(&image, &[], arguments)),
        Action::Test { build, arguments } => {
            extension::build(build, bitcode::Kind::Tests).and_then(|image| {
                // One thread: an extension starts none unless its host lets it.
                let mut all = vec!["--".to_owned(), "--test-threads=1".to_owned()];
                all.extend(arguments.iter().cloned());
                run(&image, &["--policy", "files"], &all)
            })
        }
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let text = error.to_string();
            if !text.is_empty() {
                eprintln!("cargo postern: error: {text}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Runs the extension by `postern run`; its exit status.
fn run(image: &Path, options: &[&str], arguments: &[String]) -> Result<u8, Error> {
    // The command lies beside this one, where both were installed.
    let beside = std::env::current_exe()
        .ok()
        .map(|path| path.with_file_name("postern"));
    let program = beside
        .filter(|path| path.is_file())
        .unwrap_or_else(|| "postern".into());
    let status = Command::new(&program)
        .arg("run")
        .args(options)
        .arg(image)
        .args(arguments)
        .status()
        .map_err(|source| Error::Start {
            program: program.display().to_string(),
            source,
        })?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(1))
}
