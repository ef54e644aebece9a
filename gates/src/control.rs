//! What the gates read of a domain: its control block, entries and services.
//!
//! Control blocks live in one table that is reserved once and never unmapped, so that a signal handler or the watchdog may
//! follow a thread's control pointer at any time, even while the domain is being dropped.
//!
//! No extension can read the table, so blocks of many domains share a page. It has layers, all alike: a block is
//! [`BLOCK`] bytes of each, at the same place. The first layer has the head and the slots of the first threads, the others have
//! slots only. So a slot is as far from its block's head in every block, and gates add that distance ([`slot_at`]). The first slot
//! is nobody's: it never has a data stack, so gates that are sent there take the slow path ([`thread::divert_all`]).

use super::guard::Guard;
use super::lifecycle::{Lifecycle, Phase};
use super::map::{self, MapError, Mapping};
use super::peer::Peer;
use super::registers::{float_mask, integer_mask};
use super::switch::Switch;
use super::thread;
use postern_image::Type;
use postern_verifier::window::{PAGE, SLOT_SIZE};
use std::mem::offset_of;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

mod block;

pub use block::{Block, Terms};

/// Domains that can exist at once.
pub const MAX_DOMAINS: usize = 32_768;
/// Bytes of a control block in each layer.
const BLOCK: usize = 256;
/// Offset of the first slot in a block, which is nobody's and stays zero.
pub const SLOTS: usize = 112;
/// How far behind the first slot of a block nobody's is.
pub const NOBODYS: u32 = 0;
/// Threads that can be registered at once.
pub const MAX_THREADS: usize = 4080;
/// Bytes of a layer.
const LAYER: usize = MAX_DOMAINS * BLOCK;
/// Threads whose slots are in the first layer.
const FIRST: usize = (BLOCK - SLOTS) / size_of::<Slot>() - 1;
/// Slots of a block in another layer.
const NEXT: usize = BLOCK / size_of::<Slot>();
/// Layers.
const LAYERS: usize = 1 + (MAX_THREADS - FIRST).div_ceil(NEXT);

/// How far behind the first slot of a block that of the thread with this index is.
pub const fn slot_at(index: usize) -> u32 {
    let at = match index.checked_sub(FIRST) {
        None => (1 + index) * size_of::<Slot>(),
        Some(k) => (1 + k / NEXT) * LAYER - SLOTS + k % NEXT * size_of::<Slot>(),
    };
    at as u32
}

/// The index of the thread whose slots are so far behind the first ones.
pub const fn slot_index(at: u32) -> usize {
    let at = at as usize + SLOTS;
    let k = at % LAYER / size_of::<Slot>();
    match at / LAYER {
        0 => k - SLOTS / size_of::<Slot>() - 1,
        layer => FIRST + (layer - 1) * NEXT + k,
    }
}

const _: () = assert!(LAYERS * LAYER <= u32::MAX as usize && BLOCK % 64 == 0);

/// The head of a control block. Fields that the entry gate reads share the first cache line.
#[repr(C)]
pub struct Control {
    /// Window base address.
    pub(crate) base: AtomicU64,
    /// Whether calls are let in. Gates compare it with `generation` behind it as one word.
    pub(crate) lifecycle: Lifecycle,
    /// Number of the domain that has this block, which no domain of another block has either; 0 only before the first.
    pub(crate) generation: AtomicU32,
    /// Fact bits ([`super::gate::FACT_XMM`] and so on).
    pub(crate) facts: AtomicU32,
    /// Array of [`ServiceEntry`], one for each import.
    pub(crate) services: AtomicPtr<ServiceEntry>,
    /// Deadline of a call in nanoseconds; 0 is none.
    pub(crate) deadline: AtomicU64,
    /// Control-stack limit in return addresses; 0 is none.
    pub(crate) call_depth: AtomicU64,
    /// Time inside, sampled by the watchdog, in nanoseconds.
    pub(crate) time_inside: AtomicU64,
    /// How much of it was in the hot window.
    pub(crate) time_hot: AtomicU64,
    /// The thread that may enter while the domain is [`Phase::Exclusive`]: address of its state, or 0.
    pub(crate) owner: AtomicU64,
    /// Number of this block.
    pub(crate) number: AtomicU32,
    /// Data stacks of the image's own: binary logarithm of the size.
    pub(crate) stack_log2: AtomicU32,
    /// The slots of its code area, which may be entered: offset of the first, and behind the last one; both in one word, 0 if it has none.
    pub(crate) code_slots: AtomicU64,
}

