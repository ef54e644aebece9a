//! The same expression by libpcap and here: the same verdict on every packet.

mod support;

use postern_filter::{Filter, Names, Options};
use support::confined::Confined;
use support::pcap::{Judge, NETMASK};
use support::{Random, expressions, packets};

/// The system's own files, as libpcap's resolver reads them.
pub fn names() -> impl Names {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    postern_filter::Databases {
        hosts: read("/etc/hosts"),
        networks: read("/etc/networks"),
        services: read("/etc/services"),
        protocols: read("/etc/protocols"),
        ethers: read("/etc/ethers"),
    }
}

#[test]
fn random_expressions() {
    let seed = std::env::var("POSTERN_FILTER_SEED").map_or(1, |seed| seed.parse().unwrap());
    let count = std::env::var("POSTERN_FILTER_COUNT").map_or(3000, |count| count.parse().unwrap());
    let mut random = Random::new(seed);
    let names = names();
    let options = Options {
        netmask: Some(NETMASK),
        ..Options::default()
    };
    let corpus = packets::packets(seed, 600);
    let (mut same, mut both_refuse, mut stricter, mut laxer) = (0, 0, Vec::new(), 0);
    let mut accepted = 0u64;
    for _ in 0..count {
        let size = 1 + random.below(5);
        let text = expressions::expression(&mut random, size);
        let ours = Filter::compile_with(&text, &names, options);
        let theirs = Judge::compile(&text, false);
        let (filter, judge) = match (ours, theirs) {
            (Ok(filter), Ok(judge)) => (filter, judge),
            (Err(_), Err(_)) => {
                both_refuse += 1;
                continue;
            }
            (Err(error), Ok(_)) => {
                stricter.push(format!("{text}: {error}"));
                continue;
            }
            (Ok(_), Err(error)) => {
                laxer += 1;
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
            accepted += u64::from(ours != 0);
        }
        same += 1;
    }
    println!(
        "{same} the same, {both_refuse} refused by both, {laxer} by libpcap only; {accepted} packets accepted"
    );
    assert!(stricter.is_empty(), "refused here only: {stricter:#?}");
    assert!(same > count * 2 / 3, "{same} of {count}");
}

/// What libpcap compiled, optimized, and then here: the same verdicts as by libpcap's interpreter.
#[test]
fn classic_programs() {
    let mut random = Random::new(7);
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
