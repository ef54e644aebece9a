//! What the gates read of a domain: its control block, and its services with who decides about
//! them.
//!
//! Control blocks live in one table that is reserved once and never unmapped, so that a signal
//! handler or the watchdog may follow a thread's control pointer at any time, even while the domain
//! is being dropped.
//!
//! No extension can read the table, so blocks of many domains share a page. It has layers, all
//! alike: a block is [`BLOCK`] bytes of each, at the same place. The first layer has the head and
//! the slots of the first threads, the others have slots only. So a slot is as far from its block's
//! head in every block, and gates add that distance ([`slot_at`]). The first slot is nobody's: it
//! never has a data stack, so gates that are sent there take the slow path
//! ([`super::thread::divert_all`]).

#[cfg(feature = "linux")]
use super::gate::FACT_COMMON;
use super::lifecycle::{Lifecycle, Phase};
#[cfg(feature = "linux")]
use super::machine::{self, Sleepers, Slept};
use super::memory::{self, Gone};
use super::registers::{float_mask, integer_mask};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::mem::offset_of;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(feature = "linux")]
use core::time::Duration;
use postern_image::Type;
use postern_verifier::window::{PAGE, SLOT_SIZE};

pub(crate) mod table;

pub(super) use table::open_slots;
pub use table::table;

/// Indices of threads that were ever in use: slots of others cannot be touched.
static OPENED: AtomicUsize = AtomicUsize::new(0);

/// Domains that can exist at once.
pub const MAX_DOMAINS: usize = 32_768;
/// Bytes of a control block in each layer.
pub(crate) const BLOCK: usize = 256;
/// Offset of the first slot in a block, which is nobody's and stays zero.
pub(crate) const SLOTS: usize = 112;
/// How far behind the first slot of a block nobody's is.
pub(crate) const NOBODYS: u32 = 0;
/// Threads that can be registered at once.
pub const MAX_THREADS: usize = 4080;
/// Bytes of a layer.
pub(crate) const LAYER: usize = MAX_DOMAINS * BLOCK;
/// Threads whose slots are in the first layer.
pub(crate) const FIRST: usize = (BLOCK - SLOTS) / size_of::<ThreadSlot>() - 1;
/// Slots of a block in another layer.
const NEXT: usize = BLOCK / size_of::<ThreadSlot>();
/// Layers.
pub(crate) const LAYERS: usize = 1 + (MAX_THREADS - FIRST).div_ceil(NEXT);

/// How far behind the first slot of a block that of the thread with this index is.
pub(crate) const fn slot_at(index: usize) -> u32 {
    let at = match index.checked_sub(FIRST) {
        None => (1 + index) * size_of::<ThreadSlot>(),
        Some(k) => (1 + k / NEXT) * LAYER - SLOTS + k % NEXT * size_of::<ThreadSlot>(),
    };
    at as u32
}

/// The index of the thread whose slots are so far behind the first ones.
pub(crate) const fn slot_index(at: u32) -> usize {
    let at = at as usize + SLOTS;
    let k = at % LAYER / size_of::<ThreadSlot>();
    match at / LAYER {
        0 => k - SLOTS / size_of::<ThreadSlot>() - 1,
        layer => FIRST + (layer - 1) * NEXT + k,
    }
}

const _: () = assert!(LAYERS * LAYER <= u32::MAX as usize && BLOCK.is_multiple_of(64));

/// The head of a control block. Fields that the entry gate reads share the first cache line.
#[repr(C)]
pub struct Control {
    /// Window base address.
    pub(crate) base: AtomicU64,
    /// Whether calls are let in. Gates compare it with `generation` behind it as one word.
    pub(crate) lifecycle: Lifecycle,
    /// Number of the domain that has this block, which no domain of another block has either; 0
    /// only before the first.
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
    /// The thread that may enter while the domain is [`Phase::Exclusive`]: address of its state,
    /// or 0.
    pub(crate) owner: AtomicU64,
    /// Number of this block.
    pub(crate) number: AtomicU32,
    /// Data stacks of the image's own: binary logarithm of the size.
    pub(crate) stack_log2: AtomicU32,
    /// The slots of its code area, which may be entered: offset of the first, and behind the last
    /// one; both in one word, 0 if it has none.
    pub(crate) code_slots: AtomicU64,
    /// At least as many as slots have a data stack: who gives one counts first, who takes one back
    /// counts last.
    pub(crate) stacks_given: AtomicU32,
    /// Of a common domain: where the words are by which other processes see who is inside, one for
    /// each thread's index ([`super::block::Inside`]); else 0.
    pub(crate) inside: AtomicU64,
}

