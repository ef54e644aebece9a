//! The ways through a filter's tests to acceptance.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::expression::{Expr, ExprId, Exprs, Op, Rel, apply, holds};
use crate::flow::{UNUSED, has_variable};
use crate::program::{ACCEPT, NodeId, NodeKind, Program};

/// What a filter may take to be one of a set's program. One with more ways, of more shapes, or that
/// takes more steps to look at, is asked by itself: so the work of one insertion is bounded,
/// whatever the filter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Ways to acceptance.
    pub paths: usize,
    /// Different ones, but for their constants.
    pub shapes: usize,
    /// Steps on all ways; each counts the tests on the way there.
    pub steps: usize,
    /// Steps that are spent on leaving tests out.
    pub needed: u32,
}

impl Limits {
    /// For sets of some hundred filters from strangers, compiled where time and memory are short.
    pub const SMALL: Limits = Limits {
        paths: 256,
        shapes: 16,
        steps: 1 << 13,
        needed: 1 << 12,
    };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            paths: 8192,
            shapes: 64,
            steps: 1 << 18,
            needed: 1 << 15,
        }
    }
}

/// Of the steps to leave tests out so many for each path.
const NEEDED: u32 = 512;
/// Tests of one path.
const MAX_TESTS: usize = 256;

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

impl Shape {
    /// Appends the expressions that it names.
    pub fn exprs(&self, list: &mut Vec<ExprId>) {
        list.extend(&self.fields);
        for test in &self.tests {
            match *test {
                Test::Needs(a) => list.push(a),
                Test::Outcome(a, _, b, _) => list.extend([a, b]),
            }
        }
    }

    /// The same with other expressions.
    pub fn with(&self, mut new: impl FnMut(ExprId) -> Option<ExprId>) -> Option<Shape> {
        let fields = self
            .fields
            .iter()
            .map(|id| new(*id))
            .collect::<Option<_>>()?;
        let tests = self.tests.iter().map(|test| {
            Some(match *test {
                Test::Needs(a) => Test::Needs(new(a)?),
                Test::Outcome(a, rel, b, outcome) => Test::Outcome(new(a)?, rel, new(b)?, outcome),
            })
        });
        let tests = tests.collect::<Option<_>>()?;
        Some(Shape { fields, tests })
    }
}

/// These expressions and what they consist of, ascending.
pub(super) fn parts(exprs: &Exprs, list: &[ExprId]) -> Vec<ExprId> {
    let mut all = BTreeSet::new();
    let mut stack = list.to_vec();
    while let Some(id) = stack.pop() {
        if !all.insert(id) {
            continue;
        }
        match exprs.get(id) {
            Expr::Load { base, .. } => stack.extend(base),
            Expr::Bin(_, a, b) => stack.extend([a, b]),
            _ => {}
        }
    }
    all.into_iter().collect()
}

/// A way to acceptance: `shape.fields` have the values `key`, and the tests their outcomes.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub shape: Shape,
    pub key: Vec<u32>,
}

