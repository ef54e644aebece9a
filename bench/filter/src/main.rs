//! Packet filters beside libpcap's interpreter, the kernel's compiler of filters, tcpdump and
//! nftables: the figures of Exokernel's Table 7 and Palladium's Figure 7, and whole programs on a
//! capture of real traffic.
//!
//! Filters and packets are those of the crate's tests, and so is the binding to libpcap; the clock
//! is that of `postern bench`.
//!
//! `cargo run --release -p postern-filter-peers` prints all figures, with a word those whose name
//! begins so behind `filter.`; `--json` prints data in place of a table.

mod captured;
mod kernel;
#[path = "../../../filter/tests/support/mod.rs"]
mod support;
mod traffic;

use crate::support::confined::Confined;
use crate::support::connections::{connection, connection_packet};
use crate::support::pcap::Judge;
use kernel::Program;
use postern::{Offset, Shared};
use postern_figures::clock::best_of;
use postern_figures::figure::{self, Figure, Goal};
use postern_filter::classifier::{Classifier, PacketRef};
use postern_filter::set::{Claim, Set};
use postern_filter::{Filter, NoNames};
use std::hint::black_box;
use std::process::ExitCode;

/// Calls of one turn.
const CALLS: usize = 5000;
const ROUNDS: usize = 30;
/// Filters of Table 7.
const TEN: u32 = 10;

type Measured = Result<Vec<Figure>, String>;

/// A name, and what measures it.
type Group = (&'static str, fn() -> Measured);

const GROUPS: [Group; 4] = [
    ("table7", table7),
    ("figure7", figure7),
    ("single", singles),
    ("traffic", traffic::figures),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Traffic is made in a network namespace, where this runs again.
    if let [first, rest @ ..] = arguments.as_slice()
        && first == "inside"
    {
        return finish(traffic::inside(rest));
    }
    let json = arguments.iter().any(|word| word == "--json");
    let wanted = arguments.iter().find(|word| !word.starts_with("--"));
    let chosen = |name: &str| wanted.is_none_or(|wanted| wanted == name);
    let groups = GROUPS.iter().filter(|(name, _)| chosen(name));
    let figures: Result<Vec<Vec<Figure>>, String> = groups.map(|(_, measure)| measure()).collect();
    finish(figures.map(|figures| {
        let figures = figures.concat();
        match json {
            true => print!("{}", figure::json(&figures)),
            false => print!("{}", figure::table(&figures)),
        }
    }))
}

fn finish(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("filter peers: {error}");
            ExitCode::from(2)
        }
    }
}

fn filter(source: &str) -> Result<Filter, String> {
    Filter::compile(source, &NoNames).map_err(|e| e.show(source))
}

fn nanoseconds(seconds: f64) -> f64 {
    seconds * 1e9 / CALLS as f64
}

fn repeat<T>(mut call: impl FnMut() -> T) {
    for _ in 0..CALLS {
        black_box(call());
    }
}

/// Ten TCP/IP filters, of which the last matches: a set as one program, with a call for each packet
/// and with one for 64.
fn table7() -> Measured {
    let packet = connection_packet(TEN - 1);
    let wire = packet.len() as u32;
    let sources: Vec<String> = (0..TEN).map(connection).collect();
    let judges: Result<Vec<Judge>, String> =
        sources.iter().map(|s| Judge::compile(s, true)).collect();
    let judges = judges?;
    let (mut set, mut classifier) = (Set::new(), Classifier::new());
    let area = Shared::new(1 << 12).map_err(|e| e.to_string())?;
    area.write(0, &packet).map_err(|e| e.to_string())?;
    classifier.lend(&area).map_err(|e| e.to_string())?;
    for source in &sources {
        let filter = filter(source)?;
        set.insert(&filter, Claim::default())
            .map_err(|e| e.to_string())?;
        classifier
            .insert(&filter, Claim::default())
            .map_err(|e| e.to_string())?;
    }
    let merged = set.merged().ok_or("ten filters are not merged")?;
    let merged = Confined::of(&merged.code);
    let call = merged.prepared(&packet);
    let ready = classifier.ready().map_err(|e| e.to_string())?;
    let place = PacketRef {
        packet: Offset(area.offset().0),
        wire,
        captured: wire,
    };
    let places = vec![place; CALLS];
    let all = |packet: &[u8]| judges.iter().position(|judge| judge.run(packet, wire) != 0);
    let last = Some(TEN as usize - 1);
    let found = ready
        .find_at(place.packet, wire, wire)
        .map_err(|e| e.to_string())?;
    if all(&packet) != last || call() != TEN || found.map(|id| id.0) != Some(TEN - 1) {
        return Err("the filters do not agree".into());
    }
    let best = best_of(
        ROUNDS,
        [
            &mut || repeat(|| all(&packet)),
            &mut || repeat(&call),
            &mut || repeat(|| ready.find_at(place.packet, wire, wire).ok()),
            &mut || drop(black_box(ready.find_all(&places))),
        ],
    );
    let [theirs, merged, one, batch] = best.map(nanoseconds);
    let how = "baseline: libpcap's bpf_filter, filter by filter";
    let row = |name: &str, value: f64, note: &str| {
        let note = format!("{note}; {how}");
        Figure::plain(format!("filter.table7.{name}"), value, "ns", note)
            .against(theirs)
            .goal(Goal::RatioAtMost(0.05))
    };
    let mut figures = vec![
        row(
            "merged",
            merged,
            "ten filters, the last matches: one program, with its call",
        ),
        row(
            "batch",
            batch,
            "a classifier that can be changed, one call for 64 packets",
        ),
        row(
            "classifier",
            one,
            "a classifier that can be changed, a call for each packet",
        ),
    ];
    let programs: Result<Vec<Program>, String> = judges
        .iter()
        .map(|judge| Program::load(&judge.text()))
        .collect();
    let in_kernel = programs.and_then(|programs| {
        let mut sum = 0.0;
        for (number, program) in programs.iter().enumerate() {
            let (accepted, time) = program.run(&packet)?;
            if accepted != (Some(number) == last) {
                return Err("the kernel answers otherwise".into());
            }
            sum += time;
        }
        Ok(sum)
    });
    figures.push(match in_kernel {
        Ok(sum) => Figure::plain(
            "filter.table7.kernel",
            merged,
            "ns",
            "one program, with its call; baseline: the kernel's compiled programs one by one, each translated from libpcap's, by BPF_PROG_TEST_RUN",
        )
        .against(sum)
        .goal(Goal::RatioAtMost(1.0)),
        Err(error) => Figure::plain("filter.table7.kernel", f64::NAN, "ns", error),
    });
    Ok(figures)
}

