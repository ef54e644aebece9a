//! `postern share`: keeps the memory of a common domain, and hands it to processes that may have
//! it.

use std::io::Write;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use postern::{Admission, Broker, CommonMemory, EndInside, Image, Limits, socket_of};

use crate::number;
use crate::output::{self, Failure, Outcome, SUCCESS};

/// Keep one state of an extension for many processes.
#[derive(Args)]
#[command(after_help = "\
Processes attach by Domain::shared(NAME, &image) in Rust and pt_domain_shared in C, with the same image. The state is
there for as long as this command, or a process that is attached, runs. What one process grants its domain, all that
are attached can have it use.

Ends with SIGINT or SIGTERM: who is attached goes on, nobody else can attach.

Exit status: 0 after a signal, 1 if the extension is refused, 2 if it cannot be shared.

Example:
  postern share counter counter.px --allow-user 33")]
pub struct Arguments {
    /// Name by which processes attach
    name: String,
    /// Extension file
    image: PathBuf,
    /// Path of the socket (default: $XDG_RUNTIME_DIR/postern/NAME, or /run/postern/NAME)
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Admit processes of this user, by number (besides root and whoever runs this)
    #[arg(long, value_name = "UID")]
    allow_user: Vec<u32>,
    /// Admit processes that run with this group, by number
    #[arg(long, value_name = "GID")]
    allow_group: Vec<u32>,
    /// Admit whoever reaches the socket
    #[arg(long)]
    allow_all: bool,
    /// What becomes of the domain when a process ends while it is inside
    #[arg(long, value_enum, default_value = "poison", value_name = "WHAT")]
    policy: Policy,
    /// Bytes of heap, such as 64M
    #[arg(long, value_parser = number::size, value_name = "SIZE")]
    heap: Option<u64>,
    /// Bytes of each stack for variables, 4K to 64M (default: as linked)
    #[arg(long, value_parser = number::size, value_name = "SIZE")]
    stack: Option<u64>,
    /// Say on stderr who comes
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Policy {
    /// It lets nobody in until a process resets it
    Poison,
    /// It goes on; for extensions whose every step leaves their data whole
    Survive,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    let unusable = |error: &dyn std::fmt::Display| Failure::unusable(error.to_string());
    // Before any thread is made, so that none of them takes the signals.
    let ends = postern::termination().map_err(|e| unusable(&e))?;
    let path = match &arguments.socket {
        Some(path) => path.clone(),
        None => socket_of(&arguments.name).map_err(|e| unusable(&e))?,
    };
    let image =
        Image::load(&arguments.image).map_err(|e| Failure::new(output::REFUSED, e.to_string()))?;
    let mut limits = Limits::default();
    limits.heap = arguments.heap;
    limits.data_stack = arguments.stack;
    let memory = CommonMemory::with(&image, &limits).map_err(|e| unusable(&e))?;
    let memory = memory.end_inside(match arguments.policy {
        Policy::Poison => EndInside::Poison,
        Policy::Survive => EndInside::Survive,
    });
    if let Ok(path) = arguments.image.canonicalize() {
        memory.note_image(&path);
    }
    let admission = Admission {
        users: arguments.allow_user.clone(),
        groups: arguments.allow_group.clone(),
        all: arguments.allow_all,
    };
    let broker = Broker::begin(&path, &memory, admission).map_err(|e| unusable(&e))?;
    output::print(&format!(
        "{} is shared at {}\n",
        arguments.name,
        path.display()
    ))?;
    loop {
        let visit = match broker.serve_one(ends.as_fd()) {
            Ok(Some(visit)) => visit,
            Ok(None) => return Ok(SUCCESS),
            // The state would go with this process. What the system has none of now, descriptors
            // say, it may have later.
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "{error}");
                std::thread::sleep(Duration::from_millis(200));
                continue;
            }
        };
        if arguments.verbose {
            let what = if visit.admitted {
                "attaches"
            } else {
                "is refused"
            };
            let _ = writeln!(
                std::io::stderr(),
                "process {} (user {}, group {}) {what}",
                visit.pid,
                visit.user,
                visit.group
            );
        }
    }
}