/// The paths of a program, or nothing if they cannot be listed.
pub(super) fn of(program: &Program, exprs: &mut Exprs, limits: Limits) -> Option<Vec<Path>> {
    let mut paths: Vec<Path> = Vec::new();
    let mut shapes = BTreeSet::new();
    let mut stack: Vec<(NodeId, Vec<Test>)> = alloc::vec![(program.entry, Vec::new())];
    let mut steps = 0;
    let mut budget = limits.needed;
    let mut found = |tests, exprs: &mut Exprs| {
        let path = path(needed(program, tests, exprs, &mut budget), exprs);
        let known = |path: &Path| shapes.contains(&path.shape);
        if let Some(path) = path.as_ref().filter(|path| !known(path)) {
            shapes.insert(path.shape.clone());
        }
        paths.extend(path);
        budget > 0 && paths.len() <= limits.paths && shapes.len() <= limits.shapes
    };
    while let Some((at, tests)) = stack.pop() {
        steps += 1 + tests.len();
        if steps > limits.steps || tests.len() > MAX_TESTS {
            return None;
        }
        if at == ACCEPT {
            if program.accept != 0 && !found(tests, exprs) {
                return None;
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
            NodeKind::Test(a, rel, b) => {
                let (a, b) = (
                    import(&program.exprs, exprs, a)?,
                    import(&program.exprs, exprs, b)?,
                );
                // Where the test holds all is accepted: whoever fails it and is accepted further on
                // need not have failed it. So of `field in {…}`, however long, each value is a path
                // with nothing but that value.
                let otherwise = match node.yes == ACCEPT && program.accept != 0 {
                    true => {
                        let mut tests = tests.clone();
                        let reads = [a, b]
                            .into_iter()
                            .filter(|id| exprs.constant(*id).is_none());
                        for read in reads.map(Test::Needs) {
                            if !tests.contains(&read) {
                                tests.push(read);
                            }
                        }
                        tests
                    }
                    false => with(Test::Outcome(a, rel, b, false)),
                };
                stack.push((node.no, otherwise));
                stack.push((node.yes, with(Test::Outcome(a, rel, b, true))));
            }
            NodeKind::Assign(UNUSED, value) => {
                let value = import(&program.exprs, exprs, value)?;
                stack.push((node.yes, with(Test::Needs(value))));
            }
            NodeKind::Assign(..) | NodeKind::Beaten(_) | NodeKind::Lookup(_) | NodeKind::Best => {
                return None;
            }
            NodeKind::Return(value) => match program.exprs.constant(value) {
                Some(0) => {}
                Some(_) if !found(tests, exprs) => return None,
                Some(_) => {}
                None => return None,
            },
        }
    }
    Some(paths)
}

/// The tests of a path without those that only say that it is not another one: behind `port 80`,
/// that the source port is not 80 does not matter to the destination's. That their fields can be
/// read stays. Without this, filters of one shape had one each.
fn needed(program: &Program, mut tests: Vec<Test>, exprs: &mut Exprs, all: &mut u32) -> Vec<Test> {
    let most = NEEDED.min(*all);
    let mut budget = most;
    for index in 0..tests.len() {
        let Test::Outcome(a, rel, b, false) = tests[index] else {
            continue;
        };
        // That it has another value says as much.
        let says = |test: &Test| match *test {
            Test::Outcome(x, Rel::Eq, y, true) => x == a && y != b && exprs.constant(y).is_some(),
            _ => false,
        };
        if rel == Rel::Eq && exprs.constant(b).is_some() && tests.iter().any(says) {
            continue;
        }
        let Some(left) = budget.checked_sub(tests.len() as u32) else {
            budget = 0;
            break;
        };
        budget = left;
        let mut facts = Facts::new(&tests, exprs);
        facts.outcomes.remove(index);
        facts.outcomes.push((a, rel, b, true));
        if facts.accepted(program, exprs, program.entry, &mut budget) == Some(true) {
            tests[index] = Test::Needs(a);
            if exprs.constant(b).is_none() {
                tests.push(Test::Needs(b));
            }
        }
    }
    *all -= most - budget;
    tests
}

/// What is known of the packets of a path.
struct Facts {
    /// As many as the path has tests; those that say nothing are equal to themselves.
    outcomes: Vec<(ExprId, Rel, ExprId, bool)>,
    /// What is read on the path, and where the fields with fixed places end.
    read: Vec<ExprId>,
    end: u32,
}

impl Facts {
    fn new(tests: &[Test], exprs: &Exprs) -> Facts {
        let mut list = Vec::new();
        let mut outcomes = Vec::new();
        for test in tests {
            match *test {
                Test::Needs(a) => {
                    list.push(a);
                    outcomes.push((a, Rel::Eq, a, true));
                }
                Test::Outcome(a, rel, b, outcome) => {
                    list.extend([a, b]);
                    outcomes.push((a, rel, b, outcome));
                }
            }
        }
        let read = parts(exprs, &list);
        let ends = read.iter().map(|id| match exprs.get(*id) {
            Expr::Load {
                size,
                base: None,
                off,
            } => off.saturating_add(size.into()),
            _ => 0,
        });
        let end = ends.max().unwrap_or(0);
        Facts {
            outcomes,
            read,
            end,
        }
    }

    fn value(&self, exprs: &Exprs, id: ExprId) -> Option<u32> {
        let equal = self.outcomes.iter().find_map(|(a, rel, b, outcome)| {
            let known = *a == id && *rel == Rel::Eq && *outcome;
            exprs.constant(*b).filter(|_| known)
        });
        equal.or_else(|| match exprs.get(id) {
            Expr::Const(value) => Some(value),
            Expr::Bin(op, a, b) => apply(op, self.value(exprs, a)?, self.value(exprs, b)?),
            _ => None,
        })
    }

    /// Whether the path's packets have all that is read here.
    fn readable(&self, exprs: &Exprs, id: ExprId) -> bool {
        let divides = |op| matches!(op, Op::Div | Op::Mod);
        parts(exprs, &[id])
            .iter()
            .all(|part| match exprs.get(*part) {
                Expr::Load {
                    size,
                    base: None,
                    off,
                } => off.saturating_add(size.into()) <= self.end,
                Expr::Load { .. } => self.read.contains(part),
                Expr::Bin(op, ..) if divides(op) => self.read.contains(part),
                _ => true,
            })
    }

    /// Whether the program accepts every packet of which this is known.
    fn accepted(
        &mut self,
        program: &Program,
        exprs: &mut Exprs,
        at: NodeId,
        budget: &mut u32,
    ) -> Option<bool> {
        *budget = budget.checked_sub(1)?;
        if at == ACCEPT {
            return Some(program.accept != 0);
        }
        let Some(node) = program.nodes.get(at as usize) else {
            return Some(false);
        };
        match node.kind {
            NodeKind::Test(a, rel, b) => {
                let (a, b) = (
                    import(&program.exprs, exprs, a)?,
                    import(&program.exprs, exprs, b)?,
                );
                if !self.readable(exprs, a) || !self.readable(exprs, b) {
                    return Some(false);
                }
                let same =
                    |(x, r, y, _): &&(ExprId, Rel, ExprId, bool)| (*x, *r, *y) == (a, rel, b);
                let known = match self.outcomes.iter().find(same) {
                    Some((.., outcome)) => Some(*outcome),
                    None => match (self.value(exprs, a), self.value(exprs, b)) {
                        (Some(a), Some(b)) => Some(holds(rel, a, b)),
                        _ => None,
                    },
                };
                for (outcome, next) in [(true, node.yes), (false, node.no)] {
                    if known.is_none_or(|known| known == outcome) {
                        self.outcomes.push((a, rel, b, outcome));
                        let accepted = self.accepted(program, exprs, next, budget);
                        self.outcomes.pop();
                        if accepted != Some(true) {
                            return accepted;
                        }
                    }
                }
                Some(true)
            }
            NodeKind::Assign(UNUSED, value) => {
                let value = import(&program.exprs, exprs, value)?;
                match self.readable(exprs, value) {
                    true => self.accepted(program, exprs, node.yes, budget),
                    false => Some(false),
                }
            }
            NodeKind::Return(value) => Some(program.exprs.constant(value)? != 0),
            _ => None,
        }
    }
}

/// The same expression among those of the set; nothing for one with variables.
pub(super) fn import(from: &Exprs, exprs: &mut Exprs, id: ExprId) -> Option<ExprId> {
    if has_variable(from, id) {
        return None;
    }
    let expr = from.get(id).rebuilt(|part| import(from, exprs, part))?;
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
    let mut path = Path::new(known.into_iter(), &[]);
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
    /// `fields` in ascending order, with their values.
    pub fn new(fields: impl Iterator<Item = (ExprId, u32)>, tests: &[Test]) -> Path {
        let (fields, key) = fields.unzip();
        Path {
            shape: Shape {
                fields,
                tests: tests.to_vec(),
            },
            key,
        }
    }

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

    /// Whether surely no packet of this path takes the other one. With the two exchanged that may
    /// be seen or not.
    pub fn contradicts(&self, other: &Path, exprs: &Exprs) -> bool {
        let differ = |(field, value): (&ExprId, &u32)| {
            self.value(exprs, *field).is_some_and(|mine| mine != *value)
        };
        let mut fields = other.shape.fields.iter().zip(&other.key);
        fields.any(differ)
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
