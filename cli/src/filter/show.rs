//! What a person, or a program, sees of a packet.

use std::fmt::Write as _;

use clap::{ArgAction, Args};
use postern_capture::line::{self, Detail};
use postern_capture::{Direction, Link, PacketRef};

/// How packets are shown.
#[derive(Args)]
pub struct Style {
    /// Show the link header, too
    #[arg(short = 'e')]
    link: bool,
    /// Say less of each packet
    #[arg(short = 'q')]
    quiet: bool,
    /// Say more: the network header, too
    #[arg(short = 'v', action = ArgAction::Count, conflicts_with = "quiet")]
    verbose: u8,
    /// Show packets in hexadecimal, without the link header; twice: with it
    #[arg(short = 'x', action = ArgAction::Count, conflicts_with = "json")]
    hex: u8,
    /// Show packets in hexadecimal and letters, without the link header; twice: with it
    #[arg(short = 'X', action = ArgAction::Count, conflicts_with = "json")]
    letters: u8,
    /// Show packets' letters, without the link header
    #[arg(short = 'A', conflicts_with = "json")]
    ascii: bool,
    /// Show no time; twice: seconds since 1970; three times: since the packet before; four times:
    /// the date, too; five times: since the first packet
    #[arg(short = 't', action = ArgAction::Count, conflicts_with = "json")]
    times: u8,
    /// Times in microseconds, shown and written
    #[arg(long, conflicts_with_all = ["nano", "precision"])]
    micro: bool,
    /// Times in nanoseconds, shown and written
    #[arg(long, conflicts_with = "precision")]
    nano: bool,
    /// The same by a word
    #[arg(long = "time-stamp-precision", value_name = "PRECISION")]
    precision: Option<Precision>,
    /// Show packets' numbers
    #[arg(short = '#', long, conflicts_with = "json")]
    number: bool,
    /// Print a JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// How fine times are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Precision {
    Micro,
    Nano,
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

/// The times that others are shown relative to.
pub struct Clock {
    first: Option<u64>,
    last: Option<u64>,
    /// Digits of the parts of a second.
    digits: usize,
}

impl Clock {
    /// A clock; microseconds are shown if nobody says how fine.
    pub fn new(precision: Option<Precision>) -> Clock {
        let digits = if precision == Some(Precision::Nano) {
            9
        } else {
            6
        };
        Clock {
            first: None,
            last: None,
            digits,
        }
    }

    /// A time in the style of so many `-t`, and a space behind it.
    fn text(&mut self, times: u8, time: u64) -> String {
        let first = *self.first.get_or_insert(time);
        let last = self.last.replace(time).unwrap_or(time);
        let of_day = |time| line::time_of_day(time, self.digits);
        let since = |before: u64| match time.checked_sub(before) {
            Some(later) => of_day(later),
            None => format!("-{}", of_day(before - time)),
        };
        let shown = match times {
            0 => of_day(local(time)),
            1 => return String::new(),
            2 => {
                let part = line::part_of_second(time, self.digits);
                format!("{}.{part}", time / SECOND)
            }
            3 => since(last),
            4 => format!("{} {}", line::date(local(time)), of_day(local(time))),
            _ => since(first),
        };
        shown + " "
    }
}

/// Nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// The time whose date and time of day in UTC are those of here at this one.
fn local(time: u64) -> u64 {
    let seconds = i64::try_from(time / SECOND).unwrap_or(0);
    let ahead = i128::from(postern_capture::ahead_of_utc(seconds)) * i128::from(SECOND);
    u64::try_from(i128::from(time) + ahead).unwrap_or(time)
}

/// How a packet passed its interface, in JSON and in a line, if it is known.
fn direction(seen: &PacketRef) -> Option<(&'static str, &'static str)> {
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
    /// How fine times are, if that was said.
    pub fn precision(&self) -> Option<Precision> {
        match (self.micro, self.nano) {
            (true, _) => Some(Precision::Micro),
            (_, true) => Some(Precision::Nano),
            _ => self.precision,
        }
    }

    /// The packet's line, or lines; `interface` is empty where it goes without saying.
    pub fn text(
        &self,
        clock: &mut Clock,
        number: u64,
        seen: &PacketRef,
        interface: &str,
        bytes: &[u8],
    ) -> String {
        let kind = seen.origin.link;
        let summary = line::summary_of(kind, bytes, seen.wire);
        if self.json {
            let object = Object {
                number,
                time: seen.time,
                length: seen.wire,
                captured: seen.captured,
                interface,
                direction: direction(seen).map(|(name, _)| name),
                link: line::link_of(kind, bytes),
                summary,
            };
            return serde_json::to_string(&object).unwrap_or_default() + "\n";
        }
        let mut text = match self.number {
            true => format!("{number:>5}  "),
            false => String::new(),
        };
        text += &clock.text(self.times, seen.time);
        if !interface.is_empty() {
            let direction = direction(seen).map_or("?", |(_, short)| short);
            // Writing to a string does not fail.
            let _ = write!(text, "{interface:<5} {direction:<3} ");
        }
        if self.link {
            let _ = write!(
                text,
                "{}, length {}: ",
                line::link_of(kind, bytes),
                seen.wire
            );
        }
        text += &summary.text(match (self.quiet, self.verbose) {
            (true, _) => Detail::Quiet,
            (_, 0) => Detail::Usual,
            _ => Detail::Verbose,
        });
        text.push('\n');
        let whole = self.hex.max(self.letters) > 1;
        let header = match kind {
            Link::Ethernet => 14,
            other => other.network(bytes).map_or(0, |(at, _)| at),
        };
        let shown = bytes.get(if whole { 0 } else { header }..);
        let shown = shown.unwrap_or_default();
        if self.hex > 0 || self.letters > 0 {
            text += &line::hex(shown, self.letters > 0);
        } else if self.ascii {
            text += &line::ascii(shown);
        }
        text
    }
}
