//! A creation, in five steps: what names mean is *resolved*, ranges are *allocated*, addresses are
//! *relocated*, the text is *verified* for its place; then it is written there and *committed*: the
//! names lead to it. Each step takes what the one before it made.
//!
//! Invariant: until the commit nothing of it shows, and whatever fails before gives back all that
//! was taken ([`Taken`]).

use super::{
    ALIGNMENT, APART, Created, Data, Name, NamespaceState, Target, Unit, defined, describe,
};
use crate::variables::Variables;
use crate::{CreateError, Namespace};
use postern_gates::code::Judged;
use postern_gates::gate::{FACT_FLOAT, FACT_X87, FACT_XMM, FACT_YMM};
use postern_gates::window::Pin;
use postern_image::Signature;
use postern_image::object::{Import, Object, Symbol};
use postern_runtime::{Domain, inner, signature};
use postern_verifier::relocation::{OutOfRange, Places, Section};
use postern_verifier::{Facts, window};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// What a creation has taken and not made use of yet.
#[derive(Default)]
struct Taken {
    text: Option<Range<u32>>,
    placed: Option<u32>,
    constants: Option<Range<u32>>,
    data: Option<Range<u32>>,
    slots: Vec<u32>,
}

/// What the names of an object mean in the namespace.
struct Resolved {
    /// Slots of its functions, and where they begin in its text.
    functions: Vec<(u32, u32)>,
    /// Offsets of what it imports, in their order.
    imports: Vec<u32>,
    /// Slots that it refers to, its own among them, and variables of others.
    slots: Vec<u32>,
    others: Vec<u64>,
    variables: Variables,
    /// The block of variables that it takes over from what it replaces.
    kept: Option<u64>,
}

/// Where its parts go.
struct Allocated {
    text: Range<u32>,
    constants: Range<u32>,
    data: Range<u32>,
    places: Places,
}

/// Text that may run at its place, and the functions' starts by their slots.
struct Verified {
    text: Judged,
    starts: Vec<(u32, u32)>,
}

impl NamespaceState {
    /// Finds or takes a slot for each function that others may use, and finds what is imported.
    fn resolve(
        &mut self,
        domain: &Domain,
        object: &Object,
        taken: &mut Taken,
    ) -> Result<Resolved, CreateError> {
        let functions = self.resolve_functions(domain, object, taken)?;
        let replaced = self.replaced(&functions);
        self.check_variables(object, replaced)?;
        let variables = Variables::of(object);
        // The same variables as what is replaced: they stay, with their values.
        let kept = replaced.and_then(|old| {
            let data = self.units.get(&old)?.data;
            let same = !variables.is_empty() && self.data.get(&data)?.variables == variables;
            same.then_some(data)
        });
        let mut resolved = Resolved {
            functions,
            imports: Vec::new(),
            slots: Vec::new(),
            others: Vec::new(),
            variables,
            kept,
        };
        for import in &object.imports {
            self.resolve_import(domain, import, &mut resolved)?;
        }
        let own = resolved.functions.iter().map(|f| f.0);
        resolved.slots.extend(own);
        Ok(resolved)
    }

