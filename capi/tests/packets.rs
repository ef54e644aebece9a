//! C programs that have to do with packets: filters, captures, handlers, many consumers,
//! interfaces.

#[allow(dead_code)]
#[path = "../../cli/tests/support/network.rs"]
mod network;
mod support;

use postern_capture::{Next, PacketFilter, Source};
use std::ffi::OsStr;
use std::process::{Command, Stdio};
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
fn other_links() {
    run("links.c", &[]);
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

/// `examples/packets/respond.c` answers until it is interrupted, and says how often.
#[test]
fn the_example_answers() {
    network::inside("the_example_answers", || {
        let (image, root) = (extension("handler"), support::installed());
        let program = root.join("respond");
        let folder = root.display();
        let flags = [
            "-Wall".to_owned(),
            "-Wextra".into(),
            "-Werror".into(),
            format!("-I{folder}"),
            support::source("../examples/packets/respond.c")
                .display()
                .to_string(),
            "-o".into(),
            program.display().to_string(),
            format!("-L{folder}"),
            format!("-Wl,-rpath,{folder}"),
            "-lpostern".into(),
        ];
        support::run("gcc", &flags);
        let mut running = Command::new(&program)
            .args(["vb", "udp dst port 7"])
            .arg(&image)
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut source = network::live("va");
        let mut replies = network::judge("udp src port 7", &mut source);
        let sender = source.sender().expect("an interface");
        let answered = |source: &mut Source, judge: &mut PacketFilter| match source.next() {
            Ok(Next::Packet(seen)) => judge.ask(&seen).expect("judged") != 0,
            other => {
                // It may not listen yet.
                assert_eq!(other.expect("no error"), Next::Idle);
                let request = network::udp(7, b"is anybody there");
                sender.send(&request[..58]).expect("sent");
                false
            }
        };
        while !answered(&mut source, &mut replies) {
            let ended = running.try_wait().expect("its state");
            assert!(ended.is_none(), "it ended with {ended:?}");
        }
        let pid = running.id().to_string();
        support::run("kill", &["-INT", &pid]);
        let output = running.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}");
        assert!(
            text.contains("0 dropped by kernel") && !text.contains(" 0 answers"),
            "{text}"
        );
    });
}
