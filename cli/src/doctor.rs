//! `postern doctor`: what of this machine serves, what is missing, and the remedy.

mod checks;

use checks::{Check, CheckStatus};
use clap::Args;

use crate::output::{self, Outcome, REFUSED, SUCCESS, Style};

/// Say what of this machine serves and what is missing.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 if extensions run here, 1 if something that they need is missing. What only makes them slower, or only
matters for compiling them, is shown as a note and does not change the status.

Example:
  postern doctor")]
pub struct Arguments {
    /// Print an array of checks as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    let checks = checks::all();
    if arguments.json {
        output::print_json(&checks)?;
    } else {
        output::print(&text(&checks))?;
    }
    let missing = checks.iter().any(|c| c.state == CheckStatus::Missing);
    Ok(if missing { REFUSED } else { SUCCESS })
}

fn text(checks: &[Check]) -> String {
    let style = Style::stdout();
    let width = checks.iter().map(|c| c.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for check in checks {
        // Padded before it is coloured: colours have no width.
        let state = match check.state {
            CheckStatus::Ok => style.green("ok     "),
            CheckStatus::Note => style.dim("note   "),
            CheckStatus::Missing => style.red("missing"),
        };
        text += &format!("{state}  {:width$}  {}\n", check.name, check.found);
        if let Some(remedy) = &check.remedy {
            text += &format!("{:9}{:width$}  -> {remedy}\n", "", "");
        }
    }
    text
}
