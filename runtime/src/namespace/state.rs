//! What is in a namespace: units, the names that lead to them, and what waits to be freed.
//!
//! A unit is what one source or object brought. It lives while one of its names leads to it; then it is *unlinked*: no call reaches
//! it any more, but some may be inside. After a barrier the calls inside are noted, and when they have ended it is freed.
//!
//! Invariant: nothing of a creation shows before all of it is known to work, and a failed one leaves no trace.

use super::object::{Object, Places, Section, Symbol, Variables};
use super::recovery::Settings;
use super::room::Room;
use super::{CreateError, Namespace, Recovery};
use crate::domain::{self, Domain};
use crate::fault::Fault;
use crate::fork::{self, Held};
use crate::image::ImageInner;
use crate::trusted::code::{Area, Start, TRAP};
use crate::trusted::control::Entry;
use crate::trusted::gate::{FACT_X87, FACT_XMM, FACT_YMM};
use crate::trusted::thread::{Ended, Inside};
use crate::trusted::{machine, memory, slow, thread};
use postern_image::{ImportOwned, Signature};
use postern_verifier::{Facts, window};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// `CC` behind each text.
const APART: u32 = 16;
/// Of all parts of a unit.
const ALIGNMENT: u32 = super::elf::ALIGNMENT as u32;

/// What of a domain makes it a namespace.
pub(crate) struct Code {
    /// Of the domain, for its share of the locks.
    pub(super) number: usize,
    pub(super) recovery: Recovery,
    /// The last fault that the namespace did not go on after.
    pub(super) reason: Mutex<Option<Arc<Fault>>>,
    state: Mutex<State>,
    #[cfg(feature = "ecode")]
    pub(super) compiler: super::source::Source,
}

/// What a name leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// Number of a slot.
    Function(u32),
    /// A unit's variable: unit and offset.
    Variable(u64, u32),
}

/// A function's place for good, whatever body it has.
pub(super) struct Slot {
    pub name: Arc<str>,
    pub signature: Option<Signature>,
    /// How often it was another function's.
    pub generation: u32,
    target: Target,
    /// Units whose code refers to it.
    users: u32,
    /// Shared by those who can call it from outside.
    pub held: Arc<()>,
    pub settings: Settings,
    /// Its function was deleted, or never came.
    dead: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Nothing,
    Image,
    Unit(u64),
}

struct Unit {
    name: Arc<str>,
    text: Range<u32>,
    /// Its variables and constants.
    data: u64,
    functions: Vec<Symbol>,
    variables: Vec<String>,
    lines: Vec<(u32, u32)>,
    /// Slots and data of others that it refers to.
    slots: Vec<u32>,
    others: Vec<u64>,
    /// Names of its functions that lead to it; of its variables, if it has no functions.
    names: u32,
}

/// Variables and constants of a unit, or of several that followed one another and have the same variables. The variables may
/// point to the constants of all of them.
struct Data {
    range: Range<u32>,
    /// First values of what is not zero.
    first: Arc<[u8]>,
    variables: Variables,
    /// Units that have it or refer to it.
    users: u32,
    constants: Vec<Range<u32>>,
}

pub(super) struct State {
    area: Area,
    text: Room,
    constants: Room,
    data_room: Room,
    /// From here on the data area was never used.
    fresh: u32,
    pub names: HashMap<Arc<str>, Name>,
    /// Slots of functions that were deleted, for others of the same names.
    dead: HashMap<Arc<str>, u32>,
    pub slots: Vec<Slot>,
    units: BTreeMap<u64, Unit>,
    data: HashMap<u64, Data>,
    last: u64,
    /// By the starts of their texts.
    by_text: BTreeMap<u32, u64>,
    /// Units that nothing leads to, but calls that were inside then are not known yet.
    unlinked: Vec<u64>,
    /// Units that nothing leads to, and who was inside.
    retired: Vec<(Vec<u64>, Inside)>,
    pub counters: super::NamespaceCounters,
}

/// What a creation did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Created {
    /// Functions that are new.
    pub new: Vec<String>,
    /// Functions that took another one's place.
    pub replaced: Vec<String>,
    /// The variables are those of the code that was replaced, with their values.
    pub kept_variables: bool,
}