/// What a domain holds for one thread.
#[repr(C)]
pub struct ThreadSlot {
    /// Where the thread's data stack begins (its highest usable offset), or 0 when it has none yet.
    pub(crate) stack: AtomicU32,
    /// Calls into the domain that wait, on this thread, in a service from which another call was
    /// made.
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

/// A service entry's need of stack that says: it is a peer.
pub(crate) const PEER: u64 = 1 << 62;

/// One service as the gates see it. [`super::callee`] makes them, in tables.
#[repr(C, align(64))]
pub struct ServiceEntry {
    /// A function of the C calling convention.
    pub(crate) function: AtomicUsize,
    /// What the thread's state shows as context while it runs; of a peer, the
    /// [`super::peer::Peer`].
    pub(crate) context: AtomicUsize,
    /// Bytes of stack that it needs; [`PEER`] if it is a peer that nobody decides
    /// about.
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
    /// A service with a result of this type, which the gate masks if it is to be `masked`, that
    /// finds at least `stack` bytes of stack.
    ///
    /// # Safety
    /// `function` is one of the C calling convention that any words in argument registers may be
    /// given to, on any thread, and that neither unwinds nor jumps over the gates; or the one
    /// behind which peers are, which alone goes with [`PEER`]. `context` is the address of what the
    /// function finds there, if it looks (a shim's body, a narrow shim's function, a peer); that
    /// stays for as long as the entry, and for as long as a call of the service runs.
    pub(crate) unsafe fn new(
        function: usize,
        context: usize,
        stack: u64,
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
            stack: stack.into(),
            result_mask: masks.0,
            float_mask: FloatMask([masks.1, 0]),
            calls: 0.into(),
            guard: AtomicPtr::default(),
        }
    }

    /// Times called (approximate when several threads call at once).
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

impl Drop for ServiceEntry {
    fn drop(&mut self) {
        let guard = *self.guard.get_mut();
        if !guard.is_null() {
            // SAFETY: from Box::into_raw in [`super::guard`], and nobody calls the service any
            // more.
            drop(unsafe { Box::from_raw(guard) });
        }
    }
}

/// One 128-bit mask, aligned for `andps`.
#[repr(C, align(16))]
#[derive(Clone, Copy, Default)]
pub(crate) struct FloatMask(pub [u64; 2]);

/// Who decides about the calls of one service.
pub trait Decide: Send + Sync {
    /// What becomes of a call. Called on the thread of the extension that called, inside its
    /// domain, on the host's stack. A panic ends the call, and goes on in whoever called the
    /// extension.
    fn decide(&self, call: &GuardedCall<'_>) -> Answer;

    /// Whether the service is taken from the domain.
    fn is_revoked(&self) -> bool;
}

/// A call that is to be decided.
pub struct GuardedCall<'a> {
    /// The domain that calls.
    pub control: &'a Control,
    /// The arguments as the service gate left them: integer registers, and the low halves of vector
    /// registers. Bits that the types do not have are the extension's, too.
    pub integers: &'a [u64; 6],
    /// The vector registers.
    pub floats: &'a [u64; 8],
}

/// What becomes of a call.
pub enum Answer {
    /// The service is called.
    GoOn,
    /// It is not, and this is the result.
    Value(u64),
    /// The same; and if the service is a peer, the extension finds that it was denied.
    Denied(u64),
}

/// What stands between an extension and one service. An entry owns it.
pub struct Guard {
    /// The service itself.
    pub(super) function: usize,
    pub(super) by: Arc<dyn Decide>,
}

impl Control {
    /// Phase and generation as the gates compare them, when a domain of `generation` is in `phase`.
    pub(crate) fn word(phase: Phase, generation: u32) -> u64 {
        u64::from(phase as u32) | u64::from(generation) << 32
    }

    /// The slot of thread `index`.
    pub(crate) fn slot(&self, index: usize) -> &ThreadSlot {
        assert!(index < MAX_THREADS);
        let first = (self as *const Control as *const u8).wrapping_add(SLOTS);
        // SAFETY: every Control stands at the start of a block of the table's first layer, and
        // slots of indices below MAX_THREADS lie in blocks of its layers, as `slot_at` says, which
        // are open if a thread ever had the index; zero is a valid ThreadSlot.
        unsafe { &*(first.wrapping_add(slot_at(index) as usize) as *const ThreadSlot) }
    }

