//! A packet in a line, as people know it from tcpdump: who, to whom, what, how much. Numbers only.

mod summary;
mod transport;

use postern_filter::Link;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
pub use summary::Summary;
use summary::{byte, half, word};
use transport::transport;

/// How much is said of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Not what only experts read.
    Quiet,
    /// As usual.
    #[default]
    Usual,
    /// The network header, too.
    Verbose,
}

/// The time of day as `hh:mm:ss.ffffff`, of UTC, with so many digits of the second's fraction.
pub fn time_of_day(nanoseconds: u64, digits: usize) -> String {
    let seconds = nanoseconds / 1_000_000_000;
    format!(
        "{:02}:{:02}:{:02}.{}",
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60,
        part_of_second(nanoseconds, digits)
    )
}

/// The fraction of a second, with so many digits of nine.
pub fn part_of_second(nanoseconds: u64, digits: usize) -> String {
    let mut text = format!("{:09}", nanoseconds % 1_000_000_000);
    text.truncate(digits);
    text
}

/// The date as `yyyy-mm-dd`, of UTC.
pub fn date(nanoseconds: u64) -> String {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let (mut day, mut year) = (nanoseconds / 86_400_000_000_000, 1970);
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", day + 1)
}

/// The header of a link, as far as more than its name is said of it.
pub fn link_of(kind: Link, bytes: &[u8]) -> String {
    match kind {
        Link::Ethernet => link(bytes),
        other => other.name().to_owned(),
    }
}

/// The header of Ethernet: addresses and type.
pub fn link(bytes: &[u8]) -> String {
    let kind = half(bytes, 12).unwrap_or_default();
    format!(
        "{} > {}, ethertype {kind:#06x}",
        mac(bytes, 6),
        mac(bytes, 0)
    )
}

fn mac(bytes: &[u8], from: usize) -> String {
    let bytes = bytes.get(from..from + 6).unwrap_or_default();
    let parts: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    parts.join(":")
}

/// Reads a packet as far as it is there; `wire` is its whole length.
pub fn summary(bytes: &[u8], wire: u32) -> Summary {
    let mut found = Summary::default();
    if read(&mut found, bytes, wire).is_none() && found.info.is_empty() {
        found.info = format!("cut short, length {wire}");
    }
    found
}

/// As [`summary`], of a packet that begins with something else than Ethernet's header.
pub fn summary_of(link: Link, bytes: &[u8], wire: u32) -> Summary {
    if link == Link::Ethernet {
        return summary(bytes, wire);
    }
    let mut found = Summary::default();
    let read = match link.network(bytes) {
        Some((at, kind)) => inside(&mut found, bytes, wire, (at, kind)),
        None => None,
    };
    if read.is_none() && found.info.is_empty() {
        found.info = format!("{}, length {wire}", link.name());
    }
    found
}

fn read(found: &mut Summary, bytes: &[u8], wire: u32) -> Option<()> {
    let kind = half(bytes, 12)?;
    inside(found, bytes, wire, (14, kind))
}

/// What a packet carries at a place, by its Ethernet type.
fn inside(
    found: &mut Summary,
    bytes: &[u8],
    wire: u32,
    (mut at, mut kind): (usize, u16),
) -> Option<()> {
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
    let length = bytes.len();
    let what = match half(bytes, 6)? {
        1 => format!("Request who-has {to} tell {from}"),
        2 => format!("Reply {from} is-at {}", mac(bytes, 8)),
        other => format!("operation {other}"),
    };
    found.info = format!("{what}, length {length}");
    Some(())
}

fn ip4(found: &mut Summary, bytes: &[u8]) -> Option<()> {
    let header = usize::from(byte(bytes, 0)? & 15) * 4;
    let total = usize::from(half(bytes, 2)?);
    found.source = Some(Ipv4Addr::from(word(bytes, 12)?).into());
    found.destination = Some(Ipv4Addr::from(word(bytes, 16)?).into());
    let (fragment, protocol) = (half(bytes, 6)? & 0x1fff, byte(bytes, 9)?);
    let length = total.saturating_sub(header);
    let flags = match half(bytes, 6)? >> 13 {
        0 => "none",
        1 => "+",
        2 => "DF",
        3 => "+, DF",
        _ => "rsvd",
    };
    found.header = format!(
        "(tos {:#x}, ttl {}, id {}, offset {}, flags [{flags}], proto {} ({protocol}), length {total})\n   ",
        byte(bytes, 1)?,
        byte(bytes, 8)?,
        half(bytes, 4)?,
        u32::from(fragment) * 8,
        transport::name(protocol),
    );
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
    found.header = format!(
        "(flowlabel {:#07x}, hlim {}, next-header {} ({protocol}) payload length: {length})",
        word(bytes, 0)? & 0xf_ffff,
        byte(bytes, 7)?,
        transport::name(protocol),
    );
    let mut at = 40;
    while matches!(protocol, 0 | 43 | 60) {
        let size = 8 + 8 * usize::from(byte(bytes, at + 1)?);
        protocol = byte(bytes, at)?;
        at += size;
        length = length.saturating_sub(size);
    }
    transport(found, protocol, bytes.get(at..)?, length)
}

impl Summary {
    /// The line without time and link header.
    pub fn text(&self, detail: Detail) -> String {
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
        if detail == Detail::Verbose && !self.header.is_empty() {
            let _ = write!(text, " {}", self.header);
        }
        if self.source.is_some() {
            let from = end(self.source, self.source_port);
            let to = end(self.destination, self.destination_port);
            let _ = write!(text, " {from} > {to}:");
        } else {
            text.push(',');
        }
        let length = self.info.rsplit("length ").next().unwrap_or_default();
        match self.transport {
            Some(transport) if detail == Detail::Quiet => format!("{text} {transport} {length}"),
            _ => format!("{text} {}", self.info),
        }
    }
}

