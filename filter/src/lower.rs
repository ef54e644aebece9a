//! Steps to a program: what each condition tests, for the link that packets begin with.
//!
//! The order of tests and what each of them loads are the language's own, for a load beyond the
//! captured bytes rejects the packet. `vlan`, `mpls`, `pppoes` and `geneve` move the headers for
//! everything after them, as the language says.

mod address;
mod arithmetic;
mod encapsulation;
mod link;
mod links;
mod port;
mod protocol;

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::error::Error;
use crate::expression::{Expr, ExprId, Op, Rel};
use crate::link::Link;
use crate::names::Names;
use crate::program::{ACCEPT, Builder, Fragment, MAX_NODES, NodeKind, Program, REJECT};
use crate::tree::{Leaf, Step};

/// What a compilation may be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The netmask of the network on which packets were captured, for `ip broadcast`.
    pub netmask: Option<u32>,
    /// What an accepting filter returns: how many bytes of the packet are wanted.
    pub snaplen: u32,
    /// What packets begin with.
    pub link: Link,
    /// How many tests a filter may become, and then as many as one condition is.
    pub tests: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            netmask: None,
            snaplen: 262_144,
            link: Link::Ethernet,
            tests: MAX_NODES,
        }
    }
}

/// The place of a header: a number, and a variable if it depends on the packet.
#[derive(Clone, Copy, Debug, Default)]
struct HeaderOffset {
    constant: u32,
    variable: Option<u8>,
}

/// FieldBase where a field is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldBase {
    LinkHeader,
    LinkType,
    /// The link's payload, without labels.
    Llc,
    /// The header above the link's, behind labels.
    Network,
    /// The same behind an LLC header of three bytes.
    NetworkLlc,
    /// The last label but one.
    LastLabel,
    /// Behind an IPv4 header of the length that it says.
    Transport4,
    /// Behind an IPv6 header without extensions.
    Transport6,
}

struct Lowering<'a> {
    build: Builder,
    names: &'a dyn Names,
    options: Options,
    link: Link,
    link_header: HeaderOffset,
    link_type: HeaderOffset,
    payload: HeaderOffset,
    network: u32,
    network_llc: u32,
    labels: u32,
    vlans: u32,
    geneve: bool,
    variables: u8,
    chain_variables: Option<[u8; 3]>,
    /// The source of what is being compiled.
    at: Range<usize>,
}

type Result<T> = core::result::Result<T, Error>;

/// The program of an expression.
pub(crate) fn compile(steps: &[Step], names: &dyn Names, options: Options) -> Result<Program> {
    let mut generator = Lowering {
        build: Builder::default(),
        names,
        options,
        link: options.link,
        link_header: HeaderOffset::default(),
        link_type: HeaderOffset::default(),
        payload: HeaderOffset::default(),
        network: 0,
        network_llc: 3,
        labels: 0,
        vlans: 0,
        geneve: false,
        variables: 0,
        chain_variables: None,
        at: 0..0,
    };
    let begin = generator.begin()?;
    let mut stack: Vec<Fragment> = Vec::new();
    for step in steps {
        match step {
            Step::Leaf(leaf, at) => {
                generator.at = at.clone();
                let part = generator.leaf(leaf)?;
                stack.push(part);
            }
            Step::Not => {
                let part = stack.pop().unwrap_or_default();
                stack.push(generator.build.not(part));
            }
            Step::And | Step::Or => {
                let (b, a) = (
                    stack.pop().unwrap_or_default(),
                    stack.pop().unwrap_or_default(),
                );
                let joined = if matches!(step, Step::And) {
                    generator.build.and(a, b)
                } else {
                    generator.build.or(a, b)
                };
                stack.push(joined);
            }
        }
        if generator.build.size() > options.tests {
            return Err(generator
                .error("the filter is too large")
                .suggest("use a set of filters instead of one long `or`"));
        }
    }
    let entry = match (stack.pop(), begin) {
        (Some(whole), Some(begin)) => {
            let whole = generator.build.and(begin, whole);
            generator.build.close(whole)
        }
        (Some(whole), None) => generator.build.close(whole),
        (None, _) => ACCEPT,
    };
    Ok(generator.build.finish(entry, options.snaplen))
}

