//! Live capture, in network namespaces that the tests make: nothing leaves them.
//!
//! Each test runs itself again in a namespace with a pair of interfaces, `va` and `vb`: what is sent by one comes in by the other.
//! Where the system does not allow that, the test says so on standard error and passes.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use postern_capture::{Handler, Judge, Live, Next, Seen, Source, load};
use postern_filter::{Filter, NoNames};

const INSIDE: &str = "POSTERN_TEST_NAMESPACE";

/// Runs `body` in a namespace of its own.
fn inside(test: &str, body: fn()) {
    if std::env::var_os(INSIDE).is_some() {
        let made = Command::new("sh")
            .args(["-ec", "ip link set lo up; ip link add va type veth peer name vb; ip link set va up; ip link set vb up"])
            .output();
        match made {
            Ok(output) if output.status.success() => return body(),
            Ok(output) => return skipped(test, &String::from_utf8_lossy(&output.stderr)),
            Err(error) => return skipped(test, &error.to_string()),
        }
    }
    let unshare = |options: &str| {
        let mut command = Command::new("unshare");
        command.arg(options);
        command
    };
    let allowed = |options: &&str| {
        let tried = unshare(options).arg("true").output();
        tried.is_ok_and(|output| output.status.success())
    };
    let Some(options) = ["-n", "-rn"].into_iter().find(allowed) else {
        return skipped(test, "`unshare -n` and `unshare -rn` are not permitted");
    };
    let status = unshare(options)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(status.success());
}

fn skipped(test: &str, reason: &str) {
    // Not by the macro, whose text the harness keeps for itself.
    let text = format!("SKIPPED {test}: no network namespace: {}\n", reason.trim());
    std::io::stderr().write_all(text.as_bytes()).unwrap();
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../examples/packets")
        .join(name)
}

fn sum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// An Ethernet frame with an IPv4 packet from 10.0.0.1 to 10.0.0.2.
fn frame(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut ip = vec![
        0x45,
        0,
        0,
        (20 + payload.len()) as u8,
        0,
        0,
        0,
        0,
        64,
        protocol,
        0,
        0,
    ];
    ip.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    let check = sum(&ip).to_be_bytes();
    ip[10..12].copy_from_slice(&check);
    [
        &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0][..],
        &ip,
        payload,
    ]
    .concat()
}

fn udp(to: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34];
    bytes.extend(to.to_be_bytes());
    bytes.extend((8 + payload.len() as u16).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend_from_slice(payload);
    frame(17, &bytes)
}

fn ping(number: u8) -> Vec<u8> {
    let mut icmp = vec![8, 0, 0, 0, 1, 2, 0, number];
    icmp.extend(b"is anybody there");
    let check = sum(&icmp).to_be_bytes();
    icmp[2..4].copy_from_slice(&check);
    frame(1, &icmp)
}

fn live(interface: &str) -> Source {
    Source::live(&Live::of(interface)).unwrap()
}

/// The next packet; there has to be one.
fn packet(source: &mut Source) -> Seen {
    let patience = Instant::now() + Duration::from_secs(60);
    while Instant::now() < patience {
        if let Next::Packet(seen) = source.next().unwrap() {
            return seen;
        }
    }
    panic!("no packet came");
}

fn bytes(source: &mut Source, seen: &Seen) -> Vec<u8> {
    let mut bytes = Vec::new();
    source.read(seen, &mut bytes).unwrap();
    bytes
}

/// The next packet that a filter accepts.
fn accepted(source: &mut Source, judge: &mut Judge) -> Seen {
    loop {
        let seen = packet(source);
        if judge.ask(&seen).unwrap() != 0 {
            return seen;
        }
    }
}

fn judge(expression: &str, source: &mut Source) -> Judge {
    let filter = Filter::compile(expression, &NoNames).unwrap();
    let judge = Judge::compiled(&filter.code()).unwrap();
    judge.watch(source).unwrap();
    judge
}

