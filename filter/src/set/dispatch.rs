//! A set as a program and its memory: the program finds each group's rank for a packet, and keeps
//! the best.
//!
//! What changes often is in memory, so most changes of the set are a few words there. The program
//! changes when there is a new shape, or when something that it took for the same in all filters of
//! a shape is not: fields with one value are tests, made once for groups that follow each other;
//! the rest is found by whatever costs least: a search among constants in the program, a table that
//! a field is an index of, or a hash table.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::cuckoo::{Cuckoo, TableError};
use super::memory::Memory;
use super::merge::Merger;
use super::path::{Shape, import};
use super::{Group, Id, MemberPath, Random, Set};
use crate::encode::{Site, encode};
use crate::expression::{Expr, ExprId};
use crate::list::searched;
use crate::lookup::{BOUND, COUNT, Layout, Lookup, REST};
use crate::program::{Builder, NodeId, NodeKind, Program, REJECT};

/// Groups of one program; a set with more is several, one after the other.
const TOGETHER: usize = 256;
/// A search with more constants is never the cheapest.
const SEARCHED: usize = 16;
/// So often a group's search may be made anew; then it gets a table.
const CHANGES: u32 = 32;
/// Entries of a table with an index.
const INDEXED: u64 = 1 << 17;

/// How a group's entries are found.
#[derive(Debug, Default)]
enum Table {
    #[default]
    None,
    /// Places of the ranks by key, and the block they are in.
    Search {
        at: u32,
        bytes: u32,
        ranks: BTreeMap<Vec<u32>, u32>,
    },
    /// By the value of this field, from `low`.
    Direct {
        field: usize,
        at: u32,
        entries: u32,
        low: u32,
        count: u32,
    },
    Hash(Vec<usize>, Cuckoo),
}

/// What the program takes for granted of a group.
#[derive(Debug, Default)]
struct GroupState {
    /// Values that all keys have had.
    fixed: Vec<Option<u32>>,
    table: Table,
    bound: u64,
    changes: u32,
}

/// The program and memory of a set.
pub(crate) struct Dispatch {
    site: Site,
    pub memory: Memory,
    states: Vec<GroupState>,
    /// Of the set when all this was made.
    generation: u64,
    /// The program is not the set's any more.
    pub stale: bool,
    random: alloc::boxed::Box<Random>,
    key: Vec<u64>,
    /// Why a table was given up.
    failure: Option<TableError>,
}

/// Machine code of a set, its programs for people, and functions behind it.
pub(crate) struct Compiled {
    pub text: Vec<u8>,
    pub programs: Vec<Program>,
}

impl Dispatch {
    pub fn new(site: Site, random: alloc::boxed::Box<Random>) -> Dispatch {
        Dispatch {
            site,
            memory: Memory::default(),
            states: Vec::new(),
            generation: 0,
            stale: true,
            random,
            key: Vec::new(),
            failure: None,
        }
    }

    /// A filter is new.
    pub fn changed(&mut self, set: &Set, id: Id) {
        if let Some(member) = set.members.get(&id.0) {
            self.stale |= member.whole.is_some();
            for (group, key) in &member.paths {
                self.update(set, *group, key);
            }
        }
    }

    /// A filter that had these paths is gone; none are one that was asked by itself, or never.
    pub fn removed(&mut self, set: &Set, paths: Vec<MemberPath>) {
        self.stale |= paths.is_empty();
        for (group, key) in paths {
            self.update(set, group, &key);
        }
    }

    /// A key of a group has another rank than before, or none.
    pub fn update(&mut self, set: &Set, group: usize, key: &[u32]) {
        if self.generation != set.generation {
            // All of it is made anew.
            self.stale = true;
            return;
        }
        if self.states.len() < set.groups.len() {
            self.states
                .resize_with(set.groups.len(), GroupState::default);
        }
        let rank = set.rank(group, key);
        let state = &mut self.states[group];
        if matches!(state.table, Table::None) {
            // The program does not know the group.
            self.stale = true;
            return;
        }
        let mut differs = false;
        for (fixed, value) in state.fixed.iter_mut().zip(key) {
            if fixed.is_some_and(|fixed| fixed != *value) {
                *fixed = None;
                differs = true;
            }
        }
        let memory = &mut self.memory;
        let known = !differs
            && match &mut state.table {
                Table::None => false,
                Table::Search { ranks, .. } => match ranks.get(key) {
                    Some(place) => {
                        memory.put(*place, rank);
                        true
                    }
                    None => rank == 0,
                },
                Table::Direct {
                    field,
                    entries,
                    low,
                    count,
                    ..
                } => {
                    let index = key[*field].wrapping_sub(*low);
                    if index < *count {
                        memory.put(*entries + 8 * index, rank);
                    }
                    index < *count || rank == 0
                }
                Table::Hash(fields, table) => {
                    let values = fields.iter().map(|field| key[*field]);
                    table.layout.pack(values, &mut self.key);
                    let set = table.set(memory, &self.key, rank, &mut self.random);
                    self.failure = set.err();
                    self.failure.is_none()
                }
            };
        if !known {
            state.release(memory);
            state.changes += 1;
            self.stale = true;
        } else if rank > state.bound || set.groups[group].table.is_empty() {
            state.bound = rank;
            if let Some(at) = state.at() {
                memory.put(at + BOUND, rank);
            }
        }
    }

