//! `postern filter`: capture files in and out, pipes, damaged files, programs and handlers, classic
//! programs, and bad expressions.

use crate::support;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use support::text;

fn postern(folder: &Path, arguments: &[&str]) -> Output {
    support::postern(folder, &[&["filter"][..], arguments].concat())
}

/// A pcap file of ten packets, every second of TCP, the others of UDP, all to port 80.
fn capture(folder: &Path) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65535, 1] {
        file.extend(word.to_le_bytes());
    }
    for number in 0..10u32 {
        for word in [1000 + number, 5, 60, 60] {
            file.extend(word.to_le_bytes());
        }
        let mut packet = [0; 60];
        packet[12] = 8;
        packet[14] = 0x45;
        packet[23] = if number % 2 == 1 { 6 } else { 17 };
        packet[37] = 80;
        file.extend(packet);
    }
    std::fs::write(folder.join("all.pcap"), &file).unwrap();
    file
}

#[test]
fn packets_are_counted_listed_and_written() {
    let folder = tempfile::tempdir().unwrap();
    capture(folder.path());
    let count = |file: &str, expression: &str| {
        let output = postern(folder.path(), &["-r", file, "--count", expression]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert_eq!(
        count("all.pcap", "tcp port 80"),
        "5 of 10 packets accepted\n"
    );
    let listed = postern(folder.path(), &["-r", "all.pcap", "udp", "port", "80"]);
    assert_eq!(text(&listed.stdout).lines().count(), 5);
    let written = postern(folder.path(), &["-r", "all.pcap", "-w", "tcp.pcap", "tcp"]);
    assert!(written.status.success(), "{}", text(&written.stderr));
    assert_eq!(count("tcp.pcap", ""), "5 of 5 packets accepted\n");
    assert_eq!(count("tcp.pcap", "udp"), "0 of 5 packets accepted\n");
    std::fs::write(
        folder.path().join("ip.txt"),
        "4\n40 0 0 12\n21 0 1 2048\n6 0 0 65535\n6 0 0 0\n",
    )
    .unwrap();
    let classic = postern(
        folder.path(),
        &["--classic", "ip.txt", "-r", "all.pcap", "--count"],
    );
    assert_eq!(text(&classic.stdout), "10 of 10 packets accepted\n");
}

#[test]
fn damaged_files_give_what_was_readable() {
    let folder = tempfile::tempdir().unwrap();
    let file = capture(folder.path());
    std::fs::write(folder.path().join("cut.pcap"), &file[..file.len() - 1]).unwrap();
    let output = postern(folder.path(), &["-r", "cut.pcap", "--count", "ip"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "9 of 9 packets accepted\n");
    assert!(
        text(&output.stderr).contains("cut short"),
        "{}",
        text(&output.stderr)
    );
    std::fs::write(folder.path().join("text"), "no packets").unwrap();
    let output = postern(folder.path(), &["-r", "text", "ip"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("neither a pcap nor a pcapng"));
}

#[test]
fn bad_expressions_are_marked() {
    let folder = tempfile::tempdir().unwrap();
    let output = postern(folder.path(), &["-n", "tcp port htpt"]);
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(error.contains("htpt") && error.contains("^^^"), "{error}");
    let output = postern(folder.path(), &["-d", "ip"]);
    let shown = text(&output.stdout);
    assert!(shown.contains("on the longest path"));
    assert!(
        shown.contains("(000) ldh      [12]\n(001) jeq      #0x800           jt 2\tjf 3\n(002) ret      #262144\n"),
        "{shown}"
    );
}

/// The classic program as C and as numbers, which can be read again.
#[test]
fn classic_programs_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = postern(folder.path(), &["-ddd", "udp port 53 or arp"]);
    std::fs::write(folder.path().join("program"), &numbers.stdout).unwrap();
    let again = postern(folder.path(), &["-ddd", "--classic", "program"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    let lines = text(&numbers.stdout);
    assert_eq!(
        lines.lines().next().unwrap().parse(),
        Ok(lines.lines().count() - 1)
    );
    let c = text(&postern(folder.path(), &["-dd", "udp port 53 or arp"]).stdout);
    assert!(c.starts_with("{ 0x28, 0, 0, 0x0000000c },\n"), "{c}");
    assert_eq!(c.lines().count() + 1, lines.lines().count());
}

/// Runs with a file as standard input, which comes through a pipe.
fn piped(folder: &Path, arguments: &[&str], file: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_postern"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(file).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn captures_arrive_by_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let file = capture(folder.path());
    let count = ["filter", "-r", "-", "--count", "tcp"];
    let counted = piped(folder.path(), &count, &file);
    assert!(counted.status.success(), "{}", text(&counted.stderr));
    assert_eq!(text(&counted.stdout), "5 of 10 packets accepted\n");
    let cut = piped(folder.path(), &count, &file[..file.len() - 30]);
    assert_eq!(cut.status.code(), Some(1));
    assert_eq!(text(&cut.stdout), "4 of 9 packets accepted\n");
    assert!(text(&cut.stderr).contains("cut short"));
    let empty = piped(folder.path(), &count, &[]);
    assert_eq!(empty.status.code(), Some(2));
    assert!(text(&empty.stderr).contains("neither a pcap nor a pcapng"));
    // A file in the place of the pipe, and a capture of a filter that another one reads.
    let through = ["filter", "-r", "-", "-w", "-", "tcp"];
    let tcp = piped(folder.path(), &through, &file);
    assert!(tcp.status.success(), "{}", text(&tcp.stderr));
    let demux = ["demux", "-r", "-", "--to", "all.pcapng="];
    let spread = piped(folder.path(), &demux, &tcp.stdout);
    assert!(
        text(&spread.stderr).starts_with("all.pcapng: 5 packets, 300 bytes\n"),
        "{}",
        text(&spread.stderr)
    );
    let again = postern(folder.path(), &["-r", "all.pcapng", "--count", "tcp"]);
    assert_eq!(text(&again.stdout), "5 of 5 packets accepted\n");
}

/// Programs judge what expressions judge; their faults reject packets and are told.
#[test]
fn programs_are_compiled_and_judge() {
    let folder = tempfile::tempdir().unwrap();
    capture(folder.path());
    let body = "int filter(const unsigned char *packet, unsigned length, unsigned wire_length)\n{\n\
        if (length < 60 || wire_length != 60) return 0;\n\
        return packet[23] == 6;\n}\n";
    let faulty = "#include <postern/packet.h>\nint filter(const unsigned char *packet, unsigned length, unsigned wire_length)\n{\n\
        static int calls;\nif (++calls == 4)\n*(volatile char *)packet = 1;\n\
        return packet[23] == 17 && length == wire_length;\n}\n";
    let files = [
        ("tcp.c", format!("#include <postern/packet.h>\n{body}")),
        (
            "tcp.cc",
            format!("#include <postern/packet.h>\nextern \"C\" {body}"),
        ),
        ("tcp.ec", body.to_string()),
        ("faulty.c", faulty.to_string()),
        ("wrong.c", "int filter(;\n".to_string()),
        ("wrong.ec", "int filter(;\n".to_string()),
        ("other.ec", "int other(int a) { return a; }\n".to_string()),
    ];
    for (name, source) in &files {
        std::fs::write(folder.path().join(name), source).unwrap();
    }
    let judged = |name: &str| {
        let arguments = ["-r", "all.pcap", "--program", name, "--count"];
        postern(folder.path(), &arguments)
    };
    for name in ["tcp.c", "tcp.cc", "tcp.ec"] {
        let output = judged(name);
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "5 of 10 packets accepted\n", "{name}");
    }
    // The fourth of every four calls faults, and the program begins anew: packets 4 and 8, of which
    // none is of UDP.
    let output = judged("faulty.c");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        text(&output.stdout),
        "5 of 10 packets accepted\n2 faults of the program\n"
    );
    let said = text(&output.stderr);
    assert!(
        said.contains("packet 4: ") && said.contains("packet 8: ") && said.contains("faulty.c:6"),
        "{said}"
    );
    for (name, message) in [
        ("wrong.c", "wrong.c:1:"),
        ("wrong.ec", "wrong.ec:1:"),
        ("other.ec", "it has to define `int filter("),
        ("nowhere.c", "nowhere.c"),
        ("nowhere.px", "nowhere.px"),
    ] {
        let output = judged(name);
        assert_eq!(output.status.code(), Some(2), "{name}");
        let said = text(&output.stderr);
        assert!(said.contains(message), "{name}: {said}");
    }
    let nothing = postern(folder.path(), &["--program", "tcp.c"]);
    assert!(text(&nothing.stderr).contains("add -r or -i"));
}

/// What a handler moves to its area is in the file afterwards, and is there for the next run.
#[test]
fn handlers_have_an_area() {
    let folder = tempfile::tempdir().unwrap();
    capture(folder.path());
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/packets/collect.c");
    let handled = |bytes: &str| {
        let arguments = [
            "-r",
            "all.pcap",
            "--handler",
            example,
            "--area",
            "area",
            bytes,
        ];
        postern(
            folder.path(),
            &[&arguments[..], &["--count", "udp"]].concat(),
        )
    };
    let used = || {
        let file = std::fs::read(folder.path().join("area")).unwrap();
        let used = u32::from_le_bytes([file[0], file[1], file[2], file[3]]);
        (file.len(), used as usize)
    };
    // 18 bytes behind the headers of each of five packets; there is room for ten.
    for (round, taken) in [5, 5, 0].into_iter().enumerate() {
        let output = handled("190");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let said = text(&output.stdout);
        let expected = format!("5 packets handled, {taken} taken, 0 answers");
        assert!(said.contains(&expected), "{round}: {said}");
        assert_eq!(used(), (190, 4 + 90 * (round + 1).min(2)));
    }
    for (bytes, message) in [("many", "`many` is no number"), ("0", "area")] {
        let output = handled(bytes);
        assert_eq!(output.status.code(), Some(2), "{bytes}");
        assert!(text(&output.stderr).contains(message));
    }
}

/// Options that people know from tcpdump do what they do there, or say what to do instead.
#[test]
fn options_of_tcpdump() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    capture(folder);
    std::fs::write(folder.join("expression"), "udp and\n  port 80\n").unwrap();
    std::fs::write(folder.join("wrong"), "udp and\n  prt 80\n").unwrap();
    let shown = |arguments: &[&str]| {
        let output = postern(folder, &[&["-r", "all.pcap"][..], arguments].concat());
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    };
    let line = "IP 0.0.0.0.0 > 0.0.0.0.80: UDP, length 0\n";
    for (arguments, expected) in [
        (&["-c1", "-t", "udp"][..], line.to_owned()),
        (&["-c1", "-t", "-F", "expression"], line.to_owned()),
        (
            &["-c1", "-nn", "-lS", "udp"],
            format!("00:16:40.000005 {line}"),
        ),
        (&["-c1", "-tt", "udp"], format!("1000.000005 {line}")),
        (
            &["-c2", "-ttt", "udp"],
            format!("00:00:00.000000 {line}00:00:02.000000 {line}"),
        ),
        (
            &["-c1", "-tttt", "-#", "udp"],
            format!("    1  1970-01-01 00:16:40.000005 {line}"),
        ),
        (
            &["-c2", "-ttttt", "udp"],
            format!("00:00:00.000000 {line}00:00:02.000000 {line}"),
        ),
        (
            &["-c1", "-t", "-s", "30", "-xx", "udp"],
            format!("IP,{}", "cut"),
        ),
    ] {
        let found = shown(arguments);
        if expected.ends_with("cut") {
            let bytes = "\t0x0000:  0000 0000 0000 0000 0000 0000 0800 4500\n\t0x0010:  0000 0000 0000 0011 0000 0000 0000\n";
            assert!(
                found.ends_with(bytes) && found.contains("cut short"),
                "{found}"
            );
        } else {
            assert_eq!(found, expected, "{arguments:?}");
        }
    }
    assert!(
        shown(&["-c1", "-A", "udp"])
            .lines()
            .nth(1)
            .unwrap()
            .starts_with("E.....")
    );
    assert!(
        shown(&["-c1", "-v", "udp"]).contains(
            "IP (tos 0x0, ttl 0, id 0, offset 0, flags [none], proto UDP (17), length 0)\n"
        )
    );
    assert_eq!(
        shown(&["-c1", "-t", "-U", "-w", "one.pcapng", "--print", "udp"]),
        line
    );
    let again = postern(folder, &["-r", "one.pcapng", "-t"]);
    assert_eq!(text(&again.stdout), line);
    for (arguments, message) in [
        (&["-F", "wrong"][..], "wrong: `prt` stands where"),
        (&["-F", "expression", "udp"], "cannot be used with"),
        (&["-C", "5"], "--write"),
        (&["-G5"], "--write"),
        (&["-L"], "link type is that of"),
        (&["-y", "RAW"], "link type is that of"),
        (&["-Z", "no-such-user"], "no such user"),
        (&["-Q", "in"], "-Q chooses packets of an interface"),
        (&["-c", "0"], "0 is not in 1.."),
        (&["ip broadcast"], "--netmask"),
        (&["-w", "./all.pcap"], "is the file that is read"),
    ] {
        let output = postern(folder, &[&["-r", "all.pcap"][..], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = text(&output.stderr);
        assert!(said.contains(message), "{arguments:?}: {said}");
    }
    for (path, message) in [(".", "Is a directory"), ("nowhere", "No such file")] {
        let output = postern(folder, &["-r", path]);
        assert!(
            text(&output.stderr).contains(message),
            "{}",
            text(&output.stderr)
        );
    }
}

/// The file is a program like any other; one for the kernel is refused by a process and accepted
/// by the kernel's profile.
#[test]
fn the_code_is_written_as_an_extension() {
    let folder = tempfile::tempdir().unwrap();
    capture(folder.path());
    let good = |words: &[&str]| {
        let output = postern(folder.path(), words);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert_eq!(good(&["-o", "web.px", "tcp port 80"]), "");
    let counted = good(&["-r", "all.pcap", "--count", "--program", "web.px"]);
    assert_eq!(counted, "5 of 10 packets accepted\n");
    let shown = good(&["--kernel", "-d", "-o", "ring0.pst", "tcp port 80"]);
    assert!(shown.contains("%fs:") && !shown.contains("%gs:"), "{shown}");
    // Without a link's header.
    assert!(shown.contains("9:1 == 6"), "{shown}");
    let file = std::fs::read(folder.path().join("ring0.pst")).unwrap();
    let image = postern_image::ImageFile::parse(&file).unwrap();
    assert_eq!(image.header().segment, postern_image::Segment::Fs);
    let bad = postern(folder.path(), &["-r", "all.pcap", "--program", "ring0.pst"]);
    assert!(text(&bad.stderr).contains("the image is for the kernel"));
    let bad = postern(folder.path(), &["--kernel", "-r", "all.pcap", "tcp"]);
    assert_eq!(bad.status.code(), Some(2));
}
