//! What is in a namespace: units, the names that lead to them, and what waits to be freed.
//!
//! A unit is what one source or object brought. It lives while one of its names leads to it; then
//! it is *unlinked*: no call reaches it any more. But its landing pads are there, and whoever is
//! inside the domain may jump to them. So it is freed when nobody is inside and nobody can enter.
//!
//! Invariant: nothing of a creation shows before all of it is known to work, and a failed one
//! leaves no trace.

mod create;

use super::CreateError;
use super::free::FreeRanges;
use super::id::FunctionId;
use super::settings::Settings;
use super::slot_names::SlotNames;
use super::turns::Turns;
use super::variables::Variables;
use postern_gates::code::{CodeArena, Plan, TRAP};
use postern_gates::entry::Entry;
use postern_gates::inside::{self, Quiescent};
use postern_gates::machine::InChild;
use postern_gates::window::Pin;
use postern_image::Signature;
use postern_image::object::Symbol;
use postern_runtime::code::{AddedCode, Recovery};
use postern_runtime::fork::{self, Held};
use postern_runtime::{Domain, Fault, inner};
use postern_verifier::window;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// `CC` behind each text.
const APART: u32 = 16;
/// Of all parts of a unit; no section of an object may ask for more.
pub(crate) const ALIGNMENT: u32 = 64;

/// What of a domain makes it a namespace.
pub(crate) struct Code {
    /// Of the domain, for its share of the locks.
    pub(super) number: usize,
    pub(super) recovery: Recovery,
    /// The last fault that the namespace did not go on after.
    pub(super) reason: Mutex<Option<Arc<Fault>>>,
    /// Held while units are freed.
    freeing: Mutex<()>,
    plan: Plan,
    slot_names: Arc<SlotNames>,
    turns: Turns,
    state: Mutex<NamespaceState>,
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
pub(super) struct FunctionSlot {
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

/// Variables and constants of a unit, or of several that followed one another and have the same
/// variables. The variables may point to the constants of all of them.
struct Data {
    range: Range<u32>,
    /// First values of what is not zero.
    first: Arc<[u8]>,
    variables: Variables,
    /// Units that have it or refer to it.
    users: u32,
    constants: Vec<Range<u32>>,
}

pub(super) struct NamespaceState {
    area: CodeArena,
    text: FreeRanges,
    constants: FreeRanges,
    data_room: FreeRanges,
    /// From here on the data area was never used.
    fresh: u32,
    pub names: HashMap<Arc<str>, Name>,
    /// Slots of functions that were deleted, for others of the same names.
    dead: HashMap<Arc<str>, u32>,
    pub slots: Vec<FunctionSlot>,
    /// Their names, for those who do not have this object's lock.
    slot_names: Arc<SlotNames>,
    /// Where the next slot of a deleted function is looked for.
    reused: usize,
    units: BTreeMap<u64, Unit>,
    data: HashMap<u64, Data>,
    last: u64,
    /// By the starts of their texts.
    by_text: BTreeMap<u32, u64>,
    /// Units that nothing leads to, until nobody is inside the domain.
    unlinked: Vec<u64>,
    pub counters: NamespaceCounters,
}

/// What a namespace did so far, and what it holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamespaceCounters {
    /// Sources and objects that were added.
    pub created: u64,
    /// Functions that names were led to.
    pub linked: u64,
    /// Functions that were deleted.
    pub unlinked: u64,
    /// Units whose memory was given back.
    pub freed: u64,
    /// Names now.
    pub names: usize,
    /// Units now, those among them that nothing leads to and that somebody may still be inside of.
    pub units: usize,
    /// Bytes of machine code that there is room for.
    pub code_left: u64,
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
    pub(super) fn new(
        number: usize,
        area: CodeArena,
        data: Range<u32>,
        recovery: Recovery,
    ) -> Code {
        let plan = *area.plan();
        let text = plan.text();
        let slot_names = Arc::new(SlotNames::new(number));
        let state = NamespaceState {
            text: FreeRanges::new(text.start + APART..text.end),
            constants: FreeRanges::new(plan.constants()),
            fresh: data.start,
            data_room: FreeRanges::new(data),
            area,
            names: HashMap::new(),
            dead: HashMap::new(),
            slots: Vec::new(),
            slot_names: slot_names.clone(),
            reused: 0,
            units: BTreeMap::new(),
            data: HashMap::new(),
            last: 0,
            by_text: BTreeMap::new(),
            unlinked: Vec::new(),
            counters: Default::default(),
        };
        Code {
            number,
            recovery,
            reason: Mutex::new(None),
            freeing: Mutex::new(()),
            plan,
            slot_names,
            turns: Turns::default(),
            state: Mutex::new(state),
        }
    }

