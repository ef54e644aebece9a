//! `postern top`: the domains that `postern share` keeps on this machine, and who does what in
//! them.
//!
//! It joins their memory as anybody does whom the broker admits, takes no seat, enters nothing and
//! writes nothing. So what it shows is as much as those processes say of themselves; what the
//! kernel says is marked where it is not the same.

mod export;
mod facts;
mod process;
mod screen;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use postern::{brokers, socket_of};

use crate::output::{Failure, Outcome, SUCCESS};
use facts::Looking;

/// Show the shared domains of this machine, and who is inside.
#[derive(Args)]
#[command(after_help = "\
Shows the domains of $XDG_RUNTIME_DIR/postern, or /run/postern, that this user may attach to. A `?` behind a process's
number means that the kernel does not confirm it, and a `*` that it is of another PID namespace. Ends with SIGINT, or
behind the last refresh.

Exit status: 0, or 2 if there is no domain NAME.

Examples:
  postern top
  postern top counter -b -n 1
  postern top --json -n 1 | jq '.domains[].poison'")]
pub struct Arguments {
    /// Only this domain
    name: Option<String>,
    /// Path of the broker's socket, if it was started with one
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Seconds between two refreshes
    #[arg(short, long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    delay: Duration,
    /// Refreshes; without it, no end
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// One refresh below the other, as where stdout is no terminal
    #[arg(short, long)]
    batch: bool,
    /// One JSON object for each refresh, a line each
    #[arg(long)]
    json: bool,
    /// The sums in the format of Prometheus, once
    #[arg(long, conflicts_with_all = ["json", "batch", "count"])]
    prometheus: bool,
}

/// A delay, in seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    let value = text.parse().ok().filter(|s| (0.1..=3600.0).contains(s));
    let value = value.ok_or_else(|| "not a number of seconds, 0.1 to 3600".to_owned())?;
    Ok(Duration::from_secs_f64(value))
}

/// Which sockets are meant now.
fn sockets(arguments: &Arguments) -> Result<Vec<(String, PathBuf)>, Failure> {
    let unusable = |error: &dyn std::fmt::Display| Failure::unusable(error.to_string());
    match (&arguments.name, &arguments.socket) {
        (name, Some(path)) => {
            let file = path.file_name().unwrap_or(path.as_os_str());
            let own = || file.to_string_lossy().into_owned();
            Ok(vec![(name.clone().unwrap_or_else(own), path.clone())])
        }
        (Some(name), None) => {
            let path = socket_of(name).map_err(|e| unusable(&e))?;
            Ok(vec![(name.clone(), path)])
        }
        (None, None) => {
            let found = brokers();
            found.map_err(|e| Failure::unusable(format!("cannot list the brokers: {e}")))
        }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    let mut looking = Looking::default();
    let one = arguments.name.is_some() || arguments.socket.is_some();
    let screen = !arguments.batch && io::stdout().is_terminal();
    let mut left = arguments.count;
    loop {
        let domains = looking.look(&sockets(arguments)?);
        if let (true, [only]) = (one, &domains[..])
            && let (None, Some(why)) = (&only.view, &only.unseen)
        {
            return Err(Failure::unusable(why.clone()));
        }
        let text = if arguments.prometheus {
            export::prometheus(&domains)
        } else if arguments.json {
            export::json(&domains)?
        } else {
            let text = screen::text(&domains);
            match screen {
                true => screen::fitted(&text),
                false => text,
            }
        };
        if !write(&text)? || arguments.prometheus {
            return Ok(SUCCESS);
        }
        left = left.map(|left| left - 1);
        if left == Some(0) {
            return Ok(SUCCESS);
        }
        if !screen && !arguments.json {
            write("\n")?;
        }
        std::thread::sleep(arguments.delay);
    }
}

/// Writes to stdout: false if nobody reads any more.
fn write(text: &str) -> Result<bool, Failure> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::unusable(format!(
            "cannot write to stdout: {error}"
        ))),
    }
}
