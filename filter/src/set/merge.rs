//! A set as one program: each group's fields are decided one after the other, every value among the
//! group's by binary search, those fields first that have the fewest values, so that what
//! connections have in common is tested once.
//!
//! What one group cannot read rejects no packet here: it only takes no path of this group. So each
//! group begins with tests of the captured length.

use alloc::vec::Vec;

use super::path::{Shape, Test};
use super::{Group, Id, Set};
use crate::Code;
use crate::classic::ranges;
use crate::encode::Site;
use crate::expression::{Expr, ExprId, Exprs, Op, Rel};
use crate::list::search;
use crate::lookup::Lookup;
use crate::program::{Builder, MAX_NODES, NodeId, NodeKind, Program, REJECT};

/// Machine code of a set: it returns the number of the filter that gets a packet, from 1 on, or 0.
#[derive(Clone, Debug)]
pub struct Merged {
    /// A function of [`crate::SIGNATURE`].
    pub code: Code,
    /// The filters; the code's 1 is the first.
    pub ids: Vec<Id>,
}

/// The variable with the number of the best filter so far; 0 is none yet.
const BEST: u8 = 0;
/// A key and the number of its best filter.
type RankedKey = (Vec<u32>, u32);

impl Set {
    /// One decision program of all filters. Nothing if the set has more filters than are worth
    /// that, or some that only can be asked by themselves; then there is [`Set::find`].
    pub fn merged(&self) -> Option<Merged> {
        if !self.single.is_empty() {
            return None;
        }
        let (program, ids) = self.merge(None)?;
        Some(Merged {
            code: encode(&program),
            ids: ids.into_iter().map(Id).collect(),
        })
    }

    /// Programs of which one accepts what any filter accepts: one of all paths, then the filters
    /// that are asked by themselves. What they return else says nothing. With `most`, a group of
    /// more filters has at most so many ranges, which accept more.
    pub(crate) fn any(&self, most: Option<usize>) -> Option<Vec<Program>> {
        let (mut program, _) = self.merge(most)?;
        // The first that is found will do.
        for node in &mut program.nodes {
            if let NodeKind::Assign(BEST, value) = node.kind
                && program.exprs.constant(value) != Some(0)
            {
                node.kind = NodeKind::Return(value);
            }
        }
        crate::flow::simplify(&mut program);
        let whole = |id| self.members.get(id).and_then(|m| m.whole.clone());
        let mut programs = alloc::vec![program];
        programs.extend(self.single.iter().filter_map(whole));
        Some(programs)
    }

    /// The program of all filters with paths, which returns a place in the list from 1 on, or 0.
    fn merge(&self, most: Option<usize>) -> Option<(Program, Vec<u32>)> {
        // Numbers in the order of who gets a packet: the lowest does.
        let mut ids: Vec<u32> = self.members.keys().copied().collect();
        ids.sort_by_key(|id| (core::cmp::Reverse(self.priority(*id)), *id));
        let mut numbers = alloc::vec![0; self.next as usize];
        for (number, id) in ids.iter().enumerate() {
            *numbers.get_mut(*id as usize)? = number as u32 + 1;
        }
        let mut merger = Merger::default();
        merger.build.exprs = self.exprs.clone();
        let best = merger.expr(Expr::Var(BEST))?;
        merger.var = Some(best);
        // From the last group to the first, each leading to the one behind it.
        let mut next = merger.build.node(NodeKind::Return(best), REJECT, REJECT);
        let mut later = u32::MAX;
        for group in self.order.iter().rev() {
            let group = &self.groups[*group];
            let entries: Vec<RankedKey> = group
                .table
                .entries()
                .filter_map(|(key, ids)| {
                    let best = ids.iter().map(|id| numbers[*id as usize]).min()?;
                    Some((key.to_vec(), best))
                })
                .collect();
            let Some(first) = entries.iter().map(|(_, number)| *number).min() else {
                continue;
            };
            next = match most {
                Some(most) if entries.len() > most => merger.coarse(group, &entries, most, next)?,
                _ => merger.group(group, entries, next, later)?,
            };
            later = later.min(first);
        }
        let zero = merger.build.exprs.number(0);
        let entry = merger
            .build
            .node(NodeKind::Assign(BEST, zero), next, REJECT);
        let mut program = merger.build.finish(entry, 0);
        crate::flow::simplify(&mut program);
        Some((program, ids))
    }
}

