//! The facts for programs.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use postern::{BrokerState, CommonTally};
use serde::Serialize;

use super::facts::{Facts, Inside, Member, Rates, Seen};
use crate::output::Failure;

#[derive(Serialize)]
struct Refresh<'a> {
    /// Seconds since 1970.
    time: f64,
    domains: Vec<DomainView<'a>>,
}

#[derive(Serialize)]
struct DomainView<'a> {
    name: &'a str,
    socket: String,
    /// `runs`, `ended` or `unknown`.
    broker: &'static str,
    /// Why the rest is not there.
    error: Option<&'a str>,
    #[serde(flatten)]
    seen: Option<SeenView>,
}

#[derive(Serialize)]
struct SeenView {
    state: &'static str,
    poison: Option<String>,
    image: Option<String>,
    hash: String,
    bytes: u32,
    resets: u32,
    threads_inside: u64,
    #[serde(flatten)]
    sums: Sums,
    processes: Vec<ProcessView>,
}

#[derive(Serialize)]
struct Sums {
    calls: u64,
    faults: u64,
    upcalls: Upcalls,
    /// `null` at the first refresh.
    calls_per_second: Option<f64>,
    upcalls_per_second: Option<f64>,
}

#[derive(Serialize)]
struct Upcalls {
    waiting: u64,
    delivered: u64,
    coalesced: u64,
    dropped: u64,
    skipped: u64,
    ended: u64,
}

#[derive(Serialize)]
struct ProcessView {
    seat: u32,
    pid: u32,
    /// The number is one of this PID namespace.
    here: bool,
    /// The kernel says that this process has the seat; `null` if it cannot be asked.
    confirmed: Option<bool>,
    ended: bool,
    command: Option<String>,
    /// Seconds since 1970.
    attached_since: Option<u64>,
    inside: Vec<InsideView>,
    handlers: u32,
    #[serde(flatten)]
    sums: Sums,
}

#[derive(Serialize)]
struct InsideView {
    function: Option<String>,
    offset: u32,
    threads: u32,
    at_least_seconds: f64,
}

fn sums(tally: &CommonTally, waiting: u64, rates: Option<&Rates>) -> Sums {
    Sums {
        calls: tally.calls,
        faults: tally.faults,
        upcalls: Upcalls {
            waiting,
            delivered: tally.delivered,
            coalesced: tally.coalesced,
            dropped: tally.dropped,
            skipped: tally.skipped,
            ended: tally.ended,
        },
        calls_per_second: rates.map(|rates| rates.calls),
        upcalls_per_second: rates.map(|rates| rates.upcalls),
    }
}

fn process(member: &Member) -> ProcessView {
    let about = &member.about;
    let since = about
        .since
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let inside = |inside: &Inside| InsideView {
        function: inside.function.clone(),
        offset: inside.offset,
        threads: inside.threads,
        at_least_seconds: inside.at_least.as_secs_f64(),
    };
    ProcessView {
        seat: about.seat,
        pid: about.pid,
        here: about.here,
        confirmed: member.confirmed,
        ended: !about.alive,
        command: member.command.clone(),
        attached_since: since.map(|since| since.as_secs()),
        inside: member.inside.iter().map(inside).collect(),
        handlers: about.attached,
        sums: sums(&about.tally, about.waiting.into(), member.rates.as_ref()),
    }
}

fn seen(seen: &Seen) -> SeenView {
    let path = seen.image.as_ref();
    SeenView {
        state: seen.state(),
        poison: seen.poison(),
        image: path.map(|path| path.to_string_lossy().into_owned()),
        hash: seen.hash(),
        bytes: seen.view.bytes,
        resets: seen.view.resets,
        threads_inside: seen.inside(),
        sums: sums(&seen.view.total, seen.waiting(), seen.rates.as_ref()),
        processes: seen.members.iter().map(process).collect(),
    }
}

