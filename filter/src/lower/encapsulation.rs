//! Headers around headers: VLAN tags, MPLS labels, PPPoE sessions, Geneve tunnels. Each moves what
//! follows in the source.

use super::protocol::UDP;
use super::{FieldBase, HeaderOffset, Lowering, Result, link};
use crate::expression::{Expr, ExprId, Op, Rel};
use crate::keyword::Direction;
use crate::link::Link;
use crate::program::{Fragment, NodeKind, REJECT};

const GENEVE_PORT: u16 = 6081;

impl Lowering<'_> {
    fn at_most(&self, value: Option<u32>, most: u32, what: &str) -> Result<()> {
        match value {
            Some(value) if value > most => {
                Err(self.error(alloc::format!("{what} go up to {most}")))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn vlan(&mut self, tag: Option<u32>) -> Result<Fragment> {
        if self.labels > 0 {
            return Err(self
                .error("no tag follows MPLS labels")
                .suggest("say `vlan` before `mpls`"));
        }
        self.needs_ethernet("a VLAN tag")?;
        self.at_most(tag, 0xfff, "VLAN numbers")?;
        let [customer, service, old] = link::VLANS;
        let customer = self.link_protocol(customer)?;
        let service = self.link_protocol(service)?;
        let old = self.link_protocol(old)?;
        let both = self.or(customer, service);
        let mut part = self.or(both, old);
        if let Some(tag) = tag {
            let number = self.masked(FieldBase::Network, 0, 2, 0xfff, Rel::Eq, tag)?;
            part = self.and(part, number);
        }
        self.payload.constant += 4;
        self.link_type.constant += 4;
        self.vlans += 1;
        self.nesting(self.vlans)?;
        Ok(part)
    }

    /// Offsets stay far below 2^31.
    fn nesting(&self, count: u32) -> Result<()> {
        if count > 1000 {
            return Err(self.error("more than 1000 headers inside each other"));
        }
        Ok(())
    }

    pub(super) fn mpls(&mut self, label: Option<u32>) -> Result<Fragment> {
        self.at_most(label, 0xf_ffff, "MPLS labels")?;
        let mut part = if self.labels > 0 {
            self.masked(FieldBase::LastLabel, 2, 1, 1, Rel::Eq, 0)?
        } else {
            match self.link {
                Link::Ethernet | Link::Hdlc => self.link_protocol(link::MPLS)?,
                Link::Ppp => self.link_protocol(0x0281)?,
                _ => return Err(self.error("MPLS labels are not found on this link")),
            }
        };
        if let Some(label) = label {
            let number =
                self.masked(FieldBase::Network, 0, 4, 0xffff_f000, Rel::Eq, label << 12)?;
            part = self.and(part, number);
        }
        self.network += 4;
        self.network_llc += 4;
        self.labels += 1;
        self.nesting(self.labels)?;
        Ok(part)
    }

    pub(super) fn pppoe_session(&mut self, session: Option<u32>) -> Result<Fragment> {
        self.at_most(session, 0xffff, "PPPoE sessions")?;
        let mut part = self.link_protocol(link::PPPOE_SESSION)?;
        if let Some(session) = session {
            let number = self.masked(FieldBase::Network, 0, 4, 0xffff, Rel::Eq, session)?;
            part = self.and(part, number);
        }
        // Six bytes of PPPoE, then PPP's protocol of two.
        self.link = Link::Ppp;
        self.geneve = false;
        self.link_header = HeaderOffset {
            constant: self.payload.constant + self.network + 6,
            ..self.payload
        };
        self.link_type = self.link_header;
        self.payload.constant = self.link_header.constant + 2;
        self.network = 0;
        self.network_llc = 0;
        self.vlans += 1;
        self.nesting(self.vlans)?;
        Ok(part)
    }

    pub(super) fn geneve(&mut self, network: Option<u32>) -> Result<Fragment> {
        self.at_most(network, 0xff_ffff, "Geneve's network numbers")?;
        // The length of the IP header, and what of its place depends on the packet.
        let behind = self.variable()?;
        let four = self.geneve_above(false, network)?;
        let length = self.header_length()?;
        let set = self.build.assign(behind, length);
        let four = self.and(four, set);
        let six = self.geneve_above(true, network)?;
        let mut length = self.build.exprs.number(40);
        if let Some(variable) = self.variable_value(self.payload)? {
            length = self.bin(Op::Add, length, variable)?;
        }
        let set = self.build.assign(behind, length);
        let six = self.and(six, set);
        let either = self.or(four, six);
        let moved = self.enter_geneve(behind)?;
        Ok(self.and(either, moved))
    }

    fn geneve_above(&mut self, six: bool, network: Option<u32>) -> Result<Fragment> {
        let port = (GENEVE_PORT, GENEVE_PORT);
        let udp = self.ports_of(six, port, true, Some(UDP), Some(Direction::Dst))?;
        let from = if six {
            FieldBase::Transport6
        } else {
            FieldBase::Transport4
        };
        let version = self.masked(from, 8, 1, 0xc0, Rel::Eq, 0)?;
        let part = self.and(udp, version);
        let Some(network) = network else {
            return Ok(part);
        };
        let number = self.masked(from, 12, 4, 0xffff_ff00, Rel::Eq, network << 8)?;
        Ok(self.and(part, number))
    }

    /// Computes where the headers inside of the tunnel are, and moves to them.
    fn enter_geneve(&mut self, behind: u8) -> Result<Fragment> {
        let udp = self.expr(Expr::Var(behind))?;
        let header = self.with(Op::Add, udp, self.payload.constant + self.network + 8)?;
        let load = |g: &mut Self, size: u8, off: u32| {
            let base = Some(header);
            g.expr(Expr::Load { size, base, off })
        };
        let options = load(self, 1, 0)?;
        let words = self.with(Op::And, options, 0x3f)?;
        let bytes = self.with(Op::Mul, words, 4)?;
        let bytes = self.with(Op::Add, bytes, 8)?;
        let inside = self.bin(Op::Add, bytes, header)?;
        let kind = load(self, 2, 2)?;
        let place = |g: &mut Self, from: ExprId, by: u32| g.with(Op::Add, from, by);
        let type_in_tunnel = place(self, header, 2)?;
        let type_in_frame = place(self, inside, 12)?;
        let behind_frame = place(self, inside, 14)?;
        let variables = [self.variable()?, self.variable()?, self.variable()?];
        let [link_header, link_type, payload] = variables;
        let set_header = self.build.assign(link_header, inside);
        // With Ethernet inside its type counts, else the tunnel's own; both ends meet in a test
        // that always holds.
        let zero = self.build.exprs.number(0);
        let done = self.build.test(zero, Rel::Eq, zero);
        let end = self.build.size() as u32 - 1;
        let assign = |g: &mut Self, type_at: ExprId, payload_at: ExprId| {
            let last = g
                .build
                .node(NodeKind::Assign(payload, payload_at), end, REJECT);
            g.build
                .node(NodeKind::Assign(link_type, type_at), last, REJECT)
        };
        let frame = assign(self, type_in_frame, behind_frame);
        let bare = assign(self, type_in_tunnel, inside);
        let bridged = self.build.exprs.number(link::BRIDGED);
        let choose = self
            .build
            .node(NodeKind::Test(kind, Rel::Eq, bridged), frame, bare);
        let chosen = self.build.enter(choose, done);
        let part = self.and(set_header, chosen);
        let moved = |variable| HeaderOffset {
            constant: 0,
            variable: Some(variable),
        };
        self.link = Link::Ethernet;
        self.link_header = moved(link_header);
        self.link_type = moved(link_type);
        self.payload = moved(payload);
        self.network = 0;
        self.geneve = true;
        Ok(part)
    }
}
