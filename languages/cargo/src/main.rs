//! `cargo postern`: Rust crates as extensions.
//!
//! The stable compiler writes bitcode of the crate and of all that it uses, std included, as it
//! does for its own optimisation of whole programs ([`bitcode`]). From there on it is `postern
//! cc`'s: code generation, rewriting, linking and the verifier ([`extension`]).
#![forbid(unsafe_code)]

mod bitcode;
mod extension;
mod names;
mod new;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Args, Parser, Subcommand};

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

#[derive(Args)]
struct Build {
    /// Where the crate's Cargo.toml is
    #[arg(long, value_name = "FILE")]
    manifest_path: Option<PathBuf>,
    /// The crate of the workspace
    #[arg(short, long, value_name = "NAME")]
    package: Option<String>,
    /// The program with this name; without it, the crate's library or its only program
    #[arg(long, value_name = "NAME")]
    bin: Option<String>,
    /// Features
    #[arg(long, value_name = "NAMES")]
    features: Option<String>,
    /// Without the default features
    #[arg(long)]
    no_default_features: bool,
    /// The processor that it needs, such as x86-64-v3
    #[arg(long, value_name = "NAME")]
    march: Option<String>,
    /// An option for the link, as `postern cc` has it, such as -fpostern-heap=64M
    #[arg(long = "cc", value_name = "OPTION", allow_hyphen_values = true)]
    link: Vec<String>,
    /// The file to write [default: NAME.px in the target folder]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
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

/// Why nothing was built or run.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// cargo said why.
    #[error("")]
    Told,
    /// A program could not be started.
    #[error("`{program}` could not be run: {source}")]
    Start {
        program: String,
        source: std::io::Error,
    },
    /// A file.
    #[error("{}: {source}", path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    /// Compiling or linking.
    #[error(transparent)]
    Compile(#[from] postern_toolchain::DriverError),
    /// Anything else, as a sentence.
    #[error("{0}")]
    Other(String),
}

impl Error {
    fn file(path: &Path) -> impl Fn(std::io::Error) -> Error + use<> {
        let path = path.to_owned();
        move |source| Error::File {
            path: path.clone(),
            source,
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
