//! No input can make the verifier panic: compiled with optimisation, nothing in it reaches the
//! panic handler at all.
//!
//! (Overflow checks are off, as in every release build; `mutation.rs` runs with them on.)

use std::path::Path;
use std::process::Command;

/// Links the verifier with `nopanic/judge.rs`; whether a call of the panic handler is left.
fn can_panic(directory: &Path, control: bool) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let compile = |source: &str, kind: &str, more: &[&str]| {
        let output = Command::new(option_env!("RUSTC").unwrap_or("rustc"))
            .args([
                "--edition",
                "2024",
                "--crate-type",
                kind,
                "-O",
                "-C",
                "panic=abort",
                "-C",
                "codegen-units=1",
            ])
            .args(["-A", "warnings", "--check-cfg", "cfg(control)"])
            .args(more)
            .arg("--out-dir")
            .arg(directory)
            .arg(root.join(source))
            .output()
            .expect("rustc runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    compile("src/lib.rs", "rlib", &["--crate-name", "postern_verifier"]);
    let library = format!(
        "postern_verifier={}",
        directory.join("libpostern_verifier.rlib").display()
    );
    let mut more = vec![
        "--crate-name",
        "judge",
        "-C",
        "lto=fat",
        "--extern",
        &library,
    ];
    if control {
        more.extend(["--cfg", "control"]);
    }
    compile("tests/nopanic/judge.rs", "cdylib", &more);
    let linked = std::fs::read(directory.join("libjudge.so")).expect("the linked library");
    linked
        .windows(22)
        .any(|window| window == b"the_verifier_can_panic")
}

#[test]
fn no_panic_is_linked() {
    let directory = tempfile::tempdir().unwrap();
    assert!(
        can_panic(directory.path(), true),
        "an index out of bounds must be noticed, or this test says nothing"
    );
    assert!(
        !can_panic(directory.path(), false),
        "something in the verifier can panic"
    );
}
