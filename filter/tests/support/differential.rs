//! The same expression by libpcap, by the interpreter and by machine code: the same verdict on every packet.

use super::confined::Confined;
use super::pcap::{Judge, NETMASK};
use super::{Random, expressions, packets};
use postern_filter::{Databases, Filter, Options};

/// What came of expressions.
#[derive(Debug, Default)]
pub struct Tally {
    pub same: u32,
    pub both_refuse: u32,
    /// Refused by libpcap only.
    pub laxer: u32,
    /// Refused here only, and why.
    pub stricter: Vec<String>,
    pub accepted: u64,
}

/// Compares `count` expressions on as many packets as `corpus` says; a verdict that differs is a panic that shows it.
pub fn compare(seed: u64, count: u32, corpus: usize) -> Tally {
    let mut random = Random::new(seed);
    // The system's own files, as libpcap's resolver reads them.
    let names = Databases::system();
    let options = Options {
        netmask: Some(NETMASK),
        ..Options::default()
    };
    let corpus = packets::packets(seed, corpus);
    let mut tally = Tally::default();
    for _ in 0..count {
        let size = 1 + random.below(5);
        let text = expressions::expression(&mut random, size);
        let ours = Filter::compile_with(&text, &names, options);
        let theirs = Judge::compile(&text, false);
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
                tally.laxer += 1;
                if std::env::var("POSTERN_FILTER_SHOW").is_ok() {
                    println!("libpcap refuses `{text}`: {error}");
                }
                continue;
            }
        };
        let confined = Confined::new(&filter);
        let verdicts = confined.run(corpus.iter().map(|p| (&p.bytes[..], p.wire)));
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
            tally.accepted += u64::from(ours != 0);
        }
        tally.same += 1;
    }
    tally
}
