//! Crates in Rust, built by `cargo postern`: std computes natively and confined the same, and what
//! an extension says of itself arrives.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use postern::policy::Sink;
use postern::{CallError, Domain, FaultKind, Image, Policy};

fn cargo_postern(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cargo-postern"))
        .arg("postern")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The image that a build printed.
fn image(output: &Output) -> Image {
    assert!(output.status.success(), "{}", said(output));
    let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Image::load(path).unwrap()
}

/// An empty folder, and LLVM.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    postern_toolchain::llvm::install().unwrap_or_else(|error| panic!("{error}"));
    folder
}

fn copy(from: &Path, to: &Path) {
    for name in ["Cargo.toml", "src/lib.rs", "src/main.rs"] {
        std::fs::create_dir_all(to.join("src")).unwrap();
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

/// Makes a crate of a workspace of its own, for the folder lies in one.
fn new(folder: &Path) -> PathBuf {
    let made = cargo_postern(folder, &["new", "one"]);
    assert!(made.status.success(), "{}", said(&made));
    let folder = folder.join("one");
    let manifest = folder.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text + "\n[workspace]\n").unwrap();
    folder
}

#[test]
fn std_computes_the_same() {
    let folder = folder("rows");
    copy(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rows"),
        &folder,
    );
    let native = Command::new("cargo")
        .args(["run", "--release", "--quiet"])
        .env_remove("CARGO_TARGET_DIR")
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(native.status.success(), "{}", said(&native));
    let native = String::from_utf8(native.stdout).unwrap();

    let image = image(&cargo_postern(&folder, &["build"]));
    let errors = Arc::new(Mutex::new(Vec::new()));
    let domain = Domain::builder(&image)
        .policy(Policy::compute().stderr(Sink::buffer(&errors)))
        .deadline(None)
        .build()
        .unwrap();
    let rows = domain.func::<fn() -> u64>("rows").unwrap();
    let row = domain.func::<fn(u64, u64) -> u64>("row").unwrap();
    let lines: Vec<&str> = native.lines().collect();
    assert_eq!(rows.call().unwrap() * 2, lines.len() as u64);
    let page =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/guide/rust-extensions.md");
    let page = std::fs::read_to_string(page).unwrap();
    for (k, line) in lines.iter().enumerate() {
        let (name, values) = line.split_once(": ").unwrap();
        let (seed, expected) = values.split_once(' ').unwrap();
        let got = row
            .call(k as u64 / 2, seed.parse().unwrap())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(got.to_string(), expected, "{name}, from {seed}");
        assert!(
            page.contains(&format!("| {name} |")),
            "the table has no row {name}"
        );
    }
    // Threads are the host's.
    let spawns = domain.func::<fn() -> u64>("spawns").unwrap();
    assert_eq!(spawns.call().unwrap(), 0);
    // A panic that nobody catches says its line, and ends the call.
    let panics = domain.func::<fn(u64) -> u64>("panics").unwrap();
    match panics.call(7) {
        Err(CallError::Fault(fault)) => assert_eq!(fault.kind, FaultKind::Aborted),
        other => panic!("{other:?}"),
    }
    let errors = String::from_utf8_lossy(&errors.lock().unwrap()).into_owned();
    let wanted = "index out of bounds: the len is 3 but the index is 7";
    assert!(
        errors.contains("src/lib.rs:") && errors.contains(wanted),
        "{errors}"
    );
}

const WITHOUT_STD: &str = r#"#![no_std]
extern crate alloc;
use alloc::vec::Vec;

postern::service! {
    fn twice(number: u64) -> u64;
}

#[postern::export]
pub fn at(data: &[u8], place: usize) -> u8 {
    data[place]
}

#[postern::export]
pub fn fill(data: &mut [u8], value: u8) -> usize {
    data.fill(value);
    data.len()
}

#[postern::export]
pub fn sorted(n: u64) -> u64 {
    let mut all: Vec<u64> = (0..n).map(|k| k * 7919 % 1000).collect();
    all.sort();
    all[n as usize / 2]
}

#[postern::export]
pub fn ask(number: u64) -> u64 {
    twice(number) + 1
}
"#;

#[test]
fn without_std() {
    let folder = folder("without-std");
    let one = new(&folder);
    assert!(!cargo_postern(&folder, &["new", "one"]).status.success());
    assert!(said(&cargo_postern(&folder, &["new", "1/x y"])).contains("cannot be a crate's name"));
    let folder = one;
    let checksum = image(&cargo_postern(&folder, &["build"]));
    let domain = Domain::builder(&checksum).build().unwrap();
    let place = domain.alloc_from(b"Wikipedia").unwrap();
    let function = domain
        .func::<fn(postern::Offset, u64) -> u32>("checksum")
        .unwrap();
    assert_eq!(function.call(place, 9).unwrap(), 0x11e6_0398);

    // The code of the book's page.
    let page = include_str!("../../../docs/src/guide/rust-extensions.md");
    let code = page.split("```rust,ignore\n").nth(1).unwrap();
    let code = code.split("```").next().unwrap();
    std::fs::write(folder.join("src/lib.rs"), code).unwrap();
    let of_the_page = image(&cargo_postern(&folder, &["build"]));
    let domain = Domain::builder(&of_the_page)
        .service("log_number", |_: &postern::Caller<'_>, _: u64| ())
        .build()
        .unwrap();
    let place = domain.alloc_from(b"Wikipedia").unwrap();
    let function = domain
        .func::<fn(postern::Offset, u64) -> u32>("checksum")
        .unwrap();
    assert_eq!(function.call(place, 9).unwrap(), 0x11e6_0398);

    std::fs::write(folder.join("src/lib.rs"), WITHOUT_STD).unwrap();
    let image = image(&cargo_postern(&folder, &["build"]));
    let domain = Domain::builder(&image)
        .service("twice", |_: &postern::Caller<'_>, number: u64| number * 2)
        .build()
        .unwrap();
    let data = domain.alloc_from(b"abc").unwrap();
    let fill = domain
        .func::<fn(postern::Offset, u64, u8) -> u64>("fill")
        .unwrap();
    let at = domain
        .func::<fn(postern::Offset, u64, u64) -> u8>("at")
        .unwrap();
    assert_eq!(fill.call(data, 2, b'x').unwrap(), 2);
    assert_eq!(at.call(data, 3, 1).unwrap(), b'x');
    assert_eq!(at.call(data, 3, 2).unwrap(), b'c');
    assert_eq!(
        domain
            .func::<fn(u64) -> u64>("sorted")
            .unwrap()
            .call(1000)
            .unwrap(),
        500
    );
    assert_eq!(
        domain
            .func::<fn(u64) -> u64>("ask")
            .unwrap()
            .call(20)
            .unwrap(),
        41
    );
    match at.call(data, 3, 9) {
        Err(CallError::Fault(fault)) => {
            let text = fault.to_string();
            assert!(
                text.contains("panic at src/lib.rs:11:5: index out of bounds"),
                "{text}"
            );
        }
        other => panic!("{other:?}"),
    }
}

/// What is not there is named, and so is what is wrong.
#[test]
fn refusals() {
    let folder = folder("refusals");
    assert!(!cargo_postern(&folder, &["build"]).status.success());
    let folder = new(&folder);
    let source = "#![no_std]\nunsafe extern \"C\" { safe fn socket(a: i32, b: i32, c: i32) -> i32; }\n\
                  #[postern::export]\npub fn connect(a: i32) -> i32 { socket(a, 1, 0) }\n";
    std::fs::write(folder.join("src/lib.rs"), source).unwrap();
    let output = cargo_postern(&folder, &["build"]);
    assert!(!output.status.success());
    assert!(
        said(&output).contains("`socket`: extensions in Rust have no such function"),
        "{}",
        said(&output)
    );
    std::fs::write(folder.join("src/lib.rs"), "#![no_std]\nuse postern as _;\n").unwrap();
    assert!(said(&cargo_postern(&folder, &["build"])).contains("exports no function"));
    std::fs::write(
        folder.join("src/lib.rs"),
        "#![no_std]\n#[postern::export]\npub fn f(a: &str) {}\n",
    )
    .unwrap();
    assert!(said(&cargo_postern(&folder, &["build"])).contains("only &[u8] and &mut [u8]"));
}
