//! Figures, on request: `cargo test --release -p postern-filter --test speed -- --ignored --nocapture`.

mod support;

use std::time::Instant;

use postern_filter::set::{Claim, Scratch, Set};
use postern_filter::{Filter, NoNames};
use support::confined::Confined;
use support::nanoseconds;
use support::packets::{connection, connection_packet};
use support::pcap::Judge;

fn filter(source: &str) -> Filter {
    Filter::compile(source, &NoNames).unwrap()
}

fn set(count: u32) -> (Set, f64) {
    let filters: Vec<Filter> = (0..count).map(|n| filter(&connection(n))).collect();
    let mut set = Set::new();
    let start = Instant::now();
    for (n, filter) in filters.iter().enumerate() {
        let claim = Claim {
            owner: n as u32,
            priority: 1,
            may_steal: false,
        };
        set.insert(filter, claim).unwrap();
    }
    (set, start.elapsed().as_nanos() as f64 / f64::from(count))
}

#[test]
#[ignore = "prints figures"]
fn figures() {
    let last = connection_packet(9);
    println!("Ten TCP/IP filters, the last matches (Exokernel, Table 7):");
    let judges: Vec<Judge> = (0..10)
        .map(|n| Judge::compile(&connection(n), true).unwrap())
        .collect();
    let one_by_one = nanoseconds(|| judges.iter().position(|j| j.run(&last, 60) != 0));
    let (ten, _) = set(10);
    let mut scratch = Scratch::default();
    let merged = nanoseconds(|| ten.find(&last, 60, &mut scratch));
    let code = Confined::of(&ten.merged().unwrap().code).nanoseconds(&last);
    println!(
        "  libpcap one by one {one_by_one:.0} ns; set as code with its call {code:.1} ns: {:.1} x; set without code {merged:.0} ns",
        one_by_one / code
    );

    println!("Connections in a set (in the host, without machine code):");
    for count in [10, 100, 1000, 10_000, 100_000] {
        let (mut set, insert) = set(count);
        let packets: Vec<Vec<u8>> = (0..1000)
            .map(|n| connection_packet(n * 7919 % count))
            .collect();
        let mut at = 0;
        let find = nanoseconds(|| {
            at = (at + 1) % packets.len();
            set.find(&packets[at], 60, &mut scratch)
        });
        let extra = filter(&connection(count));
        let change = nanoseconds(|| {
            let id = set.insert(&extra, Claim::default()).unwrap();
            set.remove(id)
        });
        println!(
            "  {count:>7}: {find:.0} ns a packet, insertion {insert:.0} ns, insertion and removal {change:.0} ns"
        );
    }

    println!("Conjoined terms, all true (Palladium, Figure 7):");
    let terms = [
        "12:2 = 0x0800",
        "23:1 = 6",
        "26:4 = 0x0a000009",
        "30:4 = 0x0a000001",
        "36:2 = 80",
        "14:1 = 0x45",
        "len = 60",
        "20:2 & 0x1fff = 0",
    ];
    for count in 1..=terms.len() {
        let source = terms[..count].join(" and ");
        let classic: Vec<String> = terms[..count]
            .iter()
            .map(|t| {
                if t.starts_with("len") {
                    return (*t).to_owned();
                }
                let (place, rest) = t.split_once(' ').unwrap();
                format!("ether[{place}] {rest}")
            })
            .collect();
        let judge = Judge::compile(&classic.join(" and "), true).unwrap();
        let theirs = nanoseconds(|| judge.run(&last, 60));
        let ours = Confined::new(&filter(&source)).nanoseconds(&last);
        println!(
            "  {count}: libpcap {theirs:.1} ns, confined code with its call {ours:.1} ns: {:.1} x",
            theirs / ours
        );
    }

    println!("Single filters, libpcap optimized against confined code with its call:");
    for source in [
        "ip",
        "tcp port 80",
        "tcp dst port 80 and net 10",
        &connection(9),
        "tcp[tcpflags] & tcp-syn != 0 or host 10.0.0.9",
    ] {
        let judge = Judge::compile(source, true).unwrap();
        let theirs = nanoseconds(|| judge.run(&last, 60));
        let ours = Confined::new(&filter(source)).nanoseconds(&last);
        println!(
            "  {theirs:.1} ns, {ours:.1} ns: {:.1} x  {source}",
            theirs / ours
        );
    }
}
