//! What a person, or a program, sees of a packet.

use std::fmt::Write as _;

use clap::Args;
use postern_capture::{Seen, line};

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
struct Object {
    number: u64,
    /// Nanoseconds since 1970.
    time: u64,
    length: u32,
    captured: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    outgoing: bool,
    link: String,
    #[serde(flatten)]
    summary: line::Summary,
}

impl Style {
    /// The packet's line, or lines.
    pub fn text(&self, number: u64, seen: &Seen, bytes: &[u8]) -> String {
        let summary = line::summary(bytes, seen.wire);
        if self.json {
            let object = Object {
                number,
                time: seen.time,
                length: seen.wire,
                captured: seen.captured,
                outgoing: seen.outgoing,
                link: line::link(bytes),
                summary,
            };
            return serde_json::to_string(&object).unwrap_or_default() + "\n";
        }
        let mut text = line::time(seen.time) + " ";
        if self.link {
            // Writing to a string does not fail.
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
