//! The programs of the book's pages on pieces and on files: each is compiled, run as the first
//! process, and says what the page says.

use std::time::Duration;

use postern_aegis_machine::emulator::{self, Machine};
use postern_exos_machine::programs::{self, Program};
use postern_exos_machine::{build, place, software};

/// Pages, and how many programs each has.
const PAGES: [(&str, usize); 2] = [("exos-pieces.md", 4), ("exos-files.md", 1)];

/// Blocks of a page: what stands behind the fence, and the text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let mut blocks = Vec::new();
    let mut rest = page;
    while let Some((_, behind)) = rest.split_once("\n```") {
        let Some((info, behind)) = behind.split_once('\n') else {
            break;
        };
        let Some((text, behind)) = behind.split_once("\n```\n") else {
            break;
        };
        blocks.push((info, text));
        rest = behind;
    }
    blocks
}

#[test]
fn programs_say_what_the_page_says() {
    if !emulator::is_there() {
        return println!("SKIPPED: no qemu-system-x86_64; `make setup-exos` installs it");
    }
    build::all().expect("the library and the root environment build");
    for (page, programs) in PAGES {
        assert_eq!(say_what(page), programs, "programs of {page}");
    }
}

/// Runs the programs of a page: how many.
fn say_what(page: &str) -> usize {
    let path = place::sources().join("../../docs/src/guide").join(page);
    let page = std::fs::read_to_string(path).expect("the page");
    let blocks = blocks(&page);
    let folder = tempfile::tempdir().expect("a folder");
    let mut count = 0;
    for pair in blocks.windows(2) {
        let [(info, source), (_, expected)] = pair else {
            continue;
        };
        if !info.starts_with("c ") {
            continue;
        }
        count += 1;
        let name = format!("piece-{count}");
        let path = folder.path().join(format!("{name}.c"));
        std::fs::write(&path, source).expect("a source");
        let program = Program {
            name: name.clone(),
            sources: vec![path],
            flags: ["-O2", "-Wall", "-Wextra", "-Werror"]
                .map(str::to_owned)
                .to_vec(),
            ..Program::default()
        };
        let mut files = programs::make(&[program]).expect("the page's programs compile");
        files.push(("init".to_owned(), name.into_bytes()));
        let software = software::prepare(&files, folder.path()).expect("an archive");
        let machine = Machine {
            counted: true,
            disk: true,
            limit: Duration::from_secs(30),
            ..Machine::default()
        };
        let ended = machine.run(&software, |_| {}).expect("a machine");
        let said = ended.lines.join("\n");
        assert!(ended.status.is_well(), "{}: {said}\n{source}", ended.status);
        assert!(said.ends_with(expected), "it said\n{said}\nfor\n{source}");
    }
    count
}
