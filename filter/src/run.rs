//! The meaning of a program, node by node: what the machine code is compared with, and an answer
//! where there is none.

use crate::expression::{Expr, ExprId, apply, holds};
use crate::program::{ACCEPT, NodeKind, Program, REJECT};

/// Variables of a program.
pub(crate) const VARIABLES: usize = 20;

/// A packet as a filter sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub bytes: &'a [u8],
    pub wire: u32,
}

impl View<'_> {
    /// The field of `size` bytes at `base + off`, if all of it is captured.
    pub fn load(&self, size: u8, base: u32, off: u32) -> Option<u32> {
        let from = usize::try_from(u64::from(base) + u64::from(off)).ok()?;
        let bytes = self.bytes.get(from..from.checked_add(usize::from(size))?)?;
        Some(
            bytes
                .iter()
                .fold(0, |value, byte| value << 8 | u32::from(*byte)),
        )
    }
}

impl Program {
    /// How many bytes of the packet are accepted; 0 rejects it.
    pub fn run(&self, view: View<'_>) -> u32 {
        let mut vars = [0; VARIABLES];
        let mut at = self.entry;
        loop {
            if at == ACCEPT {
                return self.accept;
            }
            let Some(node) = self.nodes.get(at as usize) else {
                debug_assert_eq!(at, REJECT);
                return 0;
            };
            let next = match node.kind {
                NodeKind::Test(a, rel, b) => {
                    let values = (self.value(a, view, &vars), self.value(b, view, &vars));
                    let (Some(a), Some(b)) = values else {
                        return 0;
                    };
                    if holds(rel, a, b) { node.yes } else { node.no }
                }
                NodeKind::Assign(var, value) => {
                    let Some(value) = self.value(value, view, &vars) else {
                        return 0;
                    };
                    vars[usize::from(var) % VARIABLES] = value;
                    node.yes
                }
                NodeKind::Return(value) => return self.value(value, view, &vars).unwrap_or(0),
                // Those of sets run as machine code only.
                NodeKind::Beaten(_) | NodeKind::Lookup(_) | NodeKind::Best => return 0,
            };
            at = next;
        }
    }

    fn value(&self, id: ExprId, view: View<'_>, vars: &[u32; VARIABLES]) -> Option<u32> {
        match self.exprs.get(id) {
            Expr::Const(value) => Some(value),
            Expr::Len => Some(view.wire),
            Expr::Captured => u32::try_from(view.bytes.len()).ok(),
            Expr::Var(var) => vars.get(usize::from(var)).copied(),
            Expr::Load { size, base, off } => {
                let base = match base {
                    Some(base) => self.value(base, view, vars)?,
                    None => 0,
                };
                view.load(size, base, off)
            }
            Expr::Bin(op, a, b) => {
                apply(op, self.value(a, view, vars)?, self.value(b, view, vars)?)
            }
        }
    }
}
