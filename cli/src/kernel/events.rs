//! `postern kernel events`: what an extension tells through its ring.

use clap::Args;
use postern_kernel::Device;
use serde::Serialize;

use crate::number::{self, TimeLimit};
use crate::output::{self, Failure, Outcome, SUCCESS};

/// Print what an extension writes to its ring, an entry a line, until interrupted
#[derive(Args)]
pub struct Events {
    /// Name or number of the extension
    extension: String,
    /// End after so many entries
    #[arg(short = 'c', long, value_name = "COUNT")]
    count: Option<u64>,
    /// End when none came for so long, such as 2s
    #[arg(long, value_name = "TIME", value_parser = number::time)]
    timeout: Option<TimeLimit>,
    /// Print entries as text, not as bytes in hexadecimal
    #[arg(long)]
    text: bool,
}

#[derive(Serialize)]
struct Row {
    bytes: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// Prints entries as they come.
pub fn run(device: &Device, arguments: &Events, json: bool) -> Outcome {
    let id = device.find(&arguments.extension)?;
    let mut opened = device.opened(id)?;
    let longest = arguments.timeout.and_then(|limit| limit.0);
    let most = usize::try_from(arguments.count.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    for entry in opened.events(longest).take(most) {
        let entry = entry.map_err(|error| {
            Failure::unusable(format!("reading the ring of extension {id}: {error}"))
        })?;
        let hex = || entry.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = || {
            let end = entry
                .iter()
                .rposition(|&byte| byte != 0)
                .map_or(0, |last| last + 1);
            String::from_utf8_lossy(&entry[..end]).into_owned()
        };
        if json {
            let row = Row {
                bytes: hex(),
                text: arguments.text.then(text),
            };
            let line = serde_json::to_string(&row).unwrap_or_default();
            output::print(&(line + "\n"))?;
        } else {
            let line: String = match arguments.text {
                true => text().trim_end_matches('\n').escape_debug().to_string(),
                false => hex(),
            };
            output::print(&(line + "\n"))?;
        }
    }
    Ok(SUCCESS)
}
