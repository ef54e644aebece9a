//! A set of filters as machine code in a domain of its own, with its tables in memory that the code
//! can only read.
//!
//! A change of the set writes a few words of the tables. The code is made anew, in a fresh domain,
//! when there is a new shape of filters, or when what it took for the same in all filters of a
//! shape no longer is. No packet waits for that: code is made by whoever changes the set, once for
//! each change or for all of [`Classifier::change`]. Changes need the classifier for themselves, so
//! no packet is judged while a table is half changed: a program that must not wait for changes
//! keeps two classifiers and swaps them.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;

use postern::{CallError, Domain, Func, Image, Offset, Prot, RestartPolicy, Shared};
use postern_image::ImageBuilder;

use crate::encode::{BATCH, ENTRY, Site, batch};
use crate::program::Program;
use crate::set::dispatch::Dispatch;
use crate::set::{Claim, Id, Set, SetError};
use crate::{Filter, SIGNATURE};

/// Bytes of a packet that [`Classifier::find`] judges.
pub const ROOM: usize = 1 << 18;

/// Why no code could be made of a set, or a packet not be judged.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {reason}")]
pub struct ClassifierError {
    /// What was being done.
    pub what: &'static str,
    /// What the runtime says.
    pub reason: String,
    /// The call that did not return, if it was one.
    pub call: Option<CallError>,
}

pub(crate) fn failed<E: fmt::Display>(what: &'static str) -> impl Fn(E) -> ClassifierError {
    use alloc::string::ToString;
    move |error| ClassifierError {
        what,
        reason: error.to_string(),
        call: None,
    }
}

/// The same of a call that did not return.
pub(crate) fn ended(what: &'static str) -> impl Fn(CallError) -> ClassifierError {
    move |error| ClassifierError {
        call: Some(error.clone()),
        ..failed(what)(error)
    }
}

/// A set and its code.
pub struct Classifier {
    set: Set,
    dispatch: Dispatch,
    ready: Option<Ready>,
    /// What the code reads.
    memory: Option<Shared>,
    lent: Vec<Shared>,
    /// The code for people.
    programs: Vec<Program>,
    compilations: u64,
    /// Further changes are about to come.
    held: bool,
}

/// A packet in an area that was lent.
#[derive(Clone, Copy, Debug)]
pub struct PacketRef {
    /// Where it begins.
    pub packet: Offset,
    /// Its length on the wire.
    pub wire: u32,
    /// Its bytes that are there.
    pub captured: u32,
}

/// A set's code as it is now. Any number of threads may use it.
pub struct Ready {
    domain: Domain,
    room: Offset,
    find: Func<fn(Offset, u32, u32) -> u32>,
    batch: Func<fn(Offset, u32)>,
    /// The packets of one call, and the answers.
    list: Mutex<Shared>,
    code: Vec<u8>,
}

impl Default for Classifier {
    fn default() -> Classifier {
        Classifier::new()
    }
}

impl Classifier {
    /// An empty set.
    pub fn new() -> Classifier {
        // Keyed hashes of a count: nobody outside knows the key.
        let (state, mut count) = (RandomState::new(), 0u64);
        Classifier::with_random(move || {
            count += 1;
            state.hash_one(count)
        })
    }

    /// An empty set whose tables take their random numbers from `random`.
    pub fn with_random(random: impl FnMut() -> u64 + Send + Sync + 'static) -> Classifier {
        Classifier {
            set: Set::new(),
            dispatch: Dispatch::new(Site::Process, Box::new(random)),
            ready: None,
            memory: None,
            lent: Vec::new(),
            programs: Vec::new(),
            compilations: 0,
            held: false,
        }
    }

    /// The set: who would also match ([`Set::all`]), and how many filters there are.
    pub fn set(&self) -> &Set {
        &self.set
    }

    /// How often code was made of the set.
    pub fn compilations(&self) -> u64 {
        self.compilations
    }

    /// Adds a filter, and makes the code anew if that needs it: the next packet does not wait for
    /// it. Of many filters that have little in common each makes more code than the one before:
    /// [`Classifier::change`] makes it once for all.
    ///
    /// # Errors
    /// As [`Set::insert`].
    pub fn insert(&mut self, filter: &Filter, claim: Claim) -> Result<Id, SetError> {
        let id = self.set.insert(filter, claim)?;
        self.dispatch.changed(&self.set, id);
        self.settle();
        Ok(id)
    }

