//! Filters that accept more, in fewer instructions: for the kernel, where the filter itself is too
//! long.
//!
//! What makes filters long is lists: of hosts, of ports, of connections. A list becomes a few
//! ranges that have all its values, chosen so that they have little else; a packet that is far from
//! all of them is still left out. Of `not (…)` the list is left out.
//!
//! Invariant: what the program accepts the coarser one accepts. A test that accepts is replaced by
//! tests that accept at least as much; one that rejects is left out. Fields are read in the order
//! in which the list reads them first, so no packet ends earlier for being short.

use alloc::vec::Vec;

use crate::expression::{ExprId, Rel};
use crate::flow::simplify;
use crate::program::{ACCEPT, Builder, NodeId, NodeKind, Program, REJECT};

/// So many ranges stand for a list, from one coarser program to the next.
pub(super) const RANGES: [usize; 6] = [1024, 256, 64, 16, 4, 1];
/// Fields of one list.
const FIELDS: usize = 4;

/// A list that begins at a node: `a == 1`, else `b == 1`, else `a == 2` and so on.
struct List {
    fields: Vec<(ExprId, Vec<u32>)>,
    /// Where all of them go, and where it goes on behind them.
    yes: NodeId,
    behind: NodeId,
    nodes: Vec<NodeId>,
}

/// Ranges that have all the values, at most so many, with the widest gaps between them.
pub(crate) fn ranges(mut values: Vec<u32>, most: usize) -> Vec<(u32, u32)> {
    values.sort_unstable();
    values.dedup();
    let gap = |at: &usize| core::cmp::Reverse(values[*at] - values[*at - 1]);
    let mut starts: Vec<usize> = (1..values.len()).collect();
    starts.sort_by_key(gap);
    starts.truncate(most.saturating_sub(1));
    starts.push(0);
    starts.sort_unstable();
    let ends = starts.iter().skip(1).copied().chain([values.len()]);
    let pairs = starts.iter().zip(ends);
    pairs
        .filter_map(|(start, end)| Some((*values.get(*start)?, *values.get(end.checked_sub(1)?)?)))
        .collect()
}

/// Tests whether a value is in one of the ranges, which ascend.
pub(crate) fn search(
    build: &mut Builder,
    field: ExprId,
    ranges: &[(u32, u32)],
    (hit, miss): (NodeId, NodeId),
) -> NodeId {
    let mut test = |rel, value, yes, no| {
        let value = build.exprs.number(value);
        build.node(NodeKind::Test(field, rel, value), yes, no)
    };
    match ranges {
        [] => miss,
        [(low, high)] if low == high => test(Rel::Eq, *low, hit, miss),
        [(low, high)] => {
            let below = test(Rel::Gt, *high, miss, hit);
            test(Rel::Ge, *low, below, miss)
        }
        _ => {
            let (low, high) = ranges.split_at(ranges.len() / 2);
            let border = high[0].0;
            let low = search(build, field, low, (hit, miss));
            let high = search(build, field, high, (hit, miss));
            let border = build.exprs.number(border);
            build.node(NodeKind::Test(field, Rel::Ge, border), high, low)
        }
    }
}

/// The program with at most so many ranges for each list of more values.
pub(super) fn coarser(program: &Program, most: usize) -> Program {
    let mut build = Builder::default();
    build.exprs = program.exprs.clone();
    let mut inside = alloc::vec![false; program.nodes.len()];
    let mut lists: Vec<Option<List>> = Vec::new();
    for id in 0..program.nodes.len() {
        let first = !inside[id];
        let list = list(program, id as NodeId).filter(|list| first && list.nodes.len() > most);
        for node in list.iter().flat_map(|list| &list.nodes) {
            inside[*node as usize] = true;
        }
        lists.push(list);
    }
    // From the last node to the first: edges go forward.
    let mut moved = alloc::vec![REJECT; program.nodes.len()];
    for (id, list) in lists.iter().enumerate().rev() {
        let to = |id: NodeId| moved.get(id as usize).copied().unwrap_or(id);
        let node = program.nodes[id];
        moved[id] = match list {
            None => build.node(node.kind, to(node.yes), to(node.no)),
            Some(list) if list.yes == REJECT => to(list.behind),
            Some(list) => {
                let mut behind = to(list.behind);
                let each = most.div_ceil(list.fields.len());
                for (field, values) in list.fields.iter().rev() {
                    let ranges = ranges(values.clone(), each);
                    behind = search(&mut build, *field, &ranges, (list.yes, behind));
                }
                behind
            }
        };
    }
    let entry = moved.get(program.entry as usize).copied();
    let mut made = build.finish(entry.unwrap_or(program.entry), program.accept);
    simplify(&mut made);
    made
}

/// The list that begins here.
fn list(program: &Program, start: NodeId) -> Option<List> {
    let mut found: Option<List> = None;
    let mut at = start;
    while let Some(node) = program.nodes.get(at as usize) {
        let NodeKind::Test(field, Rel::Eq, value) = node.kind else {
            break;
        };
        let Some(value) = program.exprs.constant(value) else {
            break;
        };
        let ends = node.yes == REJECT || node.yes == ACCEPT && program.accept != 0;
        let list = found.get_or_insert_with(|| List {
            fields: Vec::new(),
            yes: node.yes,
            behind: start,
            nodes: Vec::new(),
        });
        let full = list.fields.len() == FIELDS;
        let known = list.fields.iter_mut().find(|(id, _)| *id == field);
        match known {
            _ if !ends || node.yes != list.yes => break,
            Some((_, values)) => values.push(value),
            None if full => break,
            None => list.fields.push((field, alloc::vec![value])),
        }
        list.nodes.push(at);
        at = node.no;
        list.behind = at;
    }
    found.filter(|list| !list.nodes.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_the_widest_gaps() {
        let values = alloc::vec![9, 1, 2, 100, 3, 101, 9];
        assert_eq!(ranges(values.clone(), 3), [(1, 3), (9, 9), (100, 101)]);
        assert_eq!(ranges(values.clone(), 2), [(1, 9), (100, 101)]);
        assert_eq!(ranges(values.clone(), 1), [(1, 101)]);
        assert_eq!(ranges(values.clone(), 0), [(1, 101)]);
        assert_eq!(ranges(values, 99).len(), 6);
        assert_eq!(ranges(Vec::new(), 3), []);
        assert_eq!(ranges(alloc::vec![0, u32::MAX], 1), [(0, u32::MAX)]);
    }
}
