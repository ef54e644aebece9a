//! `exos-machine`: builds ExOS, packs programs, and boots them in an emulator.
#![forbid(unsafe_code)]

mod bench;
mod boot;
mod demo;
mod disk;
mod tests;
mod web;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Build ExOS and boot programs on it in an emulator.
#[derive(Parser)]
#[command(
    name = "exos-machine",
    version,
    max_term_width = 120,
    after_help = "\
Exit status: 0 if all went well, 1 if the machine or a test says otherwise, 2 for wrong options or what is missing.

Examples:
  exos-machine boot                            a shell, with this terminal on the serial line
  exos-machine boot 'wc a.c' -f a.c=a.c -l 10  a program with arguments and a file, for ten seconds
  exos-cc hello.c -o hello && exos-machine boot hello -f hello=hello
  exos-machine bench --json                    figures as data"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Boot(boot::Arguments),
    Demo(demo::Arguments),
    Test(tests::Arguments),
    Bench(bench::Arguments),
    Conformance(tests::Conformance),
    Web(web::Arguments),
    Disk(disk::Arguments),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Boot(arguments) => boot::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Test(arguments) => tests::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Conformance(arguments) => tests::conformance(&arguments),
        Command::Web(arguments) => web::run(&arguments),
        Command::Disk(arguments) => disk::run(&arguments),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("exos-machine: {error}");
            ExitCode::from(2)
        }
    }
}
