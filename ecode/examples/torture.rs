//! All of GCC's execution tests, counted by what came of them: `make conformance`, or `cargo run
//! --release -p postern-ecode --example torture [NAME…]`. Exit status 1: one was compiled wrongly,
//! or too few are in the language.
#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;

use postern_conformance::suite;
use support::torture::{EXCLUDED, Outcome, run};

/// Of a hundred tests that need no library, so many pass at least.
const WANTED: usize = 85;

fn main() {
    let only: Vec<String> = std::env::args().skip(1).collect();
    let tests = suite::tests().unwrap_or_else(|error| panic!("{error}"));
    let (mut passed, mut old, mut library, mut excluded, mut failed) = (0, 0, 0, 0, 0);
    let mut outside = BTreeMap::<String, Vec<&str>>::new();
    let tests = tests
        .iter()
        .filter(|test| !test.more && !test.name.contains('/'));
    for test in tests.filter(|test| only.is_empty() || only.contains(&test.name)) {
        match run(test) {
            Outcome::Passed => passed += 1,
            Outcome::Library => library += 1,
            Outcome::Old => old += 1,
            Outcome::Outside(why) => outside.entry(why).or_default().push(&test.name),
            Outcome::Failed(why) => match EXCLUDED.iter().find(|(name, _)| *name == test.name) {
                Some((_, why)) => {
                    excluded += 1;
                    println!("excluded {}: {why}", test.name);
                }
                None => {
                    failed += 1;
                    println!("FAILED {}: {why}", test.name);
                }
            },
        }
    }
    let mut causes: Vec<_> = outside.into_iter().collect();
    causes.sort_by_key(|(_, tests)| std::cmp::Reverse(tests.len()));
    let refused: usize = causes.iter().map(|(_, tests)| tests.len()).sum();
    for (why, tests) in causes {
        println!(
            "{:5} {why} ({}{})",
            tests.len(),
            tests[0],
            if tests.len() > 1 { ", …" } else { "" }
        );
    }
    let all = passed + refused + excluded + failed;
    println!(
        "passed {passed} of {all} ({:.1} %): refused {refused}, excluded {excluded}, failed {failed}; \
         beside them {old} with implicit int or old parameters, {library} that need a library",
        100.0 * passed as f64 / all.max(1) as f64
    );
    let few = only.is_empty() && passed * 100 < all * WANTED;
    std::process::exit(i32::from(failed > 0 || few));
}
