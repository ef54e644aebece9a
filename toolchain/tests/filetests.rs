//! File tests: in each file of `tests/filetests`, cases separated by `---`. A case is assembly,
//! then a line `=>`, then what must come out: the rewritten text section, or lines with `error:`.
//! Write `POSTERN_BLESS=1` into the environment to let the present output be the expected one, and
//! read the difference.

use std::fmt::Write as _;
use std::path::Path;

use postern_toolchain::rewrite::{Adjustment, Compiler, RewriteOptions, rewrite};

const END: &str = "\t.section\t.note.GNU-stack,\"\",@progbits\n";

fn outcome(source: &str, file: &str) -> String {
    let adjustment = if source.starts_with("# fixed") {
        Adjustment::Fixed
    } else {
        Adjustment::Callee
    };
    match rewrite(
        source,
        file,
        &RewriteOptions {
            adjustment,
            debug: true,
            kernel: source.starts_with("# kernel"),
            compiler: match source.starts_with("# llvm") {
                true => Compiler::Llvm,
                false => Compiler::Gcc,
            },
        },
    ) {
        Ok(text) => text.strip_suffix(END).unwrap_or(&text).to_owned(),
        Err(errors) => errors.iter().map(|error| format!("{error}\n")).collect(),
    }
}

#[test]
fn files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let bless = std::env::var_os("POSTERN_BLESS").is_some();
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let (mut cases, mut failures) = (0, String::new());
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy();
        let mut blessed = Vec::new();
        for case in text.split("---\n") {
            let (input, expected) = case.split_once("=>\n").unwrap_or((case, ""));
            let got = outcome(input, &name);
            cases += 1;
            if got.trim_end() != expected.trim_end() {
                let _ = writeln!(
                    failures,
                    "{name}:\n{input}expected:\n{expected}\ngot:\n{got}"
                );
            }
            blessed.push(format!("{input}=>\n{got}"));
        }
        if bless {
            std::fs::write(&path, blessed.join("---\n")).unwrap();
        }
    }
    assert!(cases > 40, "{cases} cases found");
    assert!(bless || failures.is_empty(), "{failures}");
}
