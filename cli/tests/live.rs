//! Live capture: the ring in the windows of filters and handlers, answers, several interfaces, and
//! files.

mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use postern::Placement;
use postern_capture::{CaptureDirection, Direction, Handler, Live, Source, load};
use postern_filter::set::{Claim, Set};
use postern_filter::{Filter, NoNames};
use support::network::{accepted, bytes, inside, judge, live, packet, ping, sum, udp};
use support::running::{interrupt, listening};
use support::{example, postern, text};

/// Packets come in order and whole, around the ring several times, where the filter's domain sees
/// them.
#[test]
fn packets_are_judged_in_the_ring() {
    inside("packets_are_judged_in_the_ring", || {
        let sender = live("va").sender().unwrap();
        let mut options = Live::of("vb");
        options.ring = 8 << 20;
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
                assert!(
                    seen.origin.direction != Direction::Out
                        && seen.time > 1_500_000_000_000_000_000
                );
            }
        }
        let counters = source.counters();
        assert!(
            counters.received >= 6000 && counters.dropped == 0,
            "{counters:?}"
        );
    });
}

/// What is left of a packet, a tag that the kernel took out, packets that leave, and who may
/// capture what.
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
            if seen.origin.direction == Direction::Out {
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
        for (way, name, expected) in [
            (CaptureDirection::In, "vb", Direction::Out),
            (CaptureDirection::Out, "va", Direction::Out),
        ] {
            let mut options = Live::of("any");
            options.direction = Some(way);
            let mut some = Source::live(&options).unwrap();
            let mut wanted = judge("udp port 78", &mut some);
            live("va").sender().unwrap().send(&udp(78, b"")).unwrap();
            let seen = accepted(&mut some, &mut wanted);
            let leaves = seen.origin.direction == expected;
            assert_eq!(
                (some.interface(&seen), leaves),
                (name, way == CaptureDirection::Out)
            );
        }
        assert_eq!(postern_capture::netmask("lo"), Some([255, 0, 0, 0].into()));
        assert_eq!(postern_capture::netmask("nothere"), None);
        let mut any = live("any");
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

/// Pings and echo requests are answered by an extension in C; counters come when the command is
/// interrupted.
#[test]
fn pings_are_answered() {
    inside("pings_are_answered", || {
        let echo = example("echo.c");
        let (running, errors) = listening(&[
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

/// What a handler answers comes at once, not when a block of packets is full or old.
#[test]
fn answers_come_at_once() {
    inside("answers_come_at_once", || {
        let echo = example("echo.c");
        let arguments = [
            "filter",
            "-i",
            "vb",
            "--handler",
            echo.to_str().unwrap(),
            "icmp",
        ];
        let (_running, _errors) = listening(&arguments);
        let mut options = Live::of("va");
        options.immediate = true;
        let mut source = Source::live(&options).unwrap();
        let mut replies = judge("src host 10.0.0.2 and icmp", &mut source);
        let sender = source.sender().unwrap();
        let mut times: Vec<Duration> = (0..200u8)
            .map(|number| {
                let asked = Instant::now();
                sender.send(&ping(number)).unwrap();
                accepted(&mut source, &mut replies);
                asked.elapsed()
            })
            .collect();
        times.sort_unstable();
        eprintln!(
            "median reply {:?}, of ten the ninth {:?}",
            times[100], times[180]
        );
        // Other programs run beside this one; a block would take its 20 ms every time.
        assert!(times[100] < Duration::from_millis(15), "{:?}", times[100]);
    });
}

/// Frames that are handed over one by one: those that are longer than a frame of the ring are
/// whole, cut where that is wanted, and in order with the others; tags are where they were.
#[test]
fn frames_at_once_are_whole() {
    inside("frames_at_once_are_whole", || {
        let larger = ["-ec", "ip link set va mtu 9000; ip link set vb mtu 9000"];
        assert!(Command::new("sh").args(larger).status().unwrap().success());
        let sender = live("va").sender().unwrap();
        for snaplen in [1 << 18, 3000] {
            let mut options = Live::of("vb");
            (options.immediate, options.snaplen) = (true, snaplen);
            let mut source = Source::live(&options).unwrap();
            let mut wanted = judge("udp dst port 99 or (vlan and udp dst port 99)", &mut source);
            for round in 0..300u32 {
                let long = [20, 1400, 1900, 1960, 4000, 8900][round as usize % 6];
                let mut sent = udp(99, &vec![round as u8; long]);
                if round % 4 == 3 {
                    sent.splice(12..12, [0x81, 0, 0, 5]);
                }
                sender.send(&sent).unwrap();
                if round % 50 < 20 {
                    continue;
                }
                if round % 50 == 20 {
                    for _ in 0..20 {
                        accepted(&mut source, &mut wanted);
                    }
                }
                let seen = accepted(&mut source, &mut wanted);
                assert_eq!(seen.wire as usize, sent.len());
                let kept = sent.len().min(snaplen as usize + 4);
                let found = bytes(&mut source, &seen);
                assert!(
                    found.len() == kept || found.len() + 4 == kept,
                    "{}",
                    found.len()
                );
                assert!(found == sent[..found.len()], "round {round}");
            }
            assert_eq!(source.counters().dropped, 0);
        }
    });
}

/// The kernel leaves out what nobody wants, and nothing that somebody does: tags that it took out,
/// several interfaces, many consumers.
#[test]
fn the_kernel_leaves_packets_out() {
    inside("the_kernel_leaves_packets_out", || {
        let wanted = Filter::compile("vlan 5 and udp dst port 99", &NoNames).unwrap();
        let mut tagged = udp(99, b"with a tag");
        tagged.splice(12..12, [0x81, 0, 0, 5]);
        for (name, immediate) in [("vb", false), ("vb", true), ("any", false)] {
            let mut options = Live::of(name);
            options.immediate = immediate;
            let mut source = Source::live(&options).unwrap();
            source.only(&wanted);
            let mut judge = judge("vlan 5 and udp dst port 99", &mut source);
            let sender = live("va").sender().unwrap();
            for _ in 0..100 {
                sender.send(&udp(99, b"without")).unwrap();
            }
            sender.send(&tagged).unwrap();
            let seen = accepted(&mut source, &mut judge);
            assert_eq!(bytes(&mut source, &seen), tagged);
            assert!(source.counters().received <= 2, "{:?}", source.counters());
        }
        let mut set = Set::new();
        for expression in ["udp dst port 97", "tcp[100:4] = 5", "udp dst port 98"] {
            let filter = Filter::compile(expression, &NoNames).unwrap();
            set.insert(&filter, Claim::default()).unwrap();
        }
        let mut source = live("vb");
        source.only_any_of(&set);
        let sender = live("va").sender().unwrap();
        for port in (90..100).cycle().take(100) {
            sender.send(&udp(port, b"some")).unwrap();
        }
        let ports = (0..20).map(|_| {
            let seen = packet(&mut source);
            bytes(&mut source, &seen)[37]
        });
        assert_eq!(ports.collect::<Vec<_>>(), [97, 98].repeat(10));
    });
}

/// Signals as of tcpdump: SIGUSR1 tells what was counted, SIGUSR2 writes out what waits, SIGHUP
/// ends; an interface has a number, too.
#[test]
fn signals_and_numbers() {
    inside("signals_and_numbers", || {
        let list = text(&postern(Path::new("."), &["filter", "-D"]).stdout);
        let line = list.lines().find(|line| line.ends_with(".vb")).unwrap();
        let number = line.split('.').next().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.pcap");
        let path = path.to_str().unwrap();
        let arguments = ["filter", "-i", number, "-w", path, "udp dst port 99"];
        let (running, mut errors) = listening(&arguments);
        let mut witness = live("vb");
        let mut judge = judge("udp dst port 99", &mut witness);
        live("va").sender().unwrap().send(&udp(99, b"one")).unwrap();
        accepted(&mut witness, &mut judge);
        std::thread::sleep(Duration::from_millis(200));
        let pid = running.0.id().to_string();
        let signal = |name: &str| {
            assert!(
                Command::new("kill")
                    .args([name, &pid])
                    .status()
                    .unwrap()
                    .success()
            );
        };
        signal("-USR1");
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        assert_eq!(
            line,
            "1 packets captured, 1 packets received by filter, 0 packets dropped by kernel\n"
        );
        signal("-USR2");
        let patience = Instant::now() + Duration::from_secs(20);
        while std::fs::metadata(path).unwrap().len() < 24 + 16 + 45 {
            assert!(Instant::now() < patience, "nothing was written");
            std::thread::sleep(Duration::from_millis(10));
        }
        signal("-HUP");
        let mut rest = String::new();
        errors.read_line(&mut rest).unwrap();
        assert_eq!(rest, "1 of 1 packets accepted\n");
        let unknown = postern(folder.path(), &["filter", "-i", "4711"]);
        assert!(text(&unknown.stderr).contains("no interface 4711"));
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
            let (mut running, _errors) = listening(&[
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

/// The ring is carried along while its viewer's domain moves into the hot window and out of it.
#[test]
fn the_ring_moves_with_its_viewers() {
    inside("the_ring_moves_with_its_viewers", || {
        let sender = live("va").sender().unwrap();
        let mut options = Live::of("vb");
        options.ring = 8 << 20;
        let mut source = Source::live(&options).unwrap();
        let filter = Filter::compile("udp dst port 99", &NoNames).unwrap();
        let [moving, staying] = [0; 2].map(|_| filter.code().load(false).unwrap());
        staying.domain().set_placement(Placement::Cold);
        for viewer in [&moving, &staying] {
            source.watch(viewer.domain()).unwrap();
        }
        for round in 0..60u32 {
            let hot = round % 2 == 0;
            moving.domain().set_placement(match hot {
                true => Placement::Hot,
                false => Placement::Cold,
            });
            let payload = vec![round as u8; 1200];
            sender.send(&udp(99, &payload)).unwrap();
            sender.send(&udp(98, &payload)).unwrap();
            for accept in [true, false] {
                let seen = loop {
                    let seen = packet(&mut source);
                    if seen.wire == 1242 {
                        break seen;
                    }
                };
                for viewer in [&moving, &staying] {
                    let verdict = viewer.run_at(seen.at, seen.wire, seen.captured).unwrap();
                    assert_eq!(verdict != 0, accept, "round {round}");
                }
                assert_eq!(bytes(&mut source, &seen)[42..], payload);
            }
            assert_eq!(moving.domain().is_hot(), hot, "round {round}");
        }
        assert!(moving.domain().counters().moves >= 58);
    });
}