impl Code {
    pub(super) fn new(number: usize, area: Area, data: Range<u32>, recovery: Recovery) -> Code {
        let plan = *area.plan();
        let text = plan.text();
        let state = State {
            text: Room::new(text.start + APART..text.end),
            constants: Room::new(plan.constants()),
            fresh: data.start,
            data_room: Room::new(data),
            area,
            names: HashMap::new(),
            dead: HashMap::new(),
            slots: Vec::new(),
            units: BTreeMap::new(),
            data: HashMap::new(),
            last: 0,
            by_text: BTreeMap::new(),
            unlinked: Vec::new(),
            retired: Vec::new(),
            counters: Default::default(),
        };
        Code {
            number,
            recovery,
            reason: Mutex::new(None),
            state: Mutex::new(state),
            #[cfg(feature = "ecode")]
            compiler: Default::default(),
        }
    }

    pub(super) fn lock(&self) -> Held<'_, State> {
        fork::lock_one_of_many(self.number, &self.state)
    }

    /// Frees what can be freed now. With `barrier`, also what was unlinked just now, if nobody is in it. Whether nothing is left.
    pub(super) fn collect(&self, inner: &domain::Inner, barrier: bool) -> bool {
        slow::forget_left(thread::current());
        if barrier {
            let unlinked = std::mem::take(&mut self.lock().unlinked);
            if !unlinked.is_empty() {
                machine::barrier();
                self.note_inside(inner, unlinked);
            }
        }
        let retired = std::mem::take(&mut self.lock().retired);
        let mut left = Vec::new();
        for (units, mut inside) in retired {
            // Without this object's lock, which comes after the registry's.
            match inside.ended() {
                Some(ended) => {
                    let mut state = self.lock();
                    units.into_iter().for_each(|unit| state.free(unit, &ended));
                }
                None => left.push((units, inside)),
            }
        }
        let mut state = self.lock();
        state.retired.extend(left);
        state.retired.is_empty() && state.unlinked.is_empty()
    }

    /// Notes who may be inside units that were unlinked before the last barrier.
    fn note_inside(&self, inner: &domain::Inner, unlinked: Vec<u64>) {
        let inside = Inside::now(&inner.control);
        self.lock().retired.push((unlinked, inside));
    }

    /// The slot that is called at `offset`, and its name, if it leads nowhere.
    pub(crate) fn deleted_at(&self, offset: u32) -> Option<String> {
        let state = self.lock();
        let plan = state.area.plan();
        let into = offset.checked_sub(plan.start)?;
        let slot = state.slots.get((into / window::SLOT_SIZE) as usize)?;
        (into % window::SLOT_SIZE == TRAP).then(|| slot.name.to_string())
    }

    /// Whether the text of a unit at `offset` begins so.
    pub(crate) fn text_is(&self, offset: u32, expected: &[u8]) -> bool {
        let state = self.lock();
        state
            .area
            .text(offset)
            .is_some_and(|text| text.starts_with(expected))
    }

    /// Whether `offset` is that of a function's slot, or of a function of a unit.
    pub(crate) fn is_entry(&self, offset: u32) -> bool {
        let state = self.lock();
        let plan = state.area.plan();
        if (plan.start..plan.slot(state.area.slots())).contains(&offset) {
            return (offset - plan.start) % window::SLOT_SIZE == 0;
        }
        let unit = state.unit_at(offset);
        unit.is_some_and(|u| {
            u.functions
                .iter()
                .any(|f| u.text.start + f.offset == offset)
        })
    }

    /// `function at unit:line` for an offset in a unit's text.
    pub(crate) fn describe(&self, offset: u32) -> Option<String> {
        let state = self.lock();
        state.unit_at(offset).map(|unit| unit.describe(offset))
    }

    /// After the domain's private pages were dropped.
    pub(crate) fn first_values(&self, base: u64) {
        for data in self.lock().data.values() {
            // The data area is mapped as long as the domain.
            let _ = memory::write_at(base, data.range.start, &data.first);
        }
    }

    /// In a forked child, whose only thread holds all locks. False if the code is gone.
    pub(crate) fn after_fork(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        state.retired.iter_mut().for_each(|r| r.1.after_fork());
        state.area.renew().is_ok()
    }
}

impl Unit {
    fn describe(&self, offset: u32) -> String {
        let at = offset - self.text.start;
        describe(&self.name, &self.functions, &self.lines, at)
    }
}

