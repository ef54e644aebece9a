//! Random programs by gcc and by E-code until the time is over: `cargo run --release -p
//! postern-ecode --example random [SECONDS [SEED]]`. 0 seconds, or none said, is until something
//! differs. Exit status 1: something differs.
#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Programs from one look at the clock to the next.
const ROUND: u64 = 250;

fn main() {
    let mut args = std::env::args().skip(1);
    let mut number = |otherwise| support::number(&mut args, otherwise, "random [SECONDS [SEED]]");
    let seconds = number(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let first = number(now.map_or(1, |time| time.as_millis() as u64));
    let folder = tempfile::tempdir().unwrap();
    let (start, mut seed) = (Instant::now(), first);
    while seconds == 0 || start.elapsed() < Duration::from_secs(seconds) {
        let bad = support::differential::random_programs(seed..seed + ROUND, folder.path());
        if !bad.is_empty() {
            println!("{}", bad.join("\n"));
            println!(
                "`cargo run --release -p postern-ecode --example program SEED FUNCTIONS` prints one"
            );
            std::process::exit(1);
        }
        seed += ROUND;
    }
    println!(
        "{} programs from {first} on compute what gcc's compute",
        seed - first
    );
}