fn encode(program: &Program) -> Code {
    Code::new(Site::Process, crate::encode::encode(Site::Process, program))
}

/// Makes the nodes of a set's groups.
#[derive(Default)]
pub(super) struct Merger {
    pub build: Builder,
    /// The variable [`BEST`]; without it entries are places of ranks.
    var: Option<ExprId>,
}

/// Where it goes on behind a group, and the best number there: one that is better yet ends the
/// search.
pub(super) type Continuation = (NodeId, Option<u32>);

impl Merger {
    fn expr(&mut self, expr: Expr) -> Option<ExprId> {
        self.build.exprs.add(expr).ok()
    }

    fn test(&mut self, a: ExprId, rel: Rel, b: u32, yes: NodeId, no: NodeId) -> NodeId {
        let b = self.build.exprs.number(b);
        self.build.node(NodeKind::Test(a, rel, b), yes, no)
    }

    /// A lookup that goes on at `next`.
    pub fn lookup(&mut self, lookup: Lookup, next: NodeId) -> NodeId {
        let number = self.build.lookups.len() as u32;
        self.build.lookups.push(lookup);
        self.build.node(NodeKind::Lookup(number), next, REJECT)
    }

    /// The nodes of a group.
    fn group(
        &mut self,
        group: &Group,
        entries: Vec<RankedKey>,
        next: NodeId,
        later: u32,
    ) -> Option<NodeId> {
        let keys = || entries.iter().map(|(key, _)| key);
        let first = keys().next()?;
        let fixed: Vec<Option<u32>> = (0..first.len())
            .map(|field| Some(first[field]).filter(|value| keys().all(|k| k[field] == *value)))
            .collect();
        let node = self.search_all(&group.shape, &fixed, entries, (next, Some(later)))?;
        self.wrap(&group.shape, &fixed, node, next)
    }

    /// The nodes of a group that also take what is between its entries: of the field with the most
    /// values, ranges.
    fn coarse(
        &mut self,
        group: &Group,
        entries: &[RankedKey],
        most: usize,
        next: NodeId,
    ) -> Option<NodeId> {
        let count = group.shape.fields.len();
        let mut fixed = alloc::vec![None; count];
        let mut best: Option<(usize, Vec<u32>)> = None;
        for field in 0..count {
            let mut values: Vec<u32> = entries.iter().map(|(key, _)| key[field]).collect();
            values.sort_unstable();
            values.dedup();
            match (&values[..], &best) {
                ([value], _) => fixed[field] = Some(*value),
                (_, Some((_, other))) if other.len() >= values.len() => {}
                _ => best = Some((field, values)),
            }
        }
        let one = self.build.exprs.number(1);
        let hit = self.build.node(NodeKind::Return(one), REJECT, REJECT);
        let node = match best {
            None => hit,
            Some((field, values)) => {
                let ranges = ranges(values, most);
                search(
                    &mut self.build,
                    group.shape.fields[field],
                    &ranges,
                    (hit, next),
                )
            }
        };
        self.wrap(&group.shape, &fixed, node, next)
    }

    /// Finds an entry by the fields that are not `fixed`, those first that have the fewest values.
    pub fn search_all(
        &mut self,
        shape: &Shape,
        fixed: &[Option<u32>],
        mut entries: Vec<RankedKey>,
        ends: Continuation,
    ) -> Option<NodeId> {
        let mut order: Vec<(usize, usize)> = (0..shape.fields.len())
            .filter(|field| fixed[*field].is_none())
            .map(|field| {
                let mut values: Vec<u32> = entries.iter().map(|(key, _)| key[field]).collect();
                values.sort_unstable();
                values.dedup();
                (values.len(), field)
            })
            .collect();
        order.sort_unstable();
        let fields: Vec<(usize, ExprId)> = order
            .into_iter()
            .map(|(_, field)| (field, shape.fields[field]))
            .collect();
        entries.sort_unstable_by(|a, b| {
            let values = |key: &Vec<u32>| {
                fields
                    .iter()
                    .map(|(field, _)| key[*field])
                    .collect::<Vec<_>>()
            };
            values(&a.0).cmp(&values(&b.0))
        });
        self.level(&entries, &fields, ends)
    }

