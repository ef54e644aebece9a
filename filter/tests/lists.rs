//! Long lists of values are searched, and say what they said one by one.

use crate::support;

use fastrand::Rng;
use postern_filter::{Filter, NoNames};
use support::differential::compare_all;
use support::lists;
use support::machine::{Seen, run};

/// Whatever is listed, in whatever order, of packets that end in the middle of a field, too.
#[test]
fn lists_say_what_libpcap_says() {
    let mut random = Rng::with_seed(31);
    let texts: Vec<String> = (0..600).map(|_| lists::expression(&mut random)).collect();
    let corpus = lists::packets(31, 400);
    let tally = compare_all(&texts, &corpus);
    assert!(tally.stricter.is_empty(), "{:#?}", tally.stricter);
    assert!(tally.same > 500 && tally.accepted > 20_000, "{tally:?}");
    let mut said = 0;
    for text in &texts {
        let filter = Filter::compile(text, &NoNames).unwrap();
        let Some(program) = filter.to_classic() else {
            continue;
        };
        for packet in &corpus {
            let seen = Seen {
                bytes: &packet.bytes,
                tag: None,
                hardware: 1,
            };
            // The machine takes a packet's captured bytes for its length.
            if packet.bytes.len() as u32 == packet.wire {
                let verdict = filter.run(&packet.bytes, packet.wire);
                assert_eq!(
                    run(&program, &seen),
                    verdict,
                    "`{text}` {:02x?}",
                    packet.bytes
                );
            }
        }
        said += 1;
    }
    assert!(said > 500, "{said}");
}

/// The longest way through the code of many hosts is little longer than through that of few, and
/// the kernel takes as many of them, exactly.
#[test]
fn many_hosts_are_few_steps() {
    let steps = |count: u32| {
        let name = |n: u32| std::net::Ipv4Addr::from_bits(10 << 24 | n << 9).to_string();
        let names: Vec<String> = (0..count).map(name).collect();
        let text = format!("ip host {}", names.join(" or "));
        let filter = Filter::compile(&text, &NoNames).unwrap();
        let classic = filter.to_classic().map(|list| list.len());
        let longest = filter.code().verify().unwrap().longest_path.unwrap();
        (longest, classic)
    };
    let [few, many] = [10, 1000].map(steps);
    // One by one they took 6,000.
    assert!(many.0 < 4 * few.0 && many.0 < 150, "{few:?} {many:?}");
    assert!(many.1.is_some_and(|count| count < 2600), "{many:?}");
}
