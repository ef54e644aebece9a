//! `postern filter -w` with `-C`, `-G`, `-W` and `-z`: names, contents and commands are tcpdump's,
//! as its manual has them; where tcpdump is installed, its own files are compared byte by byte.

use crate::support::{postern, text};

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// A file of 3,500 packets of a thousand bytes, with times in microseconds.
fn capture(folder: &Path) {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 262_144, 1] {
        file.extend(word.to_le_bytes());
    }
    for number in 0..3500u32 {
        for word in [1000 + number, number, 1000, 1000] {
            file.extend(word.to_le_bytes());
        }
        let mut packet = [0; 1000];
        packet[12] = 8;
        packet[14] = 0x45;
        packet[23] = 17;
        packet[37] = 53;
        packet[999] = number as u8;
        file.extend(packet);
    }
    std::fs::write(folder.join("all.pcap"), &file).unwrap();
}

fn filter(folder: &Path, arguments: &[&str]) -> Output {
    postern(
        folder,
        &[&["filter", "-r", "all.pcap"][..], arguments].concat(),
    )
}

/// The files of a folder whose names begin so.
fn files(folder: &Path, prefix: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = names.filter(|name| name.starts_with(prefix));
    let content = |name: &String| std::fs::read(folder.join(name)).unwrap();
    names.map(|name| (name.clone(), content(&name))).collect()
}