/// What a domain holds for one thread.
#[repr(C)]
pub struct Slot {
    /// Where the thread's data stack begins (its highest usable offset), or 0 when it has none yet.
    pub(crate) stack: AtomicU32,
    /// Calls into the domain that wait, on this thread, in a service from which another call was made.
    pub(crate) waiting: AtomicU32,
    /// Calls by this thread.
    pub(crate) calls: AtomicU64,
}

const _: () = assert!(size_of::<Control>() <= SLOTS);
// The gates read both in one go.
const _: () = assert!(
    offset_of!(Control, lifecycle) % 8 == 0
        && offset_of!(Control, generation) == offset_of!(Control, lifecycle) + 4
);

/// One exported function as the gates see it. Lives as long as anybody can call it. Nothing changes but the three words that say whose
/// it is, and those only of entries of C function pointers ([`super::stub`]).
#[repr(C, align(64))]
pub struct Entry {
    /// Where callers jump: masked gate for C stubs, plain gate for typed calls.
    pub(crate) gate: usize,
    /// Where the slow path tries again.
    pub(crate) body: usize,
    /// The domain's control block.
    pub(crate) control: AtomicPtr<Control>,
    /// Offset of the function.
    pub(crate) offset: AtomicU32,
    /// [`super::gate::FLAG_FLOATS`], [`super::gate::FLAG_PAYLOAD`].
    pub(crate) flags: u32,
    /// Words of arguments on the caller's stack, above its return address.
    pub(crate) stack_words: u32,
    /// Phase and generation with which the call is let in: [`Phase::Open`], and the domain's own.
    pub(crate) expected: AtomicU64,
    /// For [`super::gate::narrow`]: the gate behind.
    pub(crate) inner: usize,
    /// Masks of the integer argument registers.
    pub(crate) int_masks: [u64; 6],
    /// Masks of the floating-point argument registers.
    pub(crate) float_masks: FloatMasks,
    /// Masks of the words on the stack.
    pub(crate) stack_masks: [u64; 10],
    /// Longest time of a call in nanoseconds, besides the domain's deadline; 0 is none. Only the full gate looks at it …
    pub(crate) limit: u64,
    /// … and at what becomes of the domain after a fault: a number for [`super::above::Above::ended`], or 0 for the domain's own.
    pub(crate) recovery: u32,
    /// For functions of modules: what knows where calls go that this entry does not let in. Else null.
    pub(crate) switch: *const Switch,
}

impl Entry {
    /// One that leads nowhere and is never entered.
    pub(crate) fn nowhere() -> Entry {
        Entry {
            gate: 0,
            body: 0,
            control: AtomicPtr::default(),
            offset: AtomicU32::new(0),
            flags: 0,
            stack_words: 0,
            expected: AtomicU64::new(u64::MAX),
            inner: 0,
            int_masks: [0; 6],
            float_masks: FloatMasks::default(),
            stack_masks: [0; 10],
            limit: 0,
            recovery: 0,
            switch: std::ptr::null(),
        }
    }
}

impl Clone for Entry {
    fn clone(&self) -> Entry {
        Entry {
            control: AtomicPtr::new(self.control.load(Ordering::SeqCst)),
            offset: AtomicU32::new(self.offset()),
            expected: AtomicU64::new(self.expected()),
            // Its own copies only: see [`super::switch`].
            switch: std::ptr::null(),
            ..*self
        }
    }
}

/// Eight 128-bit masks, aligned for `andps`.
#[repr(C, align(16))]
#[derive(Clone, Copy, Default)]
pub struct FloatMasks(pub [[u64; 2]; 8]);

// SAFETY: an entry is immutable once built but for atomics, its control block is never unmapped, and its switch owns it and can be shared.
unsafe impl Send for Entry {}
// SAFETY: as above.
unsafe impl Sync for Entry {}

/// One service as the gates see it.
#[repr(C, align(64))]
pub struct ServiceEntry {
    /// A function of the C calling convention.
    pub(crate) function: AtomicUsize,
    /// What the thread's state shows as context while it runs; of a peer, the [`super::peer::Peer`].
    pub(crate) context: AtomicUsize,
    /// Bytes of stack that it needs; [`super::peer::PEER`] if it is a peer that nobody decides about.
    pub(crate) stack: AtomicU64,
    /// Mask of rax.
    pub(crate) result_mask: u64,
    /// Mask of xmm0.
    pub(crate) float_mask: FloatMask,
    /// Times called (approximate when several threads call at once).
    pub(crate) calls: AtomicU64,
    /// What `function` consults if it is the shim of guarded services.
    pub(crate) guard: AtomicPtr<Guard>,
}

