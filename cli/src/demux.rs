//! `postern demux`: one stream of packets, spread over files, sockets and extensions by a set of
//! filters.

use std::io::Write;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use clap::{ArgAction, Args};
use postern::CallError;
use postern_capture::{
    Consumer, ConsumerSet, Demux, DemuxError, Link, Next, Rules, Source, Target,
};
use postern_filter::Options;

use crate::filter::{Bar, From, OFTEN, READ, System, TOLD, unusable, warn};
use crate::output::{self, Failure, Outcome, REFUSED, SUCCESS};

/// Spread packets over files, sockets and extensions by a set of filters
#[derive(Args)]
#[command(
    version,
    disable_version_flag = true,
    after_help = "\
Each packet goes to the consumer with the highest priority that wants it; with --all to all of them. RULES is TOML, a table
[[consumer]] for each: name, filter, one of file, socket and handler, and priority, owner, may_steal, queue, block. The
book's page \"Packet filters\" has examples. Counters go to standard error.

Exit status: 0, 1 if the capture file is damaged or a handler faulted (the rest was spread), 2 if rules are wrong, or
a file or interface cannot be used.

Examples:
  postern demux -r all.pcap --to 'dns.pcap=port 53' --to 'rest.pcapng='
  postern demux -i eth0 rules.toml
  postern demux --check rules.toml"
)]
pub struct Arguments {
    /// Who wants what
    #[arg(value_name = "RULES")]
    rules: Option<PathBuf>,
    /// A consumer: a capture file, unix:SOCKET, or an extension or its source; the first one is the
    /// most important
    #[arg(long, value_name = "NAME=EXPRESSION", conflicts_with = "rules")]
    to: Vec<String>,
    #[command(flatten)]
    from: From,
    /// Give a packet to all who want it
    #[arg(long)]
    all: bool,
    /// Check the rules, and end
    #[arg(long)]
    check: bool,
    /// Print the decision program of all filters, with how each group of them is looked up, and end
    #[arg(short = 'd', long)]
    dump: bool,
    /// End after so many packets
    #[arg(short = 'c', value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Print the counters as JSON, to standard output
    #[arg(long)]
    json: bool,
    /// Netmask of the captured network, for `ip broadcast`
    #[arg(long, value_name = "MASK")]
    netmask: Option<Ipv4Addr>,
    /// Do not ask the resolver for hosts' names; /etc/hosts still counts
    #[arg(short = 'n', long, action = ArgAction::Count)]
    no_lookup: u8,
    /// Print the version
    #[arg(long, action = ArgAction::Version)]
    version: Option<bool>,
}

/// A consumer's counters, in JSON.
#[derive(serde::Serialize)]
struct Line<'a> {
    name: &'a str,
    packets: u64,
    bytes: u64,
    dropped: u64,
    answers: u64,
    faults: u64,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    if arguments.dump || arguments.check {
        let rules = rules(arguments, arguments.from.link().unwrap_or_default())?;
        if !arguments.dump {
            return check(&rules);
        }
        let set = ConsumerSet::new(&rules.consumers).map_err(unusable)?;
        output::print(&set.to_string())?;
        return Ok(SUCCESS);
    }
    if !arguments.from.is_some() {
        // What is wrong with the rules is worth more than that there are no packets.
        rules(arguments, Link::default())?;
        return Err(Failure::unusable(
            "say where packets come from: -r FILE or -i INTERFACE",
        ));
    }
    spread(arguments)
}

/// Who wants what of packets that begin so.
fn rules(arguments: &Arguments, link: Link) -> Result<Rules, Failure> {
    let names = System::new(arguments.no_lookup == 0);
    let options = Options {
        netmask: arguments.from.netmask(arguments.netmask),
        link,
        ..Options::default()
    };
    let rules = match &arguments.rules {
        Some(path) => Rules::load(path, &names, options),
        None => Rules::words(&arguments.to, &names, options),
    };
    rules.map_err(unusable)
}

/// Says what there would be.
fn check(rules: &Rules) -> Outcome {
    ConsumerSet::new(&rules.consumers).map_err(unusable)?;
    let mut text = String::new();
    for consumer in &rules.consumers {
        warn(&consumer.expression);
        let (kind, path) = match &consumer.target {
            Target::File(path) => ("file", path),
            Target::Socket(path) => ("socket", path),
            Target::Handler(path) => {
                postern_capture::load(path).map_err(unusable)?;
                ("handler", path)
            }
        };
        let wanted = match consumer.expression.is_empty() {
            true => "everything",
            false => &consumer.expression,
        };
        text += &format!(
            "{}: {kind} {}, priority {}, {wanted}\n",
            consumer.name,
            path.display(),
            consumer.priority
        );
    }
    output::print(&format!(
        "{text}{} consumers, all fine\n",
        rules.consumers.len()
    ))?;
    Ok(SUCCESS)
}