/// Packets come in order and whole, around the ring several times, where the filter's domain sees them.
#[test]
fn packets_are_judged_in_the_ring() {
    inside("packets_are_judged_in_the_ring", || {
        let sender = live("va").sender().unwrap();
        let mut options = Live::of("vb");
        options.ring = 2 << 20;
        let mut source = Source::live(&options).unwrap();
        let mut judge = judge("udp dst port 99 and not src net 192.168", &mut source);
        for round in 0..60u32 {
            for number in 0..50 {
                let mut payload = vec![round as u8; 200];
                payload[0] = number;
                sender.send(&udp(99, &payload)).unwrap();
                sender.send(&udp(98, &payload)).unwrap();
            }
            for number in 0..50 {
                let seen = accepted(&mut source, &mut judge);
                let bytes = bytes(&mut source, &seen);
                assert_eq!((bytes.len(), seen.wire), (242, 242));
                assert_eq!((bytes[42], bytes[43]), (number, round as u8));
                assert!(!seen.outgoing && seen.time > 1_500_000_000_000_000_000);
            }
        }
        let counters = source.counters();
        assert!(
            counters.received >= 6000 && counters.dropped == 0,
            "{counters:?}"
        );
    });
}

/// What is left of a packet, a tag that the kernel took out, packets that leave, and who may capture what.
#[test]
fn options_and_tags() {
    inside("options_and_tags", || {
        let mut options = Live::of("va");
        options.snaplen = 20;
        let mut short = Source::live(&options).unwrap();
        let mut other = live("vb");
        let mut outgoing = judge("udp", &mut short);
        let mut tagged = judge("vlan 5 and udp dst port 7", &mut other);
        let mut bytes_sent = udp(7, b"tagged");
        bytes_sent.splice(12..12, [0x81, 0, 0, 5]);
        other.sender().unwrap().send(&udp(7, b"to va")).unwrap();
        let seen = packet(&mut short);
        assert_eq!(seen.captured, 20);
        // Rejected: the protocol is beyond what was kept.
        assert_eq!(outgoing.ask(&seen).unwrap(), 0);
        live("va").sender().unwrap().send(&bytes_sent).unwrap();
        let seen = accepted(&mut other, &mut tagged);
        assert_eq!(bytes(&mut other, &seen), bytes_sent);
        loop {
            let seen = packet(&mut short);
            if seen.outgoing {
                break;
            }
        }
        for (name, message) in [
            ("nothere", "No such device"),
            ("a-name-that-is-too-long", "No such"),
        ] {
            let error = Source::live(&Live::of(name)).err().unwrap().to_string();
            assert!(error.contains(message), "{error}");
        }
        let mut any = live("any");
        assert!(any.sender().is_none());
        let mut all = judge("udp port 77", &mut any);
        live("va").sender().unwrap().send(&udp(77, b"")).unwrap();
        accepted(&mut any, &mut all);
    });
}

