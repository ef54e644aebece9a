//! A part of what `make conformance` and `make csmith` do, small enough for every run of the tests.

use std::path::{Path, PathBuf};

use postern_conformance::exclusions::Exclusions;
use postern_conformance::{csmith, suite, torture};

fn worker() -> PathBuf {
    env!("CARGO_BIN_EXE_postern-conformance").into()
}

fn jobs() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get)
}

#[test]
fn every_sixteenth_test_of_gcc() {
    let all = suite::tests().unwrap_or_else(|error| panic!("{error}"));
    let exclusions = Exclusions::ours().unwrap();
    let names: Vec<&str> = all.iter().map(|test| test.name.as_str()).collect();
    assert!(names.len() > 1500, "{} tests found", names.len());
    assert_eq!(exclusions.unknown(&names), [""; 0]);
    let plan = torture::Plan {
        tests: all
            .iter()
            .filter(|test| !test.more)
            .step_by(16)
            .cloned()
            .collect(),
        sets: torture::USUAL.to_vec(),
        jobs: jobs(),
        worker: worker(),
        confined: Vec::new(),
        progress: false,
    };
    let report = torture::run(&plan, &exclusions).unwrap_or_else(|error| panic!("{error}"));
    assert!(report.failures.is_empty(), "{:#?}", report.failures);
    for set in torture::USUAL {
        assert!(
            report.counts[*set].passed > 90,
            "{set}: {}",
            report.counts[*set]
        );
    }
}

#[test]
fn random_programs() {
    let report = csmith::run(&csmith::Plan {
        first: 1,
        count: 20,
        jobs: jobs(),
        worker: worker(),
        keep: Path::new(env!("CARGO_TARGET_TMPDIR")).join("csmith"),
        confined: Vec::new(),
        progress: false,
    })
    .unwrap_or_else(|error| panic!("{error}"));
    assert!(report.failures.is_empty(), "{:#?}", report.failures);
    assert!(report.passed >= 12, "{report:?}");
}
