//! The intermediate form: tests of expressions over the packet, joined to a graph without cycles.
//!
//! An expression is evaluated whole. A load that reaches beyond the captured bytes, or a division by zero, rejects the
//! packet, whatever the rest of the filter would say; so evaluation is an effect, and no pass drops it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::lookup::Lookup;

/// An expression's number in its program; equal numbers are equal expressions.
pub(crate) type ExprId = u32;
/// A node's number.
pub(crate) type NodeId = u32;

/// The end that rejects.
pub(crate) const REJECT: NodeId = u32::MAX;
/// The end that accepts with all bytes.
pub(crate) const ACCEPT: NodeId = u32::MAX - 1;
/// Not joined yet.
const OPEN: NodeId = u32::MAX - 2;

/// How deep expressions may nest.
pub(crate) const MAX_DEPTH: u8 = 60;
/// How many operations an expression may have, counted as often as they are needed.
pub(crate) const MAX_SIZE: u16 = 400;
/// How many nodes a program may have.
pub(crate) const MAX_NODES: usize = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    And,
    Or,
    Xor,
    Shl,
    Shr,
}

/// A value of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Expr {
    Const(u32),
    /// The length on the wire.
    Len,
    /// The captured bytes.
    Captured,
    Var(u8),
    /// 1, 2 or 4 bytes, the most significant first, at `base` + `off` (not modulo 2^32).
    Load {
        size: u8,
        base: Option<ExprId>,
        off: u32,
    },
    Bin(Op, ExprId, ExprId),
}

impl Expr {
    /// The same of other parts.
    pub fn rebuilt(self, mut part: impl FnMut(ExprId) -> Option<ExprId>) -> Option<Expr> {
        Some(match self {
            Expr::Load {
                size,
                base: Some(base),
                off,
            } => Expr::Load {
                size,
                base: Some(part(base)?),
                off,
            },
            Expr::Bin(op, a, b) => Expr::Bin(op, part(a)?, part(b)?),
            other => other,
        })
    }
}

/// How a test compares; all without sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Rel {
    Eq,
    Gt,
    Ge,
    /// They have a one bit in common.
    Set,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Test(ExprId, Rel, ExprId),
    /// Goes on at `yes`.
    Assign(u8, ExprId),
    /// Ends with the expression's value: how many bytes are accepted.
    Return(ExprId),
    /// Of a set: goes on at `yes` if the best rank found is at least the one in this place of the set's memory.
    Beaten(u32),
    /// Of a set: looks a rank up, keeps it if it is the best, and goes on at `yes`. What it reads is captured: tests before it say so.
    Look(u32),
    /// Of a set: ends with the best filter.
    Best,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub kind: Kind,
    pub yes: NodeId,
    pub no: NodeId,
}

/// Expressions, each once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exprs {
    /// With depth and size.
    list: Vec<(Expr, u8, u16)>,
    known: BTreeMap<Expr, ExprId>,
}

/// An expression is nested too deeply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TooDeep;

impl Exprs {
    pub fn get(&self, id: ExprId) -> Expr {
        self.list[id as usize].0
    }

    pub fn constant(&self, id: ExprId) -> Option<u32> {
        match self.get(id) {
            Expr::Const(value) => Some(value),
            _ => None,
        }
    }

    pub fn add(&mut self, expr: Expr) -> Result<ExprId, TooDeep> {
        let expr = self.fold(expr);
        if let Some(id) = self.known.get(&expr) {
            return Ok(*id);
        }
        let of = |id: ExprId| (self.list[id as usize].1, self.list[id as usize].2);
        let (depth, size) = match expr {
            Expr::Load {
                base: Some(base), ..
            } => (of(base).0 + 1, of(base).1 + 1),
            Expr::Bin(_, a, b) => (of(a).0.max(of(b).0) + 1, of(a).1 + of(b).1 + 1),
            _ => (0, 1),
        };
        if depth > MAX_DEPTH || size > MAX_SIZE {
            return Err(TooDeep);
        }
        let id = self.list.len() as ExprId;
        self.list.push((expr, depth, size));
        self.known.insert(expr, id);
        Ok(id)
    }

