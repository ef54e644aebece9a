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

use crate::flow::simplify;
use crate::list::{List, by_field, search};
use crate::program::{ACCEPT, Builder, NodeId, Program, REJECT};

/// So many ranges stand for a list, from one coarser program to the next.
pub(super) const RANGES: [usize; 6] = [1024, 256, 64, 16, 4, 1];
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

/// The program with at most so many ranges for each list of more values.
pub(super) fn coarser(program: &Program, most: usize) -> Program {
    let mut build = Builder::default();
    build.exprs = program.exprs.clone();
    let mut inside = alloc::vec![false; program.nodes.len()];
    let mut lists: Vec<Option<List>> = Vec::new();
    for id in 0..program.nodes.len() {
        let first = !inside[id];
        let ends = |to| to == REJECT || to == ACCEPT && program.accept != 0;
        let list = List::new(program, id as NodeId, |_| true)
            .filter(|list| first && ends(list.yes) && list.tests.len() > most);
        for test in list.iter().flat_map(|list| &list.tests) {
            inside[test.node as usize] = true;
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
                let fields = by_field(&list.tests);
                let each = most.div_ceil(fields.len());
                for (field, values) in fields.into_iter().rev() {
                    let ranges = ranges(values, each);
                    behind = search(&mut build, field, &ranges, (list.yes, behind));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::View;
    use crate::{Databases, Filter, Options};
    use crate::{expressions, lists, packets};

    /// At every level a coarser program accepts what the program accepts, and with the classic
    /// machine's instructions, too.
    #[test]
    fn coarser_programs_accept_all_that_is_accepted() {
        let mut random = fastrand::Rng::with_seed(41);
        let mut texts = Vec::new();
        for index in 0..400 {
            texts.push(match index % 2 {
                0 => lists::expression(&mut random),
                _ => expressions::expression(&mut random, 1 + index % 6),
            });
        }
        let mut corpus = lists::packets(41, 300);
        corpus.extend(packets::packets(41, 100));
        let options = Options {
            netmask: Some(0xffff_ff00),
            ..Options::default()
        };
        let (mut left, mut kept) = (0, 0);
        for text in &texts {
            let Ok(filter) = Filter::compile_with(text, &Databases::system(), options) else {
                continue;
            };
            for most in [16, 4, 1] {
                let coarse = coarser(&filter.program, most);
                for packet in &corpus {
                    let view = View {
                        bytes: &packet.bytes,
                        wire: packet.wire,
                    };
                    let wanted = filter.program.run(view) != 0;
                    let through = coarse.run(view) != 0;
                    assert!(through || !wanted, "`{text}` {most}: {:02x?}", packet.bytes);
                    left += u32::from(!through);
                    kept += u32::from(wanted);
                }
            }
        }
        assert!(left > 50_000 && kept > 50_000, "{left} {kept}");
    }

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
