//! Protocols by name and number, and chains of headers.

use super::link;
use super::{FieldBase, Lowering, Result};
use crate::expression::{Expr, ExprId, Op, Rel};
use crate::keyword::Proto;
use crate::program::{Fragment, NodeId, NodeKind, REJECT};

pub(super) const TCP: u32 = 6;
pub(super) const UDP: u32 = 17;
pub(super) const SCTP: u32 = 132;
const FRAGMENT: u32 = 44;
const AH: u32 = 51;
const NONE: u32 = 59;
/// Hop-by-hop and destination options, routing, fragment.
const EXTENSIONS: [u32; 4] = [0, 60, 43, FRAGMENT];
/// Headers that `protochain` follows; a packet with more is rejected.
const CHAIN: usize = 40;

const CLNP: u32 = 0x81;
const ESIS: u32 = 0x82;
const ISIS: u32 = 0x83;

/// Protocols that are a number above IP, and of which IP.
fn number(proto: Proto) -> Option<(Option<Proto>, u32)> {
    Some(match proto {
        Proto::Sctp => (None, SCTP),
        Proto::Tcp => (None, TCP),
        Proto::Udp => (None, UDP),
        Proto::Pim => (None, 103),
        Proto::Ah => (None, AH),
        Proto::Esp => (None, 50),
        Proto::Icmp => (Some(Proto::Ip), 1),
        Proto::Igmp => (Some(Proto::Ip), 2),
        Proto::Igrp => (Some(Proto::Ip), 9),
        Proto::Vrrp | Proto::Carp => (Some(Proto::Ip), 112),
        Proto::Icmp6 => (Some(Proto::Ip6), 58),
        Proto::Esis => (Some(Proto::Iso), ESIS),
        Proto::Isis => (Some(Proto::Iso), ISIS),
        Proto::Clnp => (Some(Proto::Iso), CLNP),
        _ => return None,
    })
}

/// Protocols that the link header names.
pub(super) fn in_link(proto: Proto) -> Option<u32> {
    Some(match proto {
        Proto::Ip => link::IP,
        Proto::Ip6 => link::IP6,
        Proto::Arp => link::ARP,
        Proto::Rarp => link::RARP,
        Proto::Atalk => link::ATALK,
        Proto::Aarp => link::AARP,
        Proto::Decnet => link::DECNET,
        Proto::Sca => link::SCA,
        Proto::Lat => link::LAT,
        Proto::Mopdl => link::MOPDL,
        Proto::Moprc => link::MOPRC,
        Proto::Iso => link::SAP_ISO,
        Proto::Stp => link::SAP_STP,
        Proto::Ipx => link::SAP_IPX,
        Proto::Netbeui => link::SAP_NETBEUI,
        _ => return None,
    })
}

/// IS-IS PDU types, each set in the order of testing.
fn pdus(proto: Proto) -> &'static [u32] {
    match proto {
        Proto::IsisL1 => &[26, 24, 18, 15, 17],
        Proto::IsisL2 => &[26 + 1, 24 + 1, 20, 16, 17],
        Proto::Iih => &[17, 15, 16],
        Proto::Lsp => &[18, 20],
        Proto::Snp => &[27, 26, 24, 25],
        Proto::Csnp => &[24, 25],
        Proto::Psnp => &[26, 27],
        _ => &[],
    }
}

