//! A creation: an object gets places, is judged and put there, and then the names lead to it; or nothing has happened.

use super::{ALIGNMENT, APART, Created, Data, Name, State, Target, Unit, defined, describe};
use crate::image::ImageInner;
use crate::namespace::object::{Import, Object, Symbol, Variables};
use crate::namespace::{CreateError, Namespace};
use postern_gates::gate::{FACT_FLOAT, FACT_X87, FACT_XMM, FACT_YMM};
use postern_gates::window::Pin;
use postern_image::Signature;
use postern_verifier::relocation::{Places, Section};
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

impl State {
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
            if image.services.contains_key(&*symbol.name) {
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
            let service = image.services.get(&*import.name);
            let service = service.and_then(|&n| Some((image.tables.imports.get(n as usize)?, n)));
            if let Some((service, number)) = service {
                compatible(service.signature, import)?;
                imports.push(image.tables.layout.gates + number * window::SLOT_SIZE);
                continue;
            }
            if import.name == window::STACK_MASK {
                imports.push(image.tables.layout.stack_size - 1);
                continue;
            }
            match self.find(image, &import.name) {
                Some(Name::Function(slot)) => {
                    compatible(self.slots[slot as usize].signature, import)?;
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
        let bytes = object.rodata.len();
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
            rodata: constants.start,
            data: data.start,
            bss: data.start + bss_at as u32,
        };
        let plan = *self.area.plan();
        // By position, and of several at one place the first: as many relocations may ask as there are functions.
        let mut by_place = functions.clone();
        by_place.sort_by_key(|f| f.1);
        let slot_of = |position| {
            let found = by_place.get(by_place.partition_point(|f| f.1 < position));
            found.filter(|f| f.1 == position).map(|f| plan.slot(f.0))
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
            let start = text.saturating_add(position);
            if !judged.is_start(start) {
                return Err(CreateError::Address);
            }
            starts.push((slot, start));
        }
        if !self.area.place(judged) {
            return Err(room("text", text_bytes));
        }
        taken.placed = Some(text);
        let bytes: Arc<[u8]> = std::mem::take(&mut object.rodata).into();
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
                self.first_write(&home.pin, &new.data, &first);
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
        // The data area is mapped as long as the domain, and this part of it nobody's but this creation's.
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

/// What is known of an object that was put into the area.
struct Prepared {
    text: Range<u32>,
    constants: Range<u32>,
    data: Range<u32>,
    kept: Option<u64>,
    starts: Vec<(u32, u32)>,
    slots: Vec<u32>,
    others: Vec<u64>,
    variables: Variables,
    places: Places,
}

/// Where a namespace's code lives.
struct Home<'a> {
    image: &'a ImageInner,
    pin: Pin<'a>,
}

impl Namespace {
    /// Adds an object's functions and variables, or puts them in the place of others.
    pub(in crate::namespace) fn add(
        &self,
        unit: &str,
        object: Object,
    ) -> Result<Created, CreateError> {
        let inner = &*self.domain.0;
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
        code.collect(inner);
        let again = object.clone();
        match self.try_add(unit, object) {
            Err(CreateError::Room { .. }) if code.collect(inner) => self.try_add(unit, again),
            other => other,
        }
    }

    fn try_add(&self, unit: &str, mut object: Object) -> Result<Created, CreateError> {
        let inner = &*self.domain.0;
        let code = self.code();
        let home = Home {
            image: &inner.image,
            pin: inner.instance.pin(),
        };
        let unit: Arc<str> = unit.into();
        let mut guard = code.lock();
        let state = &mut *guard;
        let mut taken = Taken::default();
        let prepared = state
            .put(&home, &unit, &mut object, &mut taken)
            .and_then(|prepared| {
                // New text and slots are seen by every thread before it has its pads …
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
        state.area.open_pads(prepared.text.start);
        // … and those before anything leads there. The call that has just worked works again.
        let _ = state.area.barrier();
        let created = state.show(&home, unit, object, prepared);
        state.counters.created += 1;
        Ok(created)
    }
}

/// Whether a function with these types, if they are known, may be what is imported.
fn compatible(found: Option<Signature>, import: &Import) -> Result<(), CreateError> {
    let wanted = import.signature.parse().ok();
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
