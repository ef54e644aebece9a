//! C programs that have to do with packets: filters, captures, handlers, many consumers, interfaces.

#[allow(dead_code)]
#[path = "../../cli/tests/support/network.rs"]
mod network;
mod support;

use std::ffi::OsStr;
use support::extension;

/// Runs a host in a folder of its own, with further arguments.
fn run(name: &str, arguments: &[&OsStr]) {
    let folder = tempfile::tempdir().expect("a folder");
    let all = [&[folder.path().as_os_str()], arguments].concat();
    support::run(support::compile(name, &[]), &all);
}

#[test]
fn filters() {
    support::run(support::compile("filters.c", &[]), &[] as &[&str]);
}

#[test]
fn sets() {
    run("sets.c", &[]);
}

#[test]
fn captures_in_and_out() {
    run("packets.c", &[]);
}

#[test]
fn handlers() {
    let (image, other) = (extension("handler"), extension("answers"));
    run("handlers.c", &[image.as_os_str(), other.as_os_str()]);
}

#[test]
fn many_consumers() {
    let image = extension("handler");
    run("demux.c", &[image.as_os_str()]);
}

#[test]
fn interfaces() {
    network::inside("interfaces", || {
        let image = extension("handler");
        run("live.c", &[image.as_os_str()]);
    });
}
