//! The typed tree of one function: made by the parser, consumed by the lowering, then forgotten.
//!
//! Invariant: operands have been converted, so that an operator's operands have the type that it computes in; constant
//! subtrees are [`K::Int`] or [`K::Float`]. A tree of which no error was reported can be lowered whatever it is.

mod statement;

pub(crate) use statement::{Body, Function, Local, Statement};

use alloc::vec::Vec;

use crate::types::Type;
use statement::Link;

/// Index of a node.
pub(crate) type N = u32;
/// Index of a local: a parameter, a variable of a block, or a compound literal.
pub(crate) type LocalId = u32;
/// Index of a label of the function.
pub(crate) type LabelId = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum K {
    /// Integer or null pointer constant: `value`.
    Int,
    /// Floating constant: bits of an f64 in `value`.
    Float,
    /// A string: an array at `value` in the constants.
    Text,
    /// Local `a`, which lives in a register.
    Register,
    /// Local `a`, which lives in memory.
    Slot,
    /// Global number `a`, object or function.
    Global,
    /// Type-checked operators on converted operands.
    Neg,
    Not,
    LogicalNot,
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
    /// Comparisons; `a` and `b` have the same type.
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
    Equal,
    NotEqual,
    LogicalAnd,
    LogicalOr,
    /// Pointer `a` plus integer `b` times `value`, and minus.
    PtrAdd,
    PtrSub,
    /// Difference of pointers divided by `value`.
    PtrDiff,
    /// `*a`, an lvalue or a function.
    Deref,
    /// `&a`, also an array or function used as a pointer.
    Address,
    /// The member of `a` at offset `value`.
    Member,
    Assign,
    /// `a op= b`, computed in the type `c`; the operator's K in `value`.
    Compound,
    /// `++`, `--`: adds `value` (times 1) to `a`; the result is the new or the old value.
    PreAdd,
    PostAdd,
    Cond,
    Comma,
    /// Call of `a` (a function or pointer) with the arguments in `args[b..b + c]`.
    Call,
    Cast,
    /// A compound literal: local `a`, initialised by `initializers[b..b + c]`.
    Literal,
    /// Something with an error.
    Error,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub kind: K,
    /// Evaluating it changes something or calls.
    pub effects: bool,
    /// Number of nodes in it, roughly.
    pub weight: u16,
    /// Number of levels below it.
    pub depth: u16,
    pub ty: Type,
    pub a: u32,
    pub b: u32,
    pub c: u32,
    pub at: u32,
    pub value: u64,
}

/// An initialiser's value for one scalar (or structure): `node` goes to `offset`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Init {
    pub offset: u32,
    pub ty: Type,
    pub node: N,
}

#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub nodes: Vec<Node>,
    pub args: Vec<N>,
    /// Values of variables and compound literals.
    pub initializers: Vec<Init>,
    pub locals: Vec<Local>,
    statements: Vec<Link>,
    /// The statements that are being read, innermost block.
    open: Body,
}

impl Tree {
    pub fn push(&mut self, node: Node) -> N {
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    #[inline]
    pub fn get(&self, n: N) -> &Node {
        &self.nodes[n as usize]
    }

    /// The arguments of a call.
    pub fn args(&self, call: &Node) -> &[N] {
        &self.args[call.b as usize..(call.b + call.c) as usize]
    }

    /// Initialisers by their range.
    pub fn initializers(&self, first: u32, count: u32) -> &[Init] {
        &self.initializers[first as usize..(first + count) as usize]
    }

    /// Forgets everything, when a function or declaration of file scope is done.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.args.clear();
        self.initializers.clear();
        self.locals.clear();
        self.statements.clear();
        self.open = Body::default();
    }
}
