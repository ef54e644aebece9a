//! What the link header says of the protocol inside: Ethernet types, LLC and SNAP, PPP numbers,
//! labels.

use super::{FieldBase, Lowering, Result};
use crate::expression::Rel;
use crate::keyword::Proto;
use crate::link::Link;
use crate::program::Fragment;
use crate::tree::{ByteOp, Llc};

pub(super) const IP: u32 = 0x0800;
pub(super) const ARP: u32 = 0x0806;
pub(super) const RARP: u32 = 0x8035;
pub(super) const IP6: u32 = 0x86dd;
pub(super) const DECNET: u32 = 0x6003;
pub(super) const ATALK: u32 = 0x809b;
pub(super) const AARP: u32 = 0x80f3;
pub(super) const IPX: u32 = 0x8137;
pub(super) const LAT: u32 = 0x6004;
pub(super) const SCA: u32 = 0x6007;
pub(super) const MOPDL: u32 = 0x6001;
pub(super) const MOPRC: u32 = 0x6002;
pub(super) const LOOPBACK: u32 = 0x9000;
pub(super) const VLANS: [u32; 3] = [0x8100, 0x88a8, 0x9100];
pub(super) const MPLS: u32 = 0x8847;
pub(super) const PPPOE_DISCOVERY: u32 = 0x8863;
pub(super) const PPPOE_SESSION: u32 = 0x8864;
/// Ethernet inside of something else.
pub(super) const BRIDGED: u32 = 0x6558;

/// Service access points of LLC; below all Ethernet types.
pub(super) const SAP_IP: u32 = 0x06;
pub(super) const SAP_ISO: u32 = 0xfe;
pub(super) const SAP_STP: u32 = 0x42;
pub(super) const SAP_IPX: u32 = 0xe0;
pub(super) const SAP_NETBEUI: u32 = 0xf0;
const SAP_SNAP: u8 = 0xaa;

/// The largest length that the type field can be.
const MAX_LENGTH: u32 = 1500;