    /// What must hold before a group's entry is looked for: captured bytes, the shape's tests, and
    /// the fields that are the same in all entries. Fields with fixed places come first: they need
    /// not wait for others, and most groups have them in common.
    pub fn wrap(
        &mut self,
        shape: &Shape,
        fixed: &[Option<u32>],
        inner: NodeId,
        next: NodeId,
    ) -> Option<NodeId> {
        let mut tests = Vec::new();
        let mut end = 0;
        let mut moving = Vec::new();
        let mut measure = |exprs: &Exprs, id| {
            let before = moving.len();
            loads(exprs, id, &mut end, &mut moving)?;
            Some(moving.len() > before)
        };
        for (field, value) in shape.fields.iter().zip(fixed) {
            let moves = measure(&self.build.exprs, *field)?;
            if let Some(value) = value {
                let value = self.build.exprs.number(*value);
                tests.push((moves, (*field, Rel::Eq, value, true)));
            }
        }
        for test in &shape.tests {
            match *test {
                Test::Needs(expr) => {
                    measure(&self.build.exprs, expr)?;
                }
                Test::Outcome(a, rel, b, outcome) => {
                    let moves = measure(&self.build.exprs, a)? | measure(&self.build.exprs, b)?;
                    tests.push((moves, (a, rel, b, outcome)));
                }
            }
        }
        moving.sort_unstable();
        moving.dedup_by_key(|(base, _)| *base);
        let mut node = inner;
        let ask = |merger: &mut Merger, late: bool, mut node: NodeId| {
            let chosen = tests.iter().rev().filter(|(moves, _)| *moves == late);
            for (_, (a, rel, b, outcome)) in chosen {
                let (yes, no) = if *outcome { (node, next) } else { (next, node) };
                node = merger.build.node(NodeKind::Test(*a, *rel, *b), yes, no);
            }
            node
        };
        node = ask(self, true, node);
        let captured = self.expr(Expr::Captured)?;
        for (base, core::cmp::Reverse(end)) in moving {
            let end = self.build.exprs.number(end);
            let end = self.expr(Expr::Bin(Op::Add, base, end))?;
            node = self
                .build
                .node(NodeKind::Test(captured, Rel::Ge, end), node, next);
        }
        node = ask(self, false, node);
        if end > 0 {
            node = self.test(captured, Rel::Ge, end, node, next);
        }
        Some(node)
    }

    /// Decides the first of `fields` among the entries' values, and then the others. All entries
    /// agree in what was decided before.
    fn level(
        &mut self,
        entries: &[RankedKey],
        fields: &[(usize, ExprId)],
        ends: Continuation,
    ) -> Option<NodeId> {
        if self.build.size() > MAX_NODES {
            return None;
        }
        let Some(((field, expr), rest)) = fields.split_first() else {
            let number = entries.first()?.1;
            return self.found(number, ends);
        };
        let runs: Vec<&[RankedKey]> = entries
            .chunk_by(|a, b| a.0[*field] == b.0[*field])
            .collect();
        self.search(&runs, *field, *expr, rest, ends)
    }

    fn search(
        &mut self,
        runs: &[&[RankedKey]],
        field: usize,
        expr: ExprId,
        rest: &[(usize, ExprId)],
        ends: Continuation,
    ) -> Option<NodeId> {
        // One after the other takes fewer tests than halving, for so few.
        if runs.len() <= 3 {
            let mut node = ends.0;
            for run in runs {
                let behind = self.level(run, rest, ends)?;
                let value = run.first()?.0[field];
                node = self.test(expr, Rel::Eq, value, behind, node);
            }
            return Some(node);
        }
        let (low, high) = runs.split_at(runs.len() / 2);
        let border = low.last()?.first()?.0[field];
        let (low, high) = (
            self.search(low, field, expr, rest, ends)?,
            self.search(high, field, expr, rest, ends)?,
        );
        Some(self.test(expr, Rel::Gt, border, high, low))
    }

