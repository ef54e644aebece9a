//! Live capture in network namespaces that the tests make: nothing leaves them.

use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use postern_capture::{Live, Next, PacketFilter, PacketRef, Source};
use postern_filter::{Filter, NoNames};

const INSIDE: &str = "POSTERN_TEST_NAMESPACE";

/// Two pairs of interfaces: what is sent by one comes in by the other.
const SETUP: &str = "ip link set lo up
for pair in 'va vb' 'vc vd'; do
    set -- $pair
    ip link add $1 type veth peer name $2
    ip link set $1 up
    ip link set $2 up
done";

/// Runs `body`, the test of this name, in a namespace of its own. Where the system does not allow
/// that, the test says so on standard error and passes.
pub fn inside(test: &str, body: fn()) {
    if std::env::var_os(INSIDE).is_some() {
        let made = Command::new("sh").args(["-ec", SETUP]).output();
        match made {
            Ok(output) if output.status.success() => return body(),
            Ok(output) => return no_network(test, &String::from_utf8_lossy(&output.stderr)),
            Err(error) => return no_network(test, &error.to_string()),
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
        return no_network(test, "`unshare -n` and `unshare -rn` are not permitted");
    };
    let status = unshare(options)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(status.success());
}

fn no_network(test: &str, reason: &str) {
    skipped(test, &format!("no network namespace: {}", reason.trim()));
}

/// Says on standard error that a test, or a part of it, was not run.
pub fn skipped(test: &str, reason: &str) {
    // Not by the macro, whose text the harness keeps for itself.
    let text = format!("SKIPPED {test}: {}\n", reason.trim());
    std::io::stderr().write_all(text.as_bytes()).unwrap();
}

pub fn sum(bytes: &[u8]) -> u16 {
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
pub fn frame(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let [long, length] = (20 + payload.len() as u16).to_be_bytes();
    let mut ip = vec![0x45, 0, long, length, 0, 0, 0, 0, 64, protocol, 0, 0];
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

pub fn udp(to: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34];
    bytes.extend(to.to_be_bytes());
    bytes.extend((8 + payload.len() as u16).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend_from_slice(payload);
    frame(17, &bytes)
}

pub fn ping(number: u8) -> Vec<u8> {
    let mut icmp = vec![8, 0, 0, 0, 1, 2, 0, number];
    icmp.extend(b"is anybody there");
    let check = sum(&icmp).to_be_bytes();
    icmp[2..4].copy_from_slice(&check);
    frame(1, &icmp)
}

pub fn live(interface: &str) -> Source {
    Source::live(&Live::of(interface)).unwrap()
}

/// The next packet; there has to be one.
pub fn packet(source: &mut Source) -> PacketRef {
    let patience = Instant::now() + Duration::from_secs(60);
    while Instant::now() < patience {
        if let Next::Packet(seen) = source.next().unwrap() {
            return seen;
        }
    }
    panic!("no packet came");
}

pub fn bytes(source: &mut Source, seen: &PacketRef) -> Vec<u8> {
    let mut bytes = Vec::new();
    source.read(seen, &mut bytes).unwrap();
    bytes
}

/// The next packet that a filter accepts.
pub fn accepted(source: &mut Source, judge: &mut PacketFilter) -> PacketRef {
    loop {
        let seen = packet(source);
        if judge.ask(&seen).unwrap() != 0 {
            return seen;
        }
    }
}

pub fn judge(expression: &str, source: &mut Source) -> PacketFilter {
    let filter = Filter::compile(expression, &NoNames).unwrap();
    let judge = PacketFilter::compiled(&filter.code()).unwrap();
    judge.watch(source).unwrap();
    judge
}
