//! What a person, or a program, sees of a packet.

use std::fmt::Write as _;

use clap::Args;
use postern_capture::{Direction, Seen, line};

/// How packets are shown.
#[derive(Args)]
pub struct Style {
    /// Show the link header, too
    #[arg(short = 'e')]
    link: bool,
    /// Say less of each packet
    #[arg(short = 'q')]
    quiet: bool,
    /// Show packets in hexadecimal, without the link header
    #[arg(short = 'x', conflicts_with = "json")]
    hex: bool,
    /// Show packets in hexadecimal and letters, without the link header
    #[arg(short = 'X', conflicts_with = "json")]
    letters: bool,
    /// Print a JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// What is said of a packet in JSON.
#[derive(serde::Serialize)]
struct Object<'a> {
    number: u64,
    /// Nanoseconds since 1970.
    time: u64,
    length: u32,
    captured: u32,
    #[serde(skip_serializing_if = "str::is_empty")]
    interface: &'a str,
    /// `in`, `broadcast`, `multicast` or `other` (all of which came in), or `out`.
    #[serde(skip_serializing_if = "Option::is_none")]
    direction: Option<&'static str>,
    link: String,
    #[serde(flatten)]
    summary: line::Summary,
}

/// How a packet passed its interface, in JSON and in a line, if it is known.
fn direction(seen: &Seen) -> Option<(&'static str, &'static str)> {
    match seen.origin.direction {
        Direction::In => Some(("in", "In")),
        Direction::Broadcast => Some(("broadcast", "B")),
        Direction::Multicast => Some(("multicast", "M")),
        Direction::Other => Some(("other", "P")),
        Direction::Out => Some(("out", "Out")),
        Direction::Unknown => None,
    }
}

impl Style {
    /// The packet's line, or lines. `mixed` is whether there may be packets of other interfaces, too.
    pub fn text(
        &self,
        number: u64,
        seen: &Seen,
        interface: &str,
        mixed: bool,
        bytes: &[u8],
    ) -> String {
        let summary = line::summary(bytes, seen.wire);
        if self.json {
            let object = Object {
                number,
                time: seen.time,
                length: seen.wire,
                captured: seen.captured,
                interface,
                direction: direction(seen).map(|(name, _)| name),
                link: line::link(bytes),
                summary,
            };
            return serde_json::to_string(&object).unwrap_or_default() + "\n";
        }
        let mut text = line::time(seen.time) + " ";
        if mixed {
            let direction = direction(seen).map_or("?", |(_, short)| short);
            // Writing to a string does not fail.
            let _ = write!(text, "{interface:<5} {direction:<3} ");
        }
        if self.link {
            let _ = write!(text, "{}, length {}: ", line::link(bytes), seen.wire);
        }
        text += &summary.text(self.quiet);
        text.push('\n');
        if self.hex || self.letters {
            text += &line::hex(bytes.get(14..).unwrap_or_default(), self.letters);
        }
        text
    }
}