    /// Puts another filter in the place of one, as [`Classifier::insert`] adds one; it keeps its
    /// number and its age. Returns whether it was there.
    ///
    /// # Errors
    /// As [`Set::insert`]; the set is as before.
    pub fn replace(&mut self, id: Id, filter: &Filter, claim: Claim) -> Result<bool, SetError> {
        let Some(paths) = self.set.exchange(id, filter, claim)? else {
            return Ok(false);
        };
        self.dispatch.removed(&self.set, paths);
        self.dispatch.changed(&self.set, id);
        self.set.sweep();
        self.settle();
        Ok(true)
    }

    /// Makes many changes, and code for all of them once.
    pub fn change<T>(&mut self, edit: impl FnOnce(&mut Classifier) -> T) -> T {
        let before = self.hold(true);
        let result = edit(self);
        self.hold(before);
        result
    }

    /// The same for who cannot write the changes as a function: while the set is held, changes make
    /// no code, and whoever asks waits until it is made. Returns whether the set was held.
    pub fn hold(&mut self, held: bool) -> bool {
        let before = core::mem::replace(&mut self.held, held);
        self.settle();
        before
    }

    /// Whether changes make no code now.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Brings the code up to date. What fails is said by whoever asks next, who tries again.
    fn settle(&mut self) {
        if !self.held && (self.ready.is_some() || !self.set.is_empty()) {
            let _ = self.ready();
        }
    }

    /// Takes a filter out, as [`Classifier::insert`] adds one. Returns whether it was there.
    pub fn remove(&mut self, id: Id) -> bool {
        let Some(paths) = self.set.take(id) else {
            return false;
        };
        self.dispatch.removed(&self.set, paths);
        self.set.sweep();
        self.settle();
        true
    }

    /// Lets the code see an area, so that packets in it can be judged where they lie.
    ///
    /// # Errors
    /// The runtime cannot share the area with a domain.
    pub fn lend(&mut self, area: &Shared) -> Result<(), ClassifierError> {
        if let Some(ready) = &self.ready {
            share(&ready.domain, area)?;
        }
        self.lent.push(area.clone());
        Ok(())
    }

    /// The filter that gets the packet. What lies beyond [`ROOM`] bytes counts as not captured.
    ///
    /// # Errors
    /// As [`Classifier::ready`]; the call failed.
    pub fn find(&mut self, packet: &[u8], wire: u32) -> Result<Option<Id>, ClassifierError> {
        if self.set.is_empty() && self.ready.is_none() {
            return Ok(None);
        }
        let ready = self.ready()?;
        let seen = &packet[..packet.len().min(ROOM)];
        let written = ready.domain.write(ready.room, seen);
        written.map_err(failed("cannot copy the packet"))?;
        ready.find_at(ready.room, wire, seen.len() as u32)
    }

    /// The set's code, with all changes. It is made if there is none, or if that failed when the
    /// set was changed.
    ///
    /// # Errors
    /// The set is too large for its tables, or a domain cannot be made.
    pub fn ready(&mut self) -> Result<&Ready, ClassifierError> {
        match self.ready.take() {
            Some(ready) if !self.dispatch.stale && self.fits() => {
                self.flush()?;
                Ok(self.ready.insert(ready))
            }
            old => match self.compile() {
                Ok(ready) => Ok(self.ready.insert(ready)),
                Err(error) => {
                    // It stays, so that whoever changes the set tries again.
                    self.ready = old;
                    Err(error)
                }
            },
        }
    }

    /// Whether the tables have not grown out of their memory. If they have, the code must know the
    /// new place.
    fn fits(&self) -> bool {
        let room = self.memory.as_ref().map_or(0, Shared::len);
        self.dispatch.memory.len() as usize <= room
    }

    /// Copies what changed to where the code reads it.
    fn flush(&mut self) -> Result<(), ClassifierError> {
        let Some(memory) = &self.memory else {
            return Ok(());
        };
        let copy = |at: u32, bytes: &[u8]| memory.write(at as usize, bytes);
        let copied = self.dispatch.memory.changes(copy);
        copied.map_err(failed("cannot write the tables"))
    }

