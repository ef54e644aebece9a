//! The example does what it says.

use postern_toolchain::Language;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

#[test]
fn the_host_in_rust() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let extension = directory.path().join("add.px");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host-c/add.c");
    let arguments: [OsString; 5] = [
        "-O2".into(),
        "-g".into(),
        "-o".into(),
        extension.clone().into(),
        source.into(),
    ];
    postern_toolchain::run(Language::C, &arguments).expect("the extension compiles");
    let output = Command::new(env!("CARGO_BIN_EXE_postern-example-host"))
        .arg(extension)
        .output()
        .expect("the example runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().collect();
    assert!(output.status.success(), "{text}");
    assert_eq!(lines[0], "2 + 3 = 5, 70 + 70 = 100");
    assert!(lines[1].contains("add.c:12"), "{}", lines[1]);
    assert_eq!(lines[2], "and on: 4 + 5 = 9");
}
