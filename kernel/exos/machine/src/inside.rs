//! The tests of `programs/tests`: each is a program that ends with status 0 if all held.

use std::collections::BTreeMap;

use crate::each::{self, EachError, Ended, Plan};
use crate::{extensions, programs};

/// The test that is run with both page tables.
const BOTH: &str = "pages";

/// Runs those whose names contain a word, for long or not. They find the shell's programs and the
/// demo's beside them, to start.
pub fn run(processors: u32, only: &str, long: bool) -> Result<BTreeMap<String, Ended>, EachError> {
    let mut tests = programs::with_inverted(programs::of("tests")?, BOTH);
    tests.retain(|test| test.name.contains(only));
    let mut others = programs::commands()?;
    others.extend(programs::of("demo")?);
    let (tests, mut others) = (programs::make(&tests)?, programs::make(&others)?);
    others.extend(extensions::make()?);
    if long {
        // Tests that choose at random choose more often where they find it.
        others.push(("long".to_owned(), b"\n".to_vec()));
    }
    let plan = Plan {
        processors,
        seconds: if long { 300 } else { 30 },
        many: usize::MAX,
        machines: 1,
    };
    each::run(plan, &tests, &others)
}