impl Lowering<'_> {
    fn error(&self, message: impl Into<String>) -> Error {
        Error::new(self.at.clone(), message)
    }

    fn leaf(&mut self, leaf: &Leaf) -> Result<Fragment> {
        match leaf {
            Leaf::Id(qualifiers, id) => self.id(*qualifiers, id),
            Leaf::Proto(proto) => self.protocol(*proto),
            Leaf::Relation { a, rel, not, b } => self.relation(a, *rel, *not, b),
            Leaf::Broadcast(proto) => self.broadcast(*proto),
            Leaf::Multicast(proto) => self.multicast(*proto),
            Leaf::Less(most) => {
                let part = self.length(Rel::Gt, *most)?;
                Ok(self.build.not(part))
            }
            Leaf::Greater(least) => self.length(Rel::Ge, *least),
            Leaf::Byte(index, op, value) => self.byte(*index, *op, *value),
            Leaf::Vlan(tag) => self.vlan(*tag),
            Leaf::Mpls(label) => self.mpls(*label),
            Leaf::Pppoed => self.link_protocol(link::PPPOE_DISCOVERY),
            Leaf::Pppoes(session) => self.pppoe_session(*session),
            Leaf::Geneve(network) => self.geneve(*network),
            Leaf::Llc(kind) => self.llc(*kind),
        }
    }

    fn length(&mut self, rel: Rel, bytes: u32) -> Result<Fragment> {
        let length = self.expr(Expr::Len)?;
        let bytes = self.build.exprs.number(bytes);
        Ok(self.build.test(length, rel, bytes))
    }

    fn expr(&mut self, expr: Expr) -> Result<ExprId> {
        let added = self.build.exprs.add(expr);
        added.map_err(|_| self.error("this arithmetic is nested too deeply"))
    }

    fn bin(&mut self, op: Op, a: ExprId, b: ExprId) -> Result<ExprId> {
        self.expr(Expr::Bin(op, a, b))
    }

    /// `a op number`.
    fn with(&mut self, op: Op, a: ExprId, number: u32) -> Result<ExprId> {
        let number = self.build.exprs.number(number);
        self.bin(op, a, number)
    }

    fn variable(&mut self) -> Result<u8> {
        if usize::from(self.variables) == crate::run::VARIABLES {
            return Err(self.error("too many headers of variable length inside each other"));
        }
        self.variables += 1;
        Ok(self.variables - 1)
    }

    fn variable_value(&mut self, offset: HeaderOffset) -> Result<Option<ExprId>> {
        match offset.variable {
            Some(variable) => self.expr(Expr::Var(variable)).map(Some),
            None => Ok(None),
        }
    }

    fn load(&mut self, size: u8, offset: HeaderOffset, off: u32) -> Result<ExprId> {
        let base = self.variable_value(offset)?;
        self.expr(Expr::Load {
            size,
            base,
            off: offset.constant.wrapping_add(off),
        })
    }

    /// The length of the IPv4 header, and what of its place depends on the packet.
    fn header_length(&mut self) -> Result<ExprId> {
        let first = self.load(1, self.payload, self.network)?;
        let words = self.with(Op::And, first, 0xf)?;
        let bytes = self.with(Op::Shl, words, 2)?;
        match self.variable_value(self.payload)? {
            Some(variable) => self.bin(Op::Add, bytes, variable),
            None => Ok(bytes),
        }
    }

    /// The field of `size` bytes.
    fn field(&mut self, from: FieldBase, off: u32, size: u8) -> Result<ExprId> {
        match from {
            FieldBase::LinkHeader => self.load(size, self.link_header, off),
            FieldBase::LinkType => self.load(size, self.link_type, off),
            FieldBase::Llc => self.load(size, self.payload, off),
            FieldBase::Network => self.load(size, self.payload, self.network.wrapping_add(off)),
            FieldBase::NetworkLlc => {
                self.load(size, self.payload, self.network_llc.wrapping_add(off))
            }
            FieldBase::LastLabel => {
                self.load(size, self.payload, (self.network + off).wrapping_sub(4))
            }
            FieldBase::Transport6 => self.load(size, self.payload, self.network + 40 + off),
            FieldBase::Transport4 => {
                let base = Some(self.header_length()?);
                let off = self.payload.constant + self.network + off;
                self.expr(Expr::Load { size, base, off })
            }
        }
    }

    fn compare(
        &mut self,
        from: FieldBase,
        off: u32,
        size: u8,
        rel: Rel,
        value: u32,
    ) -> Result<Fragment> {
        self.masked(from, off, size, u32::MAX, rel, value)
    }

    fn equal(&mut self, from: FieldBase, off: u32, size: u8, value: u32) -> Result<Fragment> {
        self.compare(from, off, size, Rel::Eq, value)
    }

    fn masked(
        &mut self,
        from: FieldBase,
        off: u32,
        size: u8,
        mask: u32,
        rel: Rel,
        value: u32,
    ) -> Result<Fragment> {
        let mut field = self.field(from, off, size)?;
        if mask != u32::MAX {
            field = self.with(Op::And, field, mask)?;
        }
        let value = self.build.exprs.number(value);
        Ok(self.build.test(field, rel, value))
    }

    fn not(&mut self, part: Fragment) -> Fragment {
        self.build.not(part)
    }

    fn and(&mut self, a: Fragment, b: Fragment) -> Fragment {
        self.build.and(a, b)
    }

    fn or(&mut self, a: Fragment, b: Fragment) -> Fragment {
        self.build.or(a, b)
    }

    /// The bytes at `off`, compared from the last word to the first, each as large as it can be.
    fn bytes(&mut self, from: FieldBase, off: u32, bytes: &[u8]) -> Result<Fragment> {
        let mut end = bytes.len();
        let mut all = None;
        for size in [4, 2, 1] {
            while end >= size {
                end -= size;
                let value = bytes[end..end + size]
                    .iter()
                    .fold(0, |value, byte| value << 8 | u32::from(*byte));
                let one = self.equal(from, off + end as u32, size as u8, value)?;
                all = Some(match all {
                    Some(all) => self.and(all, one),
                    None => one,
                });
            }
        }
        Ok(all.unwrap_or_default())
    }

    /// Rejects the packet; for chains that are longer than can be followed.
    fn give_up(&mut self) -> u32 {
        let zero = self.build.exprs.number(0);
        self.build.node(NodeKind::Return(zero), REJECT, REJECT)
    }
}
