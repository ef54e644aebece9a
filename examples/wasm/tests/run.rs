//! The example does what it says.

use postern_toolchain::{Build, Language};
use std::path::Path;
use std::process::Command;

#[test]
fn a_module_by_clang_and_its_host() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let module = directory.path().join("histogram.wasm");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("histogram.c");
    let clang = Command::new("clang")
        .args([
            "--target=wasm32",
            "-mbulk-memory",
            "-O2",
            "-nostdlib",
            "-Wl,--no-entry",
            "-o",
        ])
        .args([&module, &source])
        .status()
        .expect("clang runs (Debian: apt-get install clang lld wabt)");
    assert!(clang.success());
    let extension = directory.path().join("histogram.px");
    let build = Build::new(Language::C).file(&module).output(&extension);
    build.run().expect("the module compiles");
    let output = Command::new(env!("CARGO_BIN_EXE_postern-example-wasm"))
        .arg(extension)
        .output()
        .expect("the example runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().collect();
    assert!(output.status.success(), "{text}");
    assert_eq!(lines[0], "' ' stands there 6 times");
    assert_eq!(lines[1], "14 different bytes");
    assert!(
        lines[2].contains("out of bounds memory access"),
        "{}",
        lines[2]
    );
    assert_eq!(lines[4], "and on: 0 bytes in nothing");
}
