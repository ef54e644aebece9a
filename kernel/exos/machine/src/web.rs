//! `web`: instructions of requests for files, beside nginx on Linux in the same emulator.

use std::error::Error;

use clap::Args;
use postern_aegis_machine::linux::Linux;
use postern_exos_machine::requests::{self, SUSTAINED, Took};
use postern_exos_machine::{build, place};

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
    println!(
        "A request for a file, over a connection that stays open: instructions of the machine,"
    );
    println!(
        "and the same for each KiB of it; MB/s are of the emulator, by this machine's clock.\n"
    );
    println!("bytes            ExOS  a KiB   MB/s        nginx  a KiB   MB/s   ratio  goal");
    for (at, own) in own.iter().enumerate() {
        print!("{:<9}{}", own.size, columns(own));
        if let Some(other) = other.get(at) {
            let verdict = match own.instructions <= other.instructions {
                true => "met",
                false => "MISSED",
            };
            let ratio = other.instructions as f64 / own.instructions.max(1) as f64;
            print!("{}{ratio:>8.1}  not more  {verdict}", columns(other));
        }
        println!("{}", sustained(own));
    }
    Ok(true)
}

/// Which row shows what goes on.
fn sustained(took: &Took) -> &'static str {
    match took.size == SUSTAINED {
        true => "  (a sustained transfer)",
        false => "",
    }
}

/// Instructions, those of a KiB, and the rate.
fn columns(took: &Took) -> String {
    let of_one = took.instructions as f64 * 1024.0 / took.size.max(1) as f64;
    let rate = took.size as f64 * 1000.0 / took.time.max(1) as f64;
    format!("{:>12} {of_one:>6.0} {rate:>6.1}", took.instructions)
}
