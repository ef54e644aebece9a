//! Programs of C++, confined with libstdc++ and native with the system's: the same output to the
//! byte, and the same end. And how calls end that throw what nobody catches.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use postern::policy::{Input, Sink};
use postern::{Caller, Domain, Image, Policy};
use postern_toolchain::{Build, Language};

const INPUT: &str = "3 4 5 6 7";
/// What the confined builds are made with; the output is the same.
const LEVELS: &[&[&str]] = &[&["-O0"], &["-O2"], &["-O3", "-march=x86-64-v3"]];

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cxx")
        .join(name)
}

fn target(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cxx");
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

fn native(name: &str) -> (String, i32) {
    let program = target(&format!("{name}.native"));
    let status = Command::new("g++")
        .args(["-O1", "-w", "-std=c++17", "-o"])
        .arg(&program)
        .arg(source(name))
        .status()
        .unwrap();
    assert!(status.success(), "g++ {name}");
    let mut child = Command::new(&program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(INPUT.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (text, output.status.code().unwrap_or(-1))
}

fn confined(name: &str, flags: &[&str]) -> (String, i32) {
    let path = Build::new(Language::Cxx)
        .file(source(name))
        .flags(["-w", "-g0", "-std=c++17"])
        .flags(flags)
        .output(target(&format!("{name}{}.px", flags.concat())))
        .run()
        .unwrap_or_else(|error| panic!("{name} {flags:?}: {error}"));
    let image = Image::load(path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let output = Arc::new(Mutex::new(Vec::new()));
    let nothing: Arc<Mutex<Vec<u8>>> = Arc::default();
    let policy = Policy::compute()
        .stdin(Input::bytes(INPUT))
        .stdout(Sink::buffer(&output))
        .stderr(Sink::buffer(&nothing));
    let domain = Domain::builder(&image)
        .policy(policy)
        .build()
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let status = domain
        .run_main(&["program"], &[] as &[&str])
        .unwrap_or_else(|error| panic!("{name} {flags:?}: {error}"));
    let text = String::from_utf8_lossy(&output.lock().unwrap()).into_owned();
    (text, status)
}

fn compare(name: &str) {
    let expected = native(name);
    for flags in LEVELS {
        let ours = confined(name, flags);
        for (number, (a, b)) in ours.0.lines().zip(expected.0.lines()).enumerate() {
            assert_eq!(a, b, "{name} {flags:?}: line {} of the output", number + 1);
        }
        assert_eq!(ours, expected, "{name} {flags:?}");
    }
}

#[test]
fn containers() {
    compare("containers.cc");
}

#[test]
fn language() {
    compare("language.cc");
}

#[test]
fn text() {
    compare("text.cc");
}

#[test]
fn exceptions() {
    compare("exceptions.cc");
}

/// What nobody catches ends the call as a fault that says what it was; the next call of a fresh
/// domain is as the first.
#[test]
fn what_nobody_catches() {
    let path = Build::new(Language::Cxx)
        .file(source("uncaught.cc"))
        .flags(["-O2", "-w"])
        .output(target("uncaught.px"))
        .run()
        .unwrap_or_else(|error| panic!("{error}"));
    let image = Image::load(path).unwrap();
    let domain = Domain::builder(&image)
        .service("host", |caller: &Caller<'_>, kind: i32| {
            let throw = caller
                .domain()
                .func::<fn(i32) -> i32>("throw_kind")
                .unwrap();
            // A second call of the same domain has a control stack of its own: the exception ends
            // there.
            i32::from(throw.call(kind).is_err())
        })
        .build()
        .unwrap();
    for (kind, message) in [
        (
            1,
            "terminate called after throwing std::length_error: vector::reserve",
        ),
        (2, "terminate called after throwing std::out_of_range: "),
        (
            3,
            "terminate called after throwing shop::Empty: nothing left",
        ),
        (4, "terminate called after throwing int"),
        (
            5,
            "terminate called after throwing std::bad_alloc: std::bad_alloc",
        ),
        (
            6,
            "terminate called after throwing std::runtime_error: from noexcept",
        ),
        (7, "terminate called without an active exception"),
    ] {
        let throw = domain.func::<fn(i32) -> i32>("throw_kind").unwrap();
        assert_eq!(throw.call(0).unwrap(), 0);
        let error = throw.call(kind).expect_err("nobody catches it").to_string();
        assert!(error.contains(message), "{kind}: {error}");
        domain.reset().unwrap();
    }
    // Not through a service of the host's: the handler outside does not see it.
    let through = domain.func::<fn(i32) -> i32>("catch_around_host").unwrap();
    let result = through.call(3);
    assert!(!matches!(result, Ok(-1)), "{result:?}");
}
