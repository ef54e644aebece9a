//! Plain C function pointers: Palladium's *Prepare* stubs (section 4.5.1 of that paper, there
//! generated code).
//!
//! A stub is sixteen bytes: load the address of its data, jump to the gate that the data names. All
//! spaces of stubs are equal, because each finds its data at a fixed distance, so no code is ever
//! written: a space of stubs is mapped from a sealed file.
//!
//! A stub ends with its domain and is used again. A thread may have loaded the address of the entry
//! long ago and not be at the gate yet, so an entry's memory stays an entry's for good, and of one
//! *shape*: all that gates and slow path read before the call is published never changes, but for
//! the control block. What changes is read in this order: control block, (publication), phase and
//! generation expected, offset. Generations are numbers that no two domains have, so if the
//! expected word is the block's own, then the entry was that domain's when the word was read; it
//! still is, because the domain waits for the published call before it gives its stubs back; and so
//! the offset is its own, too. Else the call is refused.
//!
//! So a pointer that outlives its domain is refused, and once its place is used again, it calls a
//! function of the very same C type: the host is as safe as before. Places are used again in the
//! order in which they were given back, and not before [`QUARANTINE`] others of their shape were.

use super::entry::{Entry, FloatMasks};
use super::map::{self, MapError, Mapping};
use postern_verifier::window::FILL;
use postern_x86::{Assembler, Gpr, Mem, Width};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

const STUB: usize = 16;
/// Where the instruction in a stub ends that loads the pointer: its last four bytes are the
/// pointer's distance from there.
const LOADED: usize = 11;
/// Stubs of a space, which is two mappings: text and data.
const STUBS: usize = 4096;
const TEXT: usize = STUBS * STUB;
const DATA: usize = STUBS * size_of::<AtomicPtr<Entry>>();
/// Places that stay unused after they were given back, of each shape.
const QUARANTINE: usize = 1024;

/// What never changes of an entry: all that depends on the types, the gates and the limits, and not
/// on the domain.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Shape {
    gates: [usize; 3],
    flags: u32,
    stack_words: u32,
    int_masks: [u64; 6],
    float_masks: [[u64; 2]; 8],
    stack_masks: [u64; 10],
    limit: u64,
    recovery: u32,
}

impl Shape {
    fn of(entry: &Entry) -> Shape {
        let FloatMasks(float_masks) = entry.float_masks;
        Shape {
            gates: [entry.gate, entry.body, entry.inner],
            flags: entry.flags,
            stack_words: entry.stack_words,
            int_masks: entry.int_masks,
            float_masks,
            stack_masks: entry.stack_masks,
            limit: entry.limit,
            recovery: entry.recovery,
        }
    }
}

/// A stub with its entry.
struct StubSlot {
    stub: usize,
    entry: &'static Entry,
    shape: u32,
    /// Number of the owner's next place.
    next: u32,
}

/// A function of a living domain: block, expected word, offset, shape.
type Key = (usize, u64, u32, u32);

#[derive(Default)]
struct Stubs {
    template: Option<File>,
    /// The space that is being filled, and how many of its stubs are made.
    space: usize,
    used: usize,
    /// By number, from 1.
    places: Vec<StubSlot>,
    shapes: HashMap<Shape, u32>,
    /// Places that were given back, by shape, the first that was first.
    free: Vec<VecDeque<u32>>,
    /// Places in use.
    live: HashMap<Key, u32>,
}

static STUBS_IN_USE: Mutex<Option<Stubs>> = Mutex::new(None);

/// All stubs, locked.
fn lock() -> MutexGuard<'static, Option<Stubs>> {
    STUBS_IN_USE.lock().unwrap_or_else(|e| e.into_inner())
}

/// Holds all stubs, for a thread that forks. Of what is held nothing can be touched.
pub fn stubs() -> impl Sized + 'static {
    lock()
}

/// The stubs of one domain; they are given back when it calls [`Owned::retire`], and at the latest
/// with this.
#[derive(Default)]
pub(super) struct Owned {
    /// Number of the first place, or 0. Changed under the lock of all stubs.
    first: AtomicU32,
}

impl Owned {
    /// A C function pointer that calls `entry`, whose first word names a masked gate, and which has
    /// no switch. The same entry has the same pointer.
    pub(super) fn pointer(&self, entry: Entry) -> Result<usize, MapError> {
        // Callers are C, and the entry is copied to where no switch is.
        let mut entry = entry;
        entry.switch = std::ptr::null();
        if entry.inner == 0 {
            // Callers push what the type says.
            entry.gate = entry.class().masked;
        }
        let mut guard = lock();
        let stubs = guard.get_or_insert_default();
        let shape = stubs.shape(&entry);
        let key = key(&entry, shape);
        if let Some(&number) = stubs.live.get(&key) {
            return Ok(stubs.place(number).stub);
        }
        let number = stubs.take(&entry, shape)?;
        let next = self.first.swap(number, Ordering::Relaxed);
        let place = stubs.place(number);
        place.next = next;
        let stub = place.stub;
        stubs.live.insert(key, number);
        Ok(stub)
    }