fn describe(unit: &str, functions: &[Symbol], lines: &[(u32, u32)], at: u32) -> String {
    let function = functions
        .iter()
        .filter(|f| f.offset <= at)
        .max_by_key(|f| f.offset);
    let name = function.map_or("?", |f| &f.name);
    let index = lines.partition_point(|(from, _)| *from <= at);
    match index.checked_sub(1).and_then(|i| lines.get(i)) {
        Some((_, line)) => format!("{name} at {unit}:{line}"),
        None => format!("{name} of {unit}"),
    }
}

/// What a creation has taken and not made use of yet.
#[derive(Default)]
struct Taken {
    text: Option<Range<u32>>,
    placed: Option<u32>,
    constants: Option<Range<u32>>,
    data: Option<Range<u32>>,
    slots: Vec<u32>,
}

impl State {
    fn unit_at(&self, offset: u32) -> Option<&Unit> {
        let (_, id) = self.by_text.range(..=offset).next_back()?;
        let unit = self.units.get(id)?;
        (offset < unit.text.end).then_some(unit)
    }

    /// The slot that an id means, if its function is there.
    pub fn live(&mut self, id: super::FunctionId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        (slot.generation == id.generation && !slot.dead).then_some(slot)
    }

    /// The entry of a slot's function.
    pub fn entry(&self, domain: &Domain, slot: u32, signature: &Signature) -> Entry {
        let settings = &self.slots[slot as usize].settings;
        let (limit, recovery) = settings.words();
        let offset = self.slot_offset(slot);
        domain.0.own_entry(offset, signature, limit, recovery)
    }

    /// The offset of a slot.
    pub fn slot_offset(&self, slot: u32) -> u32 {
        self.area.plan().slot(slot)
    }

    /// A slot that is nobody's, for a function of this name and type.
    fn new_slot(&mut self, name: &str, signature: Option<Signature>) -> Option<u32> {
        let unused = |s: &Slot| s.dead && s.users == 0 && Arc::strong_count(&s.held) == 1;
        if let Some(number) = self.dead.remove(name) {
            let slot = &mut self.slots[number as usize];
            if slot.signature == signature || unused(slot) {
                (slot.dead, slot.signature) = (false, signature);
                return Some(number);
            }
        }
        let next = self.slots.len() as u32;
        let number = match next < self.area.slots() || self.area.make_slots() {
            true => next,
            false => self.slots.iter().position(unused)? as u32,
        };
        let slot = Slot {
            name: name.into(),
            signature,
            generation: 0,
            target: Target::Nothing,
            users: 0,
            held: Arc::new(()),
            settings: Settings::default(),
            dead: false,
        };
        match self.slots.get_mut(number as usize) {
            Some(old) => {
                self.dead.remove(&old.name);
                let generation = old.generation + 1;
                *old = Slot { generation, ..slot };
            }
            None => self.slots.push(slot),
        }
        Some(number)
    }

    /// What a name leads to; exports of the image get a slot when they are first asked for.
    pub fn find(&mut self, image: &ImageInner, name: &str) -> Option<Name> {
        if let Some(&found) = self.names.get(name) {
            return Some(found);
        }
        let export = image.tables.export(name)?;
        let start = Start::of_image(image, export.offset)?;
        let slot = self.new_slot(name, export.signature)?;
        if !self.area.is_seen(slot) {
            self.area.barrier().ok()?;
        }
        if !self.area.link(slot, Some(start)) {
            return None;
        }
        self.slots[slot as usize].target = Target::Image;
        let found = Name::Function(slot);
        self.names.insert(name.into(), found);
        Some(found)
    }

