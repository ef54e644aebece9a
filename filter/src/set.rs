//! Many filters as one: which of them wants a packet is found without asking each.
//!
//! Every way through a filter's tests to acceptance is a *path*: outcomes that tests must have.
//! Those that say that a field has a value are the path's *key*, the others its *shape* together
//! with the list of fields. Paths of one shape, such as those of ten thousand connections, share
//! one table: the fields are read and the shape's tests made once, then the key is looked up by
//! hash. A packet that a filter accepts takes one of its paths or more; one that it rejects takes
//! none.
//!
//! After Engler, Wallach and Kaashoek's dynamic packet filters (Exokernel, sections 3.2 and 5.6):
//! merging, and the check that nobody takes another's packets.

mod cuckoo;
pub(crate) mod dispatch;
mod kernel;
mod memory;
mod merge;
mod owner;
mod path;
mod table;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::Filter;
use crate::expression::{ExprId, Exprs, apply};
use crate::program::Program;
use crate::run::View;
pub use kernel::{KernelSet, TableError};
pub use merge::Merged;
pub use path::Limits;
use path::{Path, Shape, Test};
use table::Table;

/// A filter's number in its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u32);

/// What is declared with a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Whose packets they are.
    pub owner: u32,
    /// Of two filters that accept a packet the one with the higher priority gets it; of equal ones
    /// the older.
    pub priority: u32,
    /// Packets of other owners may be taken.
    pub may_steal: bool,
}

/// Why a filter is not taken into a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// It would get packets that another owner's filter gets now.
    #[error(
        "the filter could take packets of filter {}, which owner {owner} has; lower its priority, or let it be allowed to", id.0
    )]
    Steals {
        /// The other filter.
        id: Id,
        /// Its owner.
        owner: u32,
    },
    /// Every number was given to a filter once.
    #[error("the set gave all numbers of filters away; begin a new set")]
    Numbers,
}

impl Claim {
    /// Of two filters the one with the higher rank gets a packet. Never 0.
    fn rank(&self, id: u32) -> u64 {
        u64::from(self.priority) << 32 | u64::from(!id)
    }
}

/// A source of random numbers, for tables that nobody can fill with keys that meet.
pub(crate) type Random = dyn FnMut() -> u64 + Send + Sync;

/// A group and a key in it.
pub(crate) type MemberPath = (usize, Vec<u32>);

struct Member {
    claim: Claim,
    /// None if the filter is asked by itself.
    paths: Vec<MemberPath>,
    /// A filter with more ways than can be kept, or with variables.
    whole: Option<Program>,
}

/// Paths of one shape.
struct Group {
    shape: Shape,
    table: Table,
    /// No member has a higher priority.
    best: u32,
}

/// Filters that are asked together.
#[derive(Default)]
pub struct Set {
    exprs: Exprs,
    groups: Vec<Group>,
    shapes: BTreeMap<Shape, usize>,
    /// Numbers of groups, those with the highest priority first.
    order: Vec<usize>,
    members: BTreeMap<u32, Member>,
    /// Those that are asked one by one.
    single: Vec<u32>,
    next: u32,
    limits: Limits,
    /// Counts how often groups and expressions got other numbers.
    generation: u64,
}

/// Room for the values of one packet's fields; kept from one packet to the next.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// By expression: the packet's number, and the value if there is one.
    values: Vec<(u64, Option<u32>)>,
    packet: u64,
    key: Vec<u32>,
}

impl Set {
    /// An empty set.
    pub fn new() -> Set {
        Set::default()
    }

    /// An empty set that takes less trouble with a filter.
    pub fn within(limits: Limits) -> Set {
        Set {
            limits,
            ..Set::default()
        }
    }

    /// How many filters there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Adds a filter.
    ///
    /// # Errors
    /// It may not steal, and there is a filter of another owner and lower priority with which it
    /// has packets in common, or of which that cannot be excluded.
    pub fn insert(&mut self, filter: &Filter, claim: Claim) -> Result<Id, SetError> {
        let paths = self.admit(filter, claim)?;
        let id = self.next;
        self.next = id.checked_add(1).ok_or(SetError::Numbers)?;
        self.put(id, filter, claim, paths);
        Ok(Id(id))
    }

    /// Puts another filter in the place of one, which keeps its number and its age. Returns whether
    /// it was there.
    ///
    /// # Errors
    /// As [`Set::insert`]; the set is as before.
    pub fn replace(&mut self, id: Id, filter: &Filter, claim: Claim) -> Result<bool, SetError> {
        let replaced = self.exchange(id, filter, claim)?.is_some();
        self.sweep();
        Ok(replaced)
    }