impl ServiceEntry {
    /// A service with a result of this type, which the gate masks unless it is a peer's, that finds at least `stack` bytes of stack.
    ///
    /// # Safety
    /// `function` is one of the C calling convention that any words in argument registers may be given to, on any thread, and that
    /// neither unwinds nor jumps over the gates; or [`super::peer::function`]. `context` is the address of what the function finds there,
    /// if it looks (a shim's body, a [`super::shim::Narrow`], a [`super::peer::Peer`]); that stays for as long as the entry, and for
    /// as long as a call of the service runs.
    pub unsafe fn new(
        function: usize,
        context: usize,
        stack: usize,
        result: Option<Type>,
        masked: bool,
    ) -> ServiceEntry {
        let masks = match masked {
            true => (result.map_or(0, integer_mask), result.map_or(0, float_mask)),
            false => (u64::MAX, u64::MAX),
        };
        ServiceEntry {
            function: function.into(),
            context: context.into(),
            stack: (stack as u64).into(),
            result_mask: masks.0,
            float_mask: FloatMask([masks.1, 0]),
            calls: 0.into(),
            guard: AtomicPtr::default(),
        }
    }

    /// Calls of a peer go there from now on.
    ///
    /// # Safety
    /// The entry's function is [`super::peer::function`], and the peer stays where it is for as long as the entry, and for as long as a call
    /// of it runs.
    pub unsafe fn lead_to(&self, peer: &Peer) {
        let context = std::ptr::from_ref(peer) as usize;
        self.context.store(context, Ordering::SeqCst);
    }

    /// Times called (approximate when several threads call at once).
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

/// One 128-bit mask, aligned for `andps`.
#[repr(C, align(16))]
#[derive(Clone, Copy, Default)]
pub struct FloatMask(pub [u64; 2]);

/// The reserved table and its free list.
pub struct Table {
    memory: Mapping,
    /// How many layers can be touched, and how many bytes of each: so much is charged where the system promises no more memory than it
    /// has.
    layers: usize,
    open: usize,
    next: usize,
    /// The last domain's.
    generation: u32,
    free: Vec<usize>,
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

/// The table, locked.
pub fn table() -> MutexGuard<'static, Option<Table>> {
    TABLE.lock().unwrap_or_else(|e| e.into_inner())
}

impl Table {
    /// Lets the block with this number be touched, in all layers that are open.
    fn open_block(&mut self, number: usize) -> Result<(), MapError> {
        /// Bytes of a layer that are opened first.
        const LEAST: usize = 64 << 10;
        if (number + 1) * BLOCK <= self.open {
            return Ok(());
        }
        map::room(self.layers as i64 + 1)?;
        let open = (2 * self.open).clamp(LEAST, LAYER);
        for layer in 0..self.layers {
            self.open_part(layer, open)?;
        }
        self.open = open;
        Ok(())
    }

    fn open_part(&self, layer: usize, bytes: usize) -> Result<(), MapError> {
        self.memory.open(layer * LAYER..layer * LAYER + bytes)
    }
}

/// Lets the slots of the thread with this index be touched in every block. The caller holds the registry, and nobody else knows of the
/// thread yet.
pub(crate) fn open_slots(index: usize) -> Result<(), MapError> {
    let layers = match index.checked_sub(FIRST) {
        None => 1,
        Some(k) => 2 + k / NEXT,
    };
    let mut guard = table();
    let Some(table) = guard.as_mut() else {
        return Ok(());
    };
    while table.layers < layers {
        map::room(2)?;
        table.open_part(table.layers, table.open)?;
        table.layers += 1;
    }
    Ok(())
}

impl Entry {
    /// What knows where calls of this function go, if it is a module's.
    pub fn switch(&self) -> Option<&Switch> {
        // SAFETY: entries with a switch are owned by it.
        unsafe { self.switch.as_ref() }
    }

    /// The same function for callers, but no domain in any phase lets it in.
    pub(crate) fn closed(&self) -> Entry {
        let entry = self.clone();
        entry.close();
        entry
    }

