//! Statements of a function, one after the other in chains, and what they declare.
//!
//! Invariant: a local is declared, by a statement or as a parameter, before a node mentions it; a
//! compound literal is declared in the block around the expression that it stands in, where C says
//! that it lives.

use super::{LabelId, LocalId, NodeId, Tree};
use crate::types::Type;

/// A function that has been read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    /// Its number among the globals.
    pub global: u32,
    /// Where it stands in the source.
    pub at: u32,
    pub result: Type,
    /// The first locals of the tree are the parameters.
    pub parameters: u32,
    pub labels: u32,
    pub body: Body,
    /// Falling off its end returns 0: it is `main`.
    pub returns_zero: bool,
    /// It takes `...`.
    pub variadic: bool,
    /// It has arrays of variable length or calls `alloca`; and whether it calls `alloca`.
    pub dynamic: bool,
    pub allocates: bool,
}

/// A parameter, a variable of a block, or a compound literal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Local {
    pub ty: Type,
    pub at: u32,
    /// It lives in memory: its address is taken, it is volatile, or no scalar.
    pub memory: bool,
    /// What the declaration asks for beyond the type's alignment, or 0.
    pub align: u32,
}

/// What a function does, step by step. Conditions and values have been checked and converted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Statement {
    Empty,
    /// Evaluated for its effects.
    Expression(NodeId),
    /// The local gets its place.
    Declare(LocalId),
    /// The local gets the values `initializers[first..first + count]`, and zeros elsewhere.
    Initialize {
        local: LocalId,
        first: u32,
        count: u32,
    },
    Block(Body),
    If {
        condition: NodeId,
        yes: Body,
        no: Option<Body>,
    },
    /// `while` and `for`.
    Loop {
        condition: Option<NodeId>,
        step: Option<NodeId>,
        body: Body,
    },
    DoWhile {
        body: Body,
        condition: NodeId,
    },
    /// The value has been promoted.
    Switch {
        value: NodeId,
        body: Body,
    },
    /// A value of the innermost switch, in its type.
    Case(i64),
    Default,
    Label(LabelId),
    Goto(LabelId),
    /// `goto *`: to one of the labels whose address is taken.
    GotoAddress(NodeId),
    /// An array of variable length gets its memory, below that of the one before it, if there is
    /// one.
    Allocate {
        pointer: LocalId,
        size: LocalId,
        before: Option<LocalId>,
    },
    Break,
    Continue,
    Return(Option<NodeId>),
}

/// Statements one after the other: first and last, if there are any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Body {
    ends: Option<(u32, u32)>,
}

/// A statement, where it stands, and what follows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    statement: Statement,
    at: u32,
    next: u32,
}

/// No statement follows.
const END: u32 = u32::MAX;

impl Tree {
    /// Appends a statement to those that are being read. `at` is its position, or 0 if it is a part
    /// of the one before.
    pub fn add(&mut self, statement: Statement, at: u32) {
        let index = self.statements.len() as u32;
        self.statements.push(Link {
            statement,
            at,
            next: END,
        });
        self.open.ends = match self.open.ends {
            None => Some((index, index)),
            Some((first, last)) => {
                self.statements[last as usize].next = index;
                Some((first, index))
            }
        };
    }

    /// A new local, declared by the statements that are being read.
    pub fn declare(&mut self, local: Local) -> LocalId {
        let id = self.parameter(local);
        self.add(Statement::Declare(id), 0);
        id
    }

    /// A new local that no statement declares.
    pub fn parameter(&mut self, local: Local) -> LocalId {
        self.locals.push(local);
        self.locals.len() as u32 - 1
    }

    /// Begins statements of their own; returns those around them, for [`Tree::close`].
    pub fn open(&mut self) -> Body {
        core::mem::take(&mut self.open)
    }

    /// Ends what [`Tree::open`] began: the statements since.
    pub fn close(&mut self, around: Body) -> Body {
        core::mem::replace(&mut self.open, around)
    }

    /// The same for statements that are an expression: the last one is its value, if it has one.
    pub fn close_with_value(&mut self, around: Body) -> (Body, Option<NodeId>) {
        let body = self.close(around);
        let last = body
            .ends
            .map(|(_, last)| &mut self.statements[last as usize].statement);
        match last {
            Some(statement) => match *statement {
                Statement::Expression(n) => {
                    *statement = Statement::Empty;
                    (body, Some(n))
                }
                _ => (body, None),
            },
            None => (body, None),
        }
    }

    /// The statements with their positions.
    pub fn statements(&self, body: Body) -> impl Iterator<Item = (Statement, u32)> {
        let mut next = body.ends.map_or(END, |(first, _)| first);
        core::iter::from_fn(move || {
            let link = self.statements.get(next as usize)?;
            next = link.next;
            Some((link.statement, link.at))
        })
    }
}