    /// The same. Returns the paths of the filter that was there.
    pub(crate) fn exchange(
        &mut self,
        id: Id,
        filter: &Filter,
        claim: Claim,
    ) -> Result<Option<Vec<MemberPath>>, SetError> {
        let Some(old) = self.withdraw(id) else {
            return Ok(None);
        };
        match self.admit(filter, claim) {
            Ok(paths) => {
                self.put(id.0, filter, claim, paths);
                Ok(Some(old.paths))
            }
            Err(error) => {
                for (group, key) in &old.paths {
                    self.groups[*group].table.insert(key, id.0, old.claim);
                }
                if old.whole.is_some() {
                    self.single.push(id.0);
                }
                self.members.insert(id.0, old);
                Err(error)
            }
        }
    }

    /// The paths of a filter that may be taken into the set; none if it has to be asked by itself.
    fn admit(&mut self, filter: &Filter, claim: Claim) -> Result<Option<Vec<Path>>, SetError> {
        let paths = path::of(&filter.program, &mut self.exprs, self.limits);
        if !claim.may_steal
            && let Some(id) = self.robbed(paths.as_deref(), claim)
        {
            let owner = self.members.get(&id).map_or(0, |member| member.claim.owner);
            return Err(SetError::Steals { id: Id(id), owner });
        }
        // A program of the set must be able to tell what it can read.
        Ok(paths.filter(|paths| {
            let known = |path: &Path| self.shapes.contains_key(&path.shape);
            let mut paths = paths.iter();
            paths.all(|p| known(p) || merge::measurable(&p.shape, &self.exprs))
        }))
    }

    fn put(&mut self, id: u32, filter: &Filter, claim: Claim, paths: Option<Vec<Path>>) {
        let mut member = Member {
            claim,
            paths: Vec::new(),
            whole: None,
        };
        match paths {
            Some(paths) => {
                for Path { shape, key } in paths {
                    let group = self.group(shape);
                    self.groups[group].table.insert(&key, id, claim);
                    self.raise(group, claim.priority);
                    member.paths.push((group, key));
                }
            }
            None => {
                member.whole = Some(filter.program.clone());
                self.single.push(id);
            }
        }
        self.members.insert(id, member);
    }

    /// Takes a filter out. Returns whether it was there.
    pub fn remove(&mut self, id: Id) -> bool {
        let taken = self.take(id).is_some();
        self.sweep();
        taken
    }

    /// Takes a filter out. Returns its paths.
    pub(crate) fn take(&mut self, id: Id) -> Option<Vec<MemberPath>> {
        Some(self.withdraw(id)?.paths)
    }

    fn withdraw(&mut self, id: Id) -> Option<Member> {
        let member = self.members.remove(&id.0)?;
        for (group, key) in &member.paths {
            self.groups[*group].table.remove(key, id.0, member.claim);
        }
        if member.whole.is_some() {
            self.single.retain(|other| *other != id.0);
        }
        Some(member)
    }

    /// Forgets shapes that no filter has any more, and constants that were only of filters that are
    /// gone, once they are many.
    pub(crate) fn sweep(&mut self) {
        let empty = |group: &&Group| group.table.is_empty();
        let shapes = self.groups.len();
        let constants = self.exprs.len();
        let many = constants > 4096 + 16 * (self.members.len() + shapes);
        if !many && (shapes < 128 || 2 * self.groups.iter().filter(empty).count() < shapes) {
            return;
        }
        self.generation += 1;
        let mut exprs = Exprs::default();
        let mut numbers = alloc::vec![None; shapes];
        let mut needed: Vec<ExprId> = Vec::new();
        for group in self.groups.iter().filter(|group| !group.table.is_empty()) {
            group.shape.exprs(&mut needed);
        }
        // In ascending order, so that fields stay in the order that keys have.
        let order = path::parts(&self.exprs, &needed);
        let mut moved = alloc::vec![None; constants];
        for id in order {
            moved[id as usize] = path::import(&self.exprs, &mut exprs, id);
        }
        let mut groups = Vec::new();
        for (number, mut group) in core::mem::take(&mut self.groups).into_iter().enumerate() {
            let renamed = group
                .shape
                .with(|id| moved.get(id as usize).copied().flatten());
            if let (false, Some(shape)) = (group.table.is_empty(), renamed) {
                group.shape = shape;
                numbers[number] = Some(groups.len());
                groups.push(group);
            }
        }
        self.groups = groups;
        self.exprs = exprs;
        let shapes = self.groups.iter().enumerate();
        self.shapes = shapes
            .map(|(number, g)| (g.shape.clone(), number))
            .collect();
        self.order = self
            .order
            .iter()
            .filter_map(|group| numbers[*group])
            .collect();
        for member in self.members.values_mut() {
            for (group, _) in &mut member.paths {
                *group = numbers[*group].unwrap_or(*group);
            }
        }
    }

    fn group(&mut self, shape: Shape) -> usize {
        if let Some(group) = self.shapes.get(&shape) {
            return *group;
        }
        let group = self.groups.len();
        self.groups.push(Group {
            table: Table::default(),
            shape: shape.clone(),
            best: 0,
        });
        self.shapes.insert(shape, group);
        self.order.push(group);
        group
    }