    /// The slot of thread `index`, as others name it.
    ///
    /// # Panics
    /// No thread ever had the index.
    fn opened_slot(&self, index: usize) -> &ThreadSlot {
        assert!(index < OPENED.load(Ordering::SeqCst), "no such thread");
        self.slot(index)
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

    /// How long threads were seen inside, and for how much of it the domain was in the hot window:
    /// nanoseconds.
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

    /// Has nobody let in any more while the domain is [`Phase::Exclusive`]. Whether somebody was.
    pub fn admit_nobody(&self) -> bool {
        self.owner.swap(0, Ordering::SeqCst) != 0
    }

    /// The word by which other processes see what the thread with this index is inside, if the
    /// domain is a common one. For the thread itself, which is inside, or has just been.
    fn inside_word(&self, index: usize) -> Option<&AtomicU32> {
        match self.inside.load(Ordering::SeqCst) {
            0 => None,
            // SAFETY: the address of at least MAX_THREADS words, which stay while somebody is
            // inside, and become others, which stay for good, before they go
            // ([`super::block::Inside`]).
            words => Some(unsafe { &*(words as *const AtomicU32).add(index.min(MAX_THREADS - 1)) }),
        }
    }

    /// What other processes see the thread with this index inside; 0 is nothing.
    pub(super) fn noted_inside(&self, index: usize) -> u32 {
        let word = self.inside_word(index);
        word.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// The thread with this index enters `function`.
    pub(super) fn note_inside(&self, index: usize, function: u32) {
        if let Some(word) = self.inside_word(index) {
            word.store(function, Ordering::SeqCst);
        }
    }

    /// The innermost call of the thread with this index, or one that waited, is not inside any
    /// more; others of it may wait there.
    pub(super) fn note_left(&self, index: usize) {
        if self.slot(index).waiting.load(Ordering::Relaxed) == 0 {
            self.note_inside(index, 0);
        }
    }

    /// Whether a call of the thread with this index waits in a call into the domain.
    pub(super) fn waits(&self, index: usize) -> bool {
        self.opened_slot(index).waiting.load(Ordering::Relaxed) != 0
    }

    /// Where the data stack of the thread with this index begins, or 0 when it has none yet.
    pub fn data_stack(&self, index: usize) -> u32 {
        self.opened_slot(index).stack.load(Ordering::SeqCst)
    }

    /// Gives the thread with this index, which has none, a data stack, which begins there. Somebody
    /// keeps the domain meanwhile.
    pub fn give_data_stack(&self, index: usize, stack: u32) {
        self.stacks_given.fetch_add(1, Ordering::SeqCst);
        // Before the gate's look at the lifecycle: `inside::anybody` has the other half.
        fence(Ordering::SeqCst);
        self.opened_slot(index).stack.store(stack, Ordering::SeqCst);
    }

    /// Notes where the domain's window lies. For [`super::window`], which knows.
    pub(super) fn lie_at(&self, base: u64) {
        self.base.store(base, Ordering::SeqCst);
    }

    /// How far down a call may begin on the data stack with this top: above the page without
    /// access, with some room.
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
        (start..end).contains(&offset) && (offset - start).is_multiple_of(SLOT_SIZE)
    }

    /// Where `offset` is in the host's address space.
    pub fn address(&self, offset: u32) -> usize {
        self.base.load(Ordering::Relaxed) as usize + offset as usize
    }

    /// Has the calling thread, which is in a service of the domain, sleep at most so long until
    /// [`Control::wake`] is called for the word of the window at this offset, unless that is not
    /// `value` any more. A signal ends it, too. The mark of the thread keeps the window where it
    /// is.
    #[cfg(feature = "linux")]
    pub fn wait(&self, word: u32, value: u32, longest: Duration) -> Slept {
        machine::wait_at(self.address(word & !3), value, longest, self.sleepers())
    }

    /// Wakes at most so many threads that sleep for the word of the window at this offset, where
    /// the calling thread keeps it: how many there were.
    #[cfg(feature = "linux")]
    pub fn wake(&self, word: u32, most: u32) -> u32 {
        machine::wake_at(self.address(word & !3), most, self.sleepers())
    }

    /// Who sleeps for words of the window.
    #[cfg(feature = "linux")]
    fn sleepers(&self) -> Sleepers {
        match self.facts() & FACT_COMMON {
            0 => Sleepers::Own,
            _ => Sleepers::All,
        }
    }

    /// Copies into the window of the domain that the calling thread is in, or about to enter: its
    /// mark keeps the window where it is.
    ///
    /// # Safety
    /// `[offset, offset + from.len())` lies in the window.
    pub(super) unsafe fn write(&self, offset: u32, from: &[u8]) -> Result<(), Gone> {
        // SAFETY: of windows no Rust references are made.
        unsafe { memory::copy(from.as_ptr() as usize, self.address(offset), from.len()) }
    }
}
