//! ExOS in an emulator: its own tests and some of GCC's as processes, exact figures, and that files
//! of the archive can be mapped.

use std::sync::OnceLock;
use std::time::Duration;

use postern_aegis_machine::emulator::{self, Machine};
use postern_exos_machine::each::{End, Plan};
use postern_exos_machine::programs::{self, Program};
use postern_exos_machine::software::{self, SoftwareError};
use postern_exos_machine::{budgets, build, conformance, inside, measure, place};

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
    let ended = inside::run(1, "", false).expect("a machine");
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

/// Files of an archive: a program linked with the library as it is, and with another in its place.
fn sides() -> Vec<(String, Vec<u8>)> {
    let folder = place::sources().join("programs/versions");
    let program = |name: &str, sources: &[&str]| Program {
        name: name.to_owned(),
        sources: sources.iter().map(|source| folder.join(source)).collect(),
        flags: ["-O2", "-Wall", "-Wextra", "-Werror"]
            .map(str::to_owned)
            .to_vec(),
        ..Program::default()
    };
    let both = [
        program("sides", &["sides.c"]),
        program("sides-other", &["sides.c", "pieces.c"]),
    ];
    programs::make(&both).expect("both sides compile")
}

/// Another page table, fault policy, pager and scheduler in one of two programs, which start each
/// other, share memory and pipes, and signal each other. Either begins.
#[test]
fn two_versions_run_side_by_side() {
    if !ready() {
        return;
    }
    let own = "ExOS 0.1.0: a fault is a signal, 80 misses, the first client first";
    let other = "another ExOS 7: a fault is memory, 32 misses, the last client first";
    for (init, told, version, length) in [
        ("sides", [own, other], "another ExOS 7", "ExOS 0.1.0".len()),
        (
            "sides-other",
            [other, own],
            "ExOS 0.1.0",
            "another ExOS 7".len(),
        ),
    ] {
        let mut files = sides();
        files.push(("init".to_owned(), init.as_bytes().to_vec()));
        let folder = tempfile::tempdir().expect("a folder");
        let software = software::prepare(&files, folder.path()).expect("an archive");
        let machine = Machine {
            counted: true,
            limit: Duration::from_secs(30),
            ..Machine::default()
        };
        let ended = machine.run(&software, |_| {}).expect("a machine");
        let [first, second] = told.map(str::to_owned);
        let lines = [
            first,
            second,
            format!("by pipe: this is {version}"),
            format!("by signals and its end: 2; by memory: 43, {length}"),
        ];
        let said = ended.lines.join("\n");
        assert!(said.ends_with(&lines.join("\n")), "{init} said\n{said}");
        assert!(ended.status.is_well(), "{}: {said}", ended.status);
    }
}

/// The kind of header that says it, with flags behind it.
fn with_version(elf: &[u8], version: u32) -> Vec<u8> {
    let kind = postern_exos_abi::HEADER.to_le_bytes();
    let at = elf.windows(4).position(|word| word == kind);
    let mut elf = elf.to_vec();
    elf[at.expect("a header of ExOS") + 4..][..4].copy_from_slice(&version.to_le_bytes());
    elf
}

#[test]
fn programs_of_unknown_versions_are_refused() {
    if !ready() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (_, elf) in sides() {
        let files = [("old".to_owned(), with_version(&elf, 7))];
        let refused = software::prepare(&files, folder.path()).expect_err("version 7");
        assert!(
            matches!(&refused, SoftwareError::Version { name, version: 7 } if name == "old"),
            "{refused}"
        );
        assert!(refused.to_string().contains("exos-cc"), "{refused}");
        let files = [(
            "own".to_owned(),
            with_version(&elf, postern_exos_abi::VERSION),
        )];
        assert!(software::prepare(&files, folder.path()).is_ok());
    }
}

/// A line is edited, Ctrl-C ends what runs in the foreground whether it reads or not, with all of
/// its pipeline, what is typed ahead waits for who reads, and Ctrl-D ends the shell.
#[test]
fn the_console_has_a_foreground() {
    if !ready() {
        return;
    }
    let mut all = programs::commands().expect("the shell");
    all.push(Program {
        name: "spin".to_owned(),
        sources: vec![place::sources().join("programs/versions/spin.c")],
        flags: vec!["-O2".to_owned()],
        ..Program::default()
    });
    let mut files = programs::make(&all).expect("they compile");
    files.push(("init".to_owned(), b"sh".to_vec()));
    let folder = tempfile::tempdir().expect("a folder");
    let software = software::prepare(&files, folder.path()).expect("an archive");
    // What is typed, and the line at which more is.
    let stages = [
        // The first bytes come before there is a kernel.
        (
            "\n\n\nechp\x7fo one\nnonsense\x15echo two\nlost\x03echo three\ncat\nfour\n",
            "four\nfour\n",
        ),
        // The second one while the processes are made still: none of them misses it.
        ("\x03echo five\ncat | cat\n\x03echo six\nspin\n", "spins\n"),
        ("\x03echo seven\nspin | cat | cat\n", "spins\n"),
        ("\x03echo eight\ncat\nnine\n\x04echo ten\n\x04", "ten\n"),
    ];
    let machine = Machine {
        counted: true,
        limit: Duration::from_secs(30),
        ..Machine::default()
    };
    let mut session = machine.start(&software).expect("a machine");
    let mut said = String::new();
    for (typed, line) in stages {
        session.types(typed).expect("typing");
        let heard = session.hears(line, Duration::from_secs(30));
        said += &heard.expect("its line");
    }
    let (rest, status) = session.ends().expect("its end");
    said += &rest;
    assert!(status.is_well(), "{status}: {said}");
    let words = "one two three four five six seven eight nine ten";
    let mut lines = said.lines();
    for word in words.split(' ') {
        assert!(lines.any(|line| line == word), "{word} in\n{said}");
    }
    for name in ["sh: cat: Interrupt", "sh: spin: Interrupt"] {
        assert!(said.contains(name), "{name} in\n{said}");
    }
    assert_eq!(said.matches("spins").count(), 2, "{said}");
    assert_eq!(said.matches(": Interrupt").count(), 7, "{said}");
}