    fn raise(&mut self, group: usize, priority: u32) {
        if priority > self.groups[group].best {
            self.groups[group].best = priority;
            let groups = &self.groups;
            self.order
                .sort_by_key(|group| core::cmp::Reverse(groups[*group].best));
        }
    }

    /// The filter that gets the packet.
    pub fn find(&self, packet: &[u8], wire: u32, scratch: &mut Scratch) -> Option<Id> {
        let view = View {
            bytes: packet,
            wire,
        };
        scratch.begin(self.exprs.len());
        let mut best: Option<(u32, u32)> = None;
        for group in &self.order {
            let group = &self.groups[*group];
            if best.is_some_and(|(priority, _)| priority > group.best) {
                break;
            }
            if group.table.is_empty() {
                continue;
            }
            self.each(group, view, scratch, &mut |id| self.better(&mut best, id));
        }
        for id in &self.single {
            if self.accepts(*id, view) {
                self.better(&mut best, *id);
            }
        }
        best.map(|(_, id)| Id(id))
    }

    /// All filters that accept the packet, the one that gets it first.
    pub fn all(&self, packet: &[u8], wire: u32, scratch: &mut Scratch) -> Vec<Id> {
        let view = View {
            bytes: packet,
            wire,
        };
        scratch.begin(self.exprs.len());
        let mut found: Vec<u32> = Vec::new();
        for group in &self.groups {
            self.each(group, view, scratch, &mut |id| found.push(id));
        }
        found.extend(self.single.iter().filter(|id| self.accepts(**id, view)));
        found.sort_by_key(|id| (core::cmp::Reverse(self.priority(*id)), *id));
        found.dedup();
        found.into_iter().map(Id).collect()
    }

    /// The best rank among the filters with this key; 0 if there is none.
    fn rank(&self, group: usize, key: &[u32]) -> u64 {
        let ids = self.groups[group].table.get(key).iter();
        let ranks = ids.filter_map(|id| Some(self.members.get(id)?.claim.rank(*id)));
        ranks.max().unwrap_or(0)
    }

    fn priority(&self, id: u32) -> u32 {
        self.members.get(&id).map_or(0, |m| m.claim.priority)
    }

    fn better(&self, best: &mut Option<(u32, u32)>, id: u32) {
        let priority = self.priority(id);
        let wins = match *best {
            Some((most, first)) => priority > most || priority == most && id < first,
            None => true,
        };
        if wins {
            *best = Some((priority, id));
        }
    }

    fn accepts(&self, id: u32, view: View<'_>) -> bool {
        let whole = self.members.get(&id).and_then(|m| m.whole.as_ref());
        whole.is_some_and(|program| program.run(view) != 0)
    }

    /// The members of a group whose path the packet takes.
    fn each(
        &self,
        group: &Group,
        view: View<'_>,
        scratch: &mut Scratch,
        found: &mut dyn FnMut(u32),
    ) {
        scratch.key.clear();
        for field in &group.shape.fields {
            let Some(value) = scratch.value(&self.exprs, *field, view) else {
                return;
            };
            scratch.key.push(value);
        }
        for test in &group.shape.tests {
            match *test {
                Test::Needs(expr) => {
                    if scratch.value(&self.exprs, expr, view).is_none() {
                        return;
                    }
                }
                Test::Outcome(a, rel, b, outcome) => {
                    let a = scratch.value(&self.exprs, a, view);
                    let b = scratch.value(&self.exprs, b, view);
                    let (Some(a), Some(b)) = (a, b) else { return };
                    if crate::expression::holds(rel, a, b) != outcome {
                        return;
                    }
                }
            }
        }
        for id in group.table.get(&scratch.key) {
            found(*id);
        }
    }
}

impl Scratch {
    fn begin(&mut self, expressions: usize) {
        self.packet += 1;
        if self.values.len() < expressions {
            self.values.resize(expressions, (0, None));
        }
    }

    /// The value of an expression, computed once for each packet; none if it rejects.
    fn value(&mut self, exprs: &Exprs, id: ExprId, view: View<'_>) -> Option<u32> {
        use crate::expression::Expr;
        if let Some((packet, value)) = self.values.get(id as usize)
            && *packet == self.packet
        {
            return *value;
        }
        let value = match exprs.get(id) {
            Expr::Const(value) => Some(value),
            Expr::Len => Some(view.wire),
            Expr::Captured => u32::try_from(view.bytes.len()).ok(),
            Expr::Var(_) => None,
            Expr::Load { size, base, off } => {
                let base = match base {
                    Some(base) => self.value(exprs, base, view),
                    None => Some(0),
                };
                base.and_then(|base| view.load(size, base, off))
            }
            Expr::Bin(op, a, b) => {
                let a = self.value(exprs, a, view);
                a.zip(self.value(exprs, b, view))
                    .and_then(|(a, b)| apply(op, a, b))
            }
        };
        if let Some(place) = self.values.get_mut(id as usize) {
            *place = (self.packet, value);
        }
        value
    }
}
