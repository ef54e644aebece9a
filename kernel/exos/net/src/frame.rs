//! Headers of Ethernet and of IP (RFC 791), and the sum of the Internet's protocols (RFC 1071).

use core::net::Ipv4Addr;

use crate::Hardware;

/// Bytes of the header of Ethernet.
pub const ETHERNET: usize = 14;
/// Bytes of a header of IP without options.
pub const IP: usize = 20;
/// Bytes that a frame carries at most.
pub const CARRIES: usize = 1500;
/// Bytes of a frame at most.
pub const LONGEST: usize = ETHERNET + CARRIES;
/// Bytes of a frame at least; what is shorter is filled with zeros.
pub const SHORTEST: usize = 60;

/// What a frame carries.
pub mod kind {
    /// IP, version 4.
    pub const IP: u16 = 0x0800;
    /// Questions for addresses of Ethernet.
    pub const ARP: u16 = 0x0806;
    /// Questions for own addresses of IP.
    pub const RARP: u16 = 0x8035;
}

/// What IP carries.
pub mod protocol {
    /// Control messages.
    pub const ICMP: u8 = 1;
    /// Connections.
    pub const TCP: u8 = 6;
    /// Datagrams.
    pub const UDP: u8 = 17;
}

/// Two bytes at an offset, the upper first.
pub fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Four bytes at an offset, as an address.
pub fn address(bytes: &[u8], at: usize) -> Option<Ipv4Addr> {
    Some(Ipv4Addr::from(*bytes.get(at..)?.first_chunk::<4>()?))
}

/// A frame, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Who is to have it.
    pub to: Hardware,
    /// Who says that it sent it.
    pub from: Hardware,
    /// What it carries: [`kind`].
    pub kind: u16,
    /// That.
    pub carries: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Takes a frame apart; `None` if it is too short.
    pub fn read(frame: &'a [u8]) -> Option<Frame<'a>> {
        Some(Frame {
            to: *frame.first_chunk()?,
            from: *frame.get(6..)?.first_chunk()?,
            kind: half(frame, 12)?,
            carries: frame.get(ETHERNET..)?,
        })
    }
}

/// The header of a frame.
pub fn ethernet(to: Hardware, from: Hardware, kind: u16) -> [u8; ETHERNET] {
    let mut header = [0; ETHERNET];
    header[..6].copy_from_slice(&to);
    header[6..12].copy_from_slice(&from);
    header[12..].copy_from_slice(&kind.to_be_bytes());
    header
}

/// A datagram of IP whose header is right, and that is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Who says that it sent it.
    pub from: Ipv4Addr,
    /// Whom it is for.
    pub to: Ipv4Addr,
    /// What it carries: [`protocol`].
    pub protocol: u8,
    /// That.
    pub carries: &'a [u8],
    /// All of it, without what stood behind it in the frame.
    pub whole: &'a [u8],
}

/// Why bytes are no datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Lengths do not fit, or it is of another version.
    Header,
    /// The header's sum is wrong.
    Sum,
    /// It is a piece of a datagram.
    Piece,
}

/// Which part of a datagram of IP bytes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The number of the datagram, which all its pieces have.
    pub ident: u16,
    /// The first byte.
    pub offset: usize,
    /// Others follow.
    pub more: bool,
}

impl Part {
    /// Whether it is not all of a datagram.
    pub fn is_piece(&self) -> bool {
        self.more || self.offset != 0
    }
}

