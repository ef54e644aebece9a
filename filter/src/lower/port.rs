//! Ports and ranges of ports, above IPv4 and IPv6.
//!
//! Above IPv4 only first fragments have ports; above IPv6 the transport header must follow the IPv6
//! header directly.

use super::protocol::{SCTP, TCP, UDP};
use super::{FieldBase, Lowering, Result, link};
use crate::expression::Rel;
use crate::keyword::{Direction, Proto};
use crate::program::Fragment;

/// Lowest and highest port.
type Range = (u16, u16);

impl Lowering<'_> {
    pub(super) fn port(
        &mut self,
        port: u16,
        transport: Option<u32>,
        direction: Option<Direction>,
    ) -> Result<Fragment> {
        self.ports((port, port), true, transport, direction)
    }

    pub(super) fn port_range(
        &mut self,
        (a, b): Range,
        transport: Option<u32>,
        direction: Option<Direction>,
    ) -> Result<Fragment> {
        self.ports((a.min(b), a.max(b)), false, transport, direction)
    }

    fn ports(
        &mut self,
        range: Range,
        single: bool,
        transport: Option<u32>,
        direction: Option<Direction>,
    ) -> Result<Fragment> {
        let six = self.ports_of(true, range, single, transport, direction)?;
        let four = self.ports_of(false, range, single, transport, direction)?;
        Ok(self.or(six, four))
    }

    pub(super) fn ports_of(
        &mut self,
        six: bool,
        range: Range,
        single: bool,
        transport: Option<u32>,
        direction: Option<Direction>,
    ) -> Result<Fragment> {
        let ip = self.link_protocol(if six { link::IP6 } else { link::IP })?;
        let above = match transport {
            Some(transport) => self.transport_ports(six, range, single, transport, direction)?,
            None => {
                let tcp = self.transport_ports(six, range, single, TCP, direction)?;
                let udp = self.transport_ports(six, range, single, UDP, direction)?;
                let sctp = self.transport_ports(six, range, single, SCTP, direction)?;
                let both = self.or(tcp, udp);
                self.or(sctp, both)
            }
        };
        Ok(self.and(ip, above))
    }

    fn transport_ports(
        &mut self,
        six: bool,
        range: Range,
        single: bool,
        transport: u32,
        direction: Option<Direction>,
    ) -> Result<Fragment> {
        let protocol = self.equal(FieldBase::Network, if six { 6 } else { 9 }, 1, transport)?;
        let first = if six {
            protocol
        } else {
            let first = self.first_fragment()?;
            self.and(protocol, first)
        };
        let from = if six {
            FieldBase::Transport6
        } else {
            FieldBase::Transport4
        };
        let one = |g: &mut Self, off: u32| {
            if single {
                return g.equal(from, off, 2, range.0.into());
            }
            let least = g.compare(from, off, 2, Rel::Ge, range.0.into())?;
            let above = g.compare(from, off, 2, Rel::Gt, range.1.into())?;
            let most = g.not(above);
            Ok(g.and(least, most))
        };
        let ports = match direction {
            Some(Direction::Src) => one(self, 0)?,
            Some(Direction::Dst) => one(self, 2)?,
            other => {
                let (src, dst) = (one(self, 0)?, one(self, 2)?);
                if other == Some(Direction::Both) {
                    self.and(src, dst)
                } else {
                    self.or(src, dst)
                }
            }
        };
        Ok(self.and(first, ports))
    }

    /// The port and transport protocol of a service's name; without the protocol if it has the port
    /// with both.
    pub(super) fn port_name(&self, name: &str, proto: Option<Proto>) -> Result<(u16, Option<u32>)> {
        let asked = self.transport(proto)?;
        if let Ok(port) = name.parse() {
            return Ok((port, asked));
        }
        let (tcp, udp) = (self.names.port(name, "tcp"), self.names.port(name, "udp"));
        let (port, found) = match (tcp, udp) {
            (Some(tcp), Some(udp)) if tcp == udp => (tcp, None),
            (Some(tcp), _) => (tcp, Some(TCP)),
            (None, Some(udp)) => (udp, Some(UDP)),
            (None, None) => match self.names.port(name, "sctp") {
                Some(sctp) => (sctp, Some(SCTP)),
                None if is_range(name) => {
                    return Err(self
                        .error(alloc::format!("`{name}` is no port"))
                        .suggest(alloc::format!("write `portrange {name}`")));
                }
                None => return Err(self.unknown("service", name, "write its port's number")),
            },
        };
        match (asked, found) {
            (Some(asked), Some(found)) if asked != found => {
                let transport = match found {
                    TCP => "tcp",
                    UDP => "udp",
                    _ => "sctp",
                };
                Err(self
                    .error(alloc::format!("the service `{name}` is one of {transport}"))
                    .suggest(alloc::format!("write `{transport} port {name}`")))
            }
            (Some(asked), _) => Ok((port, Some(asked))),
            (None, found) => Ok((port, found)),
        }
    }

    /// The range and transport protocol of `low-high`.
    pub(super) fn range_name(
        &self,
        name: &str,
        proto: Option<Proto>,
    ) -> Result<(Range, Option<u32>)> {
        // Names of services have dashes, too: every one may be the middle.
        for (at, _) in name.match_indices('-') {
            let (low, high) = (&name[..at], &name[at + 1..]);
            let (Ok(low), Ok(high)) = (self.port_name(low, proto), self.port_name(high, proto))
            else {
                continue;
            };
            let transport = if low.1 == high.1 { low.1 } else { None };
            return Ok(((low.0, high.0), transport));
        }
        Err(self
            .error(alloc::format!("`{name}` is no range of ports"))
            .suggest("write it as `portrange 6000-6010`"))
    }
}

/// Whether it is two numbers.
fn is_range(name: &str) -> bool {
    let number = |text: &str| text.parse::<u16>().is_ok();
    name.split_once('-')
        .is_some_and(|(low, high)| number(low) && number(high))
}