    /// Gives all stubs back. Nobody is inside the domain, and nobody can enter any more.
    pub(super) fn retire(&self) {
        if self.first.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut guard = lock();
        let Some(stubs) = guard.as_mut() else { return };
        let mut number = self.first.swap(0, Ordering::Relaxed);
        while number != 0 {
            let place = stubs.place(number);
            let (next, shape) = (place.next, place.shape);
            let key = key(place.entry, shape);
            place.entry.close();
            stubs.live.remove(&key);
            if let Some(free) = stubs.free.get_mut(shape as usize) {
                free.push_back(number);
            }
            number = next;
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.retire();
    }
}

fn key(entry: &Entry, shape: u32) -> Key {
    let block = std::ptr::from_ref(entry.control()) as usize;
    (block, entry.expected(), entry.offset(), shape)
}

impl Stubs {
    fn shape(&mut self, entry: &Entry) -> u32 {
        let new = self.shapes.len() as u32;
        let shape = *self.shapes.entry(Shape::of(entry)).or_insert(new);
        if shape == new {
            self.free.push(VecDeque::new());
        }
        shape
    }

    /// The place with this number, which was given by `take`.
    fn place(&mut self, number: u32) -> &mut StubSlot {
        &mut self.places[number as usize - 1]
    }

    /// A place of this shape whose entry is `entry`.
    fn take(&mut self, entry: &Entry, shape: u32) -> Result<u32, MapError> {
        let free = &mut self.free[shape as usize];
        if free.len() > QUARANTINE
            && let Some(number) = free.pop_front()
        {
            self.place(number).entry.lead(entry);
            return Ok(number);
        }
        let stub = self.new_stub()?;
        // It stays for good, and its place with it.
        let own: &'static Entry = Box::leak(Box::new(entry.clone()));
        // SAFETY: both stay for good.
        unsafe { point(stub, std::ptr::from_ref(own).cast_mut()) };
        self.places.push(StubSlot {
            stub,
            entry: own,
            shape,
            next: 0,
        });
        Ok(self.places.len() as u32)
    }

    /// Address of a stub that never was used.
    fn new_stub(&mut self) -> Result<usize, MapError> {
        if self.space == 0 || self.used == STUBS {
            let template = match self.template.take() {
                Some(file) => file,
                None => template().map_err(|e| map::failed("make stubs", TEXT, e))?,
            };
            let template = self.template.insert(template);
            map::room(2)?;
            let space = Mapping::reserve(TEXT + DATA)?;
            space.place_code(template.as_fd(), TEXT)?;
            space.open(TEXT..TEXT + DATA)?;
            (self.space, self.used) = (space.leak(), 0);
        }
        self.used += 1;
        Ok(self.space + STUB * (self.used - 1))
    }
}

/// `endbr64; mov rax, [rip + d]; jmp [rax]`, where d leads to the pointer in the data behind.
fn template() -> std::io::Result<File> {
    let mut file = super::machine::memory_file(c"postern-stubs", true)?;
    let mut asm = Assembler::new();
    for i in 0..STUBS {
        // The pointer of stub i lies at space + TEXT + 8*i.
        let distance = (TEXT + 8 * i) - (STUB * i + LOADED);
        asm.endbr64();
        asm.mov(Width::Qword, Gpr::Rax, Mem::rip(distance as i32));
        assert_eq!(asm.position() as usize, STUB * i + LOADED);
        asm.jmp_rm(Mem::base(Gpr::Rax));
        asm.align(STUB, FILL);
    }
    super::machine::fill(&mut file, asm.code())?;
    super::machine::seal(&file)?;
    Ok(file)
}

/// A C function pointer that calls `entry`: [`point`] may exchange that.
///
/// # Safety
/// The entry lives for good.
pub(super) unsafe fn make(entry: *mut Entry) -> Result<usize, MapError> {
    let stub = lock().get_or_insert_default().new_stub()?;
    // SAFETY: it was just made; the rest is the caller's promise.
    unsafe { point(stub, entry) };
    Ok(stub)
}

/// Lets a stub call another entry.
///
/// # Safety
/// [`make`] gave the stub, and the entry lives for good.
pub(super) unsafe fn point(stub: usize, entry: *mut Entry) {
    // Spaces begin at pages, and stubs at multiples of their size, but not at multiples of the
    // space's: the data's place is in the code. SAFETY: `new_stub` mapped the stub, for good, with
    // the template's code, in which the distance stands right before `LOADED`.
    let distance = unsafe { ((stub + LOADED - 4) as *const u32).read_unaligned() };
    let word = stub + LOADED + distance as usize;
    // SAFETY: where the distance leads there is the stub's own word, mapped writable for good,
    // written here only, and read by the stub's code in one go.
    let word = unsafe { &*(word as *const AtomicPtr<Entry>) };
    word.store(entry, Ordering::SeqCst);
}