impl<'a> Datagram<'a> {
    /// Takes what a frame carries apart, if it is a whole datagram.
    pub fn read(bytes: &'a [u8]) -> Result<Datagram<'a>, Malformed> {
        let (datagram, part) = Datagram::read_part(bytes)?;
        match part.is_piece() {
            true => Err(Malformed::Piece),
            false => Ok(datagram),
        }
    }

    /// The same of a piece, too.
    pub fn read_part(bytes: &'a [u8]) -> Result<(Datagram<'a>, Part), Malformed> {
        let wrong = Malformed::Header;
        let first = *bytes.first().ok_or(wrong)?;
        let header = usize::from(first & 15) * 4;
        let length = usize::from(half(bytes, 2).ok_or(wrong)?);
        if first >> 4 != 4 || header < IP || length < header {
            return Err(wrong);
        }
        let whole = bytes.get(..length).ok_or(wrong)?;
        let head = whole.get(..header).ok_or(wrong)?;
        if sum(&[head]) != 0 {
            return Err(Malformed::Sum);
        }
        let fragment = half(bytes, 6).ok_or(wrong)?;
        let part = Part {
            ident: half(bytes, 4).ok_or(wrong)?,
            offset: usize::from(fragment & 0x1fff) * 8,
            more: fragment & 0x2000 != 0,
        };
        let datagram = Datagram {
            from: address(bytes, 12).ok_or(wrong)?,
            to: address(bytes, 16).ok_or(wrong)?,
            protocol: *bytes.get(9).ok_or(wrong)?,
            carries: whole.get(header..).ok_or(wrong)?,
            whole,
        };
        Ok((datagram, part))
    }
}

/// A header of IP for so many bytes behind it.
pub fn ip(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, ident: u16, carries: usize) -> [u8; IP] {
    let mut header = [0; IP];
    header[0] = 0x45;
    let length = u16::try_from(IP + carries).unwrap_or(u16::MAX);
    header[2..4].copy_from_slice(&length.to_be_bytes());
    header[4..6].copy_from_slice(&ident.to_be_bytes());
    header[6] = 0x40;
    header[8] = 64;
    header[9] = protocol;
    header[12..16].copy_from_slice(&from.octets());
    header[16..].copy_from_slice(&to.octets());
    let sum = sum(&[&header]);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header
}

/// The sum of parts, of which all but the last have an even number of bytes; 0 if a sum that stands
/// among them is right.
pub fn sum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u64;
    for part in parts {
        let mut words = part.chunks_exact(2);
        for word in &mut words {
            if let [high, low] = word {
                sum += u64::from(u16::from_be_bytes([*high, *low]));
            }
        }
        if let [last] = words.remainder() {
            sum += u64::from(*last) << 8;
        }
    }
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// What UDP and TCP sum besides themselves (RFC 768): of so many bytes.
pub fn pseudo(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, length: usize) -> [u8; 12] {
    let mut header = [0; 12];
    header[..4].copy_from_slice(&from.octets());
    header[4..8].copy_from_slice(&to.octets());
    header[9] = protocol;
    header[10..].copy_from_slice(&(length as u16).to_be_bytes());
    header
}

/// A datagram of UDP in `to`, with all headers of Ethernet and IP; its length.
pub fn udp(
    to: &mut [u8],
    hardware: [Hardware; 2],
    addresses: [Ipv4Addr; 2],
    ports: [u16; 2],
    bytes: &[u8],
) -> Option<usize> {
    let [target, source] = hardware;
    let [from, whom] = addresses;
    let length = 8 + bytes.len();
    let all = ETHERNET + IP + length;
    let frame = to.get_mut(..all.max(SHORTEST))?;
    frame.fill(0);
    frame
        .get_mut(..ETHERNET)?
        .copy_from_slice(&ethernet(target, source, kind::IP));
    let header = ip(from, whom, protocol::UDP, 0, length);
    frame
        .get_mut(ETHERNET..ETHERNET + IP)?
        .copy_from_slice(&header);
    let mut head = [0; 8];
    head[..2].copy_from_slice(&ports[0].to_be_bytes());
    head[2..4].copy_from_slice(&ports[1].to_be_bytes());
    head[4..6].copy_from_slice(&(length as u16).to_be_bytes());
    let pseudo = pseudo(from, whom, protocol::UDP, length);
    let sum = match sum(&[&pseudo, &head, bytes]) {
        0 => 0xffff,
        sum => sum,
    };
    head[6..].copy_from_slice(&sum.to_be_bytes());
    let datagram = frame.get_mut(ETHERNET + IP..all)?;
    datagram.get_mut(..8)?.copy_from_slice(&head);
    datagram.get_mut(8..)?.copy_from_slice(bytes);
    Some(all.max(SHORTEST))
}

/// Ports and bytes of a datagram of UDP whose sum is right, if it has one.
pub fn read_udp<'a>(datagram: &Datagram<'a>) -> Option<([u16; 2], &'a [u8])> {
    let bytes = datagram.carries;
    let length = usize::from(half(bytes, 4)?);
    let whole = bytes.get(..length)?;
    let carries = whole.get(8..)?;
    let pseudo = pseudo(datagram.from, datagram.to, protocol::UDP, length);
    let summed = half(whole, 6)? != 0;
    let is = datagram.protocol == protocol::UDP && (!summed || sum(&[&pseudo, whole]) == 0);
    is.then_some(([half(whole, 0)?, half(whole, 2)?], carries))
}
