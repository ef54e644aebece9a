//! What is said of the protocols above IP.

use super::summary::{Summary, byte, half, word};
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
const URG: u8 = 32;

/// Flags of TCP, in the order in which people know them.
const FLAGS: [(u8, char); 8] = [
    (FIN, 'F'),
    (SYN, 'S'),
    (RST, 'R'),
    (8, 'P'),
    (ACK, '.'),
    (URG, 'U'),
    (64, 'E'),
    (128, 'W'),
];

/// A protocol above IP, if it is a usual one.
fn known(protocol: u8) -> Option<&'static str> {
    Some(match protocol {
        1 => "icmp",
        2 => "igmp",
        6 => "tcp",
        17 => "udp",
        47 => "gre",
        50 => "esp",
        51 => "ah",
        58 => "icmp6",
        89 => "ospf",
        132 => "sctp",
        _ => return None,
    })
}

/// Its name in large letters.
pub(super) fn name(protocol: u8) -> String {
    match known(protocol) {
        Some("icmp6") => "ICMPv6".to_owned(),
        Some(name) => name.to_uppercase(),
        None => "unknown".to_owned(),
    }
}

/// Reads what is above IP; `length` is how much the IP header says that there is.
pub(super) fn transport(
    found: &mut Summary,
    protocol: u8,
    bytes: &[u8],
    length: usize,
) -> Option<()> {
    found.transport = known(protocol);
    if matches!(protocol, 6 | 17 | 132) {
        found.source_port = Some(half(bytes, 0)?);
        found.destination_port = Some(half(bytes, 2)?);
    }
    found.info = match protocol {
        6 => tcp(bytes, length)?,
        17 => format!("UDP, length {}", length.saturating_sub(8)),
        1 => icmp("ICMP", bytes, length, 8, 0)?,
        58 => icmp("ICMP6,", bytes, length, 128, 129)?,
        other => match found.transport {
            Some(name) => format!("{}, length {length}", name.to_uppercase()),
            None => format!("ip-proto-{other}, length {length}"),
        },
    };
    Some(())
}

fn tcp(bytes: &[u8], length: usize) -> Option<String> {
    let header = usize::from(byte(bytes, 12)? >> 4) * 4;
    let flags = byte(bytes, 13)?;
    let letters: String = FLAGS
        .iter()
        .filter_map(|(bit, letter)| (flags & bit != 0).then_some(*letter))
        .collect();
    let mut text = match letters.is_empty() {
        true => "Flags [none]".to_owned(),
        false => format!("Flags [{letters}]"),
    };
    let payload = length.saturating_sub(header);
    let sequence = word(bytes, 4)?;
    // Writing to a string does not fail.
    if payload > 0 {
        let end = sequence.wrapping_add(payload as u32);
        let _ = write!(text, ", seq {sequence}:{end}");
    } else if flags & (FIN | SYN | RST) != 0 {
        let _ = write!(text, ", seq {sequence}");
    }
    if flags & ACK != 0 {
        let _ = write!(text, ", ack {}", word(bytes, 8)?);
    }
    let _ = write!(text, ", win {}", half(bytes, 14)?);
    if flags & URG != 0 {
        let _ = write!(text, ", urg {}", half(bytes, 18)?);
    }
    let options = bytes.get(20..header).map(options).unwrap_or_default();
    if !options.is_empty() {
        let _ = write!(text, ", options [{options}]");
    }
    let _ = write!(text, ", length {payload}");
    Some(text)
}

/// The options of a TCP header, as far as they are sound.
fn options(mut bytes: &[u8]) -> String {
    let mut shown = Vec::new();
    while let Some((kind, rest)) = bytes.split_first() {
        if *kind < 2 {
            shown.push(if *kind == 0 { "eol" } else { "nop" }.to_owned());
            bytes = if *kind == 0 { &[] } else { rest };
            continue;
        }
        let length = usize::from(byte(rest, 0).unwrap_or_default());
        let (Some(value), Some(behind)) = (bytes.get(2..length), bytes.get(length..)) else {
            shown.push("bad opt".to_owned());
            break;
        };
        shown.push(option(*kind, value).unwrap_or_else(|| format!("unknown-{kind}")));
        bytes = behind;
    }
    shown.join(",")
}