    /// Puts an object into the area; nothing leads there yet. `None`: try again after [`Code::collect`].
    fn put(
        &mut self,
        home: &Home<'_>,
        unit: &Arc<str>,
        object: &mut Object,
        taken: &mut Taken,
    ) -> Result<Prepared, CreateError> {
        let image = home.image;
        let mut functions = Vec::new();
        for symbol in object.symbols.iter().filter(|s| s.exported) {
            if image.tables.imports.iter().any(|i| *i.name == *symbol.name) {
                return Err(defined(&symbol.name, "a service"));
            }
            if symbol.section != Section::Text {
                continue;
            }
            let signature: Option<Signature> = symbol.signature.parse().ok();
            let slot = match self.find(image, &symbol.name) {
                None => {
                    let slot = self.new_slot(&symbol.name, signature);
                    let slot = slot.ok_or(CreateError::Room {
                        what: "link slots",
                        bytes: 32,
                    })?;
                    taken.slots.push(slot);
                    slot
                }
                Some(Name::Variable(..)) => return Err(defined(&symbol.name, "a variable")),
                Some(Name::Function(slot)) => {
                    let found = self.slots[slot as usize].signature;
                    if let (Some(found), Some(wanted)) = (found, signature)
                        && found != wanted
                    {
                        let name = symbol.name.clone();
                        return Err(CreateError::Signature {
                            name,
                            found,
                            wanted,
                        });
                    }
                    slot
                }
            };
            functions.push((slot, symbol.offset));
        }
        let replaced = self.replaced(&functions);
        let variables = object.variables();
        for symbol in object.symbols.iter().filter(|s| s.exported) {
            if matches!(symbol.section, Section::Text) {
                continue;
            }
            match self.names.get(&*symbol.name) {
                Some(Name::Function(_)) => return Err(defined(&symbol.name, "a function")),
                Some(Name::Variable(owner, _)) if Some(*owner) != replaced => {
                    return Err(defined(&symbol.name, "another unit's variable"));
                }
                _ => {}
            }
        }
        // The same variables as what is replaced: they stay, with their values.
        let kept = replaced.and_then(|old| {
            let data = self.units.get(&old)?.data;
            let same = !variables.is_empty() && self.data.get(&data)?.variables == variables;
            same.then_some(data)
        });
        let mut imports = Vec::new();
        let (mut slots, mut others): (Vec<u32>, Vec<u64>) = Default::default();
        for import in &object.imports {
            let services = image.tables.imports.iter();
            let service = services.zip(0..).find(|(s, _)| *s.name == *import.name);
            if let Some((service, number)) = service {
                compatible(service, import)?;
                imports.push(image.tables.layout.gates + number * window::SLOT_SIZE);
                continue;
            }
            if import.name == window::STACK_MASK {
                imports.push(image.tables.layout.stack_size - 1);
                continue;
            }
            match self.find(image, &import.name) {
                Some(Name::Function(slot)) => {
                    let wanted = import.signature.parse().ok();
                    let found = self.slots[slot as usize].signature;
                    if let (Some(found), Some(wanted)) = (found, wanted)
                        && !crate::service::compatible(&found, &wanted)
                    {
                        let name = import.name.clone();
                        return Err(CreateError::Signature {
                            name,
                            found,
                            wanted,
                        });
                    }
                    slots.push(slot);
                    imports.push(self.slot_offset(slot));
                }
                Some(Name::Variable(owner, offset)) => {
                    others.extend(self.units.get(&owner).map(|u| u.data));
                    imports.push(offset);
                }
                None => return Err(CreateError::Unresolved(import.name.clone())),
            }
        }
        slots.extend(functions.iter().map(|f| f.0));
        let room = |what, bytes: usize| CreateError::Room { what, bytes };
        let size = |bytes: usize| u32::try_from(bytes).ok().filter(|&b| b < 1 << 30);
        let text_bytes = object.text.len();
        let padded = size(text_bytes).map(|b| b + APART);
        let text = padded.and_then(|bytes| self.text.take(bytes, ALIGNMENT));
        let text = text.ok_or(room("text", text_bytes))?;
        taken.text = Some(text..text + text_bytes as u32 + APART);
        let bytes = object.constants.len();
        let constants = size(bytes).and_then(|b| self.constants.take(b, ALIGNMENT));
        let constants = constants.ok_or(room("constants", bytes))?;
        let constants = constants..constants + bytes as u32;
        taken.constants = Some(constants.clone());
        let bss_at = object.data.len().next_multiple_of(ALIGNMENT as usize);
        let data = match kept {
            Some(data) => self.data[&data].range.clone(),
            None => {
                let bytes = bss_at + object.bss as usize;
                let at = size(bytes).and_then(|b| self.data_room.take(b, ALIGNMENT));
                let at = at.ok_or(room("variables", bytes))?;
                taken.data = Some(at..at + bytes as u32);
                at..at + bytes as u32
            }
        };
        let places = Places {
            text,
            constants: constants.start,
            data: data.start,
            bss: data.start + bss_at as u32,
        };
        let plan = *self.area.plan();
        let slot_of = |position| {
            let found = functions.iter().find(|f| f.1 == position);
            found.map(|f| plan.slot(f.0))
        };
        object.place(&places, &imports, slot_of)?;
        let judged = self.area.judge(text, std::mem::take(&mut object.text));
        let judged = judged.map_err(|violation| {
            let exported: Vec<Symbol> = object.functions().cloned().collect();
            let at = violation.offset.saturating_sub(text);
            let place = describe(unit, &exported, &object.lines, at);
            CreateError::Refused { place, violation }
        })?;
        check_registers(&judged.facts, image.fact_bits)?;
        let mut starts = Vec::new();
        for (slot, position) in functions {
            let start = judged.start(text.saturating_add(position));
            starts.push((slot, start.ok_or(CreateError::Address)?));
        }
        if !self.area.place(&judged) {
            return Err(room("text", text_bytes));
        }
        taken.placed = Some(text);
        let bytes: Arc<[u8]> = std::mem::take(&mut object.constants).into();
        if !bytes.is_empty() && !self.area.place_constants(constants.start, &bytes) {
            return Err(room("constants", bytes.len()));
        }
        Ok(Prepared {
            text: text..text + text_bytes as u32,
            constants,
            data,
            kept,
            starts,
            slots,
            others,
            variables,
            places,
        })
    }