/// One line with all of a refresh.
pub fn json(domains: &[Facts]) -> Result<String, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let refresh = Refresh {
        time: now.map_or(0.0, |now| now.as_secs_f64()),
        domains: domains
            .iter()
            .map(|domain| DomainView {
                name: &domain.name,
                socket: domain.socket.to_string_lossy().into_owned(),
                broker: match domain.broker {
                    BrokerState::Runs => "runs",
                    BrokerState::Ended => "ended",
                    BrokerState::Unknown => "unknown",
                },
                error: domain.unseen.as_deref(),
                seen: domain.view.as_ref().map(seen),
            })
            .collect(),
    };
    let text = serde_json::to_string(&refresh);
    let text = text.map_err(|error| {
        Failure::unusable(format!("cannot express the result as JSON: {error}"))
    })?;
    Ok(text + "\n")
}

/// A family of one value for each domain: name, kind, help, value.
type Family = (&'static str, &'static str, &'static str, fn(&Seen) -> u64);

const FAMILIES: [Family; 9] = [
    (
        "postern_shared_processes",
        "gauge",
        "Processes that have the domain.",
        |seen| seen.members.iter().filter(|m| m.about.alive).count() as u64,
    ),
    (
        "postern_shared_threads_inside",
        "gauge",
        "Threads inside.",
        Seen::inside,
    ),
    (
        "postern_shared_poisoned",
        "gauge",
        "1 if the domain lets nobody in before a reset.",
        |seen| seen.poison().is_some().into(),
    ),
    (
        "postern_shared_bytes",
        "gauge",
        "Bytes of data and heap.",
        |seen| seen.view.bytes.into(),
    ),
    (
        "postern_shared_upcalls_waiting",
        "gauge",
        "Events that wait for handlers.",
        Seen::waiting,
    ),
    (
        "postern_shared_handlers",
        "gauge",
        "Threads that are attached to handlers of upcalls.",
        |seen| {
            seen.members
                .iter()
                .map(|m| u64::from(m.about.attached))
                .sum()
        },
    ),
    (
        "postern_shared_calls_total",
        "counter",
        "Calls that entered.",
        |seen| seen.view.total.calls,
    ),
    (
        "postern_shared_faults_total",
        "counter",
        "Calls that ended in a fault.",
        |seen| seen.view.total.faults,
    ),
    (
        "postern_shared_resets_total",
        "counter",
        "Resets.",
        |seen| seen.view.resets.into(),
    ),
];

/// The sums as Prometheus reads them.
pub fn prometheus(domains: &[Facts]) -> String {
    let mut text = String::new();
    let mut family =
        |name: &str, kind: &str, help: &str, lines: &mut dyn Iterator<Item = (String, u64)>| {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (labels, value) in lines {
                let _ = writeln!(text, "{name}{{{labels}}} {value}");
            }
        };
    // Names are letters, digits, `-`, `_` and `.`, but for those of a path of the caller's own.
    let label = |domain: &Facts| {
        let name = domain.name.replace('\\', "\\\\").replace('"', "\\\"");
        format!("domain=\"{}\"", name.replace('\n', "\\n"))
    };
    let seen = || {
        domains
            .iter()
            .filter_map(|d| Some((label(d), d.view.as_ref()?)))
    };
    family(
        "postern_shared_broker",
        "gauge",
        "1 if somebody hands out the domain.",
        &mut domains
            .iter()
            .map(|domain| (label(domain), u64::from(domain.broker == BrokerState::Runs))),
    );
    for (name, kind, help, value) in FAMILIES {
        let lines = seen().map(|(label, seen)| (label, value(seen)));
        family(name, kind, help, &mut { lines });
    }
    let lines = seen().flat_map(|(label, seen)| {
        let tally = seen.view.total;
        [
            ("delivered", tally.delivered),
            ("coalesced", tally.coalesced),
            ("dropped", tally.dropped),
            ("skipped", tally.skipped),
            ("ended", tally.ended),
        ]
        .map(|(what, count)| (format!("{label},what=\"{what}\""), count))
    });
    family(
        "postern_shared_upcalls_total",
        "counter",
        "Events for handlers, by what became of them.",
        &mut { lines },
    );
    text
}