/// Bytes as letters: lines and tabs stay, all else that is no letter is a dot.
pub fn ascii(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 1);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\r' if bytes.get(at + 1) == Some(&b'\n') => {}
            0x20..0x7f | b'\n' | b'\t' => text.push(char::from(*byte)),
            _ => text.push('.'),
        }
    }
    text.push('\n');
    text
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
            shown.text(Detail::Usual),
            "IP 10.0.0.1.1234 > 10.0.0.2.80: Flags [P.], seq 7:11, ack 9, win 256, length 4"
        );
        assert_eq!(
            shown.text(Detail::Quiet),
            "IP 10.0.0.1.1234 > 10.0.0.2.80: tcp 4"
        );
        let tagged = [&[0, 5, 8, 0][..], &ip].concat();
        let shown = summary(&frame(0x8100, &tagged), 62);
        assert!(
            shown
                .text(Detail::Quiet)
                .starts_with("vlan 5, IP 10.0.0.1.1234")
        );
        let verbose = summary(&frame(0x0800, &ip), 58).text(Detail::Verbose);
        assert!(
            verbose.starts_with(
                "IP (tos 0x0, ttl 64, id 0, offset 0, flags [none], proto TCP (6), length 44)\n    10.0.0.1.1234 > "
            ),
            "{verbose}"
        );
        // However short, something can be said.
        for cut in 0..40 {
            let text = summary(&frame(0x0800, &ip)[..cut], 58).text(Detail::Usual);
            assert!(!text.is_empty(), "{cut}");
        }
        assert_eq!(time_of_day(3_723_000_004_999, 6), "01:02:03.000004");
        assert_eq!(time_of_day(3_723_000_004_999, 9), "01:02:03.000004999");
        for (day, shown) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (10_956, "1999-12-31"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_779, "2026-11-22"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(date(day * 86_400_000_000_000 + 5), shown);
        }
        assert_eq!(ascii(b"GET /\r\n\x1b[\ra\tb"), "GET /\n.[.a\tb\n");
        assert_eq!(
            hex(b"ab\0", true),
            format!("\t0x0000:  {:<39}  ab.\n", "6162 00")
        );
    }

    #[test]
    fn options_and_errors() {
        let segment = |flags: u8, options: &[u8]| {
            let mut ip = vec![
                0x45,
                0,
                0,
                40 + options.len() as u8,
                0,
                0,
                0,
                0,
                64,
                6,
                0,
                0,
            ];
            ip.extend([
                10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 80, 0, 0, 0, 7, 0, 0, 0, 9,
            ]);
            ip.extend([
                0x50 + (options.len() as u8 / 4) * 16,
                flags,
                0,
                8,
                0,
                0,
                0,
                0,
            ]);
            ip.extend_from_slice(options);
            summary(&frame(0x0800, &ip), 100).info
        };
        assert_eq!(segment(0, &[]), "Flags [none], win 8, length 0");
        assert_eq!(
            segment(0x14, &[]),
            "Flags [R.], seq 7, ack 9, win 8, length 0"
        );
        let options = [
            2, 4, 5, 180, 4, 2, 3, 3, 7, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 99, 3, 0, 0,
        ];
        assert_eq!(
            segment(2, &options),
            "Flags [S], seq 7, win 8, options [mss 1460,sackOK,wscale 7,nop,TS val 1 ecr 2,unknown-99,eol], length 0"
        );
        assert_eq!(
            segment(16, &[1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2]),
            "Flags [.], ack 9, win 8, options [nop,nop,sack 1 {1:2}], length 0"
        );
        for bad in [[5, 1, 0, 0], [5, 0, 0, 0], [5, 9, 0, 0], [1, 1, 1, 5]] {
            assert!(segment(16, &bad).contains("bad opt], length 0"), "{bad:?}");
        }
        let mut error = vec![
            0x45, 0, 0, 56, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1,
        ];
        error.extend([3, 3, 0, 0, 0, 0, 0, 0]);
        error.extend([
            0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ]);
        error.extend([0, 9, 0, 53, 0, 8, 0, 0]);
        assert_eq!(
            summary(&frame(0x0800, &error), 70).info,
            "ICMP 10.0.0.2 udp port 53 unreachable, length 36"
        );
        let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1];
        arp.extend([2, 0, 0, 0, 0, 2, 10, 0, 0, 2]);
        assert_eq!(
            summary(&frame(0x0806, &arp), 42).text(Detail::Usual),
            "ARP, Reply 10.0.0.1 is-at 02:00:00:00:00:01, length 28"
        );
        let mut neighbor = vec![0x60, 0, 0, 0, 0, 24, 58, 255];
        neighbor.extend([0; 32]);
        neighbor.extend([135, 0, 0, 0, 0, 0, 0, 0, 0xfe, 0x80, 0, 0, 0, 0, 0, 0]);
        neighbor.extend([0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(
            summary(&frame(0x86dd, &neighbor), 78).info,
            "ICMP6, neighbor solicitation, who has fe80::1, length 24"
        );
        // Errors about errors about errors.
        let nested = error[..28].repeat(2000);
        assert!(
            summary(&frame(0x0800, &nested), 60_000)
                .info
                .starts_with("ICMP")
        );
        for cut in 0..error.len() {
            assert!(!summary(&frame(0x0800, &error[..cut]), 70).info.is_empty());
        }
    }
}