    /// The unit whose functions are about to be replaced, if they are all of one.
    fn replaced(&self, functions: &[(u32, u32)]) -> Option<u64> {
        let mut units =
            functions
                .iter()
                .filter_map(|(slot, _)| match self.slots[*slot as usize].target {
                    Target::Unit(unit) => Some(unit),
                    _ => None,
                });
        let unit = units.next()?;
        units.all(|other| other == unit).then_some(unit)
    }

    /// Gives back what a failed creation had taken.
    fn undo(&mut self, taken: Taken) {
        if let Some(at) = taken.placed {
            // Nothing ever led there.
            let _ = self.area.remove(at, &Ended::nobody_came());
        }
        if let Some(range) = taken.constants {
            self.area.remove_constants(range.start);
            self.constants.give(range);
        }
        if let Some(range) = taken.text {
            self.text.give(range);
        }
        if let Some(range) = taken.data {
            self.data_room.give(range);
        }
        for slot in taken.slots {
            self.bury(slot);
        }
    }

    /// Keeps a slot that leads nowhere for a function of the same name.
    fn bury(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        entry.dead = true;
        self.dead.insert(entry.name.clone(), slot);
    }

    /// Lets the names lead to what was put there.
    fn show(&mut self, home: &Home<'_>, unit: Arc<str>, object: Object, new: Prepared) -> Created {
        self.last += 1;
        let id = self.last;
        let mut created = Created {
            kept_variables: new.kept.is_some(),
            ..Created::default()
        };
        let data = match new.kept {
            Some(data) => data,
            None => {
                let first: Arc<[u8]> = object.data.into();
                self.first_write(home.base, &new.data, &first);
                self.data.insert(
                    id,
                    Data {
                        range: new.data.clone(),
                        first,
                        variables: new.variables,
                        users: 0,
                        constants: Vec::new(),
                    },
                );
                id
            }
        };
        for block in std::iter::once(&data).chain(&new.others) {
            self.data.entry(*block).and_modify(|d| d.users += 1);
        }
        let constants = new.constants;
        self.data
            .entry(data)
            .and_modify(|d| d.constants.push(constants));
        for &slot in &new.slots {
            self.slots[slot as usize].users += 1;
        }
        let (functions, others): (Vec<Symbol>, Vec<Symbol>) = object
            .symbols
            .into_iter()
            .partition(|s| s.section == Section::Text);
        let variables: Vec<Symbol> = others.into_iter().filter(|s| s.exported).collect();
        let mut names = 0;
        self.by_text.insert(new.text.start, id);
        self.units.insert(
            id,
            Unit {
                name: unit,
                text: new.text,
                data,
                functions,
                variables: variables.iter().map(|v| v.name.clone()).collect(),
                lines: object.lines,
                slots: new.slots,
                others: new.others,
                names: 0,
            },
        );
        for (slot, start) in new.starts {
            let linked = self.area.link(slot, Some(start));
            debug_assert!(linked, "the text was placed under this lock");
            let entry = &mut self.slots[slot as usize];
            let old = std::mem::replace(&mut entry.target, Target::Unit(id));
            let name = entry.name.clone();
            match old {
                Target::Nothing => created.new.push(name.to_string()),
                _ => created.replaced.push(name.to_string()),
            }
            self.names.insert(name, Name::Function(slot));
            names += 1;
            if let Target::Unit(old) = old {
                self.unname(old);
            }
            self.counters.linked += 1;
        }
        let functions = names != 0;
        for variable in variables {
            let at = match variable.section {
                Section::Constants => new.places.constants,
                Section::Bss => new.places.bss,
                _ => new.places.data,
            };
            let name = Name::Variable(id, at + variable.offset);
            self.names.insert(variable.name.into(), name);
            names += u32::from(!functions);
        }
        self.units.entry(id).and_modify(|unit| unit.names += names);
        created
    }