    fn resolve_functions(
        &mut self,
        domain: &Domain,
        object: &Object,
        taken: &mut Taken,
    ) -> Result<Vec<(u32, u32)>, CreateError> {
        let mut functions = Vec::new();
        for symbol in object.symbols.iter().filter(|s| s.exported) {
            if inner(domain).service_number(&symbol.name).is_some() {
                return Err(defined(&symbol.name, "a service"));
            }
            if symbol.section != Section::Text {
                continue;
            }
            let signature: Option<Signature> = symbol.signature.parse().ok();
            let slot = match self.find(domain, &symbol.name) {
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
        Ok(functions)
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

    /// Whether the names of its variables are nobody else's.
    fn check_variables(&self, object: &Object, replaced: Option<u64>) -> Result<(), CreateError> {
        let exported = object.symbols.iter().filter(|s| s.exported);
        for symbol in exported.filter(|s| s.section != Section::Text) {
            match self.names.get(&*symbol.name) {
                Some(Name::Function(_)) => return Err(defined(&symbol.name, "a function")),
                Some(Name::Variable(owner, _)) if Some(*owner) != replaced => {
                    return Err(defined(&symbol.name, "another unit's variable"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn resolve_import(
        &mut self,
        domain: &Domain,
        import: &Import,
        resolved: &mut Resolved,
    ) -> Result<(), CreateError> {
        let image = domain.image();
        let tables = image.tables();
        let number = inner(domain).service_number(&import.name);
        if let Some((service, number)) =
            number.and_then(|n| Some((tables.imports.get(n as usize)?, n)))
        {
            compatible(service.signature, import)?;
            let at = tables.layout.gates + number * window::SLOT_SIZE;
            resolved.imports.push(at);
            return Ok(());
        }
        if import.name == window::STACK_MASK {
            resolved.imports.push(inner(domain).stack_size() - 1);
            return Ok(());
        }
        if import.name == window::STACK_MASK_WORD {
            resolved.imports.push(window::INFO_STACK_MASK);
            return Ok(());
        }
        match self.find(domain, &import.name) {
            Some(Name::Function(slot)) => {
                compatible(self.slots[slot as usize].signature, import)?;
                resolved.slots.push(slot);
                resolved.imports.push(self.slot_offset(slot));
                Ok(())
            }
            Some(Name::Variable(owner, offset)) => {
                let data = self.units.get(&owner).map(|u| u.data);
                resolved.others.extend(data);
                resolved.imports.push(offset);
                Ok(())
            }
            None => Err(CreateError::Unresolved(import.name.clone())),
        }
    }

    /// Takes ranges for text, constants, and variables that are not kept.
    fn allocate(
        &mut self,
        object: &Object,
        resolved: &Resolved,
        taken: &mut Taken,
    ) -> Result<Allocated, CreateError> {
        let size = |bytes: usize| u32::try_from(bytes).ok().filter(|&b| b < 1 << 30);
        let bytes = object.text.len();
        let padded = size(bytes).map(|b| b + APART);
        let text = padded.and_then(|bytes| self.text.take(bytes, ALIGNMENT));
        let text = text.ok_or(no_room("text", bytes))?;
        let text = text..text + bytes as u32;
        taken.text = Some(text.start..text.end + APART);
        let bytes = object.rodata.len();
        let constants = size(bytes).and_then(|b| self.constants.take(b, ALIGNMENT));
        let constants = constants.ok_or(no_room("constants", bytes))?;
        let constants = constants..constants + bytes as u32;
        taken.constants = Some(constants.clone());
        let bss_at = object.data.len().next_multiple_of(ALIGNMENT as usize);
        let data = match resolved.kept {
            Some(data) => self.data[&data].range.clone(),
            None => {
                let bytes = bss_at + object.bss as usize;
                let at = size(bytes).and_then(|b| self.data_room.take(b, ALIGNMENT));
                let at = at.ok_or(no_room("variables", bytes))?;
                taken.data = Some(at..at + bytes as u32);
                at..at + bytes as u32
            }
        };
        let places = Places {
            text: text.start,
            rodata: constants.start,
            data: data.start,
            bss: data.start + bss_at as u32,
        };
        Ok(Allocated {
            text,
            constants,
            data,
            places,
        })
    }

    /// Fills in the addresses that the object leaves open.
    fn relocate(
        &self,
        object: &mut Object,
        resolved: &Resolved,
        allocated: &Allocated,
    ) -> Result<(), CreateError> {
        let plan = *self.area.plan();
        // By position, and of several at one place the first: as many relocations may ask as there
        // are functions.
        let mut by_place = resolved.functions.clone();
        by_place.sort_by_key(|f| f.1);
        let slot_of = |position| {
            let found = by_place.get(by_place.partition_point(|f| f.1 < position));
            found.filter(|f| f.1 == position).map(|f| plan.slot(f.0))
        };
        object
            .relocate(&allocated.places, &resolved.imports, slot_of)
            .map_err(|OutOfRange| CreateError::Address)
    }

    /// Has the verifier judge the text for its place. The object has none any more.
    fn verify(
        &self,
        domain: &Domain,
        unit: &str,
        object: &mut Object,
        (resolved, allocated): (&Resolved, &Allocated),
    ) -> Result<Verified, CreateError> {
        let at = allocated.text.start;
        let judged = self.area.judge(at, std::mem::take(&mut object.text));
        let text = judged.map_err(|violation| {
            let exported: Vec<Symbol> = object.functions().cloned().collect();
            let within = violation.offset.saturating_sub(at);
            let place = describe(unit, &exported, &object.lines, within);
            CreateError::Refused { place, violation }
        })?;
        check_registers(&text.facts, inner(domain).fact_bits())?;
        let mut starts = Vec::new();
        for &(slot, position) in &resolved.functions {
            let start = at.saturating_add(position);
            if !text.is_start(start) {
                return Err(CreateError::Address);
            }
            starts.push((slot, start));
        }
        Ok(Verified { text, starts })
    }

    /// Writes text and constants to their places, and has every thread see them. Nothing leads
    /// there yet.
    fn place(
        &mut self,
        object: &mut Object,
        allocated: &Allocated,
        text: Judged,
        taken: &mut Taken,
    ) -> Result<(), CreateError> {
        if !self.area.place(text) {
            return Err(no_room("text", allocated.text.len()));
        }
        taken.placed = Some(allocated.text.start);
        let bytes: Arc<[u8]> = std::mem::take(&mut object.rodata).into();
        let at = allocated.constants.start;
        if !bytes.is_empty() && !self.area.place_constants(at, &bytes) {
            return Err(no_room("constants", bytes.len()));
        }
        // New text and slots are seen by every thread before it has its pads …
        self.area.barrier().map_err(CreateError::Barrier)
    }

    /// The steps. If one fails, what it and those before it have taken is in `taken`.
    fn create(
        &mut self,
        (domain, pin): (&Domain, &Pin<'_>),
        unit: Arc<str>,
        mut object: Object,
        taken: &mut Taken,
    ) -> Result<Created, CreateError> {
        let resolved = self.resolve(domain, &object, taken)?;
        let allocated = self.allocate(&object, &resolved, taken)?;
        self.relocate(&mut object, &resolved, &allocated)?;
        let verified = self.verify(domain, &unit, &mut object, (&resolved, &allocated))?;
        self.place(&mut object, &allocated, verified.text, taken)?;
        self.area.open_pads(allocated.text.start);
        // … and those before anything leads there. The call that has just worked works again.
        let _ = self.area.barrier();
        let new = (resolved, allocated, verified.starts);
        Ok(self.commit(pin, unit, object, new))
    }

    /// Gives back what a failed creation had taken.
    fn undo(&mut self, taken: Taken) {
        if let Some(at) = taken.placed {
            // It has no pads yet, and nothing ever led there.
            let _ = self.area.remove_closed(at);
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

    /// Lets the names lead to what was written.
    fn commit(
        &mut self,
        pin: &Pin<'_>,
        unit: Arc<str>,
        object: Object,
        (resolved, new, starts): (Resolved, Allocated, Vec<(u32, u32)>),
    ) -> Created {
        self.last += 1;
        let id = self.last;
        let mut created = Created {
            kept_variables: resolved.kept.is_some(),
            ..Created::default()
        };
        let data = match resolved.kept {
            Some(data) => data,
            None => {
                let first: Arc<[u8]> = object.data.into();
                self.first_write(pin, &new.data, &first);
                self.data.insert(
                    id,
                    Data {
                        range: new.data.clone(),
                        first,
                        variables: resolved.variables,
                        users: 0,
                        constants: Vec::new(),
                    },
                );
                id
            }
        };
        for block in std::iter::once(&data).chain(&resolved.others) {
            self.data.entry(*block).and_modify(|d| d.users += 1);
        }
        let constants = new.constants;
        self.data
            .entry(data)
            .and_modify(|d| d.constants.push(constants));
        for &slot in &resolved.slots {
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
                slots: resolved.slots,
                others: resolved.others,
                names: 0,
            },
        );
        for (slot, start) in starts {
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
                Section::Rodata => new.places.rodata,
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

    fn first_write(&mut self, pin: &Pin<'_>, range: &Range<u32>, first: &[u8]) {
        // The data area is mapped as long as the domain, and this part of it nobody's but this
        // creation's.
        let used = self.fresh.clamp(range.start, range.end) - range.start;
        let zero = vec![0; used.min(1 << 16) as usize];
        let mut at = 0;
        while at < used {
            let step = (used - at).min(1 << 16);
            let _ = pin.write(range.start + at, &zero[..step as usize]);
            at += step;
        }
        let _ = pin.write(range.start, first);
        self.fresh = self.fresh.max(range.end);
    }
}

impl Namespace {
    /// Adds an object's functions and variables, or puts them in the place of others.
    pub(crate) fn add(&self, unit: &str, object: Object) -> Result<Created, CreateError> {
        let code = self.code();
        // What a name leads to is counted for each name, so none may be there twice.
        let mut names = HashSet::new();
        for symbol in object.symbols.iter().filter(|s| s.exported) {
            if !names.insert(&*symbol.name) {
                return Err(CreateError::Twice(symbol.name.clone()));
            }
        }
        if names.is_empty() {
            return Err(CreateError::Empty);
        }
        code.collect(&self.domain);
        let again = object.clone();
        match self.try_add(unit, object) {
            Err(CreateError::Room { .. }) if code.collect(&self.domain) => {
                self.try_add(unit, again)
            }
            other => other,
        }
    }

    fn try_add(&self, unit: &str, object: Object) -> Result<Created, CreateError> {
        // Before the pin: others may wait for that, too.
        let code = self.code();
        code.give_way();
        let pin = inner(&self.domain).pin();
        let mut state = code.lock();
        let mut taken = Taken::default();
        let created = state.create((&self.domain, &pin), unit.into(), object, &mut taken);
        match &created {
            Ok(_) => state.counters.created += 1,
            Err(_) => state.undo(taken),
        }
        created
    }
}

/// No room for so many bytes.
fn no_room(what: &'static str, bytes: usize) -> CreateError {
    CreateError::Room { what, bytes }
}

/// Whether a function with these types, if they are known, may be what is imported.
fn compatible(found: Option<Signature>, import: &Import) -> Result<(), CreateError> {
    let wanted = import.signature.parse().ok();
    if let (Some(found), Some(wanted)) = (found, wanted)
        && !signature::compatible(&found, &wanted)
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
        // The image has vector registers for moves only.
        f if f.float && allowed & FACT_FLOAT == 0 => "floating point in vector registers",
        _ => return Ok(()),
    };
    Err(CreateError::Registers { needs })
}