    /// The same value more simply. What could reject stays.
    fn fold(&self, expr: Expr) -> Expr {
        match expr {
            Expr::Bin(op, a, b) => match (self.constant(a), self.constant(b)) {
                (Some(a), Some(b)) => apply(op, a, b).map_or(expr, Expr::Const),
                _ => expr,
            },
            Expr::Load {
                size,
                base: Some(base),
                off,
            } => match self.constant(base).and_then(|base| off.checked_add(base)) {
                Some(off) => Expr::Load {
                    size,
                    base: None,
                    off,
                },
                None => expr,
            },
            other => other,
        }
    }

    /// How many there are; all numbers are below.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn number(&mut self, value: u32) -> ExprId {
        // A constant has no depth.
        self.add(Expr::Const(value)).unwrap_or(0)
    }
}

/// The operation, or nothing for a division by zero.
pub(crate) fn apply(op: Op, a: u32, b: u32) -> Option<u32> {
    Some(match op {
        Op::Add => a.wrapping_add(b),
        Op::Sub => a.wrapping_sub(b),
        Op::Mul => a.wrapping_mul(b),
        Op::Div => a.checked_div(b)?,
        Op::Mod => a.checked_rem(b)?,
        Op::And => a & b,
        Op::Or => a | b,
        Op::Xor => a ^ b,
        Op::Shl => a.checked_shl(b).unwrap_or(0),
        Op::Shr => a.checked_shr(b).unwrap_or(0),
    })
}

pub(crate) fn holds(rel: Rel, a: u32, b: u32) -> bool {
    match rel {
        Rel::Eq => a == b,
        Rel::Gt => a > b,
        Rel::Ge => a >= b,
        Rel::Set => a & b != 0,
    }
}

/// A graph with an entry. Every edge goes to a node, [`ACCEPT`] or [`REJECT`].
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub exprs: Exprs,
    pub nodes: Vec<Node>,
    pub entry: NodeId,
    /// What [`ACCEPT`] returns.
    pub accept: u32,
    /// What [`Kind::Look`] counts.
    pub lookups: Vec<Lookup>,
    /// The best rank is none where the program begins.
    pub afresh: bool,
}

/// A part of a graph: where it begins, and its open edges.
#[derive(Debug, Default)]
pub(crate) struct Part {
    head: NodeId,
    yes: Vec<(NodeId, bool)>,
    no: Vec<(NodeId, bool)>,
}

/// A graph in the making.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    pub exprs: Exprs,
    pub lookups: Vec<Lookup>,
    nodes: Vec<Node>,
}

impl Builder {
    pub fn node(&mut self, kind: Kind, yes: NodeId, no: NodeId) -> NodeId {
        self.nodes.push(Node { kind, yes, no });
        self.nodes.len() as NodeId - 1
    }

    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    pub fn test(&mut self, a: ExprId, rel: Rel, b: ExprId) -> Part {
        let head = self.node(Kind::Test(a, rel, b), OPEN, OPEN);
        Part {
            head,
            yes: alloc::vec![(head, true)],
            no: alloc::vec![(head, false)],
        }
    }

    /// Assigns and goes on as if a test had held.
    pub fn assign(&mut self, var: u8, value: ExprId) -> Part {
        let head = self.node(Kind::Assign(var, value), OPEN, OPEN);
        Part {
            head,
            yes: alloc::vec![(head, true)],
            no: Vec::new(),
        }
    }

    /// Nodes that begin at `head` and end as `last` does.
    pub fn enter(&self, head: NodeId, last: Part) -> Part {
        Part { head, ..last }
    }

