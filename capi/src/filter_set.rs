//! Sets of filters: `pt_filter_set_…`.
//!
//! A set's code is made anew, in another domain, when it has changed much. Sources that the set
//! watches are shown to that, too, before it is asked; the domain before is closed, so that sources
//! forget it.

use crate::boundary::{Many, Out, Packets, Source as Bytes, TextTarget, User};
use crate::domain::{self, DomainKind, Opened};
use crate::failure::{self, Code, Failure};
use crate::filter::FilterKind;
use crate::handle::{Handle, kind};
use crate::object::Object;
use crate::share::SharedKind;
use crate::source::{self, SourceKind};
use postern::Offset;
use postern_filter::classifier::{Classifier, PacketRef, Ready};
use postern_filter::set::{Claim, Id, Scratch, SetError};
use std::ffi::c_int;
use std::sync::Arc;

/// A set with what the C host holds of it.
#[derive(Default)]
pub struct Asked {
    classifier: Classifier,
    sources: Vec<Arc<source::Open>>,
    /// Of the code that sources were shown to, with its number.
    domain: Option<(u64, Handle<DomainKind>)>,
    scratch: Scratch,
}

kind!(FilterSetKind: Arc<Object<Asked>>, b'C', "pt_filter_set");

impl Asked {
    /// After a change: sources are shown to new code at once, and not when a packet comes. What
    /// fails is said by whoever asks next.
    fn settle(&mut self) {
        let asked = self.domain.is_some() || !self.classifier.set().is_empty();
        if asked && !self.classifier.is_held() {
            let _ = self.ready();
        }
    }

    /// The code, which sees all that it should.
    fn ready(&mut self) -> Result<&Ready, Failure> {
        let ready = self.classifier.ready()?;
        let id = ready.domain().id();
        if self.domain.is_none_or(|(known, _)| known != id) {
            for source in &self.sources {
                source.lock()?.watch(ready.domain())?;
            }
            let opened = Arc::new(Opened::new(ready.domain().clone(), User::default()));
            close(self.domain.replace((id, domain::enter(opened))));
        }
        Ok(ready)
    }
}

/// Takes back the handle of a domain that nobody asks any more.
fn close(domain: Option<(u64, Handle<DomainKind>)>) {
    if let Some(Ok(opened)) = domain.map(|(_, handle)| domain::leave(handle)) {
        opened.domain.close();
    }
}

fn refused(error: SetError) -> Failure {
    let code = match error {
        SetError::Steals { .. } => Code::Refused,
        _ => Code::Limit,
    };
    Failure::new(code, error.to_string())
}

fn missing(number: u32) -> Failure {
    Failure::new(Code::Missing, format!("the set has no filter {number}"))
}

fn number(found: Option<Id>) -> i64 {
    found.map_or(Code::Missing as i64, |id| i64::from(id.0))
}

/// `pt_filter_set_new`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_set_new() -> Handle<FilterSetKind> {
    failure::or(Handle::NULL, || Ok(Handle::make(Arc::default())))
}

/// `pt_filter_set_free`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_set_free(set: Handle<FilterSetKind>) -> c_int {
    failure::code(|| {
        close(set.take()?.lock()?.domain.take());
        Ok(())
    })
}

fn claim(owner: u32, priority: u32, may_steal: c_int) -> Claim {
    Claim {
        owner,
        priority,
        may_steal: may_steal != 0,
    }
}

/// `pt_filter_set_add`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_set_add(
    set: Handle<FilterSetKind>,
    filter: Handle<FilterKind>,
    owner: u32,
    priority: u32,
    may_steal: c_int,
) -> i64 {
    failure::number(|| {
        let (set, compiled) = (set.get()?, filter.get()?);
        let claim = claim(owner, priority, may_steal);
        let asked = &mut *set.lock()?;
        let inserted = asked.classifier.insert(&compiled.filter, claim);
        asked.settle();
        Ok(i64::from(inserted.map_err(refused)?.0))
    })
}

/// `pt_filter_set_replace`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_set_replace(
    set: Handle<FilterSetKind>,
    number: u32,
    filter: Handle<FilterKind>,
    owner: u32,
    priority: u32,
    may_steal: c_int,
) -> c_int {
    failure::code(|| {
        let (set, compiled) = (set.get()?, filter.get()?);
        let claim = claim(owner, priority, may_steal);
        let asked = &mut *set.lock()?;
        let id = Id(number);
        let replaced = asked.classifier.replace(id, &compiled.filter, claim);
        asked.settle();
        match replaced.map_err(refused)? {
            true => Ok(()),
            false => Err(missing(number)),
        }
    })
}