    /// A path is taken: the end, if nothing behind can be better; else the number is kept if it is
    /// the best so far.
    fn found(&mut self, number: u32, (next, later): Continuation) -> Option<NodeId> {
        let (Some(kept), Some(later)) = (self.var, later) else {
            return Some(self.lookup(Lookup::Rank { at: number }, next));
        };
        let value = self.build.exprs.number(number);
        let keep = self.build.node(NodeKind::Assign(BEST, value), next, REJECT);
        let take = if number < later {
            self.build.node(NodeKind::Return(value), REJECT, REJECT)
        } else {
            keep
        };
        // An earlier group may have found a better one: 1 to number - 1.
        let one = self.expr(Expr::Const(1))?;
        let less = self.expr(Expr::Bin(Op::Sub, kept, one))?;
        let end = if number < later {
            self.build.node(NodeKind::Return(kept), REJECT, REJECT)
        } else {
            next
        };
        Some(self.test(less, Rel::Ge, number - 1, take, end))
    }
}

/// Whether tests of the captured length can say that all the shape's fields and tests can be read.
pub(super) fn measurable(shape: &Shape, exprs: &Exprs) -> bool {
    let (mut end, mut moving) = (0, Vec::new());
    let mut measure = |id: ExprId| loads(exprs, id, &mut end, &mut moving).is_some();
    shape.fields.iter().all(|id| measure(*id))
        && shape.tests.iter().all(|test| match *test {
            Test::Needs(a) => measure(a),
            Test::Outcome(a, _, b, _) => measure(a) && measure(b),
        })
}

/// Where the loads of an expression end at most: those with fixed places, and by base. Nothing if
/// that cannot be said, or if the expression may fail otherwise.
fn loads(
    exprs: &Exprs,
    id: ExprId,
    fixed: &mut u32,
    moving: &mut Vec<(ExprId, core::cmp::Reverse<u32>)>,
) -> Option<()> {
    match exprs.get(id) {
        Expr::Load { size, base, off } => {
            let end = off.checked_add(size.into())?;
            match base {
                None => *fixed = (*fixed).max(end),
                Some(base) => {
                    let before = moving.len();
                    loads(exprs, base, fixed, moving)?;
                    if moving.len() > before {
                        // The base's own place would have to be guarded first.
                        return None;
                    }
                    most(exprs, base)?.checked_add(end)?;
                    moving.push((base, core::cmp::Reverse(end)));
                }
            }
        }
        Expr::Bin(op, a, b) => {
            if matches!(op, Op::Div | Op::Mod) && !matches!(exprs.constant(b), Some(1..)) {
                return None;
            }
            loads(exprs, a, fixed, moving)?;
            loads(exprs, b, fixed, moving)?;
        }
        _ => {}
    }
    Some(())
}

/// The largest value of an expression, if it is known not to wrap.
fn most(exprs: &Exprs, id: ExprId) -> Option<u32> {
    match exprs.get(id) {
        Expr::Const(value) => Some(value),
        Expr::Load { size: 1, .. } => Some(0xff),
        Expr::Load { size: 2, .. } => Some(0xffff),
        Expr::Bin(Op::And, a, b) => match (most(exprs, a), most(exprs, b)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        },
        Expr::Bin(Op::Add, a, b) => most(exprs, a)?.checked_add(most(exprs, b)?),
        Expr::Bin(Op::Mul, a, b) => most(exprs, a)?.checked_mul(most(exprs, b)?),
        Expr::Bin(Op::Shl, a, b) => {
            let factor = 1u32.checked_shl(exprs.constant(b)?)?;
            most(exprs, a)?.checked_mul(factor)
        }
        _ => None,
    }
}