fn option(kind: u8, value: &[u8]) -> Option<String> {
    Some(match (kind, value.len()) {
        (2, 2) => format!("mss {}", half(value, 0)?),
        (3, 1) => format!("wscale {}", byte(value, 0)?),
        (4, 0) => "sackOK".to_owned(),
        (5, 8..) => {
            let edges = value.chunks_exact(8);
            let edges =
                edges.filter_map(|pair| Some(format!("{{{}:{}}}", word(pair, 0)?, word(pair, 4)?)));
            format!("sack {} {}", value.len() / 8, edges.collect::<String>())
        }
        (8, 8) => format!("TS val {} ecr {}", word(value, 0)?, word(value, 4)?),
        _ => return None,
    })
}

fn icmp(name: &str, bytes: &[u8], length: usize, request: u8, reply: u8) -> Option<String> {
    let (kind, code) = (byte(bytes, 0)?, byte(bytes, 1)?);
    if kind == request || kind == reply {
        let what = if kind == request { "request" } else { "reply" };
        let (id, number) = (half(bytes, 4)?, half(bytes, 6)?);
        return Some(format!(
            "{name} echo {what}, id {id}, seq {number}, length {length}"
        ));
    }
    let known = match kind {
        133.. if name != "ICMP" => discovery(kind, bytes),
        _ => unreachable(name, kind, code, bytes),
    };
    let what = match known {
        Some(text) => text,
        None => format!("type {kind}, code {code}"),
    };
    Some(format!("{name} {what}, length {length}"))
}

/// What IPv6's hosts tell each other about themselves.
fn discovery(kind: u8, bytes: &[u8]) -> Option<String> {
    let target = || {
        let address: &[u8; 16] = bytes.get(8..)?.first_chunk()?;
        Some(Ipv6Addr::from(*address))
    };
    Some(match kind {
        133 => "router solicitation".to_owned(),
        134 => "router advertisement".to_owned(),
        135 => format!("neighbor solicitation, who has {}", target()?),
        136 => format!("neighbor advertisement, tgt is {}", target()?),
        143 => "multicast listener report v2".to_owned(),
        _ => return None,
    })
}

/// What could not be reached, and why, of an error message, which has the beginning of the packet
/// that it is about.
fn unreachable(name: &str, kind: u8, code: u8, bytes: &[u8]) -> Option<String> {
    let (destination, protocol, ports) = about(bytes.get(8..)?)?;
    let port = if name == "ICMP" { 3 } else { 4 };
    Some(match (name, kind, code) {
        ("ICMP", 3, 0) => format!("net {destination} unreachable"),
        ("ICMP", 3, 1) => format!("host {destination} unreachable"),
        ("ICMP", 3, 4) => format!("{destination} unreachable - need to frag"),
        ("ICMP", 11, 0) => "time exceeded in-transit".to_owned(),
        ("ICMP6,", 3, 0) => format!("time exceeded in-transit for {destination}"),
        ("ICMP6,", 2, 0) => format!("packet too big, mtu {}", word(bytes, 4)?),
        ("ICMP6,", 1, 0) => format!("destination unreachable, unreachable route {destination}"),
        ("ICMP6,", 1, 3) => format!("destination unreachable, unreachable address {destination}"),
        ("ICMP", 3, _) | ("ICMP6,", 1, _) if code == port => {
            let (transport, number) = (known(protocol)?, half(ports, 2)?);
            match name {
                "ICMP" => format!("{destination} {transport} port {number} unreachable"),
                _ => format!(
                    "destination unreachable, unreachable port, {destination} {transport} port {number}"
                ),
            }
        }
        _ => return None,
    })
}

/// The packet that an error message is about: whom it was for, its protocol, and what is above IP.
fn about(packet: &[u8]) -> Option<(IpAddr, u8, &[u8])> {
    let first = byte(packet, 0)?;
    match first >> 4 {
        4 => {
            let destination = Ipv4Addr::from(word(packet, 16)?);
            let above = packet.get(usize::from(first & 15) * 4..)?;
            Some((destination.into(), byte(packet, 9)?, above))
        }
        _ => {
            let destination: &[u8; 16] = packet.get(24..)?.first_chunk()?;
            let destination = Ipv6Addr::from(*destination);
            Some((destination.into(), byte(packet, 6)?, packet.get(40..)?))
        }
    }
}
