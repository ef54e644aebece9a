//! The intermediate form: tests of expressions over the packet, joined to a graph without cycles.

use alloc::vec::Vec;

use crate::expression::{ExprId, Exprs, Rel};
use crate::lookup::Lookup;

/// A node's number.
pub(crate) type NodeId = u32;

/// The end that rejects.
pub(crate) const REJECT: NodeId = u32::MAX;
/// The end that accepts with all bytes.
pub(crate) const ACCEPT: NodeId = u32::MAX - 1;
/// Not joined yet.
const OPEN: NodeId = u32::MAX - 2;

/// How many nodes a program may have.
pub(crate) const MAX_NODES: usize = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    Test(ExprId, Rel, ExprId),
    /// Goes on at `yes`.
    Assign(u8, ExprId),
    /// Ends with the expression's value: how many bytes are accepted.
    Return(ExprId),
    /// Of a set: goes on at `yes` if the best rank found is at least the one in this place of the
    /// set's memory.
    Beaten(u32),
    /// Of a set: looks a rank up, keeps it if it is the best, and goes on at `yes`. What it reads
    /// is captured: tests before it say so.
    Lookup(u32),
    /// Of a set: ends with the best filter.
    Best,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub kind: NodeKind,
    pub yes: NodeId,
    pub no: NodeId,
}

/// A graph with an entry. Every edge goes to a node, [`ACCEPT`] or [`REJECT`].
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub exprs: Exprs,
    pub nodes: Vec<Node>,
    pub entry: NodeId,
    /// What [`ACCEPT`] returns.
    pub accept: u32,
    /// What [`NodeKind::Lookup`] counts.
    pub lookups: Vec<Lookup>,
    /// The best rank is none where the program begins.
    pub afresh: bool,
}

/// A part of a graph: where it begins, and its open edges.
#[derive(Debug, Default)]
pub(crate) struct Fragment {
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
    pub fn node(&mut self, kind: NodeKind, yes: NodeId, no: NodeId) -> NodeId {
        self.nodes.push(Node { kind, yes, no });
        self.nodes.len() as NodeId - 1
    }

    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    pub fn test(&mut self, a: ExprId, rel: Rel, b: ExprId) -> Fragment {
        let head = self.node(NodeKind::Test(a, rel, b), OPEN, OPEN);
        Fragment {
            head,
            yes: alloc::vec![(head, true)],
            no: alloc::vec![(head, false)],
        }
    }

    /// Assigns and goes on as if a test had held.
    pub fn assign(&mut self, var: u8, value: ExprId) -> Fragment {
        let head = self.node(NodeKind::Assign(var, value), OPEN, OPEN);
        Fragment {
            head,
            yes: alloc::vec![(head, true)],
            no: Vec::new(),
        }
    }

    /// Nodes that begin at `head` and end as `last` does.
    pub fn enter(&self, head: NodeId, last: Fragment) -> Fragment {
        Fragment { head, ..last }
    }

    fn join(&mut self, edges: Vec<(NodeId, bool)>, to: NodeId) {
        for (node, yes) in edges {
            let node = &mut self.nodes[node as usize];
            *(if yes { &mut node.yes } else { &mut node.no }) = to;
        }
    }

    /// `a`, then if it holds `b`.
    pub fn and(&mut self, a: Fragment, b: Fragment) -> Fragment {
        self.join(a.yes, b.head);
        Fragment {
            head: a.head,
            yes: b.yes,
            no: concat(a.no, b.no),
        }
    }

    /// `a`, then if it does not hold `b`.
    pub fn or(&mut self, a: Fragment, b: Fragment) -> Fragment {
        self.join(a.no, b.head);
        Fragment {
            head: a.head,
            yes: concat(a.yes, b.yes),
            no: b.no,
        }
    }

    pub fn not(&mut self, a: Fragment) -> Fragment {
        Fragment {
            head: a.head,
            yes: a.no,
            no: a.yes,
        }
    }

    /// Lets a part accept where it holds and reject where it does not. Returns where it begins.
    pub fn close(&mut self, part: Fragment) -> NodeId {
        self.join(part.yes, ACCEPT);
        self.join(part.no, REJECT);
        part.head
    }

    /// The finished program from `entry`, its nodes in an order in which every edge goes forward,
    /// without those that nothing reaches.
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
            NodeKind::Test(..) | NodeKind::Beaten(_) => ([node.no, node.yes], 2),
            NodeKind::Assign(..) | NodeKind::Lookup(_) => ([node.yes, node.yes], 1),
            NodeKind::Return(_) | NodeKind::Best => ([REJECT, REJECT], 0),
        }
    }

    /// Orders the nodes so that edges go forward, each test followed by where it leads when it
    /// holds, if that can be; drops what the entry does not reach.
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
