//! `boot`: any program as the first process, at the terminal or for some time.

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use postern_aegis_machine::emulator::{Machine, User};
use postern_aegis_machine::status::Status;
use postern_exos_abi::request::AGAIN;
use postern_exos_machine::images::image::Image;
use postern_exos_machine::{build, extensions, programs, site, software};

/// Boot a program as the first process
#[derive(Args)]
pub struct Arguments {
    /// What the first process is called with
    #[arg(default_value = "sh -l")]
    line: String,
    /// Files for the archive: `NAME=PATH`
    #[arg(short, long = "file", value_name = "NAME=PATH")]
    files: Vec<String>,
    /// A small file of the archive: `seed=5`
    #[arg(short = 's', long = "set", value_name = "NAME=VALUE")]
    parameters: Vec<String>,
    /// How many processors
    #[arg(short, long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8))]
    processors: u32,
    /// Mebibytes of memory; the archive of all programs takes 110 of them
    #[arg(short, long, default_value_t = 256, value_name = "MIB", value_parser = clap::value_parser!(u32).range(32..=512))]
    memory: u32,
    /// Count instructions: a nanosecond of the machine's is one, and every run is the same
    #[arg(short, long)]
    counted: bool,
    /// What is on the machine's network
    #[arg(short, long, value_name = "WHAT", default_value = "none")]
    network: Network,
    /// A port of this machine's loopback that is one of the guest's: `8080:80`
    #[arg(long, value_name = "HERE:THERE", value_parser = forward, requires = "network")]
    forward: Vec<(u16, u16)>,
    /// A disk whose contents stay: an image, which is made if it is not there
    #[arg(short, long, value_name = "IMAGE")]
    disk: Option<PathBuf>,
    /// End the machine after so many seconds; without it, the terminal is the serial line
    #[arg(short, long, value_name = "SECONDS")]
    limit: Option<u64>,
}

/// Bytes of a disk that is made.
const DISK: u64 = 64 << 20;

/// What is on the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Network {
    /// There is no network
    None,
    /// The emulator's own, with DHCP: 10.0.2.2 is this machine's loopback
    User,
    /// A peer that sends what it is asked for, and nothing else
    Peer,
}

/// Two ports as they are written on the command line.
fn forward(text: &str) -> Result<(u16, u16), String> {
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port != 0);
    let both = text.split_once(':');
    both.and_then(|(here, there)| Some((port(here)?, port(there)?)))
        .ok_or_else(|| "it is HERE:THERE, two ports".to_owned())
}

/// Boots it.
pub fn run(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    build::all()?;
    let mut all = programs::all()?;
    match programs::foreign() {
        Ok(foreign) => all.extend(foreign),
        // Without a network their sources may not be there.
        Err(error) => eprintln!("exos-machine: left out: {error}"),
    }
    let made = programs::make_some(&all)?;
    for words in made.failures {
        eprintln!("exos-machine: left out: {words}");
    }
    // Of two with a name the first is found: the user's.
    let mut files = vec![("init".to_owned(), arguments.line.clone().into_bytes())];
    for file in &arguments.files {
        let (name, path) = file.split_once('=').ok_or("--file: it is NAME=PATH")?;
        let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
        files.push((name.to_owned(), bytes));
    }
    for parameter in &arguments.parameters {
        let (name, value) = parameter.split_once('=').ok_or("--set: it is NAME=VALUE")?;
        files.push((name.to_owned(), value.as_bytes().to_vec()));
    }
    let mut services = String::new();
    if let Some(image) = &arguments.disk {
        if !image.exists() {
            Image::make(image, DISK, false)?;
        }
        services += "fsd\n";
    }
    services += "ramd /tmp\n";
    if arguments.network != Network::None {
        services += "netd\n";
    }
    files.push(("services.list".to_owned(), services.into_bytes()));
    files.extend(made.programs);
    files.extend(extensions::make()?);
    if arguments.network != Network::None {
        files.extend(site::make()?);
    }
    let folder = tempfile::tempdir()?;
    let software = software::prepare(&files, folder.path())?;
    let mut machine = Machine {
        processors: arguments.processors,
        memory: arguments.memory,
        counted: arguments.counted,
        network: arguments.network == Network::Peer,
        user: (arguments.network == Network::User).then(|| User {
            forwards: arguments.forward.clone(),
            restricted: false,
        }),
        disk: arguments.disk.is_some(),
        image: arguments.disk.clone().map(PathBuf::into_os_string),
        ..Machine::default()
    };
    machine.limit = arguments.limit.map_or(machine.limit, Duration::from_secs);
    let begun = Instant::now();
    let status = loop {
        let status = match arguments.limit {
            None => machine.attend(&software)?,
            Some(_) => machine.run(&software, |line| println!("{line}"))?.status,
        };
        let left = machine.limit.saturating_sub(begun.elapsed());
        if status != Status::Stopped(AGAIN) || arguments.limit.is_some() && left.is_zero() {
            break status;
        }
        eprintln!("exos-machine: it begins again");
    };
    eprintln!("exos-machine: {status}");
    Ok(status.is_well())
}
