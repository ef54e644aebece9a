//! GCC's own execution tests, those that are in the language: each aborts if it was compiled
//! wrongly.
//!
//! A part of them runs each time; `make conformance` runs all and says how many there are of what.
use crate::support;

use postern_conformance::suite;
use support::torture::{EXCLUDED, Outcome, run};

#[test]
fn gcc_s_programs_end_well() {
    let tests = suite::tests().unwrap_or_else(|error| panic!("{error}"));
    let (mut passed, mut outside, mut failed) = (0, 0, Vec::new());
    let tests = tests
        .iter()
        .filter(|test| !test.more && !test.name.contains('/'));
    for test in tests.step_by(8) {
        match run(test) {
            Outcome::Passed => passed += 1,
            Outcome::Outside(_) => outside += 1,
            Outcome::Old | Outcome::Library => {}
            Outcome::Failed(why) => {
                if !EXCLUDED.iter().any(|(name, _)| *name == test.name) {
                    failed.push(format!("{}: {why}", test.name));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(
        passed > 100 && passed * 100 >= (passed + outside) * 80,
        "{passed} of {}",
        passed + outside
    );
}
