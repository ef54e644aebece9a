//! `postern kernel`: extensions of the Linux kernel, at the device of Postern's module.
//!
//! Nothing is kept beside the device: names and lines of what is loaded come from the image that
//! `--image` names, and is compared by its size with what the kernel has.

mod attach;
mod call;
mod events;
mod fault;
mod image;
mod load;
mod map;
mod show;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use postern_kernel::{Device, Error, PATH};

use crate::output::{self, Failure, Outcome, SUCCESS};

/// Run extensions in the Linux kernel, which judges them first
#[derive(Args)]
#[command(after_help = "\
The module `postern` has to be loaded (`modprobe postern`; `make dkms` in Postern's sources makes its package), and all of this needs
CAP_SYS_ADMIN. Images are made by `postern cc --kernel`. EXTENSION is the name or the number of one that is loaded.

Exit status: 0; 1 if the kernel refuses an image; 2 if arguments, files or the device cannot be used; 3 if a call did not return.

Examples:
  postern cc --kernel -O2 -g -o rules.pst rules.c
  postern kernel load rules.pst --allow see-packets
  postern kernel call rules count 3
  postern kernel attach rules filter --netfilter input --otherwise accept
  postern kernel stats rules --image rules.pst
  postern kernel unload rules")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// The module's device
    #[arg(long, global = true, value_name = "PATH", default_value = PATH)]
    device: PathBuf,
    /// Print the result as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    Load(load::Load),
    Replace(load::Replace),
    Unload(Unload),
    Call(call::Call),
    /// List the extensions that are loaded
    List,
    Stats(show::Stats),
    Attach(attach::Attach),
    /// List all attachments
    Attachments,
    Detach(attach::Detach),
    #[command(subcommand)]
    Map(map::Map),
    Events(events::Events),
}

/// Unload an extension, once no call of it is under way
#[derive(Args)]
struct Unload {
    /// Name or number
    extension: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    let device = Device::open_at(&arguments.device)?;
    let json = arguments.json;
    match &arguments.command {
        Command::Load(load) => load::load(&device, load, json),
        Command::Replace(replace) => load::replace(&device, replace, json),
        Command::Unload(unload) => {
            device.unload(device.find(&unload.extension)?)?;
            Ok(SUCCESS)
        }
        Command::Call(call) => call::call(&device, call, json),
        Command::List => show::list(&device, json),
        Command::Stats(stats) => show::stats(&device, stats, json),
        Command::Attach(attach) => attach::attach(&device, attach, json),
        Command::Attachments => attach::list(&device, json),
        Command::Detach(detach) => attach::detach(&device, detach),
        Command::Map(map) => map::run(&device, map, json),
        Command::Events(events) => events::run(&device, events, json),
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match error {
            Error::Refused(_) => output::REFUSED,
            _ => output::UNUSABLE,
        };
        Failure::new(code, error.to_string())
    }
}

impl From<postern_kernel::Unreadable> for Failure {
    fn from(error: postern_kernel::Unreadable) -> Failure {
        Failure::unusable(error.to_string())
    }
}