/// `pt_filter_set_hold`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_set_hold(set: Handle<FilterSetKind>, hold: c_int) -> c_int {
    failure::code(|| {
        let set = set.get()?;
        let asked = &mut *set.lock()?;
        asked.classifier.hold(hold != 0);
        asked.settle();
        Ok(())
    })
}

/// `pt_filter_set_remove`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_set_remove(set: Handle<FilterSetKind>, number: u32) -> c_int {
    failure::code(|| {
        let set = set.get()?;
        let asked = &mut *set.lock()?;
        let removed = asked.classifier.remove(Id(number));
        asked.settle();
        match removed {
            true => Ok(()),
            false => Err(missing(number)),
        }
    })
}

/// `pt_filter_set_find`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_set_find(
    set: Handle<FilterSetKind>,
    packet: Bytes<'_>,
    length: usize,
    wire_length: u32,
) -> i64 {
    failure::number(|| {
        let (set, packet) = (set.get()?, packet.get(length, "packet")?);
        let asked = &mut *set.lock()?;
        asked.ready()?;
        Ok(number(asked.classifier.find(packet, wire_length)?))
    })
}

/// `pt_filter_set_lend`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_set_lend(set: Handle<FilterSetKind>, area: Handle<SharedKind>) -> u32 {
    failure::or(0, || {
        let (set, area) = (set.get()?, area.get()?.shared);
        set.lock()?.classifier.lend(&area)?;
        Ok(area.offset().0)
    })
}

/// `pt_filter_set_watch`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_set_watch(
    set: Handle<FilterSetKind>,
    source: Handle<SourceKind>,
) -> c_int {
    failure::code(|| {
        let (set, source) = (set.get()?, source.get()?);
        let asked = &mut *set.lock()?;
        let domain = asked.ready()?.domain().clone();
        source.lock()?.watch(&domain)?;
        asked.sources.push(source);
        Ok(())
    })
}

/// `pt_filter_set_find_at`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_set_find_at(
    set: Handle<FilterSetKind>,
    packet: u32,
    length: u32,
    wire_length: u32,
) -> i64 {
    failure::number(|| {
        let set = set.get()?;
        let asked = &mut *set.lock()?;
        let found = asked
            .ready()?
            .find_at(Offset(packet), wire_length, length)?;
        Ok(number(found))
    })
}

/// `pt_filter_set_find_all`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_set_find_all(
    set: Handle<FilterSetKind>,
    packets: Packets<'_>,
    count: usize,
    numbers: Many<'_, i64>,
) -> c_int {
    failure::code(|| {
        let (set, packets) = (set.get()?, packets.get(count, "packets")?);
        let numbers = numbers.needed(count, "numbers")?;
        let places = packets.iter().map(|packet| PacketRef {
            packet: Offset(packet.at),
            wire: packet.wire_length,
            captured: packet.length,
        });
        let places: Vec<PacketRef> = places.collect();
        let found = set.lock()?.ready()?.find_all(&places)?;
        let found: Vec<i64> = found.into_iter().map(number).collect();
        numbers.put(&found);
        Ok(())
    })
}

/// `pt_filter_set_matches`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_set_matches(
    set: Handle<FilterSetKind>,
    packet: Bytes<'_>,
    length: usize,
    wire_length: u32,
    numbers: Many<'_, u32>,
    room: usize,
) -> i64 {
    failure::number(|| {
        let (set, packet) = (set.get()?, packet.get(length, "packet")?);
        let asked = &mut *set.lock()?;
        let ids = asked
            .classifier
            .set()
            .all(packet, wire_length, &mut asked.scratch);
        let known: Vec<u32> = ids.iter().take(room).map(|id| id.0).collect();
        numbers.needed(known.len(), "numbers")?.put(&known);
        Ok(ids.len() as i64)
    })
}

/// `pt_filter_set_domain`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_set_domain(set: Handle<FilterSetKind>) -> Handle<DomainKind> {
    failure::or(Handle::NULL, || {
        let set = set.get()?;
        let asked = &mut *set.lock()?;
        asked.ready()?;
        Ok(asked.domain.map_or(Handle::NULL, |(_, handle)| handle))
    })
}

/// `pt_filter_set_show`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_set_show(
    set: Handle<FilterSetKind>,
    text: TextTarget<'_>,
    size: usize,
) -> i64 {
    failure::number(|| {
        let set = set.get()?;
        let asked = &mut *set.lock()?;
        asked.ready()?;
        text.fill(size, &asked.classifier.to_string())
    })
}

/// `pt_filter_set_counters`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_set_counters(
    set: Handle<FilterSetKind>,
    filters: Out<'_, u64>,
    compilations: Out<'_, u64>,
) -> c_int {
    failure::code(|| {
        let set = set.get()?;
        let asked = set.lock()?;
        filters.put(asked.classifier.set().len() as u64);
        compilations.put(asked.classifier.compilations());
        Ok(())
    })
}