fn spread(arguments: &Arguments) -> Outcome {
    let stop = postern_capture::stop_on_interrupt();
    let (tell, write_out) = postern_capture::requests();
    // Of an interface the rules say how it is to be opened; of a file only the opened one says what
    // its packets begin with.
    let link = arguments.from.interface_link();
    let early = link.map(|link| rules(arguments, link)).transpose()?;
    let handled = |consumer: &Consumer| matches!(consumer.target, Target::Handler(_));
    let answers = |rules: &Rules| rules.consumers.iter().any(handled);
    let mut source = arguments.from.open(early.as_ref().is_some_and(answers))?;
    let rules = match early.filter(|_| link == Some(source.link())) {
        Some(rules) => rules,
        None => rules(arguments, source.link())?,
    };
    if source.sender().is_none() && arguments.from.kept() < 1 << 18 {
        return Err(unusable(
            "-s is for packets of an interface; those of a file are spread whole",
        ));
    }
    for consumer in &rules.consumers {
        if let Target::File(path) = &consumer.target
            && arguments.from.is_read(path)
        {
            return Err(unusable(format!("cannot write {}: {READ}", path.display())));
        }
    }
    for consumer in &rules.consumers {
        warn(&consumer.expression);
    }
    arguments.from.relinquish()?;
    let mut demux = Demux::new(&rules, &mut source, arguments.all).map_err(unusable)?;
    arguments.from.announce(source.link());
    let (mut number, mut damage) = (0, None);
    let bar = Bar::of(&mut source);
    while !stop.load(Ordering::SeqCst) && arguments.limit != Some(number) {
        match source.next() {
            Ok(Next::Packet(seen)) => {
                number += 1;
                let mut faulted = |name: &str, faults: u64, error: &CallError| {
                    if faults <= TOLD {
                        output::complain(&format!("{name}: packet {number}: {error}"));
                    }
                };
                match demux.packet(&mut source, &seen, &mut faulted) {
                    Err(DemuxError::Source(error)) => {
                        damage = Some(error);
                        break;
                    }
                    given => given.map_err(unusable)?,
                }
            }
            Ok(Next::Idle) => demux.idle().map_err(unusable)?,
            Ok(Next::End) => break,
            Err(error) => {
                damage = Some(error);
                break;
            }
        }
        if number % OFTEN == 0 {
            bar.show(&mut source);
            demux.idle().map_err(unusable)?;
        }
        if tell.swap(false, Ordering::SeqCst) {
            say(&counted(&mut source, &demux));
        }
        if write_out.swap(false, Ordering::SeqCst) {
            demux.idle().map_err(unusable)?;
        }
    }
    drop(bar);
    demux.finish().map_err(unusable)?;
    report(arguments, &mut source, &demux)?;
    if let Some(error) = &damage {
        arguments.from.named(error).report();
    }
    let faults: u64 = demux.tallies().map(|(_, tally)| tally.faults).sum();
    Ok(match damage.is_some() || faults > 0 {
        true => REFUSED,
        false => SUCCESS,
    })
}

fn report(arguments: &Arguments, source: &mut Source, demux: &Demux) -> Result<(), Failure> {
    let counters = source.counters();
    if arguments.json {
        let consumers: Vec<Line<'_>> = demux
            .tallies()
            .map(|(name, tally)| Line {
                name,
                packets: tally.packets,
                bytes: tally.bytes,
                dropped: tally.dropped,
                answers: tally.answers,
                faults: tally.faults,
            })
            .collect();
        return output::print_json(&serde_json::json!({
            "received": counters.received,
            "dropped_by_kernel": counters.dropped,
            "unclaimed": demux.unclaimed(),
            "consumers": consumers,
        }));
    }
    say(&counted(source, demux));
    Ok(())
}

/// The counters as lines.
fn counted(source: &mut Source, demux: &Demux) -> String {
    let counters = source.counters();
    let mut text = String::new();
    for (name, tally) in demux.tallies() {
        text += &format!("{name}: {} packets, {} bytes", tally.packets, tally.bytes);
        for (count, what) in [
            (tally.dropped, "dropped"),
            (tally.answers, "answers"),
            (tally.faults, "faults"),
        ] {
            if count > 0 {
                text += &format!(", {count} {what}");
            }
        }
        text.push('\n');
    }
    text += &format!(
        "{} packets received, {} for nobody, {} dropped by kernel\n",
        counters.received,
        demux.unclaimed(),
        counters.dropped
    );
    text
}

fn say(text: &str) {
    // If stderr is gone nobody can be told.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
