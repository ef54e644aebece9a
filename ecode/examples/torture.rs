//! Runs GCC's execution tests: `cargo run --release -p postern-ecode --example torture FILES…`
#[path = "../tests/support/mod.rs"]
mod support;
use support::torture::{Outcome, run};

fn main() {
    let (mut passed, mut outside, mut failed) = (0, 0, 0);
    for path in std::env::args().skip(1) {
        let Ok(source) = std::fs::read_to_string(&path) else {
            continue;
        };
        match run(&source) {
            Outcome::Passed => passed += 1,
            Outcome::Outside(why) => {
                outside += 1;
                println!("outside {path}: {}", why.lines().next().unwrap_or(""));
            }
            Outcome::Failed(why) => {
                failed += 1;
                println!("FAILED {path}: {why}");
            }
        }
    }
    println!("passed {passed}, outside {outside}, failed {failed}");
}