    /// The set's program for memory that begins at `base`.
    pub fn compile(&mut self, set: &Set, base: u32) -> Result<Compiled, TableError> {
        if self.generation != set.generation {
            self.generation = set.generation;
            self.memory = Memory::default();
            self.states.clear();
        }
        self.states
            .resize_with(set.groups.len(), GroupState::default);
        // Groups that became empty keep their tables until the set forgets them: filters of their
        // shape may come again.
        let filled: Vec<usize> = set
            .order
            .iter()
            .copied()
            .filter(|group| {
                let built = !matches!(self.states[*group].table, Table::None);
                built || !set.groups[*group].table.is_empty()
            })
            .collect();
        for group in &filled {
            self.build(set, *group)?;
        }
        let mut programs = Vec::new();
        for chunk in filled.chunks(TOGETHER) {
            let afresh = programs.is_empty();
            let program = self.program(set, chunk, base, afresh);
            programs.push(program.ok_or(TableError::Memory)?);
        }
        let text = link(self.site, set, &programs);
        self.stale = false;
        Ok(Compiled { text, programs })
    }

    /// Makes a group's table, if it has none.
    fn build(&mut self, set: &Set, number: usize) -> Result<(), TableError> {
        let group = &set.groups[number];
        let state = &mut self.states[number];
        if !matches!(state.table, Table::None) {
            return Ok(());
        }
        let (memory, random) = (&mut self.memory, &mut self.random);
        state.fix(group);
        let variable = |field: &usize| state.fixed[*field].is_none();
        let fields: Vec<usize> = (0..state.fixed.len()).filter(variable).collect();
        let count = group.table.len();
        let ids: Vec<ExprId> = fields.iter().map(|f| group.shape.fields[*f]).collect();
        let layout = Layout::new(&set.exprs, &ids);
        // About cycles, of packets in no order: a branch of a search is foretold wrongly every
        // second time then, but for the first. Ten keys take half of a hash's time when they are
        // foretold.
        let halvings = count.next_power_of_two().trailing_zeros();
        let search = match state.changes < CHANGES && count <= SEARCHED {
            true => 2 + 4 * halvings + 4 * halvings.saturating_sub(1) + 2 * fields.len() as u32,
            false => u32::MAX,
        };
        let hash = 26 + 10 * layout.words;
        let range = state.range(group, &fields).filter(|(low, high)| {
            let span = u64::from(high - low) + 1;
            span <= INDEXED && span <= 256.max(8 * count as u64)
        });
        let direct = if range.is_some() { 9 } else { u32::MAX };
        state.bound = 0;
        state.table = match range {
            _ if search <= direct.min(hash) => {
                let bytes = 8 + 8 * count as u32;
                let at = memory.allocate(bytes).ok_or(TableError::Memory)?;
                let keys = group.table.entries().map(|(key, _)| key.to_vec());
                let ranks = keys.zip((at + 8..).step_by(8)).collect();
                Table::Search { at, bytes, ranks }
            }
            Some((low, high)) if direct <= hash => {
                // Room on both sides: neighbours come later.
                let low = low & !63;
                let count = (high - low + 1).next_power_of_two();
                let at = memory.allocate(REST + 8).ok_or(TableError::Memory)?;
                let entries = memory.allocate(8 * count).ok_or(TableError::Memory)?;
                memory.put(at + COUNT, u64::from(count) | u64::from(entries) << 32);
                memory.put(at + REST, low.into());
                Table::Direct {
                    field: fields[0],
                    at,
                    entries,
                    low,
                    count,
                }
            }
            _ => Table::Hash(fields, Cuckoo::new(memory, layout, count, random)?),
        };
        for (key, _) in group.table.entries() {
            self.update(set, number, key);
        }
        match self.states[number].table {
            Table::None => Err(self.failure.take().unwrap_or(TableError::Memory)),
            _ => Ok(()),
        }
    }

