//! The ways through a filter's tests to acceptance.

use alloc::vec::Vec;

use crate::flow::{NOBODY, has_variable};
use crate::program::{ACCEPT, Expr, ExprId, Exprs, Kind, NodeId, Program, Rel, apply, holds};

/// A filter with more ways is asked by itself.
const MOST: usize = 64;

/// A test that is the same for all paths of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Test {
    /// The value must exist.
    Needs(ExprId),
    /// The test must have this outcome.
    Outcome(ExprId, Rel, ExprId, bool),
}

/// What paths that differ in their constants only have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shape {
    /// In ascending order.
    pub fields: Vec<ExprId>,
    pub tests: Vec<Test>,
}

/// A way to acceptance: `shape.fields` have the values `key`, and the tests their outcomes.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub shape: Shape,
    pub key: Vec<u32>,
}

/// The paths of a program, or nothing if they cannot be listed.
pub(super) fn of(program: &Program, exprs: &mut Exprs) -> Option<Vec<Path>> {
    let mut paths = Vec::new();
    let mut stack: Vec<(NodeId, Vec<Test>)> = alloc::vec![(program.entry, Vec::new())];
    let mut steps = 0;
    while let Some((at, tests)) = stack.pop() {
        steps += 1;
        if paths.len() > MOST || steps > 64 * MOST {
            return None;
        }
        if at == ACCEPT {
            if program.accept != 0 {
                paths.extend(path(tests, exprs));
            }
            continue;
        }
        let Some(node) = program.nodes.get(at as usize) else {
            continue;
        };
        let with = |test: Test| {
            let mut tests = tests.clone();
            tests.push(test);
            tests
        };
        match node.kind {
            Kind::Test(a, rel, b) => {
                let (a, b) = (import(program, exprs, a)?, import(program, exprs, b)?);
                stack.push((node.no, with(Test::Outcome(a, rel, b, false))));
                stack.push((node.yes, with(Test::Outcome(a, rel, b, true))));
            }
            Kind::Assign(NOBODY, value) => {
                let value = import(program, exprs, value)?;
                stack.push((node.yes, with(Test::Needs(value))));
            }
            Kind::Assign(..) => return None,
            Kind::Return(value) => match program.exprs.constant(value) {
                Some(0) => {}
                Some(_) => paths.extend(path(tests, exprs)),
                None => return None,
            },
        }
    }
    Some(paths)
}

/// The same expression among those of the set; nothing for one with variables.
fn import(program: &Program, exprs: &mut Exprs, id: ExprId) -> Option<ExprId> {
    if has_variable(&program.exprs, id) {
        return None;
    }
    let expr = match program.exprs.get(id) {
        Expr::Load {
            size,
            base: Some(base),
            off,
        } => Expr::Load {
            size,
            base: Some(import(program, exprs, base)?),
            off,
        },
        Expr::Bin(op, a, b) => {
            Expr::Bin(op, import(program, exprs, a)?, import(program, exprs, b)?)
        }
        other => other,
    };
    exprs.add(expr).ok()
}

/// The path with these tests, or nothing if no packet can take it.
fn path(tests: Vec<Test>, exprs: &Exprs) -> Option<Path> {
    let mut known: Vec<(ExprId, u32)> = Vec::new();
    for test in &tests {
        if let Test::Outcome(a, Rel::Eq, b, true) = *test
            && let (None, Some(value)) = (exprs.constant(a), exprs.constant(b))
        {
            known.push((a, value));
        }
    }
    known.sort_unstable();
    known.dedup();
    if known.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return None;
    }
    let (fields, key) = known.into_iter().unzip();
    let mut path = Path {
        shape: Shape {
            fields,
            tests: Vec::new(),
        },
        key,
    };
    let mut rest = Vec::new();
    for test in tests {
        match test {
            Test::Outcome(a, rel, b, outcome) => {
                match (path.value(exprs, a), path.value(exprs, b)) {
                    // Decided by the key, if its fields are those of the test.
                    (Some(x), Some(y)) => {
                        if holds(rel, x, y) != outcome {
                            return None;
                        }
                        let own = |id| exprs.constant(id).is_some() || path.field(id).is_some();
                        if !own(a) || !own(b) {
                            rest.push(test);
                        }
                    }
                    _ => rest.push(test),
                }
            }
            Test::Needs(_) => rest.push(test),
        }
    }
    rest.sort_unstable();
    rest.dedup();
    path.shape.tests = rest;
    Some(path)
}

impl Path {
    fn field(&self, id: ExprId) -> Option<u32> {
        let index = self.shape.fields.binary_search(&id).ok()?;
        self.key.get(index).copied()
    }

    /// The value that an expression has for every packet of this path, if that can be said.
    pub fn value(&self, exprs: &Exprs, id: ExprId) -> Option<u32> {
        if let Some(value) = self.field(id) {
            return Some(value);
        }
        match exprs.get(id) {
            Expr::Const(value) => Some(value),
            Expr::Bin(op, a, b) => apply(op, self.value(exprs, a)?, self.value(exprs, b)?),
            _ => None,
        }
    }

    /// Whether surely no packet takes both.
    pub fn disjoint(&self, other: &Path, exprs: &Exprs) -> bool {
        self.contradicts(other, exprs) || other.contradicts(self, exprs)
    }

    fn contradicts(&self, other: &Path, exprs: &Exprs) -> bool {
        let differ = |(field, value): (&ExprId, &u32)| {
            self.value(exprs, *field).is_some_and(|mine| mine != *value)
        };
        let fields = other.shape.fields.iter().zip(&other.key);
        fields.into_iter().any(differ)
            || other.shape.tests.iter().any(|test| match *test {
                Test::Outcome(a, rel, b, outcome) => {
                    let values = self.value(exprs, a).zip(self.value(exprs, b));
                    values.is_some_and(|(a, b)| holds(rel, a, b) != outcome)
                        || self
                            .shape
                            .tests
                            .contains(&Test::Outcome(a, rel, b, !outcome))
                }
                Test::Needs(_) => false,
            })
    }
}
