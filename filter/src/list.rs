//! Lists of values in programs: `a == 1`, else `b == 1`, else `a == 2`, and so on, all of which go
//! to one place. `host A or …` has become two of them by the time that it is a program. Tested one
//! by one a thousand hosts take two thousand comparisons, so whoever makes code asks for
//! [`searched`].
//!
//! Sets and coarser programs (`set`, `classic::coarse`) need lists as they are.

use alloc::vec::Vec;

use crate::expression::{ExprId, Rel};
use crate::program::{Builder, NodeId, NodeKind, Program, REJECT};

/// Fields of one list.
const FIELDS: usize = 4;
/// A list of fewer values is tested one by one: the processor foretells that few of them hold.
const LONG: usize = 16;
/// So many ranges at the end of a search are tested one by one, for the same reason: halving has a
/// branch that nobody can foretell.
const RUN: usize = 8;
/// Tests at the beginning of a list among which all fields must be read.
const BEGINNING: usize = 2 * FIELDS;

/// A list that begins at a node.
pub(crate) struct List {
    /// At least one.
    pub tests: Vec<Member>,
    /// Where all of them go, and where it goes on behind them.
    pub yes: NodeId,
    pub behind: NodeId,
    /// How many of the tests have read every field.
    read: usize,
}

/// One test of a list.
pub(crate) struct Member {
    pub node: NodeId,
    field: ExprId,
    value: u32,
}

impl List {
    /// The list from this node on, if one begins there. `may_join` says of a field that was not
    /// read yet whether it still belongs to the list, given how many tests come before it.
    pub fn new(program: &Program, start: NodeId, may_join: impl Fn(usize) -> bool) -> Option<List> {
        let mut list = List {
            tests: Vec::new(),
            yes: program.nodes.get(start as usize)?.yes,
            behind: start,
            read: 0,
        };
        let mut fields: Vec<ExprId> = Vec::new();
        while let Some(node) = program.nodes.get(list.behind as usize) {
            let NodeKind::Test(field, Rel::Eq, value) = node.kind else {
                break;
            };
            let Some(value) = program.exprs.constant(value) else {
                break;
            };
            let before = list.tests.len();
            let known = fields.contains(&field);
            let joins = || fields.len() < FIELDS && may_join(before);
            if node.yes != list.yes || !known && !joins() {
                break;
            }
            if !known {
                fields.push(field);
                list.read = before + 1;
            }
            list.tests.push(Member {
                node: list.behind,
                field,
                value,
            });
            list.behind = node.no;
        }
        (!list.tests.is_empty()).then_some(list)
    }
}

/// The values of each field, fields in the order in which they are read.
pub(crate) fn by_field(tests: &[Member]) -> Vec<(ExprId, Vec<u32>)> {
    let mut fields: Vec<(ExprId, Vec<u32>)> = Vec::new();
    for test in tests {
        match fields.iter_mut().find(|(field, _)| *field == test.field) {
            Some((_, values)) => values.push(test.value),
            None => fields.push((test.field, alloc::vec![test.value])),
        }
    }
    fields
}

/// Ranges that have these values and no other.
fn exact(mut values: Vec<u32>) -> Vec<(u32, u32)> {
    values.sort_unstable();
    values.dedup();
    let runs = values.chunk_by(|a, b| b - a == 1);
    runs.filter_map(|run| Some((*run.first()?, *run.last()?)))
        .collect()
}

/// Tests whether a value is in one of the ranges, which ascend.
pub(crate) fn search(
    build: &mut Builder,
    field: ExprId,
    ranges: &[(u32, u32)],
    (hit, miss): (NodeId, NodeId),
) -> NodeId {
    if ranges.len() > RUN {
        let (low, high) = ranges.split_at(ranges.len() / 2);
        let border = build.exprs.number(high[0].0);
        let low = search(build, field, low, (hit, miss));
        let high = search(build, field, high, (hit, miss));
        return build.node(NodeKind::Test(field, Rel::Ge, border), high, low);
    }
    let mut test = |rel, value, yes, no| {
        let value = build.exprs.number(value);
        build.node(NodeKind::Test(field, rel, value), yes, no)
    };
    ranges.iter().rev().fold(miss, |next, (low, high)| {
        if low == high {
            return test(Rel::Eq, *low, hit, next);
        }
        let above = test(Rel::Gt, *high, next, hit);
        test(Rel::Ge, *low, above, miss)
    })
}

/// A program that does the same, with a search in the place of each long list.
///
/// The tests at a list's beginning stay, until each field was read: what ends there because a
/// packet is short still does. From then on no read ends anything, and the order is free.
pub(crate) fn searched(program: &Program) -> Program {
    let rests = rests(program);
    let mut build = Builder::default();
    build.exprs = program.exprs.clone();
    // From the last node to the first: edges go forward.
    let mut moved = alloc::vec![REJECT; program.nodes.len()];
    for (id, rest) in rests.iter().enumerate().rev() {
        let to = |id: NodeId| moved.get(id as usize).copied().unwrap_or(id);
        let node = program.nodes[id];
        let mut no = to(node.no);
        if let Some(rest) = rest {
            no = to(rest.behind);
            for (field, values) in rest.fields.iter().rev() {
                let ends = (to(rest.yes), no);
                no = search(&mut build, *field, &exact(values.clone()), ends);
            }
        }
        moved[id] = build.node(node.kind, to(node.yes), no);
    }
    let entry = moved.get(program.entry as usize).copied();
    build.finish(entry.unwrap_or(program.entry), program.accept)
}

/// What follows the beginning of a long list.
struct Rest {
    fields: Vec<(ExprId, Vec<u32>)>,
    yes: NodeId,
    behind: NodeId,
}

/// The rests of lists, by the last test of their beginnings.
fn rests(program: &Program) -> Vec<Option<Rest>> {
    let mut entered = alloc::vec![0u32; program.nodes.len()];
    for node in &program.nodes {
        let (edges, count) = Program::successors(node);
        for to in &edges[..count] {
            if let Some(count) = entered.get_mut(*to as usize) {
                *count += 1;
            }
        }
    }
    let mut inside = alloc::vec![false; program.nodes.len()];
    let mut rests: Vec<_> = program.nodes.iter().map(|_| None).collect();
    for id in 0..program.nodes.len() {
        if inside[id] {
            continue;
        }
        let Some(list) = List::new(program, id as NodeId, |before| before < BEGINNING) else {
            continue;
        };
        for test in &list.tests {
            inside[test.node as usize] = true;
        }
        let (beginning, rest) = list.tests.split_at(list.read);
        // Whoever leaves the beginning must have come through all of it.
        let mut later = beginning.iter().skip(1);
        let whole = later.all(|test| entered[test.node as usize] == 1);
        if let Some(last) = beginning.last()
            && whole
            && rest.len() >= LONG
        {
            rests[last.node as usize] = Some(Rest {
                fields: by_field(rest),
                yes: list.yes,
                behind: list.behind,
            });
        }
    }
    rests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_ranges_have_what_lies_side_by_side() {
        let values = alloc::vec![9, 1, 2, 100, 3, 9, u32::MAX, u32::MAX - 1, 0];
        let wanted = [(0, 3), (9, 9), (100, 100), (u32::MAX - 1, u32::MAX)];
        assert_eq!(exact(values), wanted);
        assert_eq!(exact(Vec::new()), []);
    }
}