/// A handler sees packets in the ring, cannot write them, and answers by the interface.
#[test]
fn handlers_look_and_answer() {
    inside("handlers_look_and_answer", || {
        let folder = tempfile::tempdir().unwrap();
        let rude = folder.path().join("rude.c");
        let source = "#include <postern/packet.h>\nint handle(const unsigned char *p, unsigned n, unsigned w)\n{\n\
            packet_send(p, n);\n*(volatile unsigned char *)p = 1;\nreturn (int)(n + w);\n}\n";
        std::fs::write(&rude, source).unwrap();
        let image = load(&rude).unwrap();
        let mut handler = Handler::new(&image, "rude", None).unwrap();
        let mut incoming = live("vb");
        let mut judge = judge("udp", &mut incoming);
        handler.watch(&mut incoming).unwrap();
        let sender = live("va").sender().unwrap();
        for _ in 0..3 {
            sender.send(&udp(7, b"hello")).unwrap();
            let seen = accepted(&mut incoming, &mut judge);
            let error = handler.run(&seen).unwrap_err().to_string();
            assert!(
                error.contains("read-only") && error.contains("rude.c:5"),
                "{error}"
            );
        }
        assert_eq!((handler.calls(), handler.faults()), (3, 3));
    });
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the command, and waits until it listens.
fn postern(arguments: &[&str]) -> (Running, BufReader<std::process::ChildStderr>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_postern"))
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert!(line.contains("listening on"), "{line}");
    (Running(child), errors)
}

/// Ends the command as a user does, and gives its exit code and what it said.
fn interrupt(
    mut running: Running,
    mut errors: BufReader<std::process::ChildStderr>,
) -> (i32, String, String) {
    let pid = running.0.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(killed.success());
    let (mut out, mut text) = (String::new(), String::new());
    running
        .0
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    errors.read_to_string(&mut text).unwrap();
    (running.0.wait().unwrap().code().unwrap(), out, text)
}

/// Pings and echo requests are answered by an extension in C; counters come when the command is interrupted.
#[test]
fn pings_are_answered() {
    inside("pings_are_answered", || {
        let echo = example("echo.c");
        let (running, errors) = postern(&[
            "filter",
            "-i",
            "vb",
            "--handler",
            echo.to_str().unwrap(),
            "icmp or udp",
        ]);
        let mut source = live("va");
        let mut replies = judge("src host 10.0.0.2 and (icmp or udp)", &mut source);
        let sender = source.sender().unwrap();
        for number in 0..10 {
            let request = ping(number);
            sender.send(&request).unwrap();
            let seen = accepted(&mut source, &mut replies);
            let reply = bytes(&mut source, &seen);
            assert_eq!(reply[..6], request[6..12]);
            assert_eq!(reply[26..30], [10, 0, 0, 2]);
            assert_eq!(
                (reply[34], sum(&reply[34..]), sum(&reply[14..34])),
                (0, 0, 0)
            );
            assert_eq!(reply[38..], request[38..]);
        }
        sender.send(&udp(7, b"echo")).unwrap();
        let seen = accepted(&mut source, &mut replies);
        assert!(bytes(&mut source, &seen).ends_with(b"echo"));
        // Nobody answers this one: it is shown.
        sender.send(&udp(9, b"discard")).unwrap();
        let mut running = running;
        let mut line = String::new();
        BufReader::new(running.0.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert!(
            line.ends_with("IP 10.0.0.1.4660 > 10.0.0.2.9: UDP, length 7\n"),
            "{line}"
        );
        let (code, _, text) = interrupt(running, errors);
        assert_eq!(code, 0, "{text}");
        assert!(
            text.contains("12 packets handled, 11 taken, 11 answers sent, 0 not sent, 0 faults"),
            "{text}"
        );
        assert!(text.contains("0 packets dropped by kernel"), "{text}");
    });
}

/// The kernel's own packets, from a socket on the loopback, into a file until there are enough.
#[test]
fn captured_files_can_be_read() {
    inside("captured_files_can_be_read", || {
        let folder = tempfile::tempdir().unwrap();
        for name in ["lo.pcapng", "lo.pcap"] {
            let path = folder.path().join(name);
            let path = path.to_str().unwrap();
            let (mut running, _errors) = postern(&[
                "filter",
                "-i",
                "lo",
                "-c",
                "3",
                "-w",
                path,
                "udp dst port 5353",
            ]);
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            for _ in 0..5 {
                // Answers of the kernel, that nobody is there, may come back as errors.
                let _ = socket.send_to(b"something", "127.0.0.1:5353");
            }
            assert!(running.0.wait().unwrap().success());
            let read = Command::new(env!("CARGO_BIN_EXE_postern"))
                .args(["filter", "-r", path, "-q"])
                .output()
                .unwrap();
            let text = String::from_utf8(read.stdout).unwrap();
            assert_eq!(
                text.matches("> 127.0.0.1.5353: udp 9\n").count(),
                3,
                "{text}"
            );
        }
    });
}
