//! Live capture on other interfaces than one of Ethernet: tunnels, `any`, links that go down.

mod support;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::time::{Duration, Instant};

use postern_capture::{Direction, Live, Source};
use support::network::{accepted, bytes, inside, judge, live, skipped, udp};
use support::running::{Running, interrupt, listening, started};
use support::{example, postern, text};

/// Makes an interface `tn` without a link header, and keeps it while the child that it gives lives;
/// nothing if the kernel has none of the kind.
fn tunnel(kind: &str) -> Option<Running> {
    // A tun has to be held open. perl is on every Debian system.
    let tun = r#"open(F, "+<", "/dev/net/tun") or exit 1;
        my $name = pack("a16s", "tn", 0x1001) . "\0" x 22;
        ioctl(F, 0x400454ca, $name) or exit 1;
        sleep 600"#;
    let mut held = match kind {
        "tun" => Command::new("perl").args(["-e", tun]).spawn(),
        "wireguard" => Command::new("sh")
            .args(["-c", "ip link add tn type wireguard 2>/dev/null && exec sleep 600"])
            .spawn(),
        _ => Command::new("sh")
            .args([
                "-c",
                "ip link add tn type ipip local 10.8.0.1 remote 10.8.0.2 2>/dev/null && exec sleep 600",
            ])
            .spawn(),
    }
    .ok()?;
    while !has("tn") {
        if held.try_wait().unwrap().is_some() {
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    run("ip addr add 10.9.0.1/24 dev tn; ip link set tn up");
    Some(Running(held))
}

fn has(name: &str) -> bool {
    let shown = Command::new("ip").args(["link", "show", name]).output();
    shown.is_ok_and(|output| output.status.success())
}

fn run(line: &str) {
    let status = Command::new("sh").args(["-ec", line]).status().unwrap();
    assert!(status.success(), "{line}");
}

/// Interfaces without a link header, alone and among `any`: IP's version tells, and files say what
/// their packets begin with.
#[test]
fn tunnels_are_captured() {
    inside("tunnels_are_captured", || {
        for kind in ["tun", "wireguard", "ipip"] {
            match tunnel(kind) {
                Some(_held) => {
                    captured(kind);
                    let _ = Command::new("ip").args(["link", "del", "tn"]).status();
                }
                None => skipped("tunnels_are_captured", &format!("the kernel has no {kind}")),
            }
        }
    });
}

fn captured(kind: &str) {
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
        let wanted = "ip and udp dst port 99";
        let arguments = ["filter", "-i", interface, "-c", "2", "-w", path, wanted];
        let (mut running, _errors) = listening(&arguments);
        send();
        if interface == "any" {
            let sender = live("va").sender().unwrap();
            sender.send(&udp(99, b"Ethernet")).unwrap();
        }
        send();
        assert!(running.0.wait().unwrap().success());
        let read = postern(
            folder.path(),
            &["filter", "-r", path, "-t", "udp dst port 99"],
        );
        let shown = text(&read.stdout);
        let said = text(&read.stderr);
        let line = "> 10.9.0.2.99: UDP, length 18";
        assert!(shown.contains(line), "{kind}: {shown} {said}");
        assert_eq!(shown.lines().count(), 2, "{kind}: {shown}");
    }
    let file = folder.path().join("tn.pcap");
    let tcpdump = Command::new("tcpdump").arg("-nr").arg(file).output();
    if let Ok(output) = tcpdump {
        let shown = text(&output.stdout);
        assert!(shown.contains("> 10.9.0.2.99: UDP, length 18"), "{shown}");
    }
}

/// The rights of root are given up once the source is open: what is written belongs to the user,
/// and packets of another link, for which the filter is made later, are judged all the same.
#[test]
fn privileges_are_given_up() {
    inside("privileges_are_given_up", || {
        let folder = tempfile::tempdir().unwrap();
        run(&format!("chmod 777 {}", folder.path().display()));
        let out = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let wanted = "ip and udp dst port 99";
        let to = format!("{}={wanted}", out("demux.pcapng"));
        let filter = out("filter.pcapng");
        let commands: [&[&str]; 2] = [
            &["filter", "-i", "any", "-Z", "nobody", "-w", &filter, wanted],
            &["demux", "-i", "any", "-Z", "nobody", "--to", &to],
        ];
        for arguments in commands {
            let (running, mut errors, mut line) = started(arguments);
            if line.contains("-Z nobody") {
                // A namespace of users may have one user only.
                return skipped("privileges_are_given_up", line.trim());
            }
            assert_eq!(line, "dropped privs to nobody\n");
            line.clear();
            errors.read_line(&mut line).unwrap();
            assert!(line.starts_with("listening on any"), "{line}");
            let sender = live("va").sender().unwrap();
            sender.send(&udp(99, b"Ethernet")).unwrap();
            if let Some(_held) = tunnel("tun") {
                let socket = std::net::UdpSocket::bind("10.9.0.1:0").unwrap();
                let _ = socket.send_to(b"raw", ("10.9.0.2", 99));
                std::thread::sleep(Duration::from_millis(400));
            }
            let pid = running.0.id();
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            let users = status
                .lines()
                .find(|line| line.starts_with("Uid:"))
                .unwrap();
            assert!(
                !users.split_whitespace().any(|number| number == "0"),
                "{users}"
            );
            std::thread::sleep(Duration::from_millis(400));
            let (code, _, said) = interrupt(running, errors);
            assert_eq!(code, 0, "{said}");
            let seen = if arguments[0] == "filter" {
                "3 of"
            } else {
                "2 packets, "
            };
            assert!(said.contains(seen), "{said}");
        }
        for name in ["filter.pcapng", "demux.pcapng"] {
            assert_ne!(std::fs::metadata(out(name)).unwrap().uid(), 0);
        }
    });
}

/// The signals of `postern filter` for `postern demux`.
#[test]
fn demux_has_signals() {
    inside("demux_has_signals", || {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.pcap");
        let to = format!("{}=udp dst port 99", path.display());
        let (running, mut errors) = listening(&["demux", "-i", "vb", "--to", &to]);
        live("va").sender().unwrap().send(&udp(99, b"one")).unwrap();
        std::thread::sleep(Duration::from_millis(400));
        let pid = running.0.id();
        let mut line = String::new();
        run(&format!("kill -USR1 {pid}"));
        errors.read_line(&mut line).unwrap();
        assert!(line.ends_with(": 1 packets, 45 bytes\n"), "{line}");
        line.clear();
        errors.read_line(&mut line).unwrap();
        assert_eq!(
            line,
            "1 packets received, 0 for nobody, 0 dropped by kernel\n"
        );
        run(&format!("kill -USR2 {pid}"));
        let begun = Instant::now();
        while std::fs::metadata(&path).unwrap().len() < 24 + 16 + 45 {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "nothing was written"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        let (code, _, said) = interrupt(running, errors);
        assert_eq!(code, 0, "{said}");
    });
}

/// An interface that goes down and comes up again is captured on; one that is gone ends it; one
/// that is down is not begun.
#[test]
fn a_link_that_goes_down_comes_up_again() {
    inside("a_link_that_goes_down_comes_up_again", || {
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