    fn first_write(&mut self, base: u64, range: &Range<u32>, first: &[u8]) {
        // The data area is mapped as long as the domain, and this part of it nobody's but this creation's.
        let used = self.fresh.clamp(range.start, range.end) - range.start;
        let zero = vec![0; used.min(1 << 16) as usize];
        let mut at = 0;
        while at < used {
            let step = (used - at).min(1 << 16);
            let _ = memory::write_at(base, range.start + at, &zero[..step as usize]);
            at += step;
        }
        let _ = memory::write_at(base, range.start, first);
        self.fresh = self.fresh.max(range.end);
    }

    /// One name less leads to a unit. With its last function, its variables have no names any more.
    fn unname(&mut self, id: u64) {
        let Some(unit) = self.units.get_mut(&id) else {
            return;
        };
        unit.names = unit.names.saturating_sub(1);
        if unit.names != 0 {
            return;
        }
        for variable in &unit.variables {
            if let Some(Name::Variable(owner, _)) = self.names.get(&**variable)
                && *owner == id
            {
                self.names.remove(&**variable);
            }
        }
        self.unlinked.push(id);
    }

    /// Leads `name` to the function that `other` leads to.
    pub fn link(
        &mut self,
        image: &ImageInner,
        name: &str,
        other: &str,
    ) -> Result<u32, CreateError> {
        let unresolved = || CreateError::Unresolved(other.to_owned());
        let Some(Name::Function(from)) = self.find(image, other) else {
            return Err(unresolved());
        };
        let start = self.area.target(from).ok_or_else(unresolved)?;
        let (target, wanted) = {
            let slot = &self.slots[from as usize];
            (slot.target, slot.signature)
        };
        if image.tables.imports.iter().any(|i| *i.name == *name) {
            return Err(defined(name, "a service"));
        }
        let slot = match self.find(image, name) {
            Some(Name::Variable(..)) => return Err(defined(name, "a variable")),
            Some(Name::Function(slot)) => {
                let found = self.slots[slot as usize].signature;
                if let (Some(found), Some(wanted)) = (found, wanted)
                    && found != wanted
                {
                    let name = name.to_owned();
                    return Err(CreateError::Signature {
                        name,
                        found,
                        wanted,
                    });
                }
                slot
            }
            None => {
                let slot = self.new_slot(name, wanted);
                let slot = slot.ok_or(CreateError::Room {
                    what: "link slots",
                    bytes: 32,
                })?;
                if !self.area.is_seen(slot) {
                    self.area.barrier().map_err(CreateError::Barrier)?;
                }
                slot
            }
        };
        let linked = self.area.link(slot, Some(start));
        debug_assert!(linked, "a slot leads there");
        let entry = &mut self.slots[slot as usize];
        let old = std::mem::replace(&mut entry.target, target);
        let name = entry.name.clone();
        if let Target::Unit(unit) = target {
            self.units.entry(unit).and_modify(|unit| unit.names += 1);
        }
        if let Target::Unit(old) = old {
            self.unname(old);
        }
        self.names.insert(name, Name::Function(slot));
        self.counters.linked += 1;
        Ok(slot)
    }

    /// Takes a name away. False if it is not there.
    pub fn delete(&mut self, name: &str) -> bool {
        match self.names.get(name) {
            Some(&Name::Function(slot)) => {
                let unlinked = self.area.link(slot, None);
                debug_assert!(unlinked, "slots stay");
                let entry = &mut self.slots[slot as usize];
                let old = std::mem::replace(&mut entry.target, Target::Nothing);
                self.names.remove(name);
                self.bury(slot);
                if let Target::Unit(old) = old {
                    self.unname(old);
                }
                self.counters.unlinked += 1;
                true
            }
            Some(&Name::Variable(unit, _)) => {
                self.names.remove(name);
                let alone = |u: &Unit| !u.functions.iter().any(|f| f.exported);
                if self.units.get(&unit).is_some_and(alone) {
                    self.unname(unit);
                }
                true
            }
            None => false,
        }
    }

