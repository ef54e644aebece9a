//! Random expressions by libpcap and here until the time is over: `cargo run --release -p
//! postern-filter --example random-filters [SECONDS [SEED]]`. 0 seconds, or none said, is until
//! something differs, which is a panic that shows it.
//!
//! Expressions come of a grammar, so libpcap never asks a resolver.
#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Expressions from one look at the clock to the next.
const ROUND: u32 = 200;

fn main() {
    let mut words = std::env::args().skip(1);
    let mut number = |otherwise: u64| match words.next() {
        Some(word) => word.parse().expect("usage: random [SECONDS [SEED]]"),
        None => otherwise,
    };
    let seconds = number(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let first = number(now.map_or(1, |time| time.as_millis() as u64));
    let (start, mut seed, mut same) = (Instant::now(), first, 0);
    while seconds == 0 || start.elapsed() < Duration::from_secs(seconds) {
        let tally = support::differential::compare(seed, ROUND, 200);
        assert!(
            tally.stricter.is_empty(),
            "seed {seed}: refused here only: {:#?}",
            tally.stricter
        );
        same += u64::from(tally.same);
        seed += 1;
    }
    println!("{same} expressions from seed {first} on mean what libpcap's mean");
}
