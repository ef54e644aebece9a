//! `postern filter`: capture files in and out, damaged ones, classic programs, and bad expressions.

use std::path::Path;
use std::process::{Command, Output};

fn postern(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_postern"))
        .arg("filter")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
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
    assert!(text(&output.stdout).contains("on the longest path"));
}
