//! Hosts and networks, and the choice of what a name or number after qualifiers is.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};

use super::protocol::{SCTP, TCP, UDP};
use super::{FieldBase, Lowering, Result, link};
use crate::expression::Rel;
use crate::keyword::{Direction, IdKind, Proto};
use crate::program::Fragment;
use crate::tree::{Id, Qualifiers};

/// One address of a packet, or one of both.
enum Side {
    One(u32),
    Both,
    Either,
}

impl Side {
    fn of(direction: Option<Direction>, src: u32, dst: u32) -> Side {
        match direction {
            Some(Direction::Src) => Side::One(src),
            Some(Direction::Dst) => Side::One(dst),
            Some(Direction::Both) => Side::Both,
            Some(Direction::Either) | None => Side::Either,
        }
    }
}

impl Lowering<'_> {
    pub(super) fn id(&mut self, qualifiers: Qualifiers, id: &Id) -> Result<Fragment> {
        if qualifiers.gateway {
            return Err(self
                .error("`gateway` is not supported")
                .suggest("write `ether host MAC and not host ADDRESS`"));
        }
        match id {
            Id::Name(name) => self.name(qualifiers, name),
            Id::Number(value) => self.number(qualifiers, *value),
            Id::Dotted(text) => self.dotted(qualifiers, text),
            Id::Prefix(text, length) => {
                let (address, bits) = self.address(text)?;
                if *length > 32 {
                    return Err(self.error("an IPv4 prefix has at most 32 bits"));
                }
                let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
                self.network(qualifiers, shifted(address, bits), mask)
            }
            Id::Masked(text, mask) => {
                let (address, bits) = self.address(text)?;
                let (mask, mask_bits) = self.address(mask)?;
                self.network(qualifiers, shifted(address, bits), shifted(mask, mask_bits))
            }
            Id::Six(address, length) => self.six(qualifiers, *address, *length),
            Id::Ether(address) => {
                if qualifiers.proto != Some(Proto::Link)
                    || !matches!(qualifiers.kind, None | Some(IdKind::Host))
                {
                    return Err(self
                        .error("a link address belongs to `ether`")
                        .suggest("write `ether host`, `ether src` or `ether dst`"));
                }
                self.ether(address, qualifiers.direction)
            }
        }
    }

    fn name(&mut self, qualifiers: Qualifiers, name: &str) -> Result<Fragment> {
        let proto = qualifiers.proto;
        match qualifiers.kind {
            Some(IdKind::Net) => match self.names.network(name) {
                Some(0) | None => {
                    Err(self.unknown("network", name, "write it as a number, such as 10.0.0.0/8"))
                }
                Some(number) => self.number_of_network(qualifiers, number),
            },
            None | Some(IdKind::Host) if proto == Some(Proto::Link) => match self.names.ether(name)
            {
                Some(address) => self.ether(&address, qualifiers.direction),
                None => Err(self.unknown("host", name, "write its link address")),
            },
            None | Some(IdKind::Host) => self.host_name(qualifiers, name),
            Some(IdKind::Port) => {
                let (port, transport) = self.port_name(name, proto)?;
                self.port(port, transport, qualifiers.direction)
            }
            Some(IdKind::PortRange) => {
                let (range, transport) = self.range_name(name, proto)?;
                self.port_range(range, transport, qualifiers.direction)
            }
            Some(IdKind::Proto) => {
                let value = self.protocol_name(name, proto)?;
                self.protocol_number(value, proto)
            }
            Some(IdKind::ProtoChain) => {
                let value = self.protocol_name(name, proto)?;
                self.chain(value, proto)
            }
        }
    }

    /// An error about a name, with one that is like it if there is one.
    pub(super) fn unknown(&self, what: &str, name: &str, otherwise: &str) -> crate::Error {
        let error = self.error(alloc::format!("no {what} is called `{name}`"));
        match self.names.like(name) {
            Some(near) => error.suggest(alloc::format!("did you mean `{near}`?")),
            None => error.suggest(otherwise),
        }
    }

    fn host_name(&mut self, qualifiers: Qualifiers, name: &str) -> Result<Fragment> {
        let mut any = None;
        for address in self.names.host(name) {
            let one = match (address, qualifiers.proto) {
                (IpAddr::V4(_), Some(Proto::Ip6)) | (IpAddr::V6(_), Some(Proto::Ip)) => continue,
                (IpAddr::V4(four), _) => self.host(qualifiers, four.to_bits(), u32::MAX)?,
                (IpAddr::V6(six), _) => self.host6(qualifiers, six.to_bits(), u128::MAX)?,
            };
            any = Some(match any {
                Some(any) => self.or(any, one),
                None => one,
            });
        }
        any.ok_or_else(|| self.unknown("host", name, "write its address"))
    }

    fn protocol_name(&mut self, name: &str, proto: Option<Proto>) -> Result<u32> {
        let known = match proto {
            None | Some(Proto::Ip | Proto::Ip6) => self.names.protocol(name).map(u32::from),
            Some(Proto::Link) => match name {
                "loopback" => Some(link::LOOPBACK),
                "aarp" | "arp" | "atalk" | "decnet" | "ip" | "ip6" | "lat" | "mopdl" | "moprc"
                | "rarp" | "sca" | "iso" | "stp" | "ipx" | "netbeui" => {
                    match crate::keyword::keyword(name) {
                        Some(crate::keyword::Keyword::Proto(proto)) => {
                            super::protocol::in_link(proto)
                        }
                        _ => None,
                    }
                }
                _ => None,
            },
            Some(Proto::Iso) => match name {
                "clnp" => Some(0x81),
                "esis" => Some(0x82),
                "isis" => Some(0x83),
                _ => None,
            },
            Some(_) => None,
        };
        known.ok_or_else(|| self.unknown("protocol", name, "write its number"))
    }

    /// `net 10`: the number's highest byte that is not zero is the first.
    fn number_of_network(&mut self, qualifiers: Qualifiers, number: u32) -> Result<Fragment> {
        let bits = if number == 0 {
            0
        } else {
            number.leading_zeros() & !7
        };
        self.host(qualifiers, number << bits, u32::MAX << bits)
    }

    fn number(&mut self, qualifiers: Qualifiers, value: u32) -> Result<Fragment> {
        match qualifiers.kind {
            None | Some(IdKind::Host | IdKind::Net) => match (qualifiers.proto, qualifiers.kind) {
                (Some(Proto::Link), _) => Err(self
                    .error("a number is no link address")
                    .suggest("write it as 02:00:00:00:00:01")),
                (Some(Proto::Decnet), _) => self.decnet(value, qualifiers.direction),
                (_, Some(IdKind::Net)) => self.number_of_network(qualifiers, value),
                _ => self.host(qualifiers, value, u32::MAX),
            },
            Some(IdKind::Port | IdKind::PortRange) => {
                let transport = self.transport(qualifiers.proto)?;
                let Ok(port) = u16::try_from(value) else {
                    return Err(self.error("ports go up to 65535"));
                };
                if qualifiers.kind == Some(IdKind::Port) {
                    self.port(port, transport, qualifiers.direction)
                } else {
                    self.port_range((port, port), transport, qualifiers.direction)
                }
            }
            Some(IdKind::Proto) => self.protocol_number(value, qualifiers.proto),
            Some(IdKind::ProtoChain) => self.chain(value, qualifiers.proto),
        }
    }

    /// The number of transport protocol for a port's qualifier.
    pub(super) fn transport(&self, proto: Option<Proto>) -> Result<Option<u32>> {
        Ok(Some(match proto {
            None => return Ok(None),
            Some(Proto::Tcp) => TCP,
            Some(Proto::Udp) => UDP,
            Some(Proto::Sctp) => SCTP,
            Some(_) => {
                return Err(self
                    .error("this protocol has no ports")
                    .suggest("`tcp`, `udp` and `sctp` have"));
            }
        }))
    }

    /// The value and number of bits of one to four numbers with dots.
    fn address(&self, text: &str) -> Result<(u32, u32)> {
        let (mut address, mut bits) = (0u32, 0);
        for part in text.split('.') {
            let byte = part.bytes().try_fold(0u32, |value, digit| {
                let digit = u32::from(digit).checked_sub(48).filter(|d| *d < 10)?;
                Some((value * 10 + digit).min(256))
            });
            let Some(byte) = byte.filter(|byte| *byte < 256) else {
                return Err(self.error(alloc::format!(
                    "`{text}` is no IPv4 address: `{part}` is not a number from 0 to 255"
                )));
            };
            address = address << 8 | byte;
            bits += 8;
        }
        Ok((address, bits))
    }

    fn dotted(&mut self, qualifiers: Qualifiers, text: &str) -> Result<Fragment> {
        if qualifiers.proto == Some(Proto::Decnet) {
            let parts: Vec<&str> = text.split('.').collect();
            let [area, node] = parts[..] else {
                return Err(self.error("a DECnet address is an area and a node, such as 1.5"));
            };
            let number = |text: &str| text.parse::<u32>().map_err(|_| self.error("not a number"));
            let address = (number(area)? << 10 & 0xfc00) | (number(node)? & 0x03ff);
            return self.decnet(address, qualifiers.direction);
        }
        if !matches!(qualifiers.kind, None | Some(IdKind::Host | IdKind::Net)) {
            return Err(self
                .error("an address stands where a port or protocol should")
                .suggest(alloc::format!("write `host {text}`")));
        }
        if qualifiers.proto == Some(Proto::Link) {
            return Err(self
                .error("an IPv4 address is no link address")
                .suggest(alloc::format!("write `host {text}`")));
        }
        let (address, bits) = self.address(text)?;
        self.host(qualifiers, shifted(address, bits), u32::MAX << (32 - bits))
    }

    fn network(&mut self, qualifiers: Qualifiers, address: u32, mask: u32) -> Result<Fragment> {
        if address & !mask != 0 {
            let right = core::net::Ipv4Addr::from_bits(address & mask);
            let length = mask.leading_ones();
            let mask = core::net::Ipv4Addr::from_bits(mask);
            let network = match length == mask.to_bits().count_ones() {
                true => alloc::format!("net {right}/{length}"),
                false => alloc::format!("net {right} mask {mask}"),
            };
            return Err(self
                .error("the address has bits outside of its mask")
                .suggest(alloc::format!("did you mean `{network}`?")));
        }
        if qualifiers.kind != Some(IdKind::Net) {
            return Err(self
                .error("a mask belongs to `net`")
                .suggest("write `net` instead of `host`"));
        }
        self.host(qualifiers, address, mask)
    }

    fn six(
        &mut self,
        qualifiers: Qualifiers,
        address: Ipv6Addr,
        length: Option<u32>,
    ) -> Result<Fragment> {
        let length = length.unwrap_or(128);
        if length > 128 {
            return Err(self.error("an IPv6 prefix has at most 128 bits"));
        }
        let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
        let bits = address.to_bits();
        if bits & !mask != 0 {
            let right = Ipv6Addr::from_bits(bits & mask);
            return Err(self
                .error("the address has bits outside of its mask")
                .suggest(alloc::format!("did you mean `net {right}/{length}`?")));
        }
        match qualifiers.kind {
            None | Some(IdKind::Host) if length != 128 => Err(self
                .error("a mask belongs to `net`")
                .suggest("write `net` instead of `host`")),
            None | Some(IdKind::Host | IdKind::Net) => self.host6(qualifiers, bits, mask),
            Some(_) => Err(self.error("an address stands where a port or protocol should")),
        }
    }

    fn host(&mut self, qualifiers: Qualifiers, address: u32, mask: u32) -> Result<Fragment> {
        let direction = qualifiers.direction;
        match qualifiers.proto {
            None => {
                let ip = self.host4(direction, address, mask, link::IP)?;
                if self.labels > 0 {
                    return Ok(ip);
                }
                let arp = self.host4(direction, address, mask, link::ARP)?;
                let any = self.or(ip, arp);
                let rarp = self.host4(direction, address, mask, link::RARP)?;
                Ok(self.or(any, rarp))
            }
            Some(Proto::Ip) => self.host4(direction, address, mask, link::IP),
            Some(Proto::Arp) => self.host4(direction, address, mask, link::ARP),
            Some(Proto::Rarp) => self.host4(direction, address, mask, link::RARP),
            Some(_) => Err(self
                .error("this protocol has no IPv4 addresses")
                .suggest("`ip`, `arp` and `rarp` have; write `tcp and host …`")),
        }
    }

    fn host4(
        &mut self,
        direction: Option<Direction>,
        address: u32,
        mask: u32,
        protocol: u32,
    ) -> Result<Fragment> {
        let (src, dst) = if protocol == link::IP {
            (12, 16)
        } else {
            (14, 24)
        };
        let off = match Side::of(direction, src, dst) {
            Side::One(off) => off,
            side => {
                let src = self.host4(Some(Direction::Src), address, mask, protocol)?;
                let dst = self.host4(Some(Direction::Dst), address, mask, protocol)?;
                return Ok(self.joined(&side, src, dst));
            }
        };
        let link = self.link_protocol(protocol)?;
        let equal = self.masked(FieldBase::Network, off, 4, mask, Rel::Eq, address)?;
        Ok(self.and(link, equal))
    }

    fn joined(&mut self, side: &Side, src: Fragment, dst: Fragment) -> Fragment {
        match side {
            Side::Both => self.and(src, dst),
            _ => self.or(src, dst),
        }
    }

    fn host6(&mut self, qualifiers: Qualifiers, address: u128, mask: u128) -> Result<Fragment> {
        if !matches!(qualifiers.proto, None | Some(Proto::Ip6)) {
            return Err(self
                .error("this protocol has no IPv6 addresses")
                .suggest("`ip6` has; write `tcp and host …`"));
        }
        self.side6(qualifiers.direction, address, mask)
    }

    fn side6(
        &mut self,
        direction: Option<Direction>,
        address: u128,
        mask: u128,
    ) -> Result<Fragment> {
        let off = match Side::of(direction, 8, 24) {
            Side::One(off) => off,
            side => {
                let src = self.side6(Some(Direction::Src), address, mask)?;
                let dst = self.side6(Some(Direction::Dst), address, mask)?;
                return Ok(self.joined(&side, src, dst));
            }
        };
        let mut all = self.link_protocol(link::IP6)?;
        for word in 0..4 {
            let shift = 96 - 32 * word;
            let (value, mask) = ((address >> shift) as u32, (mask >> shift) as u32);
            let one = self.masked(FieldBase::Network, off + 4 * word, 4, mask, Rel::Eq, value)?;
            all = self.and(all, one);
        }
        Ok(all)
    }

    fn ether(&mut self, address: &[u8; 6], direction: Option<Direction>) -> Result<Fragment> {
        self.needs_ethernet("a link address")?;
        let part = match Side::of(direction, 6, 0) {
            Side::One(off) => self.bytes(FieldBase::LinkHeader, off, address)?,
            side => {
                let src = self.bytes(FieldBase::LinkHeader, 6, address)?;
                let dst = self.bytes(FieldBase::LinkHeader, 0, address)?;
                self.joined(&side, src, dst)
            }
        };
        self.with_link_header(part)
    }

    /// A DECnet node, in the long and the short header, with and without a byte of padding.
    fn decnet(&mut self, address: u32, direction: Option<Direction>) -> Result<Fragment> {
        let (long, short) = match direction {
            Some(Direction::Src) => (15, 3),
            Some(Direction::Dst) => (7, 1),
            other => {
                let src = self.decnet(address, Some(Direction::Src))?;
                let dst = self.decnet(address, Some(Direction::Dst))?;
                return Ok(self.joined(&Side::of(other, 0, 0), src, dst));
            }
        };
        // All of DECnet is little-endian.
        let address = u32::from((address as u16).swap_bytes());
        let mut any = None;
        for (size, mask, value, off) in [
            (2, 0xff07, 0x8106, 3 + long),
            (1, 0x07, 0x06, 2 + long),
            (2, 0xff07, 0x8102, 3 + short),
            (1, 0x07, 0x02, 2 + short),
        ] {
            let form = self.masked(FieldBase::Network, 2, size, mask, Rel::Eq, value)?;
            let node = self.equal(FieldBase::Network, off, 2, address)?;
            let one = self.and(form, node);
            // Each form is tried before those that stand above it.
            any = Some(match any {
                Some(any) => self.or(one, any),
                None => one,
            });
        }
        let link = self.link_protocol(link::DECNET)?;
        Ok(self.and(link, any.unwrap_or_default()))
    }
}

/// An address of fewer than four bytes begins with them.
fn shifted(address: u32, bits: u32) -> u32 {
    address << (32 - bits)
}
