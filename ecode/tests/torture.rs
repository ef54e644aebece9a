//! GCC's own execution tests, those that are in the language: each aborts if it was compiled wrongly.
//!
//! A part of them runs each time; `ECODE_TORTURE=all` runs all and says how many there are of what.
use crate::support;
use std::collections::BTreeMap;

use postern_conformance::suite;
use support::torture::{Outcome, run};

/// Programs that pass nowhere else than with gcc, and why.
const EXCLUDED: &[(&str, &str)] = &[
    (
        "20031003-1",
        "converts floats out of range, where gcc's constants saturate",
    ),
    ("20000227-1", "is not UTF-8"),
    ("20021127-1", "wants its own llabs not to be called"),
];

#[test]
fn gcc_s_programs_end_well() {
    let all = std::env::var("ECODE_TORTURE").is_ok_and(|value| value == "all");
    let tests = suite::tests().unwrap_or_else(|error| panic!("{error}"));
    let (mut passed, mut failed, mut outside) = (0, Vec::new(), BTreeMap::<String, usize>::new());
    let tests = tests
        .iter()
        .filter(|test| !test.more && !test.name.contains('/'));
    for test in tests.step_by(if all { 1 } else { 8 }) {
        let program = test.program(&[], &[]);
        let [path] = &program.sources[..] else {
            continue;
        };
        let source = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        match run(&source) {
            Outcome::Passed => passed += 1,
            Outcome::Outside(why) => {
                let why = why.lines().next().unwrap_or_default();
                let why = why.split_once("error: ").map_or(why, |(_, why)| why);
                *outside.entry(why.to_owned()).or_default() += 1;
            }
            Outcome::Failed(why) => {
                if !EXCLUDED.iter().any(|(name, _)| *name == test.name) {
                    failed.push(format!("{}: {why}", test.name));
                }
            }
        }
    }
    if all {
        println!(
            "passed {passed}, outside of the language {}",
            outside.values().sum::<usize>()
        );
        for (why, count) in outside {
            println!("{count:5} {why}");
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(passed > if all { 700 } else { 80 }, "only {passed}");
}
