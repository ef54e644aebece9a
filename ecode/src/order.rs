//! Functions of several units as one unit for ring 0: callees behind their callers, so that the
//! verifier can see that no chain of calls is a circle ([`postern_verifier::Profile::Kernel`]).
//!
//! Invariant: the object does what the units do; only places differ. Where there is no such order,
//! the calls of a circle are named with their lines, and so is a chain that is too long.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use postern_image::object::{Import, Object, Symbol};
use postern_verifier::relocation::{Relocation, Section, Target, Width};
use postern_verifier::window::{FILL, KERNEL_CALLS};

use crate::image::{ALIGN, Exported, append};

/// A call in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Number of the unit, from 0.
    pub unit: usize,
    /// Its line there, from 1; 0 if it is not known.
    pub line: u32,
    /// Who calls.
    pub caller: String,
    /// Who is called.
    pub callee: String,
}

impl Call {
    /// The call with its place, in one of these sources.
    pub(crate) fn show(&self, sources: &[&str], f: &mut impl fmt::Write) -> fmt::Result {
        match sources.get(self.unit) {
            Some(name) => write!(f, "{name}:{}: ", self.line)?,
            None => write!(f, "source {}, line {}: ", self.unit + 1, self.line)?,
        }
        write!(f, "`{}` calls ", self.caller)?;
        match self.caller == self.callee {
            true => f.write_str("itself"),
            false => write!(f, "`{}`", self.callee),
        }
    }
}

/// Why there is no order.
pub(crate) enum Disorder {
    /// These call each other, the last one the first.
    Circle(Vec<Call>),
    /// So many calls are inside each other.
    Deep(Vec<Call>),
}

/// Where a part of a unit's text went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    pub from: u32,
    pub to: u32,
    size: u32,
}

/// All units as one.
pub(crate) struct Ordered {
    pub object: Object,
    /// Of each unit: its functions, ascending.
    pub moved: Vec<Vec<Moved>>,
    /// Of each unit: where its constants, data and zeroed data begin in those of the object.
    pub starts: Vec<[u32; 3]>,
}

/// A function of a unit.
struct Function<'a> {
    unit: usize,
    symbol: &'a Symbol,
    calls: Vec<Edge>,
}

/// A call: where it is in its unit's text, and whom it calls.
#[derive(Clone, Copy)]
struct Edge {
    at: u32,
    callee: usize,
}

/// Puts the units together.
pub(crate) fn together(units: &[Object], exported: &Exported<'_>) -> Result<Ordered, Disorder> {
    let functions = functions(units, exported);
    let order = order(&functions, units)?;
    let mut object = Object::default();
    let mut moved: Vec<Vec<Moved>> = units.iter().map(|_| Vec::new()).collect();
    for function in order {
        let Function { unit, symbol, .. } = functions[function];
        let (from, size) = (symbol.offset, symbol.size);
        let bytes = units[unit].text.get(from as usize..(from + size) as usize);
        let to = append(&mut object.text, bytes.unwrap_or(&[]), FILL) as u32;
        moved[unit].push(Moved { from, to, size });
    }
    if object.text.is_empty() {
        object.text.push(FILL);
    }
    for list in &mut moved {
        list.sort_unstable_by_key(|moved| moved.from);
    }
    let starts: Vec<[u32; 3]> = units
        .iter()
        .map(|unit| {
            let bss = object.bss.next_multiple_of(ALIGN as u32);
            object.bss = bss + unit.bss;
            let rodata = append(&mut object.rodata, &unit.rodata, 0);
            let data = append(&mut object.data, &unit.data, 0);
            [rodata as u32, data as u32, bss]
        })
        .collect();
    let mut ordered = Ordered {
        object,
        moved,
        starts,
    };
    ordered.names(units, exported);
    Ok(ordered)
}

impl Ordered {
    /// Symbols, imports and open addresses of the units, in the object.
    fn names(&mut self, units: &[Object], exported: &Exported<'_>) {
        let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
        for (unit, from) in units.iter().enumerate() {
            for symbol in &from.symbols {
                let offset = self.at(unit, symbol.section, symbol.offset);
                self.object.symbols.push(Symbol {
                    offset,
                    ..symbol.clone()
                });
            }
            for relocation in &from.relocations {
                let target = match relocation.target {
                    Target::Section(section) => (unit, section, relocation.addend),
                    Target::Import(index) => {
                        let Some(import) = from.imports.get(index as usize) else {
                            continue;
                        };
                        match exported.get(&*import.name) {
                            Some((unit, symbol)) => (
                                *unit,
                                symbol.section,
                                relocation.addend + i64::from(symbol.offset),
                            ),
                            None => {
                                let number = *numbers.entry(&import.name).or_insert_with(|| {
                                    self.object.imports.push(Import::clone(import));
                                    self.object.imports.len() as u32 - 1
                                });
                                self.push(
                                    unit,
                                    relocation,
                                    Target::Import(number),
                                    relocation.addend,
                                );
                                continue;
                            }
                        }
                    }
                };
                // An address outside of its section keeps its distance from the beginning.
                let (unit_of, section, addend) = target;
                let start = u32::try_from(addend).unwrap_or(0);
                let moved = i64::from(self.at(unit_of, section, start)) - i64::from(start);
                self.push(unit, relocation, Target::Section(section), addend + moved);
            }
        }
    }

    fn push(&mut self, unit: usize, relocation: &Relocation, target: Target, addend: i64) {
        let at = self.at(unit, relocation.section, relocation.at);
        self.object.relocations.push(Relocation {
            at,
            target,
            addend,
            ..*relocation
        });
    }