    fn join(&mut self, edges: Vec<(NodeId, bool)>, to: NodeId) {
        for (node, yes) in edges {
            let node = &mut self.nodes[node as usize];
            *(if yes { &mut node.yes } else { &mut node.no }) = to;
        }
    }

    /// `a`, then if it holds `b`.
    pub fn and(&mut self, a: Part, b: Part) -> Part {
        self.join(a.yes, b.head);
        Part {
            head: a.head,
            yes: b.yes,
            no: concat(a.no, b.no),
        }
    }

    /// `a`, then if it does not hold `b`.
    pub fn or(&mut self, a: Part, b: Part) -> Part {
        self.join(a.no, b.head);
        Part {
            head: a.head,
            yes: concat(a.yes, b.yes),
            no: b.no,
        }
    }

    pub fn not(&mut self, a: Part) -> Part {
        Part {
            head: a.head,
            yes: a.no,
            no: a.yes,
        }
    }

    /// Lets a part accept where it holds and reject where it does not. Returns where it begins.
    pub fn close(&mut self, part: Part) -> NodeId {
        self.join(part.yes, ACCEPT);
        self.join(part.no, REJECT);
        part.head
    }

    /// The finished program from `entry`, its nodes in an order in which every edge goes forward, without those that nothing reaches.
    pub fn finish(mut self, entry: NodeId, accept: u32) -> Program {
        for node in &mut self.nodes {
            for edge in [&mut node.yes, &mut node.no] {
                if *edge == OPEN {
                    *edge = REJECT;
                }
            }
        }
        let mut program = Program {
            exprs: self.exprs,
            nodes: self.nodes,
            entry,
            accept,
            lookups: self.lookups,
            afresh: true,
        };
        program.sort();
        program
    }
}

fn concat(mut a: Vec<(NodeId, bool)>, mut b: Vec<(NodeId, bool)>) -> Vec<(NodeId, bool)> {
    if a.len() < b.len() {
        core::mem::swap(&mut a, &mut b);
    }
    a.append(&mut b);
    a
}

impl Program {
    pub fn successors(node: &Node) -> ([NodeId; 2], usize) {
        match node.kind {
            Kind::Test(..) | Kind::Beaten(_) => ([node.no, node.yes], 2),
            Kind::Assign(..) | Kind::Look(_) => ([node.yes, node.yes], 1),
            Kind::Return(_) | Kind::Best => ([REJECT, REJECT], 0),
        }
    }

    /// Orders the nodes so that edges go forward, each test followed by where it leads when it holds, if that can be; drops
    /// what the entry does not reach.
    pub fn sort(&mut self) {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut seen = alloc::vec![false; self.nodes.len()];
        let mut stack: Vec<(NodeId, usize)> = Vec::new();
        let count = self.nodes.len();
        let inside = |id: NodeId| (id as usize) < count;
        if inside(self.entry) {
            seen[self.entry as usize] = true;
            stack.push((self.entry, 0));
        }
        while let Some((id, next)) = stack.last_mut() {
            let (edges, count) = Program::successors(&self.nodes[*id as usize]);
            if *next < count {
                let to = edges[*next];
                *next += 1;
                if inside(to) && !seen[to as usize] {
                    seen[to as usize] = true;
                    stack.push((to, 0));
                }
            } else {
                order.push(*id);
                stack.pop();
            }
        }
        order.reverse();
        let mut place = alloc::vec![REJECT; self.nodes.len()];
        for (index, id) in order.iter().enumerate() {
            place[*id as usize] = index as NodeId;
        }
        let moved = |id: NodeId| place.get(id as usize).copied().unwrap_or(id);
        let nodes = order
            .iter()
            .map(|id| {
                let node = self.nodes[*id as usize];
                Node {
                    kind: node.kind,
                    yes: moved(node.yes),
                    no: moved(node.no),
                }
            })
            .collect();
        self.entry = moved(self.entry);
        self.nodes = nodes;
    }
}
