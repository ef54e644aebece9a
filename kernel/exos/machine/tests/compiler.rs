//! `exos-cc` as somebody at a terminal meets it: programs, errors and their exit statuses.

use std::path::Path;
use std::process::{Command, Output};

fn exos_cc(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_exos-cc"))
        .args(words)
        .current_dir(folder)
        .output()
        .expect("exos-cc")
}

fn written(source: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.c"), source).expect("a source");
    folder
}

const WELL: &str = "#include <stdio.h>\n#include <math.h>\n\
    int main(int count, char **words) { printf(\"%g %s\\n\", sin(count), words[0]); return 0; }\n";

#[test]
fn a_program_is_made_at_once_or_in_parts() {
    let folder = written(WELL);
    // Once before, since the first of all builds the C library, or says that it waits for who does.
    assert!(exos_cc(folder.path(), &["-c", "a.c"]).status.success());
    for words in [
        &["-O2", "-Wall", "a.c", "-o", "a"][..],
        &["-O2", "-g", "-c", "a.c"][..],
        &["a.o", "-lm", "--page-table=linear", "-o", "b"][..],
    ] {
        let output = exos_cc(folder.path(), words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.is_empty(),
            "{words:?}: {said}"
        );
    }
    for name in ["a", "b"] {
        let elf = std::fs::read(folder.path().join(name)).expect("a program");
        let file = object::File::parse(&*elf).expect("an ELF file");
        use object::{Object, ObjectSegment};
        let first = file.segments().map(|segment| segment.address()).min();
        assert_eq!(first, Some(postern_exos_abi::address::IMAGE), "{name}");
    }
}

#[test]
fn errors_say_what_is_wrong_and_what_to_do() {
    let folder = written("int main(void) { return nobody(); }\n");
    let said = |words: &[&str], status: i32| {
        let output = exos_cc(folder.path(), words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
        said
    };
    assert!(said(&[], 2).contains("--help"));
    assert!(said(&["a.c", "-shared"], 2).contains("leave it out"));
    assert!(said(&["a.c", "--page-table=none"], 2).contains("linear or inverted"));
    assert!(said(&["-Werror", "-c", "a.c"], 1).contains("nobody"));
    // At the link, by its name; and a file that is not there.
    assert!(said(&["-w", "a.c", "-o", "a"], 1).contains("undefined reference to `nobody'"));
    assert!(said(&["b.c"], 1).contains("b.c"));
}

#[test]
fn it_tells_about_itself() {
    let folder = written(WELL);
    let said = |word| {
        let output = exos_cc(folder.path(), &[word]);
        assert!(output.status.success(), "{word}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(said("--help").contains("--page-table="));
    assert!(said("--version").starts_with("exos-cc "));
    let sysroot = said("--print-sysroot");
    assert!(Path::new(sysroot.trim()).join("include/stdio.h").is_file());
}
