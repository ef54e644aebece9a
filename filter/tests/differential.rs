//! The same expression by libpcap and here: the same verdict on every packet.

use crate::support;

use fastrand::Rng;
use postern_filter::Filter;
use support::confined::Confined;
use support::differential::{compare, compare_all};
use support::pcap::Judge;
use support::{expressions, packets, written};

#[test]
fn random_expressions() {
    let seed = std::env::var("POSTERN_FILTER_SEED").map_or(1, |seed| seed.parse().unwrap());
    let count = std::env::var("POSTERN_FILTER_COUNT").map_or(3000, |count| count.parse().unwrap());
    let tally = compare(seed, count, 600);
    assert!(
        tally.stricter.is_empty(),
        "refused here only: {:#?}",
        tally.stricter
    );
    assert!(tally.same > count * 2 / 3, "{} of {count}", tally.same);
}

/// Every word of the language in every place, and what people wrote: accepted and refused as by
/// libpcap, but for what the reference says.
#[test]
fn written_expressions() {
    let told = ["inbound", "outbound", "ifindex", "decnet"];
    let mut texts = written::expressions();
    // The index may be compared with `&` and `|`, too; libpcap takes them for another field.
    texts.retain(|text| !["byte 14 & 5", "byte 0 | 1"].contains(&text.as_str()));
    let tally = compare_all(&texts, &packets::packets(3, 300));
    let mut stricter = tally.stricter.clone();
    stricter.retain(|text| !told.iter().any(|word| text.contains(word)));
    assert!(stricter.is_empty(), "refused here only: {stricter:#?}");
    // Names of services have dashes.
    let laxer = tally.laxer.iter();
    let laxer: Vec<_> = laxer
        .filter(|text| !text.starts_with("portrange ftp-data-http:"))
        .collect();
    assert!(laxer.is_empty(), "refused by libpcap only: {laxer:#?}");
    assert!(tally.same > 800 && tally.both_refuse > 4000, "{tally:?}");
}

/// What libpcap compiled, optimized, and then here: the same verdicts as by libpcap's interpreter.
#[test]
fn classic_programs() {
    let mut random = Rng::with_seed(7);
    let corpus = packets::packets(7, 300);
    let mut same = 0;
    for _ in 0..1500 {
        let text = expressions::expression(&mut random, 4);
        let Ok(judge) = Judge::compile(&text, true) else {
            continue;
        };
        if text.contains("protochain") {
            let error = Filter::classic(&judge.text()).unwrap_err();
            assert!(error.message.contains("behind the last"), "{error}");
            continue;
        }
        let filter = Filter::classic(&judge.text()).unwrap();
        let confined = Confined::new(&filter);
        let verdicts = confined.run(corpus.iter().map(|p| (&p.bytes[..], p.wire)));
        for (packet, machine) in corpus.iter().zip(verdicts) {
            let (ours, theirs) = (
                filter.run(&packet.bytes, packet.wire),
                judge.run(&packet.bytes, packet.wire),
            );
            assert_eq!(
                ours, machine,
                "`{text}` by machine code on {:02x?}",
                packet.bytes
            );
            assert_eq!(
                ours,
                theirs,
                "`{text}`: {:02x?}\n{}",
                packet.bytes,
                judge.text()
            );
        }
        same += 1;
    }
    assert!(same > 900, "{same}");
}
