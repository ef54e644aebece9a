//! `postern sysroot`: the C library of extensions, which is built at first use: where it is, and
//! building it now.

use clap::{Args, Subcommand};

use postern_toolchain::sysroot::Sysroot;

use crate::output::{self, Failure, Outcome, SUCCESS};

/// Build the C library for extensions, or say where it is
#[derive(Args)]
#[command(after_help = "\
`postern cc` does this by itself: the headers before the first compilation, the library before the first link that needs it. The
library is newlib, from the package newlib-source; POSTERN_NEWLIB names another archive or folder of it, and POSTERN_SYSROOT a
sysroot that is to be used as it is.

Exit status: 0, or 2 if the library cannot be built.

Example:
  postern sysroot build")]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Build what is not there yet
    Build {
        /// Build it again
        #[arg(long)]
        force: bool,
    },
    /// Print the folder of `include` and `lib`
    Path,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    let unusable = |error: postern_toolchain::LibraryError| Failure::unusable(error.to_string());
    let mut sysroot = Sysroot::headers().map_err(unusable)?;
    if let Action::Build { force } = arguments.action {
        if force {
            sysroot.remove().map_err(unusable)?;
            sysroot = Sysroot::headers().map_err(unusable)?;
        }
        sysroot.library().map_err(unusable)?;
    }
    output::print(&format!("{}\n", sysroot.path().display()))?;
    Ok(SUCCESS)
}
