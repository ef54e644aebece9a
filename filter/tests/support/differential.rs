//! The same expression by libpcap, by the interpreter and by machine code: the same verdict on
//! every packet.

use super::confined::Confined;
use super::packets::Packet;
use super::pcap::{Judge, NETMASK};
use super::{expressions, packets};
use fastrand::Rng;
use postern_filter::{Databases, Filter, Options};

/// What came of expressions.
#[derive(Debug, Default)]
pub struct Tally {
    pub same: u32,
    pub both_refuse: u32,
    /// Refused by libpcap only, and why.
    pub laxer: Vec<String>,
    /// Refused here only, and why.
    pub stricter: Vec<String>,
    pub accepted: u64,
}

/// Compares `count` expressions at random on as many packets as `corpus` says; a verdict that
/// differs is a panic that shows it.
pub fn compare(seed: u64, count: u32, corpus: usize) -> Tally {
    let mut random = Rng::with_seed(seed);
    let texts: Vec<String> = (0..count)
        .map(|_| {
            let size = 1 + random.usize(..5);
            expressions::expression(&mut random, size)
        })
        .collect();
    compare_all(&texts, &packets::packets(seed, corpus))
}

/// Compares expressions on packets; a verdict that differs is a panic that shows it.
pub fn compare_all(texts: &[impl AsRef<str>], corpus: &[Packet]) -> Tally {
    // The system's own files, as libpcap's resolver reads them.
    let names = Databases::system();
    let options = Options {
        netmask: Some(NETMASK),
        ..Options::default()
    };
    let mut tally = Tally::default();
    for text in texts {
        let text = text.as_ref();
        let ours = Filter::compile_with(text, &names, options);
        let theirs = Judge::compile(text, false);
        let (filter, judge) = match (ours, theirs) {
            (Ok(filter), Ok(judge)) => (filter, judge),
            (Err(_), Err(_)) => {
                tally.both_refuse += 1;
                continue;
            }
            (Err(error), Ok(_)) => {
                tally.stricter.push(format!("{text}: {error}"));
                continue;
            }
            (Ok(_), Err(error)) => {
                tally.laxer.push(format!("{text}: {error}"));
                continue;
            }
        };
        tally.accepted += same_verdicts(text, &filter, &judge, corpus);
        tally.same += 1;
    }
    tally
}

/// How many packets the filter accepts.
fn same_verdicts(text: &str, filter: &Filter, judge: &Judge, corpus: &[Packet]) -> u64 {
    let confined = Confined::new(filter);
    let verdicts = confined.run(corpus.iter().map(|p| (&p.bytes[..], p.wire)));
    let mut accepted = 0;
    for (packet, machine) in corpus.iter().zip(verdicts) {
        let ours = filter.run(&packet.bytes, packet.wire);
        assert_eq!(
            ours,
            machine,
            "`{text}` by machine code on {:02x?}\n{:02x?}",
            packet.bytes,
            filter.code().text()
        );
        let theirs = judge.run(&packet.bytes, packet.wire);
        assert_eq!(
            ours,
            theirs,
            "`{text}` on {} bytes of {}: {:02x?}\n{}",
            packet.bytes.len(),
            packet.wire,
            packet.bytes,
            judge.text()
        );
        accepted += u64::from(ours != 0);
    }
    accepted
}
