//! ExOS in an emulator: its own tests and some of GCC's as processes, exact figures, and that files
//! of the archive can be mapped.

use std::sync::OnceLock;

use postern_aegis_machine::emulator;
use postern_exos_machine::each::{End, Plan};
use postern_exos_machine::{budgets, build, conformance, inside, measure};

/// Builds once; false, and a word, if there is no emulator.
fn ready() -> bool {
    static READY: OnceLock<bool> = OnceLock::new();
    *READY.get_or_init(|| {
        if !emulator::is_there() {
            println!("SKIPPED: no qemu-system-x86_64; `make setup-exos` installs it");
            return false;
        }
        build::all().expect("the library and the root environment build");
        true
    })
}

/// On one processor, whose every run is the same. `make exos-test` runs them on two, too.
#[test]
fn tests_pass_on_one_processor() {
    if !ready() {
        return;
    }
    let ended = inside::run(1, "").expect("a machine");
    let failed: Vec<String> = ended
        .iter()
        .filter(|(_, ended)| ended.end != End::Exit(0))
        .map(|(name, ended)| format!("{name} {}:\n{}", ended.end, ended.said.join("\n")))
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// `make conformance-exos` runs all.
#[test]
fn some_of_gccs_tests_pass() {
    if !ready() {
        return;
    }
    let tests = match conformance::tests("", 14) {
        Ok(tests) => tests,
        Err(error) => return println!("SKIPPED: {error}; or `make setup-conformance`"),
    };
    let plan = Plan {
        processors: 1,
        seconds: 30,
        many: 200,
        machines: 1,
    };
    let report = conformance::run(&tests, plan).expect("machines");
    assert!(report.failed.is_empty(), "{:#?}", report.failed);
    assert!(report.passed > 100, "{}", report.passed);
}

#[test]
fn figures_are_the_budgets() {
    if !ready() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let figures = measure::all("", folder.path()).expect("figures").figures;
    let same = budgets::same_compilers();
    let held = |name: &str| !budgets::NOT_HELD.contains(&name);
    let wrong: Vec<String> = figures
        .iter()
        .filter(|(name, _)| held(name))
        .filter_map(|(name, figure)| {
            let (found, budget) = (figure.instructions, budgets::of(name));
            let told = format!("{name}: {found} instructions, the budget is {budget:?}");
            let keeps = budget.is_some_and(|budget| budgets::keeps(found, budget, same));
            (!keeps).then_some(told)
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "`exos-machine bench --bless` writes what is measured:\n{}",
        wrong.join("\n")
    );
    for (name, _) in budgets::BUDGETS {
        assert!(figures.contains_key(*name), "{name} was not measured");
    }
}