/// What tcpdump writes by the same options, where there is one.
fn tcpdump(arguments: &[&str]) -> Option<BTreeMap<String, Vec<u8>>> {
    let folder = tempfile::tempdir().unwrap();
    capture(folder.path());
    let run = Command::new("tcpdump")
        .args(["-Z", "root", "-r", "all.pcap"])
        .args(arguments)
        .current_dir(folder.path())
        .output();
    let Ok(output) = run else {
        let text = format!("SKIPPED tcpdump {arguments:?}: it is not installed\n");
        std::io::stderr().write_all(text.as_bytes()).unwrap();
        return None;
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(files(folder.path(), "out"))
}

#[test]
fn names_and_contents_are_those_of_tcpdump() {
    for (options, names) in [
        (&["-C", "1"][..], &["out", "out1", "out2", "out3"][..]),
        (&["-C", "1", "-W", "2"], &["out0", "out1"]),
        (&["-C", "1", "-W", "3"], &["out0", "out1", "out2"]),
        (
            &["-C", "1", "-W", "11"],
            &["out00", "out01", "out02", "out03"],
        ),
        (&["-C", "1", "-W", "1"], &["out"]),
        (&["-G", "3600"], &["out"]),
        (&["-G", "3600", "-W", "1"], &["out"]),
        (&["-C", "1", "-G", "3600", "-W", "2"], &["out0", "out1"]),
        (&["-W", "4", "-z", "gzip"], &["out"]),
        (&["--nano"], &["out"]),
        (&["--micro"], &["out"]),
        (&["--time-stamp-precision=nano"], &["out"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        capture(folder.path());
        let arguments = [&["-w", "out"][..], options].concat();
        let output = filter(folder.path(), &arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let written = files(folder.path(), "out");
        assert!(
            written.keys().eq(names),
            "{options:?}: {:?}",
            written.keys()
        );
        if let Some(theirs) = tcpdump(&arguments) {
            assert!(written.keys().eq(theirs.keys()), "{options:?}");
            for (name, content) in &written {
                assert!(
                    theirs[name] == *content,
                    "{options:?}: {name} is another file"
                );
            }
        }
    }
}

/// Names by time are those of strftime(3) in local time, also in another zone; the packet that
/// comes after the time begins the next file, and the limit ends the program in good order.
#[test]
fn files_by_time() {
    let folder = tempfile::tempdir().unwrap();
    capture(folder.path());
    let zone = |zone: &str, arguments: &[&str]| {
        let run = Command::new(env!("CARGO_BIN_EXE_postern"))
            .args(["filter", "-r", "all.pcap"])
            .args(arguments)
            .env("TZ", zone)
            .current_dir(folder.path())
            .output();
        run.unwrap()
    };
    for (name, offset) in [("IST-5:30", "+0530"), ("BRT+3", "-0300")] {
        let output = zone(name, &["-c1", "-w", "out%z_%%", "-G", "60"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let written = files(folder.path(), "out");
        assert!(
            written.contains_key(&format!("out{offset}_%")),
            "{:?}",
            written.keys()
        );
    }
    let shown = text(&zone("IST-5:30", &["-c1", "-tttt"]).stdout);
    assert!(
        shown.starts_with("1970-01-01 05:46:40.000000 IP"),
        "{shown}"
    );
    // Packets that arrive over three seconds.
    let file = std::fs::read(folder.path().join("all.pcap")).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_postern"))
        .args(["filter", "-r", "-", "-w", "turn", "-G", "1", "-W", "2"])
        .current_dir(folder.path())
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&file[..24 + 1016]).unwrap();
    let begun = Instant::now();
    let mut number = 1;
    while child.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(300));
        let at = 24 + 1016 * number;
        number += 1;
        // It may have ended meanwhile.
        let _ = input.write_all(&file[at..at + 1016]);
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let said = text(&output.stderr);
    assert!(said.contains("Maximum file limit reached: 2"), "{said}");
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

/// The command is run with every file but the last one, which is whole then.
#[test]
fn finished_files_are_given_to_a_command() {
    let folder = tempfile::tempdir().unwrap();
    capture(folder.path());
    let output = filter(folder.path(), &["-w", "out", "-C", "1", "-z", "gzip"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let begun = Instant::now();
    let wanted = ["out.gz", "out1.gz", "out2.gz", "out3"];
    while !files(folder.path(), "out").keys().eq(&wanted) {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut unpack = Command::new("gunzip");
    let unpacked = unpack.arg("out1.gz").current_dir(folder.path()).status();
    assert!(unpacked.unwrap().success());
    let output = postern(folder.path(), &["filter", "-r", "out1", "--count"]);
    assert_eq!(text(&output.stdout), "985 of 985 packets accepted\n");
}

/// A command that cannot be started is told; the packets are all written.
#[test]
fn commands_that_are_missing_lose_no_packets() {
    for (path, command, said) in [
        ("/usr/bin:/bin", "no-such-command", "no-such-command"),
        (
            "/nowhere",
            "gzip",
            "cannot run `gzip` for out: No such file",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        capture(folder.path());
        let output = Command::new(env!("CARGO_BIN_EXE_postern"))
            .args([
                "filter", "-r", "all.pcap", "-w", "out", "-C", "1", "-z", command,
            ])
            .env("PATH", path)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let told = text(&output.stderr);
        assert!(told.contains(said), "{command}: {told}");
        assert!(told.contains("3500 of 3500"), "{told}");
        let written = files(folder.path(), "out");
        assert!(written.keys().eq(["out", "out1", "out2", "out3"]));
        let bytes: usize = written.values().map(Vec::len).sum();
        assert_eq!(bytes, 4 * 24 + 3500 * 1016);
    }
}

/// A full disk is told with the file that is not whole, and what was written can be read.
#[test]
fn a_full_disk_is_told() {
    let folder = tempfile::tempdir().unwrap();
    capture(folder.path());
    std::fs::create_dir(folder.path().join("small")).unwrap();
    let postern = env!("CARGO_BIN_EXE_postern");
    let script = format!(
        "mount -t tmpfs -o size=64k none small || exit 77
        {postern} filter -r all.pcap -w small/%% -G 100 $1 >said 2>&1; echo $? >status
        {postern} filter -r small/% --count >read 2>&1; echo >>read"
    );
    for rotation in ["", "-C 1"] {
        let run = Command::new("unshare")
            .args([
                "--user",
                "--map-root-user",
                "--mount",
                "sh",
                "-c",
                &script,
                "sh",
                rotation,
            ])
            .current_dir(folder.path())
            .output();
        if !run.is_ok_and(|output| output.status.success()) {
            let text = "SKIPPED a full disk: no namespaces\n";
            std::io::stderr().write_all(text.as_bytes()).unwrap();
            return;
        }
        let said = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(said("status"), "2\n", "{}", said("said"));
        assert!(
            said("said").contains("cannot write small/%: No space left"),
            "{}",
            said("said")
        );
        let read = said("read");
        assert!(read.contains("64 of 64 packets accepted"), "{read}");
    }
}

/// What cannot be, with its reason.
#[test]
fn wrong_names_and_users() {
    let folder = tempfile::tempdir().unwrap();
    capture(folder.path());
    for (arguments, message) in [
        (&["-w", "-", "-C", "1"][..], "-C and -G are for files"),
        (&["-w", "none/out", "-C", "1"], "none/out: No such file"),
        (&["-C", "1"], "--write"),
        (&["-w", "out", "-C", "0"], "0 is not in 1.."),
        (&["-w", "out", "-G", "0"], "0 is not in 1.."),
        (&["-w", "out", "-C", "1", "-W", "0"], "0 is not in 1.."),
        (
            &["-w", "all%%.pcap", "-G", "1", "-Z", "no-such-user"],
            "-Z no-such-user",
        ),
        (&["--micro", "--nano"], "cannot be used with"),
    ] {
        let output = filter(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = text(&output.stderr);
        assert!(said.contains(message), "{arguments:?}: {said}");
    }
    // The file that is read is not written, whatever makes its name.
    std::fs::rename(folder.path().join("all.pcap"), folder.path().join("all1")).unwrap();
    let output = postern(
        folder.path(),
        &["filter", "-r", "all1", "-w", "all", "-C", "1"],
    );
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("all1: it is the file that is read"), "{said}");
}

/// Microseconds where the source has them, nanoseconds else; lines have as many digits as are asked
/// for.
#[test]
fn precision_is_that_of_the_source() {
    let folder = tempfile::tempdir().unwrap();
    capture(folder.path());
    let magic = |name: &str| {
        let file = std::fs::read(folder.path().join(name)).unwrap();
        u32::from_le_bytes(file[..4].try_into().unwrap())
    };
    for (from, options, expected) in [
        ("all.pcap", &[][..], 0xa1b2_c3d4),
        ("all.pcap", &["--nano"], 0xa1b2_3c4d),
        ("nano", &[], 0xa1b2_3c4d),
        ("nano", &["--micro"], 0xa1b2_c3d4),
    ] {
        let name = if options == ["--nano"] { "nano" } else { "out" };
        let arguments = [&["filter", "-c3", "-r", from, "-w", name][..], options].concat();
        let output = postern(folder.path(), &arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(magic(name), expected, "{from} {options:?}");
    }
    let spread = ["demux", "-r", "all.pcap", "--to", "all.out=udp"];
    assert!(postern(folder.path(), &spread).status.success());
    assert_eq!(magic("all.out"), 0xa1b2_c3d4);
    for (options, shown) in [
        (&["-tt"][..], "1002.000002 "),
        (&["-tt", "--nano"], "1002.000002000 "),
        (&["-ttt", "--nano"], "00:00:01.000001000 "),
        (
            &["-ttttt", "--time-stamp-precision", "nano"],
            "00:00:02.000002000 ",
        ),
    ] {
        let arguments = [&["filter", "-r", "out"][..], options].concat();
        let lines = text(&postern(folder.path(), &arguments).stdout);
        let last = lines.lines().last().unwrap();
        assert!(last.starts_with(shown), "{options:?}: {last}");
    }
}

/// A pcapng file of three packets, each of an interface of its own whose times count in these units
/// (the option if_tsresol), or as in files without the option. Units below 64 are in the beginning,
/// the others behind the first packet.
fn pcapng(units: &[Option<u8>; 3]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let length = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes(), &length, body, &length].concat()
    };
    let interface = |unit: &Option<u8>| {
        let mut body = vec![1, 0, 0, 0, 0, 0, 4, 0];
        if let Some(unit) = unit {
            body.extend([9, 0, 1, 0, *unit, 0, 0, 0, 0, 0, 0, 0]);
        }
        block(1, &body)
    };
    let packet = |number: u32, unit: &Option<u8>| {
        let units = match unit {
            Some(power @ 0..64) => 10u64.pow((*power).into()),
            Some(power) => 1 << (power & 63),
            None => 1_000_000,
        };
        let time = 1000 * units + units / 8 * u64::from(number + 1);
        let words = [number, (time >> 32) as u32, time as u32, 60, 60];
        let mut body = words.map(u32::to_le_bytes).concat();
        body.extend([0; 60]);
        block(6, &body)
    };
    let section = [&[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..], &[0xff; 8]].concat();
    let mut file = block(0x0a0d_0d0a, &section);
    file.extend(interface(&units[0]));
    file.extend(interface(&units[1]));
    file.extend(packet(0, &units[0]));
    file.extend(packet(1, &units[1]));
    file.extend(interface(&units[2]));
    file.extend(packet(2, &units[2]));
    file
}

/// Of pcapng each interface says how fine its times are. What has microseconds becomes what tcpdump
/// makes of it, byte by byte; what has finer ones keeps them.
#[test]
fn precision_is_that_of_the_interfaces() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| postern(folder.path(), arguments);
    let written = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    for (units, micro) in [
        ([None, None, None], true),
        ([Some(6), Some(3), Some(0)], true),
        ([Some(9), Some(9), Some(9)], false),
        ([None, Some(9), None], false),
        // Times in powers of two have no end in microseconds.
        ([Some(0x8a), None, None], false),
        // Whoever describes it too late has what was begun, as with tcpdump.
        ([None, None, Some(9)], true),
    ] {
        std::fs::write(folder.path().join("in.pcapng"), pcapng(&units)).unwrap();
        let commands: [&[&str]; 3] = [
            &["filter", "-r", "in.pcapng", "-w", "out"],
            &["demux", "-r", "in.pcapng", "--to", "out=len > 0"],
            &["filter", "-r", "in.pcapng", "--nano", "-w", "out"],
        ];
        for (number, command) in commands.iter().enumerate() {
            let output = run(command);
            assert!(output.status.success(), "{}", text(&output.stderr));
            let ours = written("out");
            let magic: u32 = if micro && number < 2 {
                0xa1b2_c3d4
            } else {
                0xa1b2_3c4d
            };
            assert_eq!(ours[..4], magic.to_le_bytes(), "{units:?} {command:?}");
            let precision = if magic == 0xa1b2_c3d4 {
                "micro"
            } else {
                "nano"
            };
            let dumped = Command::new("tcpdump")
                .args(["-Z", "root", "-r", "in.pcapng", "-w", "theirs"])
                .arg(format!("--time-stamp-precision={precision}"))
                .current_dir(folder.path())
                .output();
            match dumped {
                Ok(output) => {
                    assert!(output.status.success(), "{}", text(&output.stderr));
                    assert_eq!(ours, written("theirs"), "{units:?} {command:?}");
                }
                Err(_) => {
                    let text = "SKIPPED tcpdump of pcapng: it is not installed\n";
                    std::io::stderr().write_all(text.as_bytes()).unwrap();
                }
            }
        }
    }
}

/// A frame with which a handler answers is written as one of the interface that the question came
/// by, with its link, even if that is the first of it.
#[test]
fn answers_have_the_link_of_their_question() {
    let folder = tempfile::tempdir().unwrap();
    let source = "#include <postern/packet.h>
        int handle(const unsigned char *packet, unsigned length, unsigned wire)
        {
            (void)wire;
            return packet_send(packet, length) == 0;
        }";
    std::fs::write(folder.path().join("echo.c"), source).unwrap();
    // Of the two interfaces of the beginning the second has raw IP, as its packet has.
    let mut file = pcapng(&[None, None, None]);
    let raw = 28 + 20 + 8;
    assert_eq!(file[raw..raw + 2], [1, 0]);
    file[raw] = 101;
    std::fs::write(folder.path().join("in.pcapng"), file).unwrap();
    let arguments = [
        "filter",
        "-r",
        "in.pcapng",
        "--handler",
        "echo.c",
        "-w",
        "out.pcapng",
    ];
    let output = postern(folder.path(), &arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let written = std::fs::read(folder.path().join("out.pcapng")).unwrap();
    let mut links = Vec::new();
    let mut interfaces = Vec::new();
    let mut at = 0;
    while at < written.len() {
        let word = |at: usize| u32::from_le_bytes(written[at..at + 4].try_into().unwrap());
        match word(at) {
            1 => interfaces.push(word(at + 8) & 0xffff),
            6 => links.push(interfaces[word(at + 8) as usize]),
            _ => {}
        }
        at += word(at + 4) as usize;
    }
    assert_eq!(links, [1, 101, 1], "{interfaces:?}");
}

/// What follows `geneve` and its kin means something else than most people think; it is said, and
/// done as it is written. Both commands say their version.
#[test]
fn warnings_and_versions() {
    let folder = tempfile::tempdir().unwrap();
    capture(folder.path());
    let output = filter(folder.path(), &["--count", "geneve or udp port 53"]);
    assert!(output.status.success());
    let said = text(&output.stderr);
    let shown = "geneve or udp port 53\n            ^^^^^^^^^^^\n  if the packet itself is meant, write `udp port 53 or geneve`";
    assert!(said.contains("warning: ") && said.contains(shown), "{said}");
    assert_eq!(said.matches("warning").count(), 1, "{said}");
    let rules = ["demux", "-r", "all.pcap", "--to", "out=vlan or udp"];
    let said = text(&postern(folder.path(), &rules).stderr);
    assert!(said.contains("write `udp or vlan`"), "{said}");
    for command in ["filter", "demux"] {
        let output = postern(folder.path(), &[command, "--version"]);
        assert!(output.status.success());
        let version = text(&output.stdout);
        assert_eq!(
            version,
            format!("postern-{command} {}\n", env!("CARGO_PKG_VERSION"))
        );
    }
}
