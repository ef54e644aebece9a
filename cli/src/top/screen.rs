//! The facts for people.

use std::fmt::Write;
use std::time::SystemTime;

use postern::BrokerState;

use super::facts::{Facts, Inside, Member, Rates, Seen};
use super::process::plain;

/// All domains, one below the other.
pub fn text(domains: &[Facts]) -> String {
    let seen = || domains.iter().filter_map(|domain| domain.view.as_ref());
    let processes: usize = seen().map(|seen| seen.members.len()).sum();
    let inside: u64 = seen().map(Seen::inside).sum();
    let mut text = format!(
        "{}, {}, {} inside\n",
        number(domains.len() as u64, "shared domain"),
        number(processes as u64, "process"),
        number(inside, "thread")
    );
    for domain in domains {
        let _ = write!(text, "\n{}: ", domain.name);
        match &domain.view {
            Some(seen) => one(&mut text, seen, domain.broker),
            None => {
                let why = domain.unseen.as_deref().unwrap_or("nothing is known");
                let _ = writeln!(text, "{}", plain(why));
            }
        }
    }
    text
}

/// `1 thread`, `2 threads`, `2 processes`.
fn number(count: u64, what: &str) -> String {
    let plural = if what.ends_with('s') { "es" } else { "s" };
    format!("{count} {what}{}", if count == 1 { "" } else { plural })
}

fn one(text: &mut String, seen: &Seen, broker: BrokerState) {
    let _ = write!(text, "{}", seen.state());
    if let Some(poison) = seen.poison() {
        let _ = write!(text, " ({})", plain(&poison));
    }
    let image = seen.image.as_ref().and_then(|path| path.file_name());
    let image = image.map_or_else(String::new, |name| plain(&name.to_string_lossy()));
    let space = if image.is_empty() { "" } else { " " };
    let _ = write!(
        text,
        ", image {image}{space}{}, {} KiB, {}",
        &seen.hash()[..12],
        seen.view.bytes / 1024,
        number(seen.view.resets.into(), "reset")
    );
    if broker == BrokerState::Ended {
        text.push_str(", its broker has ended");
    }
    let _ = writeln!(
        text,
        "\n{:>9} {:<18} {:>8} {:<20} {:>10} {:>8} {:>6} {:>9} {:>7} {:>4} {:>6} {:>6}",
        "PID",
        "COMMAND",
        "ATTACHED",
        "INSIDE",
        "CALLS",
        "/s",
        "FAULTS",
        "UPCALLS",
        "/s",
        "WAIT",
        "COAL",
        "DROP"
    );
    for member in &seen.members {
        row(
            text,
            (&pid(member), &command(member), &since(member)),
            &inside(&member.inside),
            (&member.about.tally, member.rates.as_ref()),
            member.about.waiting.into(),
        );
    }
    let all = number(seen.inside(), "thread");
    let sums = (&seen.view.total, seen.rates.as_ref());
    row(text, ("all", "", ""), &all, sums, seen.waiting());
}

fn row(
    text: &mut String,
    (pid, command, since): (&str, &str, &str),
    inside: &str,
    (tally, rates): (&postern::CommonTally, Option<&Rates>),
    waiting: u64,
) {
    let rate = |of: fn(&Rates) -> f64| rates.map_or("-".to_owned(), |r| format!("{:.0}", of(r)));
    let _ = writeln!(
        text,
        "{pid:>9} {command:<18.18} {since:>8} {inside:<20.20} {:>10} {:>8} {:>6} {:>9} {:>7} {waiting:>4} {:>6} {:>6}",
        tally.calls,
        rate(|r| r.calls),
        tally.faults,
        tally.delivered,
        rate(|r| r.upcalls),
        tally.coalesced,
        tally.dropped,
    );
}

fn pid(member: &Member) -> String {
    let mark = match (member.about.here, member.confirmed) {
        (false, _) => "*",
        (true, Some(true)) => "",
        (true, _) => "?",
    };
    format!("{}{mark}", member.about.pid)
}

fn command(member: &Member) -> String {
    match (member.about.alive, &member.command) {
        (false, _) => "(ended)".to_owned(),
        (true, Some(command)) => command.clone(),
        (true, None) => "-".to_owned(),
    }
}

fn since(member: &Member) -> String {
    let since = member.about.since;
    let passed = since.and_then(|since| SystemTime::now().duration_since(since).ok());
    passed.map_or("-".to_owned(), |passed| {
        let seconds = passed.as_secs();
        match seconds / 3600 {
            0 => format!("{}:{:02}", seconds / 60, seconds % 60),
            hours @ 1..48 => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
            hours => format!("{} d", hours / 24),
        }
    })
}

fn inside(inside: &[Inside]) -> String {
    let mut text = String::new();
    for one in inside {
        let comma = if text.is_empty() { "" } else { ", " };
        let name = one.function.clone();
        let name = name.unwrap_or_else(|| format!("{:#x}", one.offset));
        let _ = write!(text, "{comma}{name}");
        if one.threads > 1 {
            let _ = write!(text, " x{}", one.threads);
        }
        if one.at_least.as_secs() > 0 {
            let _ = write!(text, " {}s", one.at_least.as_secs());
        }
    }
    match text.is_empty() {
        true => "-".to_owned(),
        false => text,
    }
}

/// The text for a terminal: over what was there, no wider and no longer than it is.
pub fn fitted(text: &str) -> String {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    let (rows, columns) = size.map_or((24, 80), |size| (size.ws_row, size.ws_col));
    let mut screen = String::from("\x1b[H");
    let lines = text.lines().take(usize::from(rows.max(2)) - 1);
    for line in lines {
        screen.extend(line.chars().take(usize::from(columns.max(20))));
        screen.push_str("\x1b[K\n");
    }
    screen.push_str("\x1b[J");
    screen
}