impl Lowering<'_> {
    /// A protocol by itself.
    pub(super) fn protocol(&mut self, proto: Proto) -> Result<Fragment> {
        if let Some(value) = in_link(proto) {
            return self.link_protocol(value);
        }
        if let Some((below, value)) = number(proto) {
            return self.protocol_number(value, below);
        }
        let mut all = None;
        for value in pdus(proto) {
            let one = self.pdu(*value)?;
            all = Some(match all {
                Some(all) => self.or(all, one),
                None => one,
            });
        }
        match all {
            Some(all) => Ok(all),
            None => Err(self
                .error("the link by itself is no condition")
                .suggest("write `ether host`, `ether proto` or `ether[0]`")),
        }
    }

    /// What `below` carries is protocol number `value`; without `below` either IP does.
    pub(super) fn protocol_number(&mut self, value: u32, below: Option<Proto>) -> Result<Fragment> {
        match below {
            None => {
                let four = self.protocol_number(value, Some(Proto::Ip))?;
                let six = self.protocol_number(value, Some(Proto::Ip6))?;
                Ok(self.or(four, six))
            }
            Some(Proto::Link) => self.link_protocol(value),
            Some(Proto::Ip) => {
                let ip = self.link_protocol(link::IP)?;
                let protocol = self.equal(FieldBase::Network, 9, 1, value)?;
                Ok(self.and(ip, protocol))
            }
            Some(Proto::Ip6) => {
                let ip = self.link_protocol(link::IP6)?;
                let direct = self.equal(FieldBase::Network, 6, 1, value)?;
                let fragment = self.equal(FieldBase::Network, 6, 1, FRAGMENT)?;
                let behind = self.equal(FieldBase::Network, 40, 1, value)?;
                let behind = self.and(fragment, behind);
                let either = self.or(direct, behind);
                Ok(self.and(ip, either))
            }
            Some(Proto::Iso) => {
                let iso = self.link_protocol(link::SAP_ISO)?;
                let protocol = self.equal(FieldBase::NetworkLlc, 0, 1, value)?;
                Ok(self.and(iso, protocol))
            }
            Some(Proto::Isis) => self.pdu(value),
            Some(_) => Err(self
                .error("this protocol does not name the one that it carries")
                .suggest("`proto` goes with `ip`, `ip6`, `ether`, `iso`, `isis`, or alone")),
        }
    }

    fn pdu(&mut self, value: u32) -> Result<Fragment> {
        let isis = self.protocol_number(ISIS, Some(Proto::Iso))?;
        let kind = self.equal(FieldBase::NetworkLlc, 4, 1, value)?;
        Ok(self.and(isis, kind))
    }

    /// Not a fragment, or the first.
    pub(super) fn first_fragment(&mut self) -> Result<Fragment> {
        let later = self.compare(FieldBase::Network, 6, 2, Rel::Set, 0x1fff)?;
        Ok(self.not(later))
    }

    /// A protocol anywhere in the chain of headers.
    pub(super) fn chain(&mut self, value: u32, below: Option<Proto>) -> Result<Fragment> {
        let six = match below {
            None => {
                let four = self.chain(value, Some(Proto::Ip))?;
                let six = self.chain(value, Some(Proto::Ip6))?;
                return Ok(self.or(four, six));
            }
            Some(Proto::Ip) => false,
            Some(Proto::Ip6) => true,
            Some(_) => {
                return Err(self
                    .error("`protochain` follows the headers of `ip` and `ip6` only")
                    .suggest("write `ip protochain` or `ip6 protochain`"));
            }
        };
        if self.payload.variable.is_some() {
            return Err(self
                .error("`protochain` cannot follow headers of variable length")
                .suggest("say it before `geneve`"));
        }
        let ip = self.link_protocol(if six { link::IP6 } else { link::IP })?;
        // Chains do not overlap, so one set of variables serves all.
        let variables = match self.chain_variables {
            Some(variables) => variables,
            None => [self.variable()?, self.variable()?, self.variable()?],
        };
        self.chain_variables = Some(variables);
        let [protocol, place, _] = variables;
        let first = self.field(FieldBase::Network, if six { 6 } else { 9 }, 1)?;
        let length = if six {
            self.build.exprs.number(40)
        } else {
            self.header_length()?
        };
        let set_protocol = self.build.assign(protocol, first);
        let set_place = self.build.assign(place, length);
        let start = self.and(set_protocol, set_place);
        let protocol_value = self.expr(Expr::Var(protocol))?;
        let wanted = self.build.exprs.number(value);
        // The steps, from the last to the first; each leads to the next or to the final test.
        let last = self.build.test(protocol_value, Rel::Eq, wanted);
        let end = last_node(&self.build);
        let mut next = self.give_up();
        for _ in 0..CHAIN {
            next = self.chain_step(six, variables, wanted, (next, end))?;
        }
        let entered = self.build.enter(next, last);
        let followed = self.and(start, entered);
        Ok(self.and(ip, followed))
    }

    /// One header of a chain. Returns its first node.
    fn chain_step(
        &mut self,
        six: bool,
        [protocol, place, spare]: [u8; 3],
        wanted: ExprId,
        (next, end): (NodeId, NodeId),
    ) -> Result<NodeId> {
        let (now, at) = (
            self.expr(Expr::Var(protocol))?,
            self.expr(Expr::Var(place))?,
        );
        let off = self.payload.constant + self.network;
        let byte = |g: &mut Self, off: u32| {
            g.expr(Expr::Load {
                size: 1,
                base: Some(at),
                off,
            })
        };
        let following = byte(self, off)?;
        // The authentication header says its length in words less two; the language has it from the
        // beginning.
        let from_next = self.with(Op::Add, at, 1)?;
        let length = self.expr(Expr::Load {
            size: 1,
            base: Some(from_next),
            off,
        })?;
        let words = self.with(Op::Add, length, 2)?;
        let bytes = self.with(Op::Mul, words, 4)?;
        let is = |g: &mut Self, value: u32, yes: NodeId, no: NodeId| {
            let value = g.build.exprs.number(value);
            g.build.node(NodeKind::Test(now, Rel::Eq, value), yes, no)
        };
        // The place is read before either variable changes.
        let saved = self.expr(Expr::Var(spare))?;
        let finish = self
            .build
            .node(NodeKind::Assign(protocol, saved), next, REJECT);
        let move_on = self
            .build
            .node(NodeKind::Assign(place, bytes), finish, REJECT);
        let authentication = self
            .build
            .node(NodeKind::Assign(spare, following), move_on, REJECT);
        let mut node = is(self, AH, authentication, end);
        if six {
            let length = byte(self, off + 1)?;
            let units = self.with(Op::Add, length, 1)?;
            let bytes = self.with(Op::Mul, units, 8)?;
            let behind = self.bin(Op::Add, bytes, at)?;
            let move_on = self
                .build
                .node(NodeKind::Assign(place, behind), finish, REJECT);
            let advance = self
                .build
                .node(NodeKind::Assign(spare, following), move_on, REJECT);
            for extension in EXTENSIONS.into_iter().rev() {
                node = is(self, extension, advance, node);
            }
        }
        node = is(self, NONE, end, node);
        Ok(self
            .build
            .node(NodeKind::Test(now, Rel::Eq, wanted), end, node))
    }
}

/// The node made last.
fn last_node(build: &crate::program::Builder) -> NodeId {
    build.size() as NodeId - 1
}
