//! Filters that grow: neither the insertion nor a packet becomes much dearer where there is one
//! host more.

use std::time::Instant;

use postern_filter::classifier::Classifier;
use postern_filter::set::{Claim, Id};
use postern_filter::{Filter, NoNames};

fn packet(host: u32) -> Vec<u8> {
    let mut packet = vec![0; 60];
    packet[12..15].copy_from_slice(&[8, 0, 0x45]);
    packet[23] = 17;
    packet[26..30].copy_from_slice(&host.to_be_bytes());
    packet[30..34].copy_from_slice(&[192, 168, 0, 1]);
    packet
}

fn host(n: u32) -> u32 {
    10 << 24 | n << 8 | 7
}

/// `ip host A or …`, beside two other filters: the hosts are one table, whatever their number.
#[test]
fn hosts_are_one_table() {
    for count in [10, 14, 31, 33, 64, 1000] {
        let name = |n| std::net::Ipv4Addr::from_bits(host(n)).to_string();
        let names: Vec<String> = (0..count).map(name).collect();
        let expression = format!("ip host {}", names.join(" or "));
        let mut classifier = Classifier::new();
        let mut insert = |text: &str| {
            let filter = Filter::compile(text, &NoNames).unwrap();
            let begun = Instant::now();
            let id = classifier.insert(&filter, Claim::default()).unwrap();
            (id, begun.elapsed())
        };
        insert("tcp port 80");
        let (id, took) = insert(&expression);
        insert("udp dst port 53");
        classifier.ready().unwrap();
        assert_eq!(classifier.find(&packet(1), 60).unwrap(), None);
        let hosts: Vec<Vec<u8>> = (0..count).map(|n| packet(host(n * 7 % count))).collect();
        for packet in &hosts {
            assert_eq!(classifier.find(packet, 60).unwrap(), Some(id));
        }
        let begun = Instant::now();
        for packet in hosts.iter().cycle().take(20_000) {
            assert_ne!(classifier.find(packet, 60).unwrap(), None::<Id>);
        }
        let each = begun.elapsed() / 20_000;
        let tests = classifier.to_string().lines().count();
        eprintln!(
            "{count} hosts: inserted in {took:?}, a packet with its copy in {each:?}, {tests} tests"
        );
        // A search's comparisons are tests, of each of the tables; a hash is one.
        let most = if count <= 16 { 70 + 4 * count } else { 90 };
        assert!(tests < most as usize, "{count} hosts: {classifier}");
        // Milliseconds on a machine that does nothing else; without tables it would be minutes.
        assert!(took.as_secs() < 5, "{count} hosts: {took:?}");
    }
}

/// The work of one insertion is bounded for filters whose ways multiply, too.
#[test]
fn ways_that_multiply_are_not_listed() {
    let ports = |from: u32| {
        let one = |n: u32| format!("port {}", from + n);
        (0..60).map(one).collect::<Vec<_>>().join(" or ")
    };
    let lengths: String = (0..60)
        .map(|n| format!(" or len = {n} and ip[{n}] > {n}"))
        .collect();
    for text in [
        format!("({}) and ({})", ports(100), ports(300)),
        format!("not ({}) and not ({})", ports(100), ports(300)),
        format!("ip{lengths}"),
    ] {
        let filter = Filter::compile(&text, &NoNames).unwrap();
        let mut classifier = Classifier::new();
        let begun = Instant::now();
        classifier.insert(&filter, Claim::default()).unwrap();
        let took = begun.elapsed();
        eprintln!("{} bytes of expression: inserted in {took:?}", text.len());
        // A tenth of a second; ways that were listed would not end.
        assert!(took.as_secs() < 10, "{text}: {took:?}");
    }
}
