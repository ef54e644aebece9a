//! A program that does what is hard to see: threads, forks, signals, calls in text of its own.

use crate::support::{folder, native, under};
use std::path::Path;
use std::process::Command;

pub fn build(name: &str, flags: &[&str]) -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let source = match name {
        "attacks" | "filtered" | "hostile" | "put-off" | "random" | "refused" => {
            here.join(name).with_extension("c")
        }
        _ if name.starts_with("sites") => here.join("sites.c"),
        _ => here.join("probe.c"),
    };
    let path = folder().join(name);
    let built = Command::new("gcc")
        .args(["-O1", "-Wall", "-pthread", "-o"])
        .arg(&path)
        .arg(source)
        .args(flags)
        .status()
        .expect("gcc is there");
    assert!(built.success());
    path.to_str().expect("a path").to_owned()
}

fn same(name: &str, flags: &[&str]) {
    let path = build(name, flags);
    let alone = native(&[&path]);
    assert_eq!(alone.status, Some(0), "{}", alone.output);
    for agent in ["count", "seen"] {
        let (seen, said) = under(agent, &[], &[&path]);
        assert_eq!(alone, seen, "{said}");
    }
}

#[test]
fn dynamic() {
    same("probe", &[]);
}

#[test]
fn without_a_place_of_its_own() {
    same("probe-fixed", &["-no-pie"]);
}

#[test]
fn alone_in_its_file() {
    same("probe-static", &["-static"]);
}

#[test]
fn alone_and_movable() {
    same("probe-static-pie", &["-static-pie"]);
}

#[test]
fn filters_of_its_own() {
    same("filtered", &[]);
}

#[test]
fn calls_that_nobody_could_see_are_refused() {
    let path = build("probe-refused", &[]);
    let (seen, _) = under("count", &[], &[&path, "refused"]);
    let refused =
        "int 0x80: -38\nx32: -38\nio_uring_setup: -38\nset gs: -1\ntrace: -1\nundispatch: -22\n";
    assert_eq!((seen.status, seen.output.as_str()), (Some(0), refused));
}
