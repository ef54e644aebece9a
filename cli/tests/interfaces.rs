//! Live capture on other interfaces than one of Ethernet: tunnels, `any`, links that go down.

mod support;

use std::io::{BufRead, BufReader};
use std::process::Command;
use std::time::Duration;

use postern_capture::{Direction, Live, Source};
use support::network::{accepted, bytes, inside, judge, live, udp};
use support::running::{interrupt, listening};
use support::{example, postern, text};

/// Interfaces without a link header, alone and among `any`: IP's version tells, and files say what
/// their packets begin with.
#[test]
fn tunnels_are_captured() {
    inside("tunnels_are_captured", || {
        let kinds = ["type wireguard", "type ipip local 10.8.0.1 remote 10.8.0.2"];
        let made = kinds.iter().any(|kind| {
            let line = format!(
                "ip link add tn {kind} 2>/dev/null && ip addr add 10.9.0.1/24 dev tn && ip link set tn up"
            );
            Command::new("sh").args(["-c", &line]).status().unwrap().success()
        });
        if !made {
            eprintln!("SKIPPED tunnels_are_captured: the kernel has neither wireguard nor ipip");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let send = || {
            let socket = std::net::UdpSocket::bind("10.9.0.1:0").unwrap();
            for port in [98, 99] {
                // Nobody is at the other end, which the kernel may say.
                let _ = socket.send_to(b"through the tunnel", ("10.9.0.2", port));
            }
        };
        for (interface, name) in [("tn", "tn.pcap"), ("any", "any.pcapng")] {
            let path = folder.path().join(name);
            let path = path.to_str().unwrap();
            let (mut running, _errors) = listening(&[
                "filter",
                "-i",
                interface,
                "-c",
                "2",
                "-w",
                path,
                "ip and udp dst port 99",
            ]);
            send();
            if interface == "any" {
                live("va")
                    .sender()
                    .unwrap()
                    .send(&udp(99, b"Ethernet"))
                    .unwrap();
            }
            send();
            assert!(running.0.wait().unwrap().success());
            let read = postern(
                folder.path(),
                &["filter", "-r", path, "-t", "udp dst port 99"],
            );
            let shown = text(&read.stdout);
            assert!(
                shown.contains("> 10.9.0.2.99: UDP, length 18"),
                "{shown} {}",
                text(&read.stderr)
            );
            assert_eq!(shown.lines().count(), 2, "{shown}");
        }
        let tcpdump = Command::new("tcpdump")
            .args(["-nr"])
            .arg(folder.path().join("tn.pcap"))
            .output();
        if let Ok(output) = tcpdump {
            assert!(text(&output.stdout).contains("> 10.9.0.2.99: UDP, length 18"));
        }
    });
}

/// An interface that goes down and comes up again is captured on; one that is gone ends it; one
/// that is down is not begun.
#[test]
fn a_link_that_goes_down_comes_up_again() {
    inside("a_link_that_goes_down_comes_up_again", || {
        let run = |line: &str| {
            let status = Command::new("sh").args(["-ec", line]).status().unwrap();
            assert!(status.success(), "{line}");
        };
        for immediate in [false, true] {
            let mut options = Live::of("vb");
            options.immediate = immediate;
            let mut source = Source::live(&options).unwrap();
            let mut wanted = judge("udp dst port 99", &mut source);
            for _ in 0..2 {
                live("va").sender().unwrap().send(&udp(99, b"up")).unwrap();
                accepted(&mut source, &mut wanted);
                run("ip link set vb down");
                for _ in 0..3 {
                    source.next().unwrap();
                }
                run("ip link set vb up");
                // The other end notices a little later.
                std::thread::sleep(Duration::from_millis(300));
            }
        }
        let mut source = live("vb");
        run("ip link set vb down");
        let error = Source::live(&Live::of("vb")).err().unwrap().to_string();
        assert!(error.contains("ip link set"), "{error}");
        run("ip link del va");
        let error = (0..5)
            .find_map(|_| source.next().err())
            .unwrap()
            .to_string();
        assert!(error.contains("vb: No such device"), "{error}");
    });
}

/// `any` is every interface: lines, objects and files name the one that a packet passed, and how;
/// answers leave by the one that the question came from.
#[test]
fn any_interface_is_answered_by_itself() {
    inside("any_interface_is_answered_by_itself", || {
        let folder = tempfile::tempdir().unwrap();
        let (echo, file) = (example("echo.c"), folder.path().join("any.pcapng"));
        let (echo, file) = (echo.to_str().unwrap(), file.to_str().unwrap());
        let filter = "udp dst port 7 and src host 10.0.0.1";
        let (demux, demux_errors) =
            listening(&["demux", "-i", "any", "--to", &format!("{file}={filter}")]);
        let (handler, handler_errors) =
            listening(&["filter", "-i", "any", "--handler", echo, filter]);
        let json = ["filter", "-i", "any", "--json", "udp dst port 9"];
        let (mut objects, _objects_errors) = listening(&json);
        let (mut lines, _lines_errors) = listening(&["filter", "-i", "any", "udp dst port 9"]);
        let mut sources = [live("va"), live("vc")];
        for source in &mut sources {
            let mut replies = judge("udp src port 7", source);
            let sender = source.sender().unwrap();
            for _ in 0..2 {
                sender.send(&udp(7, b"who is there")).unwrap();
                // The request is seen as it leaves, too, and answered there: that answer leaves as
                // well.
                let reply = loop {
                    let seen = accepted(source, &mut replies);
                    if seen.origin.direction != Direction::Out {
                        break seen;
                    }
                };
                assert!(bytes(source, &reply).ends_with(b"who is there"));
            }
            sender.send(&udp(9, b"discard")).unwrap();
        }
        // The other pair's interfaces heard nothing but their own.
        let mut lines = BufReader::new(lines.0.stdout.take().unwrap()).lines();
        let mut objects = BufReader::new(objects.0.stdout.take().unwrap()).lines();
        for (from, to) in [("va", "vb"), ("vc", "vd")] {
            for (name, direction, word) in [(from, "Out", "out"), (to, "P", "other")] {
                let line = lines.next().unwrap().unwrap();
                let shown = format!(" {name:<5} {direction:<3} IP 10.0.0.1.4660 > 10.0.0.2.9: UDP");
                assert!(line.contains(&shown), "{line}");
                let object = objects.next().unwrap().unwrap();
                let object: serde_json::Value = serde_json::from_str(&object).unwrap();
                assert_eq!(
                    (&object["interface"], &object["direction"]),
                    (&name.into(), &word.into())
                );
            }
        }
        let (_, _, counters) = interrupt(handler, handler_errors);
        assert!(
            counters.contains("8 packets handled, 8 taken, 8 answers sent"),
            "{counters}"
        );
        interrupt(demux, demux_errors);
        let read = |arguments: &[&str]| {
            let output = postern(
                folder.path(),
                &[&["filter", "-r", file][..], arguments].concat(),
            );
            assert!(output.status.success());
            text(&output.stdout)
        };
        let (listed, objects) = (read(&[]), read(&["--json"]));
        for (name, direction) in [("va", "Out"), ("vb", "P"), ("vc", "Out"), ("vd", "P")] {
            assert_eq!(
                listed
                    .matches(&format!(" {name:<5} {direction:<3} IP"))
                    .count(),
                2,
                "{listed}"
            );
            assert_eq!(
                objects
                    .matches(&format!("\"interface\":\"{name}\""))
                    .count(),
                2,
                "{objects}"
            );
        }
    });
}

/// Where there is only one interface when `any` begins, others may come: the first one is named as
/// well.
#[test]
fn a_single_interface_is_named() {
    inside("a_single_interface_is_named", || {
        let gone = ["-ec", "ip link del va; ip link del vc"];
        assert!(Command::new("sh").args(gone).status().unwrap().success());
        let (mut lines, _errors) = listening(&["filter", "-i", "any", "udp dst port 5353"]);
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(b"something", "127.0.0.1:5353").unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(lines.0.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        assert!(line.contains(" lo    In  IP 127.0.0.1."), "{line}");
    });
}
