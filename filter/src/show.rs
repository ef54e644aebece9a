//! A program as text, for people.

use alloc::string::String;
use core::fmt::{self, Write};

use crate::expression::{Expr, ExprId, Op, Rel};
use crate::lookup::Lookup;
use crate::program::{ACCEPT, NodeId, NodeKind, Program, REJECT};

impl fmt::Display for Program {
    /// One line for each test: what it asks, and where it goes on if that holds and if not.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nodes.is_empty() {
            return writeln!(f, "{}", target(self.entry));
        }
        for (id, node) in self.nodes.iter().enumerate() {
            write!(f, "{id:>4}: ")?;
            match node.kind {
                NodeKind::Test(a, rel, b) => {
                    let sign = match rel {
                        Rel::Eq => "==",
                        Rel::Gt => ">",
                        Rel::Ge => ">=",
                        Rel::Set => "&",
                    };
                    let (a, b) = (Shown(self, a), Shown(self, b));
                    let (yes, no) = (target(node.yes), target(node.no));
                    writeln!(f, "{a} {sign} {b} ? {yes} : {no}")?;
                }
                NodeKind::Assign(crate::flow::UNUSED, value) => {
                    writeln!(f, "needs {}, then {}", Shown(self, value), target(node.yes))?;
                }
                NodeKind::Assign(var, value) => {
                    writeln!(
                        f,
                        "v{var} = {}, then {}",
                        Shown(self, value),
                        target(node.yes)
                    )?;
                }
                NodeKind::Return(value) => writeln!(f, "return {}", Shown(self, value))?,
                NodeKind::Beaten(_) => {
                    let (yes, no) = (target(node.yes), target(node.no));
                    writeln!(f, "nothing better behind ? {yes} : {no}")?;
                }
                NodeKind::Lookup(number) => {
                    if let Some(lookup) = self.lookups.get(number as usize) {
                        self.lookup(f, lookup)?;
                    }
                    writeln!(f, ", then {}", target(node.yes))?;
                }
                NodeKind::Best => writeln!(f, "return the best")?,
            }
        }
        Ok(())
    }
}

impl Program {
    /// How a rank is found.
    fn lookup(&self, f: &mut fmt::Formatter<'_>, lookup: &Lookup) -> fmt::Result {
        match lookup {
            Lookup::Rank { at } => write!(f, "found: rank at {at:#x}"),
            Lookup::Direct { field, .. } => {
                write!(f, "table indexed by {}", Shown(self, *field))
            }
            Lookup::Hash { layout, .. } => {
                write!(f, "hash of")?;
                for field in &layout.fields {
                    write!(f, " {}", Shown(self, *field))?;
                }
                write!(f, ": 2 x 2 entries of {} words", layout.words)
            }
        }
    }
}

fn target(id: NodeId) -> String {
    match id {
        ACCEPT => "accept".into(),
        REJECT => "reject".into(),
        other => alloc::format!("{other}"),
    }
}

struct Shown<'a>(&'a Program, ExprId);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sub = |id| Shown(self.0, id);
        match self.0.exprs.get(self.1) {
            Expr::Const(value) if value < 10 => write!(f, "{value}"),
            Expr::Const(value) => write!(f, "{value:#x}"),
            Expr::Len => f.write_str("len"),
            Expr::Captured => f.write_str("captured"),
            Expr::Var(var) => write!(f, "v{var}"),
            Expr::Load {
                size,
                base: None,
                off,
            } => write!(f, "{off}:{size}"),
            Expr::Load {
                size,
                base: Some(base),
                off,
            } => write!(f, "({} + {off}):{size}", sub(base)),
            Expr::Bin(op, a, b) => {
                let sign = match op {
                    Op::Add => "+",
                    Op::Sub => "-",
                    Op::Mul => "*",
                    Op::Div => "/",
                    Op::Mod => "%",
                    Op::And => "&",
                    Op::Or => "|",
                    Op::Xor => "^",
                    Op::Shl => "<<",
                    Op::Shr => ">>",
                };
                f.write_char('(')?;
                write!(f, "{} {sign} {}", sub(a), sub(b))?;
                f.write_char(')')
            }
        }
    }
}
