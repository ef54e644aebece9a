//! Random programs: what they compute by E-code is what they compute by gcc.
//!
//! The example `random` does the same to other programs for as long as it is told to. `--example
//! program SEED FUNCTIONS` prints a program that it found.
use crate::support;
use support::differential::random_programs;

#[test]
fn random_programs_compute_what_gcc_computes() {
    let folder = tempfile::tempdir().unwrap();
    let bad: Vec<String> = std::thread::scope(|scope| {
        let part = |from| {
            let folder = folder.path();
            scope.spawn(move || random_programs(from..from + 1000, folder))
        };
        let parts = [0, 1000].map(part);
        parts
            .into_iter()
            .flat_map(|part| part.join().unwrap())
            .collect()
    });
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// Others' programs have what ours lack: structures, unions and bit-fields of all kinds, pointers
/// to pointers, and expressions of many lines. `make csmith` runs more.
#[test]
fn programs_of_csmith_compute_what_gcc_computes() {
    let report = support::csmith::run(1..13);
    assert!(report.failed.is_empty(), "{:#?}", report.failed);
    assert!(report.passed >= 8, "{report:?}");
}
