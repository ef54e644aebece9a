//! Other links than Ethernet: where their headers end, and how they name what they carry.

use super::{FieldBase, HeaderOffset, Lowering, Result, link};
use crate::expression::{Expr, ExprId, Op, Rel};
use crate::link::Link;
use crate::program::Fragment;

/// Types in a cooked header that are none: Novell's frames, and frames with an LLC header.
const COOKED_NOVELL: u32 = 1;
const COOKED_LLC: u32 = 4;
/// Families of a loopback: IPv4's is the same everywhere, IPv6's is that of Linux, NetBSD and
/// OpenBSD, FreeBSD, or macOS.
const FAMILY_IP: u32 = 2;
const FAMILIES_IP6: [u32; 4] = [10, 24, 28, 30];
/// Bytes of an 802.11 data frame's header, and of the SNAP header behind it.
const WIRELESS: u32 = 24;
const SNAP: u32 = 8;

impl Lowering<'_> {
    /// Says where the link's header ends; what has to be computed first, if anything has.
    pub(super) fn begin(&mut self) -> Result<Option<Fragment>> {
        let (kind, payload) = match self.link {
            Link::Ethernet => (12, 14),
            Link::Raw => (0, 0),
            Link::Null | Link::Loop => (0, 4),
            Link::Sll => (14, 16),
            Link::Sll2 => (0, 20),
            Link::Ppp | Link::Hdlc => (2, 4),
            Link::Wireless | Link::Radiotap => return self.begin_wireless().map(Some),
        };
        self.link_type.constant = kind;
        self.payload.constant = payload;
        Ok(None)
    }

    /// A data frame's header has two bytes more if it says a quality of service, and six if it goes
    /// from station to station.
    fn begin_wireless(&mut self) -> Result<Fragment> {
        let mut before = None;
        let mut start = self.build.exprs.number(0);
        if self.link == Link::Radiotap {
            // The only field of these headers with the least byte first.
            let (low, high) = (self.at(None, 2)?, self.at(None, 3)?);
            let high = self.with(Op::Shl, high, 8)?;
            let length = self.bin(Op::Or, high, low)?;
            let variable = self.variable()?;
            before = Some(self.build.assign(variable, length));
            self.link_header.variable = Some(variable);
            start = self.expr(Expr::Var(variable))?;
        }
        let (kind, flags) = (self.header(0)?, self.header(1)?);
        let quality = self.with(Op::Shr, kind, 7)?;
        let quality = self.with(Op::Shl, quality, 1)?;
        let other = self.with(Op::Shr, flags, 1)?;
        let both = self.bin(Op::And, flags, other)?;
        let both = self.with(Op::And, both, 1)?;
        let relayed = self.with(Op::Mul, both, 6)?;
        let more = self.bin(Op::Add, quality, relayed)?;
        let more = self.with(Op::Add, more, WIRELESS)?;
        let end = self.bin(Op::Add, start, more)?;
        let variable = self.variable()?;
        let set = self.build.assign(variable, end);
        let moved = |constant| HeaderOffset {
            constant,
            variable: Some(variable),
        };
        self.link_type = moved(SNAP - 2);
        self.payload = moved(0);
        self.network = SNAP;
        Ok(match before {
            Some(before) => self.and(before, set),
            None => set,
        })
    }

    fn at(&mut self, base: Option<ExprId>, off: u32) -> Result<ExprId> {
        self.expr(Expr::Load { size: 1, base, off })
    }

    fn header(&mut self, off: u32) -> Result<ExprId> {
        let base = self.variable_value(self.link_header)?;
        self.at(base, off)
    }

    /// No packet is that.
    fn never(&mut self) -> Fragment {
        let [zero, one] = [0, 1].map(|value| self.build.exprs.number(value));
        self.build.test(zero, Rel::Eq, one)
    }

    /// The packet's protocol above a link other than Ethernet.
    pub(super) fn other_link(&mut self, protocol: u32) -> Result<Fragment> {
        match self.link {
            Link::Ppp => self.equal(FieldBase::LinkType, 0, 2, link::ppp(protocol)),
            Link::Hdlc if protocol == link::SAP_ISO => {
                self.equal(FieldBase::LinkType, 0, 2, protocol << 8 | protocol)
            }
            Link::Hdlc => self.equal(FieldBase::LinkType, 0, 2, protocol),
            Link::Sll | Link::Sll2 => self.cooked(protocol),
            Link::Wireless | Link::Radiotap => {
                let data = self.masked(FieldBase::LinkHeader, 0, 1, 0x0c, Rel::Eq, 8)?;
                let inside = self.behind_llc(protocol)?;
                Ok(self.and(data, inside))
            }
            _ => match protocol {
                link::IP => self.version(0x40, &[FAMILY_IP]),
                link::IP6 => self.version(0x60, &FAMILIES_IP6),
                _ => Ok(self.never()),
            },
        }
    }

    /// IP of a version: by itself, or behind one of these families.
    fn version(&mut self, version: u32, families: &[u32]) -> Result<Fragment> {
        if self.link == Link::Raw {
            return self.masked(FieldBase::Network, 0, 1, 0xf0, Rel::Eq, version);
        }
        let mut all = self.never();
        for family in families {
            let one = self.equal(FieldBase::LinkHeader, 0, 4, *family)?;
            all = self.or(all, one);
            if self.link == Link::Null {
                let swapped = family.swap_bytes();
                let one = self.equal(FieldBase::LinkHeader, 0, 4, swapped)?;
                all = self.or(all, one);
            }
        }
        Ok(all)
    }

    fn cooked(&mut self, protocol: u32) -> Result<Fragment> {
        if protocol > 1500 && ![link::ATALK, link::AARP].contains(&protocol) {
            return self.equal(FieldBase::LinkType, 0, 2, protocol);
        }
        let frame = self.equal(FieldBase::LinkType, 0, 2, COOKED_LLC)?;
        let inside = self.behind_llc(protocol)?;
        let frame = self.and(frame, inside);
        let direct = match protocol {
            link::SAP_IPX => {
                let novell = self.equal(FieldBase::LinkType, 0, 2, COOKED_NOVELL)?;
                let second = self.equal(FieldBase::LinkType, 0, 2, link::IPX)?;
                self.or(novell, second)
            }
            link::ATALK | link::AARP => self.equal(FieldBase::LinkType, 0, 2, protocol)?,
            _ => return Ok(frame),
        };
        Ok(self.or(frame, direct))
    }

    /// The protocol of a frame whose payload begins with an LLC header.
    fn behind_llc(&mut self, protocol: u32) -> Result<Fragment> {
        match protocol {
            link::SAP_ISO | link::SAP_IP | link::SAP_NETBEUI => {
                self.equal(FieldBase::Llc, 0, 2, protocol << 8 | protocol)
            }
            link::ATALK => self.snap(0x08_0007, protocol),
            link::AARP => self.snap(0, protocol),
            link::SAP_IPX if matches!(self.link, Link::Sll | Link::Sll2) => {
                let access = self.equal(FieldBase::Llc, 0, 1, protocol)?;
                let snap = self.snap(0, link::IPX)?;
                Ok(self.or(access, snap))
            }
            0..=1500 => self.equal(FieldBase::Llc, 0, 1, protocol),
            _ => self.equal(FieldBase::Llc, SNAP - 2, 2, protocol),
        }
    }
}