    /// From now on no domain in any phase lets calls in.
    pub(crate) fn close(&self) {
        self.expected.store(u64::MAX, Ordering::SeqCst);
    }

    /// From now on calls go where those of `other` go, which differs in nothing else. The word that lets them in is written last: who reads
    /// it finds the rest.
    pub(crate) fn lead(&self, other: &Entry) {
        let control = other.control.load(Ordering::SeqCst);
        self.control.store(control, Ordering::SeqCst);
        self.offset.store(other.offset(), Ordering::SeqCst);
        self.expected.store(other.expected(), Ordering::SeqCst);
    }

    /// Offset of the function.
    pub fn offset(&self) -> u32 {
        self.offset.load(Ordering::SeqCst)
    }

    /// Phase and generation with which the call is let in.
    pub(crate) fn expected(&self) -> u64 {
        self.expected.load(Ordering::SeqCst)
    }

    /// The control block of its domain, which may have closed.
    pub fn control(&self) -> &'static Control {
        // SAFETY: an entry is made with a control block, and those are never unmapped.
        unsafe { &*self.control.load(Ordering::SeqCst) }
    }
}

impl Control {
    /// Phase and generation as the gates compare them, when a domain of `generation` is in `phase`.
    pub(crate) fn word(phase: Phase, generation: u32) -> u64 {
        u64::from(phase as u32) | u64::from(generation) << 32
    }

    /// The slot of thread `index`.
    pub(crate) fn slot(&self, index: usize) -> &Slot {
        assert!(index < MAX_THREADS);
        let first = (self as *const Control as *const u8).wrapping_add(SLOTS);
        // SAFETY: every Control stands at the start of a block of the table's first layer, and slots of indices below MAX_THREADS lie
        // in blocks of its layers, as `slot_at` says, which are open if a thread ever had the index; zero is a valid Slot.
        unsafe { &*(first.wrapping_add(slot_at(index) as usize) as *const Slot) }
    }

    /// Where the domain is in its life, and what leads it on.
    pub fn lifecycle(&self) -> &Lifecycle {
        &self.lifecycle
    }

    /// Number of this block.
    pub fn number(&self) -> u32 {
        self.number.load(Ordering::Relaxed)
    }

