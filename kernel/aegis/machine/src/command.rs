//! What subcommands share: the build with a word about it, and a machine whose words are shown.

use std::error::Error;
use std::io::Write;

use postern_aegis_machine::build;
use postern_aegis_machine::emulator::{Ended, Machine, Software};

/// What a subcommand ends with: whether all went well, or why it could not be done.
pub type Outcome = Result<bool, Box<dyn Error>>;

/// Says what is being done: it may take a while.
pub fn progress(words: &str) {
    eprintln!("aegis-machine: {words}");
}

/// Builds all, and says so.
pub fn build() -> Result<(), Box<dyn Error>> {
    progress("building the kernel and its programs");
    Ok(build::all()?)
}

/// Runs a machine, shows what it says, and tells how it ended. Lines that begin with one of the
/// words are for this side only.
pub fn show(machine: &Machine, software: &Software, not: &[&str]) -> Result<Ended, Box<dyn Error>> {
    let ended = machine.run(software, |line| {
        if !not.iter().any(|word| line.starts_with(word)) {
            println!("{line}");
            std::io::stdout().flush().ok();
        }
    })?;
    progress(&ended.status.to_string());
    Ok(ended)
}