    /// The program of some groups.
    fn program(&self, set: &Set, groups: &[usize], base: u32, afresh: bool) -> Option<Program> {
        let mut merger = Merger::default();
        let mut next = merger.build.node(NodeKind::Best, REJECT, REJECT);
        for (index, number) in groups.iter().enumerate().rev() {
            let state = &self.states[*number];
            let (shape, ids) = imported(set, &set.groups[*number].shape, &mut merger.build)?;
            let leaf = state.leaf(&mut merger, &shape, &ids, next, base)?;
            let node = merger.wrap(&shape, &state.fixed, leaf, next)?;
            next = match (index, state.at()) {
                (0, _) if afresh => node,
                (_, None) => node,
                (_, Some(at)) => merger.build.node(NodeKind::Beaten(base + at), next, node),
            };
        }
        let mut program = merger.build.finish(next, 0);
        program.afresh = afresh;
        crate::flow::simplify(&mut program);
        Some(program)
    }
}

/// A set's shape in a program's expressions, and where each expression went.
fn imported(
    set: &Set,
    shape: &Shape,
    build: &mut Builder,
) -> Option<(Shape, BTreeMap<ExprId, ExprId>)> {
    let mut ids = BTreeMap::new();
    let mut take = |id: ExprId| {
        let new = import(&set.exprs, &mut build.exprs, id)?;
        ids.insert(id, new);
        Some(new)
    };
    let new = shape.with(&mut take)?;
    for id in &shape.fields {
        if let Expr::Load {
            base: Some(base), ..
        } = set.exprs.get(*id)
        {
            take(base)?;
        }
    }
    Some((new, ids))
}

impl GroupState {
    /// The descriptor's place.
    fn at(&self) -> Option<u32> {
        match &self.table {
            Table::None => None,
            Table::Search { at, .. } | Table::Direct { at, .. } => Some(*at),
            Table::Hash(_, table) => Some(table.at),
        }
    }

    fn release(&mut self, memory: &mut Memory) {
        match core::mem::take(&mut self.table) {
            Table::None => {}
            Table::Search { at, bytes, .. } => memory.release(at, bytes),
            Table::Direct {
                at, entries, count, ..
            } => {
                memory.release(at, REST + 8);
                memory.release(entries, 8 * count);
            }
            Table::Hash(_, table) => table.release(memory),
        }
    }

    /// What all entries have in common.
    fn fix(&mut self, group: &Group) {
        self.fixed.clear();
        for (key, _) in group.table.entries() {
            if self.fixed.is_empty() {
                self.fixed = key.iter().map(|value| Some(*value)).collect();
            }
            for (fixed, value) in self.fixed.iter_mut().zip(key) {
                *fixed = fixed.filter(|fixed| fixed == value);
            }
        }
    }

    /// The least and the highest value of the only field that varies.
    fn range(&self, group: &Group, fields: &[usize]) -> Option<(u32, u32)> {
        let [field] = fields else { return None };
        let values = || group.table.entries().map(|(key, _)| key[*field]);
        Some((values().min()?, values().max()?))
    }

    /// The part of the program that finds the rank.
    fn leaf(
        &self,
        merger: &mut Merger,
        shape: &Shape,
        ids: &BTreeMap<ExprId, ExprId>,
        next: NodeId,
        base: u32,
    ) -> Option<NodeId> {
        let lookup = match &self.table {
            Table::None => return Some(next),
            Table::Search { ranks, .. } => {
                let entries: Vec<_> = ranks
                    .iter()
                    .map(|(key, place)| (key.clone(), base + place))
                    .collect();
                return merger.search_all(shape, &self.fixed, entries, (next, None));
            }
            Table::Direct { field, at, .. } => Lookup::Direct {
                field: shape.fields[*field],
                at: base + at,
                base,
            },
            Table::Hash(_, table) => Lookup::Hash {
                layout: table.layout.with(ids)?,
                at: base + table.at,
                base,
            },
        };
        Some(merger.lookup(lookup, next))
    }
}

/// One text of several programs and of filters that are asked one by one, those with the highest
/// rank first.
fn link(site: Site, set: &Set, programs: &[Program]) -> Vec<u8> {
    let mut singles: Vec<(u64, &Program)> = set
        .single
        .iter()
        .filter_map(|id| {
            let member = set.members.get(id)?;
            Some((member.claim.rank(*id), member.whole.as_ref()?))
        })
        .collect();
    singles.sort_by_key(|(rank, _)| core::cmp::Reverse(*rank));
    if let ([program], []) = (programs, &singles[..]) {
        return encode(site, program);
    }
    let singles: Vec<(u64, Vec<u8>)> = singles
        .into_iter()
        .map(|(rank, program)| (rank, encode(site, &searched(program))))
        .collect();
    let programs: Vec<_> = programs.iter().map(|p| encode(site, p)).collect();
    crate::encode::chain(site, &programs, &singles)
}