    pub(super) fn lock(&self) -> Held<'_, NamespaceState> {
        self.turns
            .ask(|| fork::lock_one_of_many(self.number, &self.state))
    }

    /// Before a change: lets those have the lock who wait for it already.
    pub(super) fn give_way(&self) {
        self.turns.give_way();
    }

    /// Frees what nothing leads to, if nobody is inside. Whether nothing is left.
    pub(super) fn collect(&self, domain: &Domain) -> bool {
        if self.lock().unlinked.is_empty() {
            return true;
        }
        // Before the registry's lock, which the look for threads takes; this object's own comes
        // after that.
        let _one = fork::lock(&self.freeing);
        let done = inside::while_quiescent(inner(domain).control(), |nobody| {
            let mut state = self.lock();
            for unit in std::mem::take(&mut state.unlinked) {
                state.free(unit, nobody);
            }
        });
        done && self.lock().unlinked.is_empty()
    }
}

impl AddedCode for Code {
    fn recovery(&self, word: u32) -> Recovery {
        Recovery::from_word(word).unwrap_or(self.recovery)
    }

    fn closes(&self, fault: &Arc<Fault>) {
        *fork::lock_one_of_many(self.number, &self.reason) = Some(fault.clone());
    }

    /// The slot that is called at `offset`, if it leads nowhere. Does not wait for creations.
    fn deleted_at(&self, offset: u32) -> Option<String> {
        let into = offset.checked_sub(self.plan.start)?;
        let slot = (into % window::SLOT_SIZE == TRAP).then_some(into / window::SLOT_SIZE)?;
        self.slot_names.get(slot).map(|name| name.to_string())
    }

    /// Whether the text of a unit at `offset` begins so.
    fn text_is(&self, offset: u32, expected: &[u8]) -> bool {
        if !self.plan.text().contains(&offset) {
            return false;
        }
        let state = self.lock();
        state
            .area
            .text(offset)
            .is_some_and(|text| text.starts_with(expected))
    }

    /// Whether `offset` is that of a slot. (Text of units may go while somebody keeps an entry to
    /// it; slots stay.)
    fn is_entry(&self, offset: u32) -> bool {
        let state = self.lock();
        let plan = state.area.plan();
        let slots = plan.start..plan.slot(state.slots.len() as u32);
        slots.contains(&offset) && (offset - plan.start).is_multiple_of(window::SLOT_SIZE)
    }

    /// `function at unit:line` for an offset in a unit's text.
    fn describe(&self, offset: u32) -> Option<String> {
        // A fault in a slot does not wait for the lock.
        if !self.plan.text().contains(&offset) {
            return None;
        }
        let state = self.lock();
        state.unit_at(offset).map(|unit| unit.describe(offset))
    }

    /// After the domain's private pages were dropped.
    fn first_values(&self, pin: &Pin<'_>) {
        for data in self.lock().data.values() {
            // The data area is mapped as long as the domain.
            let _ = pin.write(data.range.start, &data.first);
        }
    }