    /// Number of the domain that has this block now; no two domains have the same.
    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::SeqCst)
    }

    /// Fact bits ([`super::gate::FACT_XMM`] and so on).
    pub fn facts(&self) -> u32 {
        self.facts.load(Ordering::Relaxed)
    }

    /// Deadline of a call in nanoseconds; 0 is none.
    pub fn deadline(&self) -> u64 {
        self.deadline.load(Ordering::Relaxed)
    }

    /// How long threads were seen inside, and for how much of it the domain was in the hot window: nanoseconds.
    pub fn times(&self) -> (u64, u64) {
        let read = |time: &AtomicU64| time.load(Ordering::Relaxed);
        (read(&self.time_inside), read(&self.time_hot))
    }

    /// Somebody was seen inside for so many nanoseconds.
    pub fn note_time(&self, nanoseconds: u64) {
        self.time_inside.fetch_add(nanoseconds, Ordering::Relaxed);
        if self.base.load(Ordering::Relaxed) == 0 {
            self.time_hot.fetch_add(nanoseconds, Ordering::Relaxed);
        }
    }

    /// Has the calling thread let in while the domain is [`Phase::Exclusive`], or with `false` nobody.
    pub fn admit_me(&self, me: bool) {
        let owner = match me {
            true => std::ptr::from_ref(thread::current()) as u64,
            false => 0,
        };
        self.owner.store(owner, Ordering::SeqCst);
    }

    /// Has nobody let in any more while the domain is [`Phase::Exclusive`]. Whether somebody was.
    pub fn admit_nobody(&self) -> bool {
        self.owner.swap(0, Ordering::SeqCst) != 0
    }

    /// Whether a call of the thread with this index waits in a call into the domain.
    pub fn waits(&self, index: usize) -> bool {
        self.slot(index).waiting.load(Ordering::Relaxed) != 0
    }

    /// Where the data stack of the thread with this index begins, or 0 when it has none yet.
    pub fn data_stack(&self, index: usize) -> u32 {
        self.slot(index).stack.load(Ordering::SeqCst)
    }

    /// Gives the thread with this index a data stack, which begins there.
    pub fn give_data_stack(&self, index: usize, stack: u32) {
        self.slot(index).stack.store(stack, Ordering::SeqCst);
    }

    /// Forgets the former domain, into which threads with indices below `threads` may have gone, but not its generation, and not that
    /// it is closed.
    fn wipe(&self, threads: usize) {
        let words = [
            &self.base,
            &self.deadline,
            &self.call_depth,
            &self.time_inside,
            &self.time_hot,
            &self.owner,
            &self.code_slots,
        ];
        for word in words {
            word.store(0, Ordering::Relaxed);
        }
        self.services.store(std::ptr::null_mut(), Ordering::Relaxed);
        self.facts.store(0, Ordering::Relaxed);
        self.stack_log2.store(0, Ordering::Relaxed);
        for slot in (0..threads).map(|index| self.slot(index)) {
            // What was never written costs no page, and shall not.
            let halves = [&slot.stack, &slot.waiting].map(|half| half.load(Ordering::Relaxed));
            if halves != [0, 0] || slot.calls.load(Ordering::Relaxed) != 0 {
                slot.stack.store(0, Ordering::Relaxed);
                slot.waiting.store(0, Ordering::Relaxed);
                slot.calls.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Calls by all threads so far.
    pub fn calls(&self) -> u64 {
        let threads = super::thread::registered_ever();
        (0..threads)
            .map(|i| self.slot(i).calls.load(Ordering::Relaxed))
            .sum()
    }

    /// Whether that is where the domain's window lies.
    pub(super) fn lies_at(&self, base: u64) -> bool {
        self.base.load(Ordering::SeqCst) == base
    }

    /// Notes where the domain's window lies. For [`super::window`], which knows.
    pub(super) fn lie_at(&self, base: u64) {
        self.base.store(base, Ordering::SeqCst);
    }

    /// How far down a call may begin on the data stack with this top: above the page without access, with some room.
    pub(super) fn stack_bottom(&self, top: u32) -> u32 {
        let size = 1u32 << self.stack_log2.load(Ordering::Relaxed);
        let guard = if size > PAGE { PAGE } else { 0 };
        (top & !(size - 1)) + guard + 1024
    }

    /// The domain has a code area with slots from `start` to `end`.
    pub(super) fn has_slots(&self, start: u32, end: u32) {
        let slots = u64::from(start) << 32 | u64::from(end);
        self.code_slots.store(slots, Ordering::SeqCst);
    }

    /// Whether a slot of its code area is at `offset`. One that is not made yet is a trap.
    pub(super) fn is_slot(&self, offset: u32) -> bool {
        let slots = self.code_slots.load(Ordering::SeqCst);
        let (start, end) = ((slots >> 32) as u32, slots as u32);
        (start..end).contains(&offset) && (offset - start) % SLOT_SIZE == 0
    }

    /// Where `offset` is in the host's address space.
    pub fn address(&self, offset: u32) -> usize {
        self.base.load(Ordering::Relaxed) as usize + offset as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn slots_lie_in_their_own_blocks() {
        let mut places = HashSet::new();
        for index in 0..MAX_THREADS {
            let at = slot_at(index);
            assert_eq!(slot_index(at), index);
            let in_layer = (SLOTS + at as usize) % LAYER;
            assert!(in_layer + size_of::<Slot>() <= BLOCK, "{index}");
            assert!(SLOTS + (at as usize) < LAYERS * LAYER && at != NOBODYS && places.insert(at));
            assert!(at as usize >= LAYER - SLOTS || in_layer >= SLOTS);
        }
    }

    #[test]
    fn a_used_block_is_wiped_but_for_its_generation() {
        let block = Block::take().unwrap();
        let (control, generation): (&Control, u32) =
            (&block, block.generation.load(Ordering::SeqCst));
        open_slots(FIRST).unwrap();
        control.deadline.store(7, Ordering::SeqCst);
        control.slot(FIRST).calls.store(8, Ordering::SeqCst);
        control.slot(0).stack.store(9, Ordering::SeqCst);
        control.wipe(FIRST + 1);
        assert_eq!(control.deadline.load(Ordering::SeqCst), 0);
        assert_eq!(control.slot(FIRST).calls.load(Ordering::SeqCst), 0);
        assert_eq!(control.slot(0).stack.load(Ordering::SeqCst), 0);
        assert_eq!(control.generation.load(Ordering::SeqCst), generation);
        assert_eq!(control.lifecycle.now(), Phase::Closed);
    }
}