/// One to eight terms, all true.
fn figure7() -> Measured {
    let packet = connection_packet(TEN - 1);
    let terms = [
        "ether[12:2] = 0x0800",
        "ether[23] = 6",
        "ether[26:4] = 0x0a000009",
        "ether[30:4] = 0x0a000001",
        "ether[36:2] = 80",
        "ether[14] = 0x45",
        "len = 60",
        "ether[20:2] & 0x1fff = 0",
    ];
    let mut figures = Vec::new();
    let mut rows = Vec::new();
    for count in 1..=terms.len() {
        let source = terms[..count].join(" and ");
        let (theirs, ours) = beside(&source, &packet)?;
        rows.push((count as f64, theirs, ours));
        let note = "terms of a conjunction, all true, with the call; baseline: libpcap's bpf_filter, optimized";
        let name = format!("filter.figure7.{count}");
        figures.push(Figure::plain(name, ours, "ns", note).against(theirs));
    }
    let slope = |of: fn(&(f64, f64, f64)) -> f64| {
        let count = rows.len() as f64;
        let (x, y) = rows
            .iter()
            .fold((0.0, 0.0), |(x, y), row| (x + row.0, y + of(row)));
        let (x, y) = (x / count, y / count);
        let product: f64 = rows.iter().map(|row| (row.0 - x) * (of(row) - y)).sum();
        product / rows.iter().map(|row| (row.0 - x).powi(2)).sum::<f64>()
    };
    let note = "for each term more, by least squares; baseline: libpcap's";
    figures.push(
        Figure::plain("filter.figure7.slope", slope(|row| row.2), "ns", note)
            .against(slope(|row| row.1))
            .goal(Goal::RatioAtMost(0.1)),
    );
    Ok(figures)
}

/// Nanoseconds of libpcap and of machine code with its call.
fn beside(source: &str, packet: &[u8]) -> Result<(f64, f64), String> {
    let judge = Judge::compile(source, true)?;
    let confined = Confined::new(&filter(source)?);
    let call = confined.prepared(packet);
    let wire = packet.len() as u32;
    if (judge.run(packet, wire) != 0) != (call() != 0) {
        return Err(format!("{source}: libpcap answers otherwise"));
    }
    let best = best_of(
        ROUNDS,
        [&mut || repeat(|| judge.run(packet, wire)), &mut || {
            repeat(&call)
        }],
    );
    let [theirs, ours] = best.map(nanoseconds);
    Ok((theirs, ours))
}

fn singles() -> Measured {
    let packet = connection_packet(TEN - 1);
    let sources = [
        ("ip", "ip".into()),
        ("port", "tcp port 80".into()),
        ("net", "tcp dst port 80 and net 10".into()),
        ("connection", connection(TEN - 1)),
        (
            "flags",
            String::from("tcp[tcpflags] & tcp-syn != 0 or host 10.0.0.9"),
        ),
    ];
    let figures = sources.iter().map(|(name, source)| {
        let (theirs, ours) = beside(source, &packet)?;
        let note = format!("`{source}`, with the call; baseline: libpcap's bpf_filter, optimized");
        Ok(Figure::plain(format!("filter.single.{name}"), ours, "ns", note).against(theirs))
    });
    figures.collect()
}
