//! `examples/host-c` builds, with the flags of its readers, and says what its README would.

use crate::support;

use postern_toolchain::Language;
use std::ffi::OsString;

#[test]
fn the_host_in_c() {
    let root = support::installed();
    let example = |name: &str| support::source("../examples/host-c").join(name);
    let extension = root.join("add.px");
    let arguments: [OsString; 5] = [
        "-O2".into(),
        "-g".into(),
        "-o".into(),
        extension.clone().into(),
        example("add.c").into(),
    ];
    postern_toolchain::run(Language::C, &arguments).expect("the extension compiles");
    let (host, root) = (root.join("host"), root.display().to_string());
    let arguments = [
        "-std=c11".to_owned(),
        "-Wall".into(),
        "-Wextra".into(),
        "-Werror".into(),
        format!("-I{root}"),
        "-o".into(),
        host.display().to_string(),
        example("host.c").display().to_string(),
        format!("-L{root}"),
        format!("-Wl,-rpath,{root}"),
        "-lpostern".into(),
    ];
    support::run("gcc", &arguments);
    let text = support::run(&host, &[extension]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "2 + 3 = 5, 70 + 70 = 100");
    assert!(
        lines[1].starts_with("null pointer access at 0x0, in at"),
        "{}",
        lines[1]
    );
    assert!(lines[1].contains("add.c:12"), "{}", lines[1]);
    assert_eq!(lines[2], "and on: 4 + 5 = 9");
    let source = std::fs::read_to_string(example("host.c")).expect("host.c");
    assert!(source.lines().count() <= 22, "the example stays short");
}