impl Lowering<'_> {
    /// The packet's protocol above the link is this Ethernet type or service access point.
    pub(super) fn link_protocol(&mut self, protocol: u32) -> Result<Fragment> {
        if self.labels > 0 {
            return self.labelled(protocol);
        }
        match self.link {
            Link::Ethernet => self.ethernet(protocol),
            _ => self.other_link(protocol),
        }
    }

    /// Behind the last label there is no type: IP's version tells.
    fn labelled(&mut self, protocol: u32) -> Result<Fragment> {
        let version = match protocol {
            IP => 0x40,
            IP6 => 0x60,
            _ => {
                return Err(self
                    .error("this protocol is not recognised behind MPLS labels")
                    .suggest("only `ip` and `ip6` are; say it before `mpls`"));
            }
        };
        let bottom = self.masked(FieldBase::Network, 0u32.wrapping_sub(2), 1, 1, Rel::Eq, 1)?;
        let version = self.masked(FieldBase::Network, 0, 1, 0xf0, Rel::Eq, version)?;
        Ok(self.and(bottom, version))
    }

    /// The type field is a length: the frame has an LLC header.
    fn is_length(&mut self) -> Result<Fragment> {
        let above = self.compare(FieldBase::LinkType, 0, 2, Rel::Gt, MAX_LENGTH)?;
        Ok(self.not(above))
    }

    fn ethernet(&mut self, protocol: u32) -> Result<Fragment> {
        match protocol {
            SAP_ISO | SAP_IP | SAP_NETBEUI => {
                let length = self.is_length()?;
                let both = self.equal(FieldBase::Llc, 0, 2, protocol << 8 | protocol)?;
                Ok(self.and(length, both))
            }
            SAP_IPX => {
                let access = self.equal(FieldBase::Llc, 0, 1, SAP_IPX)?;
                let raw = self.equal(FieldBase::Llc, 0, 2, 0xffff)?;
                let frames = self.or(access, raw);
                let snap = self.snap(0, IPX)?;
                let frames = self.or(snap, frames);
                let length = self.is_length()?;
                let frames = self.and(length, frames);
                let second = self.equal(FieldBase::LinkType, 0, 2, IPX)?;
                Ok(self.or(second, frames))
            }
            ATALK | AARP => {
                let length = self.is_length()?;
                let organization = if protocol == ATALK { 0x08_0007 } else { 0 };
                let snap = self.snap(organization, protocol)?;
                let frames = self.and(length, snap);
                let second = self.equal(FieldBase::LinkType, 0, 2, protocol)?;
                Ok(self.or(second, frames))
            }
            0..=MAX_LENGTH => {
                let length = self.is_length()?;
                let access = self.equal(FieldBase::LinkType, 2, 1, protocol)?;
                Ok(self.and(length, access))
            }
            _ => self.equal(FieldBase::LinkType, 0, 2, protocol),
        }
    }

    pub(super) fn snap(&mut self, organization: u32, protocol: u32) -> Result<Fragment> {
        let [_, a, b, c] = organization.to_be_bytes();
        let [.., d, e] = protocol.to_be_bytes();
        self.bytes(FieldBase::Llc, 0, &[SAP_SNAP, SAP_SNAP, 3, a, b, c, d, e])
    }

    /// Fails where the link is not Ethernet.
    pub(super) fn needs_ethernet(&self, what: &str) -> Result<()> {
        if self.link == Link::Ethernet {
            return Ok(());
        }
        if self.link != self.options.link {
            return Err(self
                .error(alloc::format!("{what} is not found inside PPP"))
                .suggest("say it before `pppoes`"));
        }
        let link = self.link.name();
        Err(self.error(alloc::format!(
            "{what} is not found on this link: packets are {link}"
        )))
    }

    /// Inside Geneve there is a link header only if its type says so.
    pub(super) fn with_link_header(&mut self, part: Fragment) -> Result<Fragment> {
        let (true, Some(header), Some(payload)) = (
            self.geneve,
            self.link_header.variable,
            self.payload.variable,
        ) else {
            return Ok(part);
        };
        let header = self.expr(crate::expression::Expr::Var(header))?;
        let payload = self.expr(crate::expression::Expr::Var(payload))?;
        let same = self.build.test(header, Rel::Eq, payload);
        let differ = self.not(same);
        Ok(self.and(differ, part))
    }

    pub(super) fn broadcast(&mut self, proto: Option<Proto>) -> Result<Fragment> {
        match proto {
            None | Some(Proto::Link) => {
                self.needs_ethernet("`broadcast`")?;
                let all = self.bytes(FieldBase::LinkHeader, 0, &[0xff; 6])?;
                self.with_link_header(all)
            }
            Some(Proto::Ip) => {
                let Some(netmask) = self.options.netmask else {
                    return Err(self
                        .error("`ip broadcast` needs the netmask of the network")
                        .suggest("give it (`--netmask`), or write `ether broadcast`"));
                };
                let ip = self.link_protocol(IP)?;
                let zeros = self.masked(FieldBase::Network, 16, 4, !netmask, Rel::Eq, 0)?;
                let ones = self.masked(FieldBase::Network, 16, 4, !netmask, Rel::Eq, !netmask)?;
                let either = self.or(zeros, ones);
                Ok(self.and(ip, either))
            }
            Some(_) => Err(self
                .error("this protocol has no broadcasts")
                .suggest("`ether broadcast` and `ip broadcast` exist")),
        }
    }

    pub(super) fn multicast(&mut self, proto: Option<Proto>) -> Result<Fragment> {
        match proto {
            None | Some(Proto::Link) => {
                self.needs_ethernet("`multicast`")?;
                let group = self.compare(FieldBase::LinkHeader, 0, 1, Rel::Set, 1)?;
                self.with_link_header(group)
            }
            Some(Proto::Ip) => {
                let ip = self.link_protocol(IP)?;
                let group = self.compare(FieldBase::Network, 16, 1, Rel::Ge, 224)?;
                Ok(self.and(ip, group))
            }
            Some(Proto::Ip6) => {
                let ip = self.link_protocol(IP6)?;
                let group = self.equal(FieldBase::Network, 24, 1, 255)?;
                Ok(self.and(ip, group))
            }
            Some(_) => Err(self
                .error("this protocol has no multicasts")
                .suggest("`ether multicast`, `ip multicast` and `ip6 multicast` exist")),
        }
    }

    pub(super) fn llc(&mut self, kind: Llc) -> Result<Fragment> {
        self.needs_ethernet("`llc`")?;
        let length = self.is_length()?;
        let raw = self.equal(FieldBase::Llc, 0, 2, 0xffff)?;
        let other = self.not(raw);
        let frame = self.and(length, other);
        let (mask, value) = match kind {
            Llc::Any => return Ok(frame),
            Llc::I => {
                let odd = self.compare(FieldBase::Llc, 2, 1, Rel::Set, 1)?;
                let even = self.not(odd);
                return Ok(self.and(frame, even));
            }
            Llc::S => (3, 1),
            Llc::U => (3, 3),
            Llc::Supervisory(kind) => (0x0f, kind),
            Llc::Unnumbered(kind) => (0xef, kind),
        };
        let control = self.masked(FieldBase::Llc, 2, 1, mask, Rel::Eq, value.into())?;
        Ok(self.and(frame, control))
    }

    pub(super) fn byte(&mut self, index: u32, op: ByteOp, value: u32) -> Result<Fragment> {
        use crate::expression::Op;
        let (op, zero) = match op {
            ByteOp::Equal => return self.equal(FieldBase::LinkHeader, index, 1, value),
            ByteOp::Greater => {
                return self.compare(FieldBase::LinkHeader, index, 1, Rel::Gt, value);
            }
            ByteOp::Less => {
                let least = self.compare(FieldBase::LinkHeader, index, 1, Rel::Ge, value)?;
                return Ok(self.not(least));
            }
            ByteOp::And => (Op::And, self.build.exprs.number(0)),
            ByteOp::Or => (Op::Or, self.build.exprs.number(0)),
        };
        let field = self.field(FieldBase::LinkHeader, index, 1)?;
        let result = self.with(op, field, value)?;
        let none = self.build.test(result, Rel::Eq, zero);
        Ok(self.not(none))
    }
}

/// The number of a protocol in PPP.
pub(super) fn ppp(protocol: u32) -> u32 {
    match protocol {
        IP => 0x21,
        IP6 => 0x57,
        DECNET => 0x27,
        ATALK => 0x29,
        0x0600 => 0x25,
        SAP_ISO => 0x23,
        SAP_STP => 0x31,
        SAP_IPX => 0x2b,
        other => other,
    }
}
