//! A packet in a line, as people know it from tcpdump: who, to whom, what, how much. Numbers only, and times of UTC.

use serde::Serialize;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What is shown of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Network protocol: `IP`, `IP6`, `ARP`, or the number that the link header has.
    pub network: String,
    /// VLANs, the outer one first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vlans: Vec<u16>,
    /// Source address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    /// Destination address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<IpAddr>,
    /// `tcp`, `udp`, `icmp` and so on, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<&'static str>,
    /// Source port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_port: Option<u16>,
    /// Destination port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_port: Option<u16>,
    /// What else can be said.
    pub info: String,
}

/// The time of day as `hh:mm:ss.µµµµµµ`, of UTC.
pub fn time(nanoseconds: u64) -> String {
    let seconds = nanoseconds / 1_000_000_000;
    format!(
        "{:02}:{:02}:{:02}.{:06}",
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60,
        nanoseconds / 1000 % 1_000_000
    )
}

/// The link header: addresses and type.
pub fn link(bytes: &[u8]) -> String {
    let mac = |from: usize| {
        let bytes = bytes.get(from..from + 6).unwrap_or_default();
        let parts: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        parts.join(":")
    };
    let kind = half(bytes, 12).unwrap_or_default();
    format!("{} > {}, ethertype {kind:#06x}", mac(6), mac(0))
}

fn byte(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let field = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_be_bytes(*field))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*field))
}

/// Reads a packet as far as it is there; `wire` is its whole length.
pub fn summary(bytes: &[u8], wire: u32) -> Summary {
    let mut found = Summary::default();
    if read(&mut found, bytes, wire).is_none() && found.info.is_empty() {
        found.info = format!("cut short, length {wire}");
    }
    found
}

fn read(found: &mut Summary, bytes: &[u8], wire: u32) -> Option<()> {
    let mut at = 14;
    let mut kind = half(bytes, 12)?;
    while matches!(kind, 0x8100 | 0x88a8 | 0x9100) {
        found.vlans.push(half(bytes, at)? & 0xfff);
        kind = half(bytes, at + 2)?;
        at += 4;
    }
    let rest = bytes.get(at..)?;
    match kind {
        0x0800 => {
            found.network = "IP".into();
            ip4(found, rest)
        }
        0x86dd => {
            found.network = "IP6".into();
            ip6(found, rest)
        }
        0x0806 => {
            found.network = "ARP".into();
            arp(found, rest)
        }
        0..1536 => {
            found.network = "802.3".into();
            found.info = format!("length {wire}");
            Some(())
        }
        kind => {
            found.network = format!("ethertype {kind:#06x}");
            found.info = format!("length {wire}");
            Some(())
        }
    }
}

fn arp(found: &mut Summary, bytes: &[u8]) -> Option<()> {
    let address = |at| word(bytes, at).map(Ipv4Addr::from);
    let (from, to) = (address(14)?, address(24)?);
    (found.source, found.destination) = (Some(from.into()), Some(to.into()));
    found.info = match half(bytes, 6)? {
        1 => format!("Request who-has {to} tell {from}"),
        2 => format!("Reply {from} to {to}"),
        other => format!("operation {other}"),
    };
    Some(())
}

fn ip4(found: &mut Summary, bytes: &[u8]) -> Option<()> {
    let header = usize::from(byte(bytes, 0)? & 15) * 4;
    let total = usize::from(half(bytes, 2)?);
    found.source = Some(Ipv4Addr::from(word(bytes, 12)?).into());
    found.destination = Some(Ipv4Addr::from(word(bytes, 16)?).into());
    let (fragment, protocol) = (half(bytes, 6)? & 0x1fff, byte(bytes, 9)?);
    let length = total.saturating_sub(header);
    if fragment != 0 {
        found.info = format!("fragment at {}, length {length}", u32::from(fragment) * 8);
        return Some(());
    }
    transport(found, protocol, bytes.get(header..)?, length)
}

fn ip6(found: &mut Summary, bytes: &[u8]) -> Option<()> {
    let address = |at| {
        let field: Option<&[u8; 16]> = bytes.get(at..)?.first_chunk();
        field.map(|field| IpAddr::from(Ipv6Addr::from(*field)))
    };
    (found.source, found.destination) = (Some(address(8)?), Some(address(24)?));
    let (mut protocol, mut length) = (byte(bytes, 6)?, usize::from(half(bytes, 4)?));
    let mut at = 40;
    while matches!(protocol, 0 | 43 | 60) {
        let size = 8 + 8 * usize::from(byte(bytes, at + 1)?);
        protocol = byte(bytes, at)?;
        at += size;
        length = length.saturating_sub(size);
    }
    transport(found, protocol, bytes.get(at..)?, length)
}

