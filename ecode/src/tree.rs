//! The typed tree of one function: made by the parser, consumed by the lowering, then forgotten.
//!
//! Invariant: operands have been converted, so that an operator's operands have the type that it
//! computes in; constant subtrees are [`Expression::Integer`] or [`Expression::Float`]. A tree of
//! which no error was reported can be lowered whatever it is.

mod statement;

pub(crate) use statement::{Body, Function, Local, Statement};

use alloc::vec::Vec;

use crate::types::{Bits, Type};
use statement::Link;

/// Index of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(pub u32);
/// Index of a local: a parameter, a variable of a block, or a compound literal.
pub(crate) type LocalId = u32;
/// Index of a label of the function.
pub(crate) type LabelId = u32;

/// Operators whose operands and result have one type; of shifts the right operand has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    And,
    Or,
    Xor,
    Shl,
    Shr,
}

/// Comparisons: operands of one type, and the result is 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
    Equal,
    NotEqual,
}

/// What an expression does, its operands being nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expression {
    /// Integer or null pointer constant, extended to 64 bits by its sign.
    Integer(u64),
    /// Floating constant: bits of an f64.
    Float(u64),
    /// A string: an array at this position of the constants.
    Text(u32),
    /// A local that lives in a register.
    Register(LocalId),
    /// A local that lives in memory.
    Memory(LocalId),
    /// An object or function by its number.
    Global(u32),
    Negate(NodeId),
    /// `~`
    Invert(NodeId),
    /// `!`
    Not(NodeId),
    Arithmetic(Arithmetic, NodeId, NodeId),
    Compare(Comparison, NodeId, NodeId),
    LogicalAnd(NodeId, NodeId),
    LogicalOr(NodeId, NodeId),
    /// The pointer plus the integer times `size`, which is negative for a subtraction.
    PointerAdd {
        pointer: NodeId,
        index: NodeId,
        size: i32,
    },
    /// Divided by the size of what they point to.
    PointerDifference {
        left: NodeId,
        right: NodeId,
        size: u32,
    },
    /// `*`: an lvalue or a function.
    Deref(NodeId),
    /// `&`, also an array or function used as a pointer.
    Address(NodeId),
    Member {
        of: NodeId,
        offset: u32,
        bits: Bits,
    },
    Assign {
        to: NodeId,
        value: NodeId,
    },
    /// `op=` of numbers, computed in a type that the value has already.
    Compound {
        operator: Arithmetic,
        to: NodeId,
        value: NodeId,
        computed: Type,
    },
    /// `+=` of a pointer, by the integer times `size`, and `-=` if that is negative.
    CompoundPointer {
        to: NodeId,
        index: NodeId,
        size: i32,
    },
    /// `++` and `--`: adds `delta`; the value is the old one if `post`.
    Step {
        to: NodeId,
        delta: i32,
        post: bool,
    },
    Conditional {
        condition: NodeId,
        yes: NodeId,
        no: NodeId,
    },
    Comma(NodeId, NodeId),
    /// Call of a function or pointer; the arguments are a range of `args`.
    Call {
        callee: NodeId,
        first: u32,
        count: u32,
    },
    /// A conversion to the node's type.
    Cast(NodeId),
    /// A compound literal, initialised by a range of `initializers`.
    Literal {
        local: LocalId,
        first: u32,
        count: u32,
    },
    /// What gcc has functions for that are an instruction, or a few.
    Builtin {
        builtin: Builtin,
        first: u32,
        count: u32,
    },
    /// `({ … })`: statements, and a value behind them, if there is one.
    Statements {
        body: Body,
        value: Option<NodeId>,
    },
    /// Something with an error.
    Error,
}

/// What [`Expression::Builtin`] does with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    Popcount,
    Parity,
    LeadingZeros,
    TrailingZeros,
    /// Number of the lowest bit that is set, from 1, or 0.
    FirstSet,
    /// How many bits below the sign are like it.
    SignBits,
    Absolute,
    SwapBytes,
    /// Computes as if there were bits enough, writes through the pointer what fits, and says
    /// whether that is not all.
    Overflow(Arithmetic),
    /// The same without writing.
    TestOverflow(Arithmetic),
    /// Control never comes here.
    Trap,
    /// Memory until the function returns.
    Allocate,
    /// `va_start`
    StartArguments,
    /// The address of the next argument of a list.
    NextInteger,
    NextFloat,
}

impl Builtin {
    /// Whether its value is all that it does.
    pub fn is_pure(self) -> bool {
        use Builtin::*;
        matches!(
            self,
            Popcount
                | Parity
                | LeadingZeros
                | TrailingZeros
                | FirstSet
                | SignBits
                | Absolute
                | SwapBytes
                | TestOverflow(_)
        )
    }

    /// What it is of a constant of so many bits, extended by its sign.
    pub fn of_constant(self, value: u64, bits: u32) -> Option<u64> {
        let unsigned = if bits == 32 {
            u64::from(value as u32)
        } else {
            value
        };
        let unused = 64 - bits;
        Some(match self {
            Builtin::Popcount => unsigned.count_ones().into(),
            Builtin::Parity => (unsigned.count_ones() & 1).into(),
            Builtin::LeadingZeros if unsigned != 0 => (unsigned.leading_zeros() - unused).into(),
            Builtin::TrailingZeros if unsigned != 0 => unsigned.trailing_zeros().into(),
            Builtin::FirstSet if unsigned == 0 => 0,
            Builtin::FirstSet => (unsigned.trailing_zeros() + 1).into(),
            Builtin::SignBits => {
                let value = value as i64;
                ((value ^ value >> 63).leading_zeros() - 1 - unused).into()
            }
            Builtin::Absolute => (value as i64).wrapping_abs() as u64,
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub expression: Expression,
    pub ty: Type,
    pub at: u32,
    /// Number of nodes in it, roughly.
    pub weight: u16,
    /// Number of levels below it.
    pub depth: u16,
    /// Evaluating it changes something or calls.
    pub effects: bool,
}

/// An initialiser's value for one scalar (or structure): `node` goes to `offset`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Initializer {
    pub offset: u32,
    pub ty: Type,
    pub bits: Bits,
    pub node: NodeId,
}

#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub nodes: Vec<Node>,
    pub args: Vec<NodeId>,
    /// Values of variables and compound literals.
    pub initializers: Vec<Initializer>,
    pub locals: Vec<Local>,
    /// Labels whose address is taken.
    pub taken: Vec<LabelId>,
    statements: Vec<Link>,
    /// The statements that are being read, innermost block.
    open: Body,
}

impl Tree {
    pub fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }

    #[inline]
    pub fn get(&self, n: NodeId) -> &Node {
        &self.nodes[n.0 as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, n: NodeId) -> &mut Node {
        &mut self.nodes[n.0 as usize]
    }

    /// Arguments of a call by their range.
    pub fn args(&self, first: u32, count: u32) -> &[NodeId] {
        &self.args[first as usize..(first + count) as usize]
    }

    /// Initialisers by their range.
    pub fn initializers(&self, first: u32, count: u32) -> &[Initializer] {
        &self.initializers[first as usize..(first + count) as usize]
    }

    /// Forgets everything, when a function or declaration of file scope is done.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.args.clear();
        self.initializers.clear();
        self.locals.clear();
        self.taken.clear();
        self.statements.clear();
        self.open = Body::default();
    }
}

impl Arithmetic {
    /// Whether C has it for integers only.
    pub fn is_for_integers(self) -> bool {
        use Arithmetic::*;
        matches!(self, Rem | And | Or | Xor | Shl | Shr)
    }
}