    /// In a forked child, whose only thread holds all locks. False if the code is gone.
    fn after_fork(&self, child: &InChild) -> bool {
        self.turns.forget();
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        state.area.renew(child).is_ok()
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

impl NamespaceState {
    fn unit_at(&self, offset: u32) -> Option<&Unit> {
        let (_, id) = self.by_text.range(..=offset).next_back()?;
        let unit = self.units.get(id)?;
        (offset < unit.text.end).then_some(unit)
    }

    /// The slot that an id means, if its function is there.
    pub fn live(&mut self, id: FunctionId) -> Option<&mut FunctionSlot> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        (slot.generation == id.generation && !slot.dead).then_some(slot)
    }

    /// The entry of a slot's function.
    pub fn entry(&self, domain: &Domain, slot: u32, signature: &Signature) -> Entry {
        let settings = &self.slots[slot as usize].settings;
        let (limit, recovery) = settings.words();
        let offset = self.slot_offset(slot);
        inner(domain).own_entry(offset, signature, limit, recovery)
    }

    /// The offset of a slot.
    pub fn slot_offset(&self, slot: u32) -> u32 {
        self.area.plan().slot(slot)
    }

    /// A slot that is nobody's, for a function of this name and type.
    fn new_slot(&mut self, name: &str, signature: Option<Signature>) -> Option<u32> {
        let unused = |s: &FunctionSlot| s.dead && s.users == 0 && Arc::strong_count(&s.held) == 1;
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
            false => {
                // From where the last one was found: whoever takes many does not look at all of
                // them each time.
                let (first, rest) = self.slots.split_at(self.reused.min(self.slots.len()));
                let later = rest.iter().position(unused).map(|at| first.len() + at);
                let found = later.or_else(|| first.iter().position(unused))?;
                self.reused = found + 1;
                found as u32
            }
        };
        let slot = FunctionSlot {
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
                *old = FunctionSlot { generation, ..slot };
            }
            None => self.slots.push(slot),
        }
        let named = &self.slots[number as usize];
        self.slot_names.set(number, &named.name);
        Some(number)
    }

    /// What a name leads to; exports of the image get a slot when they are first asked for.
    pub fn find(&mut self, domain: &Domain, name: &str) -> Option<Name> {
        if let Some(&found) = self.names.get(name) {
            return Some(found);
        }
        let image = domain.image();
        let export = image.tables().export(name)?;
        if !inner(domain).is_image_start(export.offset) {
            return None;
        }
        let slot = self.new_slot(name, export.signature)?;
        if !self.area.is_seen(slot) {
            self.area.barrier().ok()?;
        }
        if !self.area.link(slot, Some(export.offset)) {
            return None;
        }
        self.slots[slot as usize].target = Target::Image;
        let found = Name::Function(slot);
        self.names.insert(name.into(), found);
        Some(found)
    }

    /// Keeps a slot that leads nowhere for a function of the same name.
    fn bury(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        entry.dead = true;
        self.dead.insert(entry.name.clone(), slot);
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
    pub fn link(&mut self, domain: &Domain, name: &str, other: &str) -> Result<u32, CreateError> {
        let unresolved = || CreateError::Unresolved(other.to_owned());
        let Some(Name::Function(from)) = self.find(domain, other) else {
            return Err(unresolved());
        };
        let start = self.area.target(from).ok_or_else(unresolved)?;
        let (target, wanted) = {
            let slot = &self.slots[from as usize];
            (slot.target, slot.signature)
        };
        if domain
            .image()
            .tables()
            .imports
            .iter()
            .any(|i| *i.name == *name)
        {
            return Err(defined(name, "a service"));
        }
        let slot = match self.find(domain, name) {
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

    /// Frees a unit that nothing leads to.
    fn free(&mut self, id: u64, nobody: &Quiescent) {
        let Some(unit) = self.units.remove(&id) else {
            return;
        };
        self.by_text.remove(&unit.text.start);
        if self.area.remove(unit.text.start, nobody) {
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

fn defined(name: &str, what: &'static str) -> CreateError {
    let name = name.to_owned();
    CreateError::Defined { name, what }
}