    fn compile(&mut self) -> Result<Ready, ClassifierError> {
        self.compilations += 1;
        let full = failed("cannot compile the set");
        // The first time only to learn how large the tables are.
        let mut base = self.memory.as_ref().map_or(0, |memory| memory.offset().0);
        let mut compiled = self.dispatch.compile(&self.set, base).map_err(&full)?;
        if !self.fits() {
            let bytes = self.dispatch.memory.len() as usize;
            let room = bytes.saturating_mul(2).max(1 << 16).next_power_of_two();
            let memory = Shared::new(room).map_err(failed("cannot make memory for the tables"))?;
            base = memory.offset().0;
            self.memory = Some(memory);
            self.dispatch.memory.touch_all();
            compiled = self.dispatch.compile(&self.set, base).map_err(&full)?;
        }
        self.flush()?;
        let mut code = batch();
        let find = code.len() as u32;
        code.extend_from_slice(&compiled.text);
        let mut builder = ImageBuilder::new(&code[..]);
        builder.export("batch", 0, "v(pI)".parse().ok());
        builder.export("find", find, SIGNATURE.parse().ok());
        builder.data([0; 16], ROOM as u64);
        let cannot = "cannot load the set's code";
        let room = Offset(builder.layout().map_err(failed(cannot))?.data);
        let file = builder.build().map_err(failed(cannot))?;
        let image = Image::from_bytes(&file).map_err(failed(cannot))?;
        // A packet that is not where it should be does no harm to the next one.
        let domain = Domain::builder(&image)
            .restart(RestartPolicy::Immediate)
            .build()
            .map_err(failed(cannot))?;
        for area in self.memory.iter().chain(&self.lent) {
            share(&domain, area)?;
        }
        let list = Shared::new((BATCH * ENTRY) as usize).map_err(failed(cannot))?;
        domain
            .share(&list, Prot::ReadWrite)
            .map_err(failed(cannot))?;
        let find = domain.func("find").map_err(failed(cannot))?;
        self.programs = compiled.programs;
        Ok(Ready {
            room,
            find,
            batch: domain.func("batch").map_err(failed(cannot))?,
            list: Mutex::new(list),
            domain,
            code,
        })
    }
}

fn share(domain: &Domain, area: &Shared) -> Result<(), ClassifierError> {
    let shared = domain.share(area, Prot::Read);
    shared
        .map(drop)
        .map_err(failed("cannot share memory with the set's domain"))
}

impl Ready {
    /// The filter that gets a packet, of which `captured` bytes lie at `packet` in an area that was
    /// lent ([`Classifier::lend`]).
    ///
    /// # Errors
    /// The call failed, as it does if the packet does not lie there.
    #[inline]
    pub fn find_at(
        &self,
        packet: Offset,
        wire: u32,
        captured: u32,
    ) -> Result<Option<Id>, ClassifierError> {
        let number = self.find.call(packet, wire, captured);
        let number = number.map_err(ended("cannot judge a packet"))?;
        Ok(number.checked_sub(1).map(Id))
    }

    /// The domain of the code, for whoever shows it packets in areas of its own
    /// ([`Classifier::lend`] outlives the next code).
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The filters that get several packets, in order, with one call for many: for a ring that has
    /// filled up.
    ///
    /// # Errors
    /// As [`Ready::find_at`], and then for none of them.
    pub fn find_all(&self, packets: &[PacketRef]) -> Result<Vec<Option<Id>>, ClassifierError> {
        let mut found = Vec::with_capacity(packets.len());
        let mut list = [0; (BATCH * ENTRY) as usize];
        let area = self.list.lock().unwrap_or_else(|e| e.into_inner());
        for some in packets.chunks(BATCH as usize) {
            let used = some.len() * ENTRY as usize;
            for (entry, packet) in list.chunks_exact_mut(ENTRY as usize).zip(some) {
                entry[..4].copy_from_slice(&packet.packet.0.to_le_bytes());
                entry[4..8].copy_from_slice(&packet.wire.to_le_bytes());
                entry[8..12].copy_from_slice(&packet.captured.to_le_bytes());
            }
            let written = area.write(0, &list[..used]);
            written.map_err(failed("cannot list the packets"))?;
            let judged = self.batch.call(area.offset(), some.len() as u32);
            judged.map_err(ended("cannot judge the packets"))?;
            let read = area.read(0, &mut list[..used]);
            read.map_err(failed("cannot read the answers"))?;
            found.extend(list[..used].chunks_exact(ENTRY as usize).map(|entry| {
                let number = [entry[12], entry[13], entry[14], entry[15]];
                u32::from_le_bytes(number).checked_sub(1).map(Id)
            }));
        }
        Ok(found)
    }

    /// The machine code.
    pub fn code(&self) -> &[u8] {
        &self.code
    }
}

impl fmt::Display for Classifier {
    /// The decision program that the set became when its code was made: its tests, and how each
    /// group of filters is found.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut programs = self.programs.iter();
        programs.try_for_each(|program| program.fmt(f))
    }
}
