//! `web`: instructions of requests for files, beside nginx on Linux in the same emulator.

use std::error::Error;

use clap::Args;
use postern_aegis_machine::linux::Linux;
use postern_exos_machine::{build, place, requests};

/// Count instructions of requests to the web server, and of the same to nginx under Linux
#[derive(Args)]
pub struct Arguments {
    /// Debian's kernel that nginx runs on
    #[arg(long, default_value = "6.1", value_name = "VERSION")]
    linux: String,
}

/// Measures and prints.
pub fn run(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    build::all()?;
    let folder = place::target();
    eprintln!("exos-machine: asking ExOS");
    let own = requests::of_exos(&folder)?;
    let linux = Linux {
        version: arguments.linux.clone(),
        mitigations_off: false,
    };
    eprintln!("exos-machine: asking nginx");
    let other = match requests::nginx().exists() {
        true => requests::of_linux(&linux, &folder)?,
        false => {
            eprintln!("exos-machine: left out: make setup-nginx fetches it");
            Vec::new()
        }
    };
    println!("bytes     ExOS, instructions   MB/s   nginx, instructions   MB/s   ratio");
    for (at, own) in own.iter().enumerate() {
        let rate = |time: u64| own.size as f64 * 1000.0 / time.max(1) as f64;
        print!(
            "{:<9} {:>18} {:>6.1}",
            own.size,
            own.instructions,
            rate(own.time)
        );
        if let Some(other) = other.get(at) {
            let ratio = other.instructions as f64 / own.instructions.max(1) as f64;
            print!(
                "{:>22} {:>6.1} {ratio:>7.1}",
                other.instructions,
                rate(other.time)
            );
        }
        println!();
    }
    Ok(true)
}