    /// Where a position of a unit's section is in the object's.
    fn at(&self, unit: usize, section: Section, position: u32) -> u32 {
        let [rodata, data, bss] = self.starts[unit];
        position
            + match section {
                Section::Text => return moved(&self.moved[unit], position),
                Section::Rodata => rodata,
                Section::Data => data,
                Section::Bss => bss,
            }
    }
}

/// Where a position of a unit's text went: functions are all that it has.
pub(crate) fn moved(list: &[Moved], position: u32) -> u32 {
    let index = list.partition_point(|moved| moved.from <= position);
    let found = index.checked_sub(1).and_then(|index| list.get(index));
    // Fill behind a function goes nowhere.
    found.map_or(0, |moved| {
        moved.to + (position - moved.from).min(moved.size)
    })
}

/// All functions with their calls of each other.
fn functions<'a>(units: &'a [Object], exported: &Exported<'_>) -> Vec<Function<'a>> {
    let mut functions = Vec::new();
    for (unit, object) in units.iter().enumerate() {
        let inside = object.symbols.iter();
        let mut inside: Vec<_> = inside.filter(|s| s.section == Section::Text).collect();
        inside.sort_by_key(|symbol| symbol.offset);
        functions.extend(inside.into_iter().map(|symbol| Function {
            unit,
            symbol,
            calls: Vec::new(),
        }));
    }
    let find = |unit: usize, position: u32| {
        let key = |function: &Function<'_>| (function.unit, function.symbol.offset);
        let index = functions.partition_point(|function| key(function) <= (unit, position));
        let found = index.checked_sub(1)?;
        (functions[found].unit == unit).then_some(found)
    };
    let mut calls = Vec::new();
    for (unit, object) in units.iter().enumerate() {
        for relocation in &object.relocations {
            if (relocation.section, relocation.width) != (Section::Text, Width::Relative32) {
                continue;
            }
            let callee = match relocation.target {
                Target::Section(Section::Text) => u32::try_from(relocation.addend)
                    .ok()
                    .and_then(|at| find(unit, at)),
                Target::Section(_) => None,
                Target::Import(index) => object
                    .imports
                    .get(index as usize)
                    .and_then(|import| exported.get(&*import.name))
                    .and_then(|(unit, symbol)| find(*unit, symbol.offset)),
            };
            if let (Some(caller), Some(callee)) = (find(unit, relocation.at), callee) {
                let at = relocation.at;
                calls.push((caller, Edge { at, callee }));
            }
        }
    }
    for (caller, edge) in calls {
        functions[caller].calls.push(edge);
    }
    functions
}

/// The functions, each behind all that call it. Those that nobody calls come first: what stands
/// between two that are called counts as a part of the first one, as the verifier sees it.
fn order(functions: &[Function<'_>], units: &[Object]) -> Result<Vec<usize>, Disorder> {
    let mut callers = alloc::vec![0u32; functions.len()];
    for edge in functions.iter().flat_map(|function| &function.calls) {
        callers[edge.callee] += 1;
    }
    let uncalled = (0..functions.len()).filter(|function| callers[*function] == 0);
    let mut ready: VecDeque<usize> = uncalled.collect();
    // Of each function: how deep it is called, and the call by which.
    let mut depths: Vec<(u32, Option<(usize, Edge)>)> = alloc::vec![(0, None); functions.len()];
    let mut order = Vec::with_capacity(functions.len());
    while let Some(caller) = ready.pop_front() {
        order.push(caller);
        for edge in &functions[caller].calls {
            let depth = depths[caller].0 + 1;
            if depth > depths[edge.callee].0 {
                depths[edge.callee] = (depth, Some((caller, *edge)));
            }
            callers[edge.callee] -= 1;
            if callers[edge.callee] == 0 {
                ready.push_back(edge.callee);
            }
        }
    }
    let named = |(caller, edge): (usize, Edge)| Call {
        unit: functions[caller].unit,
        line: units[functions[caller].unit].line(edge.at).unwrap_or(0),
        caller: functions[caller].symbol.name.clone(),
        callee: functions[edge.callee].symbol.name.clone(),
    };
    if order.len() < functions.len() {
        let circle = circle(functions, &callers);
        return Err(Disorder::Circle(circle.into_iter().map(named).collect()));
    }
    match depths.iter().max_by_key(|(depth, _)| *depth) {
        Some((depth, last)) if *depth > KERNEL_CALLS => {
            let callers = core::iter::successors(*last, |(caller, _)| depths[*caller].1);
            let mut chain: Vec<Call> = callers.map(named).collect();
            chain.reverse();
            Err(Disorder::Deep(chain))
        }
        _ => Ok(order),
    }
}

/// Calls in a circle, among functions of which each has callers that are left.
fn circle(functions: &[Function<'_>], callers: &[u32]) -> Vec<(usize, Edge)> {
    // Of each function that is left, one that calls it and is left, too.
    let mut caller_of: Vec<Option<(usize, Edge)>> = alloc::vec![None; functions.len()];
    for (caller, function) in functions.iter().enumerate() {
        for edge in &function.calls {
            if callers[caller] > 0 {
                caller_of[edge.callee].get_or_insert((caller, *edge));
            }
        }
    }
    let Some(start) = callers.iter().position(|callers| *callers > 0) else {
        return Vec::new();
    };
    // Up from any of them, after as many steps as there are functions, is inside a circle.
    let up = |at: usize| caller_of[at].map_or(at, |(caller, _)| caller);
    let inside = functions.iter().fold(start, |at, _| up(at));
    let mut calls = Vec::new();
    let mut at = inside;
    while let Some((caller, edge)) = caller_of[at] {
        calls.push((caller, edge));
        at = caller;
        if at == inside {
            break;
        }
    }
    calls.reverse();
    calls
}