    /// Frees a unit that nobody can be in.
    fn free(&mut self, id: u64, ended: &Ended) {
        let Some(unit) = self.units.remove(&id) else {
            return;
        };
        self.by_text.remove(&unit.text.start);
        if self.area.remove(unit.text.start, ended) {
            self.text.give(unit.text.start..unit.text.end + APART);
        }
        for slot in unit.slots {
            self.slots[slot as usize].users -= 1;
        }
        let mut constants = Vec::new();
        for block in std::iter::once(&unit.data).chain(&unit.others) {
            let Some(data) = self.data.get_mut(block) else {
                continue;
            };
            data.users -= 1;
            if data.users != 0 {
                continue;
            }
            if let Some(data) = self.data.remove(block) {
                self.data_room.give(data.range);
                constants.extend(data.constants);
            }
        }
        for range in constants {
            self.area.remove_constants(range.start);
            self.constants.give(range);
        }
        self.counters.freed += 1;
    }

    /// Bytes of text that could be had.
    pub fn text_left(&self) -> u64 {
        self.text.left()
    }

    pub fn units(&self) -> usize {
        self.units.len()
    }
}

/// What is known of an object that was put into the area.
struct Prepared {
    text: Range<u32>,
    constants: Range<u32>,
    data: Range<u32>,
    kept: Option<u64>,
    starts: Vec<(u32, Start)>,
    slots: Vec<u32>,
    others: Vec<u64>,
    variables: Variables,
    places: Places,
}

/// Where a namespace's code lives.
struct Home<'a> {
    image: &'a ImageInner,
    base: u64,
}

impl Namespace {
    /// Adds an object's functions and variables, or puts them in the place of others.
    pub(super) fn add(&self, unit: &str, object: Object) -> Result<Created, CreateError> {
        let inner = &*self.domain.0;
        let code = self.code();
        if !object.symbols.iter().any(|s| s.exported) {
            return Err(CreateError::Empty);
        }
        code.collect(inner, false);
        let again = object.clone();
        match self.try_add(unit, object) {
            Err(CreateError::Room { .. }) if code.collect(inner, true) => self.try_add(unit, again),
            other => other,
        }
    }

    fn try_add(&self, unit: &str, mut object: Object) -> Result<Created, CreateError> {
        let inner = &*self.domain.0;
        let code = self.code();
        let home = Home {
            image: &inner.image,
            base: inner.control.base.load(Ordering::Relaxed),
        };
        let unit: Arc<str> = unit.into();
        let mut guard = code.lock();
        let state = &mut *guard;
        let mut taken = Taken::default();
        let prepared = state
            .put(&home, &unit, &mut object, &mut taken)
            .and_then(|prepared| {
                // New text and slots are seen by every thread before anything leads there.
                state.area.barrier().map_err(CreateError::Barrier)?;
                Ok(prepared)
            });
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                state.undo(taken);
                return Err(error);
            }
        };
        // That was a barrier for what was unlinked before, too.
        let unlinked = std::mem::take(&mut state.unlinked);
        let created = state.show(&home, unit, object, prepared);
        state.counters.created += 1;
        drop(guard);
        if !unlinked.is_empty() {
            code.note_inside(inner, unlinked);
        }
        Ok(created)
    }
}

fn defined(name: &str, what: &'static str) -> CreateError {
    let name = name.to_owned();
    CreateError::Defined { name, what }
}

fn compatible(service: &ImportOwned, import: &super::object::Import) -> Result<(), CreateError> {
    let wanted = import.signature.parse().ok();
    if let (Some(found), Some(wanted)) = (service.signature, wanted)
        && !crate::service::compatible(&found, &wanted)
    {
        let name = import.name.clone();
        return Err(CreateError::Signature {
            name,
            found,
            wanted,
        });
    }
    Ok(())
}

/// Whether code with these facts may come into a namespace whose gates leave these registers to it.
fn check_registers(facts: &Facts, allowed: u32) -> Result<(), CreateError> {
    let needs = match facts {
        f if f.x87 && allowed & FACT_X87 == 0 => "x87 registers",
        f if f.ymm && allowed & FACT_YMM == 0 => "256-bit vector registers",
        f if f.xmm && allowed & FACT_XMM == 0 => "vector registers",
        _ => return Ok(()),
    };
    Err(CreateError::Registers { needs })
}
