//! What the parser makes: the expression in postfix order, so that nothing here is ever nested.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::ops::Range;

use crate::expression::{Op, Rel};
use crate::keyword::{Direction, IdKind, Proto};

/// The qualifiers before a name or number; it may be left out where the one before had them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Qualifiers {
    pub proto: Option<Proto>,
    pub direction: Option<Direction>,
    pub kind: Option<IdKind>,
    pub gateway: bool,
}

/// A name, number or address after qualifiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Id {
    Number(u32),
    Dotted(String),
    Prefix(String, u32),
    Masked(String, String),
    Six(Ipv6Addr, Option<u32>),
    Ether([u8; 6]),
    Name(String),
}

/// A step of arithmetic on a stack of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arith {
    Number(u32),
    Len,
    /// Takes the index from the stack.
    Load(Proto, u32),
    /// Takes the place in the packet from the stack.
    Packet(u32),
    Bin(Op),
    Neg,
}

/// Arithmetic in postfix order.
pub(crate) type Sum = Vec<Arith>;

/// How `byte` compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteOp {
    Equal,
    Less,
    Greater,
    And,
    Or,
}

/// Which LLC frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Llc {
    Any,
    I,
    S,
    U,
    Supervisory(u8),
    Unnumbered(u8),
}

/// A condition without `and`, `or` and `not`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Leaf {
    Id(Qualifiers, Id),
    Proto(Proto),
    Relation {
        a: Sum,
        rel: Rel,
        not: bool,
        b: Sum,
    },
    Broadcast(Option<Proto>),
    Multicast(Option<Proto>),
    /// The length on the wire is at most this.
    Less(u32),
    /// It is at least this.
    Greater(u32),
    Byte(u32, ByteOp, u32),
    Vlan(Option<u32>),
    Mpls(Option<u32>),
    Pppoed,
    Pppoes(Option<u32>),
    Geneve(Option<u32>),
    Llc(Llc),
}

/// A step of the condition on a stack of truth values.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Leaf(Leaf, Range<usize>),
    And,
    Or,
    Not,
}