fn transport(found: &mut Summary, protocol: u8, bytes: &[u8], length: usize) -> Option<()> {
    found.transport = match protocol {
        1 => Some("icmp"),
        2 => Some("igmp"),
        6 => Some("tcp"),
        17 => Some("udp"),
        47 => Some("gre"),
        50 => Some("esp"),
        51 => Some("ah"),
        58 => Some("icmp6"),
        89 => Some("ospf"),
        132 => Some("sctp"),
        _ => None,
    };
    if matches!(protocol, 6 | 17 | 132) {
        found.source_port = Some(half(bytes, 0)?);
        found.destination_port = Some(half(bytes, 2)?);
    }
    found.info = match protocol {
        6 => tcp(bytes, length)?,
        17 => format!("UDP, length {}", length.saturating_sub(8)),
        1 => icmp("ICMP", bytes, length, 8, 0)?,
        58 => icmp("ICMP6", bytes, length, 128, 129)?,
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
    let mut text = String::from("Flags [");
    for (bit, letter) in [(1, 'F'), (2, 'S'), (4, 'R'), (8, 'P'), (32, 'U'), (16, '.')] {
        if flags & bit != 0 {
            text.push(letter);
        }
    }
    let payload = length.saturating_sub(header);
    let sequence = word(bytes, 4)?;
    // Writing to a string does not fail.
    let _ = match payload {
        0 => write!(text, "], seq {sequence}"),
        _ => write!(
            text,
            "], seq {sequence}:{}",
            sequence.wrapping_add(payload as u32)
        ),
    };
    if flags & 16 != 0 {
        let _ = write!(text, ", ack {}", word(bytes, 8)?);
    }
    let _ = write!(text, ", win {}, length {payload}", half(bytes, 14)?);
    Some(text)
}

fn icmp(name: &str, bytes: &[u8], length: usize, request: u8, reply: u8) -> Option<String> {
    let (kind, code) = (byte(bytes, 0)?, byte(bytes, 1)?);
    if kind != request && kind != reply {
        return Some(format!("{name} type {kind}, code {code}, length {length}"));
    }
    let what = if kind == request { "request" } else { "reply" };
    let (id, number) = (half(bytes, 4)?, half(bytes, 6)?);
    Some(format!(
        "{name} echo {what}, id {id}, seq {number}, length {length}"
    ))
}

impl Summary {
    /// The line without time and link header; `quiet` leaves out what only experts read.
    pub fn text(&self, quiet: bool) -> String {
        let mut text = String::new();
        for vlan in &self.vlans {
            let _ = write!(text, "vlan {vlan}, ");
        }
        text += &self.network;
        if self.network == "ARP" {
            return format!("{text}, {}", self.info);
        }
        let end = |address: Option<IpAddr>, port: Option<u16>| match (address, port) {
            (Some(address), Some(port)) => format!("{address}.{port}"),
            (Some(address), None) => address.to_string(),
            (None, _) => String::new(),
        };
        if self.source.is_some() {
            let from = end(self.source, self.source_port);
            let to = end(self.destination, self.destination_port);
            let _ = write!(text, " {from} > {to}:");
        } else {
            text.push(',');
        }
        let length = self.info.rsplit("length ").next().unwrap_or_default();
        match self.transport {
            Some(transport) if quiet => format!("{text} {transport} {length}"),
            _ => format!("{text} {}", self.info),
        }
    }
}

/// Bytes in hexadecimal, sixteen in a line, with their letters if asked for.
pub fn hex(bytes: &[u8], letters: bool) -> String {
    let mut text = String::new();
    for (number, line) in bytes.chunks(16).enumerate() {
        let _ = write!(text, "\t0x{:04x}: ", number * 16);
        let mut digits = String::new();
        for pair in line.chunks(2) {
            digits.push(' ');
            for byte in pair {
                let _ = write!(digits, "{byte:02x}");
            }
        }
        if letters {
            let letter = |byte: &u8| match byte {
                0x21..0x7f => char::from(*byte),
                _ => '.',
            };
            let shown: String = line.iter().map(letter).collect();
            let _ = write!(text, "{digits:<40}  {shown}");
        } else {
            text += &digits;
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u16, rest: &[u8]) -> Vec<u8> {
        let mut bytes = vec![2; 12];
        bytes.extend(kind.to_be_bytes());
        bytes.extend_from_slice(rest);
        bytes
    }

    #[test]
    fn lines() {
        let mut ip = vec![
            0x45, 0, 0, 44, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        ip.extend([
            4, 210, 0, 80, 0, 0, 0, 7, 0, 0, 0, 9, 0x50, 0x18, 1, 0, 0, 0, 0, 0,
        ]);
        ip.extend([1, 2, 3, 4]);
        let shown = summary(&frame(0x0800, &ip), 58);
        assert_eq!(
            shown.text(false),
            "IP 10.0.0.1.1234 > 10.0.0.2.80: Flags [P.], seq 7:11, ack 9, win 256, length 4"
        );
        assert_eq!(shown.text(true), "IP 10.0.0.1.1234 > 10.0.0.2.80: tcp 4");
        let tagged = [&[0, 5, 8, 0][..], &ip].concat();
        let shown = summary(&frame(0x8100, &tagged), 62);
        assert!(shown.text(true).starts_with("vlan 5, IP 10.0.0.1.1234"));
        // However short, something can be said.
        for cut in 0..40 {
            let text = summary(&frame(0x0800, &ip)[..cut], 58).text(false);
            assert!(!text.is_empty(), "{cut}");
        }
        assert_eq!(time(3_723_000_004_000), "01:02:03.000004");
        assert_eq!(
            hex(b"ab\0", true),
            format!("\t0x0000:  {:<39}  ab.\n", "6162 00")
        );
    }
}
