//! The module in Debian's kernels 6.1 and 6.12, on one processor and on two: `make setup-kernel`
//! fetches them.

#[path = "../../../verifier/tests/corpus/mod.rs"]
mod corpus;
mod machine;

use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use machine::{FirstFiles, boot, kernel, script, workspace};
use postern_verifier::Profile;

/// Snippets at random in each of the four machines, unless the environment has another number.
const SNIPPETS: u32 = 1_000;

/// Requests at random in each of them, unless the environment has another number.
const REQUESTS: u32 = 1_000;

/// The attack corpus for the guest: name, expectation, imports, bytes.
fn cases() -> String {
    let mut cases = String::new();
    let mut random = fastrand::Rng::with_seed(1);
    let folder = workspace().join("tests/attacks");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the corpus")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    paths.sort();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a file of the corpus");
        for part in text.split("\n---\n") {
            let case = corpus::parse(part).expect("a case");
            // Of other profiles, and of bytes at random, the judge outside tells what to expect.
            let told = case.profile == Profile::Kernel && !case.expect.starts_with("agree");
            let expect = if told { &*case.expect } else { "-" };
            let (name, imports) = (case.name, case.layout.imports.min(4096));
            write!(cases, "{name}\t{expect}\t{imports}\t").expect("a string");
            for byte in case.bytes {
                let byte = byte.unwrap_or_else(|| random.u8(..));
                write!(cases, "{byte:02x} ").expect("a string");
            }
            cases.push('\n');
        }
    }
    cases
}

/// A source of `images`, compiled for the kernel with lines.
fn compiled(name: &str, options: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("image");
    let source = workspace().join("kernel/tests/images").join(name);
    let mut arguments: Vec<OsString> = vec!["--kernel".into(), "-O1".into(), "-g".into()];
    arguments.extend(options.iter().map(OsString::from));
    arguments.extend(["-o".into(), image.clone().into(), source.into()]);
    postern_toolchain::run(postern_toolchain::Language::C, &arguments).expect("it compiles");
    std::fs::read(image).expect("the image")
}

/// The command, without debug information, if it has been built: it lies beside these tests.
fn command(folder: &Path) -> Option<PathBuf> {
    let test = std::env::current_exe().expect("the test's own path");
    let built = test.ancestors().nth(2).expect("a folder").join("postern");
    let small = folder.join("postern");
    let status = Command::new("strip")
        .arg("-o")
        .args([&small, &built])
        .status();
    let there = built.exists() && status.is_ok_and(|status| status.success());
    there.then_some(small)
}

fn judges_as_user_space_does(version: &str) {
    let Some(kernel) = kernel(version) else {
        println!("SKIPPED: no kernel {version}; `make setup-kernel` fetches it on Debian 12");
        return;
    };
    script("judge.sh", &[]);
    let built = workspace().join("target/kernel").join(version);
    script("build.sh", &[&kernel.join("headers"), &built]);
    let mut files = FirstFiles::default();
    for folder in ["dev", "proc", "sys"] {
        files.folder(folder);
    }
    files.program(
        "init",
        Path::new(env!("CARGO_BIN_EXE_postern-kernel-guest")),
    );
    let module = std::fs::read(built.join("postern.ko")).expect("the module");
    files.file("postern.ko", &module);
    files.file("cases", cases().as_bytes());
    files.file("client.pst", &compiled("client.c", &[]));
    let source = workspace().join("kernel/tests/images/client.c");
    files.file("client.c", &std::fs::read(source).expect("the source"));
    files.folder("images");
    files.file("images/packets.pst", &compiled("packets.c", &["-O2"]));
    // No jump backward, so no loops: for the kernel's probes.
    let bounded = compiled("probes.c", &["-fno-reorder-blocks"]);
    files.file("images/probes.pst", &bounded);
    let folder = tempfile::tempdir().expect("a folder");
    match command(folder.path()) {
        Some(command) => files.program("postern", &command),
        None => println!("SKIPPED: the command is not built, and is not tried in the machine"),
    }
    let at = folder.path().join("first.cpio");
    std::fs::write(&at, files.finish()).expect("a file");
    let snippets = std::env::var("POSTERN_KERNEL_SNIPPETS")
        .map_or(SNIPPETS, |number| number.parse().expect("a number"));
    let requests = std::env::var("POSTERN_KERNEL_REQUESTS")
        .map_or(REQUESTS, |number| number.parse().expect("a number"));
    for processors in [1, 2] {
        let options = format!(
            "postern.seed={processors} postern.snippets={snippets} postern.fuzz={requests}"
        );
        let shown = boot(&kernel, &at, processors, &options);
        let mut lines = shown.lines().map(str::trim_end);
        assert!(lines.any(|line| line == "guest: ok"), "{version}: {shown}");
        for bad in ["BUG", "Oops", "WARNING", "Call Trace", "general protection"] {
            assert!(!shown.contains(bad), "{version}: {shown}");
        }
        println!("Linux {version}, {processors} processors:\n{shown}");
    }
}

#[test]
fn linux_6_1_judges_as_user_space_does() {
    judges_as_user_space_does("6.1");
}

#[test]
fn linux_6_12_judges_as_user_space_does() {
    judges_as_user_space_does("6.12");
}
