//! Arithmetic and comparisons.
//!
//! A field of a protocol brings a condition with it: that the packet is of this protocol. The
//! condition of an operation's right operand is not asked for; so says the language's own compiler.

use alloc::vec::Vec;

use super::link;
use super::protocol::in_link;
use super::{FieldBase, Lowering, Result};
use crate::expression::{Expr, ExprId, Op, Rel};
use crate::keyword::Proto;
use crate::program::Fragment;
use crate::tree::Arith;

/// A value, and the condition that it comes with.
type Value = (ExprId, Option<Fragment>);

impl Lowering<'_> {
    pub(super) fn relation(
        &mut self,
        a: &[Arith],
        rel: Rel,
        not: bool,
        b: &[Arith],
    ) -> Result<Fragment> {
        let (a, a_condition) = self.sum(a)?;
        let (b, b_condition) = self.sum(b)?;
        let mut test = self.build.test(a, rel, b);
        if not {
            test = self.not(test);
        }
        let condition = match (a_condition, b_condition) {
            (Some(a), Some(b)) => Some(self.and(a, b)),
            (a, b) => a.or(b),
        };
        Ok(match condition {
            Some(condition) => self.and(condition, test),
            None => test,
        })
    }

    fn sum(&mut self, steps: &[Arith]) -> Result<Value> {
        let mut stack: Vec<Value> = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            let value = match *step {
                Arith::Number(value) => (self.build.exprs.number(value), None),
                Arith::Len => (self.expr(Expr::Len)?, None),
                Arith::Neg => {
                    let (value, condition) = self.pop(&mut stack);
                    let zero = self.build.exprs.number(0);
                    (self.bin(Op::Sub, zero, value)?, condition)
                }
                Arith::Bin(op) => {
                    let (b, _) = self.pop(&mut stack);
                    let (a, condition) = self.pop(&mut stack);
                    if let Some(Arith::Number(number)) = index.checked_sub(1).map(|at| steps[at]) {
                        self.check(op, number)?;
                    }
                    (self.bin(op, a, b)?, condition)
                }
                Arith::Packet(size) => {
                    let (place, condition) = self.pop(&mut stack);
                    let field = Expr::Load {
                        size: size as u8,
                        base: Some(place),
                        off: 0,
                    };
                    (self.expr(field)?, condition)
                }
                Arith::Load(proto, size) => {
                    let index = self.pop(&mut stack);
                    self.index(proto, size as u8, index)?
                }
            };
            stack.push(value);
        }
        Ok(self.pop(&mut stack))
    }

    fn pop(&mut self, stack: &mut Vec<Value>) -> Value {
        stack
            .pop()
            .unwrap_or_else(|| (self.build.exprs.number(0), None))
    }

    /// What is wrong whatever the packet.
    fn check(&self, op: Op, b: u32) -> Result<()> {
        match (op, b) {
            (Op::Div | Op::Mod, 0) => Err(self.error("a division by zero")),
            (Op::Shl | Op::Shr, 32..) => Err(self.error("a shift by more than 31 bits")),
            _ => Ok(()),
        }
    }

    fn index(&mut self, proto: Proto, size: u8, (index, condition): Value) -> Result<Value> {
        if proto == Proto::Link {
            let base = self.moved(index, self.link_header.variable)?;
            let off = self.link_header.constant;
            let value = self.expr(Expr::Load {
                size,
                base: Some(base),
                off,
            })?;
            return Ok((value, condition));
        }
        let together = |g: &mut Self, part: Fragment| match condition {
            Some(condition) => g.and(condition, part),
            None => part,
        };
        match proto {
            Proto::Icmp6 => {
                let ip = self.link_protocol(link::IP6)?;
                let ip = together(self, ip);
                let icmp = self.equal(FieldBase::Network, 6, 1, 58)?;
                let both = self.and(ip, icmp);
                let value = self.network_field(size, index, 40)?;
                Ok((value, Some(both)))
            }
            Proto::Sctp
            | Proto::Tcp
            | Proto::Udp
            | Proto::Icmp
            | Proto::Igmp
            | Proto::Igrp
            | Proto::Pim
            | Proto::Vrrp
            | Proto::Carp => {
                let length = self.header_length()?;
                let base = self.bin(Op::Add, index, length)?;
                let off = self.payload.constant + self.network;
                let value = self.expr(Expr::Load {
                    size,
                    base: Some(base),
                    off,
                })?;
                let protocol = self.protocol(proto)?;
                let first = self.first_fragment()?;
                let first = self.and(protocol, first);
                let all = together(self, first);
                let ip = self.link_protocol(link::IP)?;
                let all = self.and(ip, all);
                Ok((value, Some(all)))
            }
            Proto::Ip
            | Proto::Ip6
            | Proto::Arp
            | Proto::Rarp
            | Proto::Atalk
            | Proto::Decnet
            | Proto::Sca
            | Proto::Lat
            | Proto::Moprc
            | Proto::Mopdl => {
                let value = self.network_field(size, index, 0)?;
                let protocol = self.link_protocol(in_link(proto).unwrap_or_default())?;
                let all = together(self, protocol);
                Ok((value, Some(all)))
            }
            _ => Err(self
                .error("fields of this protocol cannot be named by an index")
                .suggest("count from a lower one, such as `ip6[40]` or `ether[14]`")),
        }
    }

    fn network_field(&mut self, size: u8, index: ExprId, behind: u32) -> Result<ExprId> {
        let base = Some(self.moved(index, self.payload.variable)?);
        let off = self.payload.constant + self.network + behind;
        self.expr(Expr::Load { size, base, off })
    }

    fn moved(&mut self, index: ExprId, variable: Option<u8>) -> Result<ExprId> {
        match variable {
            Some(variable) => {
                let variable = self.expr(Expr::Var(variable))?;
                self.bin(Op::Add, index, variable)
            }
            None => Ok(index),
        }
    }
}
