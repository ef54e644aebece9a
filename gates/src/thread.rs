//! What Postern knows of each thread that enters extensions.
//!
//! A [`Thread`] lies in static thread-local storage, where gates reach it through fs (`gate.s`
//! defines the symbol). It is small, because a library that is opened at run time must share the
//! little static storage that libc keeps for such; everything that no gate reads is in [`Extra`],
//! on the heap.
//!
//! A thread registers itself at its first entry and unregisters at its end ([`super::register`]).
//! Other threads read a registered `Thread` only under the registry's lock, so it cannot vanish
//! under them.

use super::call_state::{CallPhase, CallState, CallWord, one_call};
use super::control::{self, Control, ServiceEntry};
use super::end_request::EndRequest;
use super::machine;
use super::map::Mapping;
use super::mask::SignalStack;
use super::outcome::RawFault;
use super::payload::CallPayload;
#[cfg(feature = "testing")]
use super::record::RECORDS;
use super::record::Record;
use super::sync::{Mutex, MutexGuard};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::arch::asm;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Sequence numbers of nested calls have this bit, so that they never meet those that the fast path
/// counts.
pub(super) const NESTED: u64 = 1 << 63;

/// The x87 environment as `fnstenv` writes it.
pub type X87 = [u32; 7];

/// The thread's state that gates and signal handlers use. Only its own thread writes it, save
/// `request` and `entry_slot`.
#[repr(C, align(64))]
pub struct Thread {
    /// Lowest admissible stack pointer.
    pub(crate) stack_low: AtomicU64,
    /// Bytes from there to the stack's top, if the fast path admits calls from there; 0 while the
    /// thread is not registered.
    pub(crate) stack_span: AtomicU64,
    /// Where the thread is with its innermost call.
    pub(crate) call_state: CallState,
    /// Which slots of control blocks entry gates take: the thread's own, as in `slot`, or nobody's,
    /// which sends the next call to the slow path ([`divert_all`]). Besides `request`, the only
    /// word that other threads write.
    pub(crate) entry_slot: AtomicU32,
    /// Number of the innermost call; never repeats in a thread.
    pub(crate) sequence: AtomicU64,
    /// Stack pointer that the innermost entry gate recorded.
    pub(crate) frame: AtomicU64,
    /// Innermost domain.
    pub(crate) control: AtomicPtr<Control>,
    /// Sequence number of a call that is to be ended when its service returns.
    pub(crate) pending: AtomicU64,
    /// Why a call is being ended ([`super::outcome`]).
    pub(crate) abort_kind: AtomicU32,
    /// Data stack pointer at the service gate.
    pub(crate) service_r15: AtomicU32,
    /// Stack pointer at the service gate.
    pub(crate) service_rsp: AtomicU64,
    /// The service that runs.
    pub(crate) service: AtomicPtr<ServiceEntry>,
    /// Its context.
    pub(crate) context: AtomicU64,
    /// Not 0 while the extension runs on a control stack of the runtime's own.
    pub(crate) foreign: AtomicU32,
    /// The host's MXCSR while an extension may have changed it ([`super::host`]).
    pub(crate) mxcsr: AtomicU32,
    /// For the full gate: data stack pointer.
    pub(crate) plan_r15: AtomicU32,
    /// How far behind the first slot of a control block the thread's own is ([`control::slot_at`]).
    pub(crate) slot: AtomicU32,
    /// For the full gate: control stack pointer.
    pub(crate) plan_rsp: AtomicU64,
    /// Another thread's wish: end the call with this sequence number …
    pub(crate) request: AtomicU64,
    /// … for this reason.
    pub(crate) request_kind: AtomicU32,
    /// The kernel's thread id.
    pub(crate) tid: AtomicU32,
    /// Address of the service gate: gate slots jump through this word.
    pub(crate) service_gate: AtomicU64,
    /// Addresses of the memory gate's functions, for the slots that lead there
    /// ([`super::bulk::Function`]).
    pub(crate) memory_gates: [AtomicU64; 5],
    /// The rest, or null while the thread is not registered.
    pub(crate) extra: AtomicPtr<Extra>,
    /// What the next call of an entry for it brings; the slow path takes it.
    pub(crate) payload: AtomicPtr<CallPayload<'static>>,
    /// Number of a call with a limit of time of its own …
    pub(crate) limited: AtomicU64,
    /// … in nanoseconds.
    pub(crate) limit: AtomicU64,
    /// The first record ([`Record`]), or null.
    pub(crate) records: AtomicPtr<Record>,
    /// The innermost call's record.
    pub(crate) record: AtomicPtr<Record>,
    /// The last one: no call can be made from a call that has it.
    pub(crate) last_record: AtomicPtr<Record>,
    /// At least the number of the last nested call. It changes before the call that will wait for a
    /// new one ceases to be the innermost, and again before that call is the innermost once more,
    /// so that others can tell: [`one_call`].
    pub(crate) nested: AtomicU64,
    /// The call whose last call of a peer failed, and how ([`super::peer`]).
    pub(crate) peer_failed: AtomicU64,
    pub(crate) peer_error: AtomicU32,
    /// Where gates look at MXCSR.
    pub(crate) mxcsr_now: AtomicU32,
    /// Not 0 while the slow path decides: a signal handler of the thread's own is refused.
    pub(crate) deciding: AtomicU32,
    /// How many handlers that replaced ours a signal that is being passed on has gone through.
    pub(crate) chained: AtomicU32,
    /// How far behind the first word of a common domain's the thread's own is.
    pub(crate) inside_at: AtomicU32,
    /// The host's gs base while an extension runs, if the host wants it back.
    pub(crate) host_gs: AtomicU64,
    /// Bytes from `stack_low` to the stack's top, also where the fast path admits no calls.
    pub(crate) stack_size: AtomicU64,
    /// The domain, and the service of it if it is only that, which the thread waits for others to
    /// leave; null while it does not.
    pub(crate) awaits: AtomicPtr<Control>,
    pub(crate) awaits_service: AtomicPtr<ServiceEntry>,
    /// Stack pointer with which the service gate called the service that runs; 0 while none does.
    pub(crate) host_rsp: AtomicU64,
    /// What the thread has for upcalls (`upcall.rs`, which alone follows it), or null while it is
    /// not attached.
    pub(crate) upcall: AtomicPtr<u8>,
    /// Upcalls that have begun or ended: odd while one runs.
    pub(crate) upcalls: AtomicU64,
}

const _: () = assert!(size_of::<Thread>() <= 384);

/// Offset of the word that gate slots jump through.
pub(crate) const SERVICE_GATE: usize = core::mem::offset_of!(Thread, service_gate);
/// The same of the first word for slots of the memory gate.
pub(crate) const MEMORY_GATES: usize = core::mem::offset_of!(Thread, memory_gates);

/// Offsets of the words that tests look at from outside: call state, number, number of nested
/// calls, domain, and a wish's two words.
#[cfg(feature = "testing")]
const OFFSETS: [usize; 6] = [
    core::mem::offset_of!(Thread, call_state),
    core::mem::offset_of!(Thread, sequence),
    core::mem::offset_of!(Thread, nested),
    core::mem::offset_of!(Thread, control),
    core::mem::offset_of!(Thread, request),
    core::mem::offset_of!(Thread, request_kind),
];

/// What only the thread itself (and its signal handlers) uses.
pub(crate) struct Extra {
    /// Words that go with the ends of calls that wait, by depth.
    pub(crate) messages: Vec<Option<String>>,
    /// The limit of the next nested call ([`Record::limit`]).
    pub(crate) next_limit: u64,
    /// What the last ended call left.
    pub(crate) fault: RawFault,
    /// A value that goes with it: exit status.
    pub(crate) detail: u64,
    /// Words that go with it.
    pub(crate) message: Option<String>,
    /// A panic of a service, on its way around the extension.
    pub(crate) panic: Option<Box<dyn core::any::Any + Send>>,
    /// The host's x87 environment while an extension may have changed it ([`super::host`]).
    pub(crate) x87: X87,
    /// Bounds of the thread's own stack: lowest usable address, top.
    pub(crate) stack: (u64, u64),
    /// Control stack of the runtime's own: lowest usable address, top; made when first needed.
    pub(crate) own_stack: Option<Mapping>,
    /// Index in the registry.
    pub(crate) index: usize,
    /// Whether the fast path may be used on the thread's own stack.
    pub(crate) admitted: bool,
    /// The thread runs its last destructors, so it is registered for the length of a call only.
    pub(crate) ending: bool,
    /// [`super::signal::generation`] when the thread's signals were looked at.
    pub(crate) checked: u64,
    /// An alternate signal stack that we installed.
    pub(crate) signal_stack: Option<SignalStack>,
}

/// Registered threads by index, and what is not in use.
pub struct Registry {
    pub(super) threads: Vec<*const Thread>,
}

// SAFETY: the pointers are followed only under the lock, which unregistering takes, too.
unsafe impl Send for Registry {}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    threads: Vec::new(),
});

impl Registry {
    /// The registered threads.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Thread)> {
        self.threads.iter().enumerate().filter_map(|(i, &t)| {
            // SAFETY: a pointer in the table is to the thread-local block of a thread that has not
            // unregistered, and cannot while we hold the lock.
            unsafe { t.as_ref() }.map(|t| (i, t))
        })
    }

    /// The registered thread with an index.
    pub fn get(&self, index: usize) -> Option<&Thread> {
        let &thread = self.threads.get(index)?;
        // SAFETY: as above.
        unsafe { thread.as_ref() }
    }
}

/// How many thread indices were ever in use.
pub(crate) fn registered_ever() -> usize {
    registry().threads.len()
}

/// What this thread has written is seen by every other one before that enters a domain, and the
/// calls that others have published are seen from here on: the half of the gates' order that costs
/// something.
///
/// Who is not registered is in no gate, and finds what was written when it registers, under the
/// lock that is taken here. So a thread that is alone needs no barrier, and is spared the system
/// call.
pub fn barrier() {
    let me: *const Thread = current();
    let alone = registry().iter().all(|(_, thread)| ptr::eq(thread, me));
    if !alone {
        machine::barrier();
    }
}

/// The registry, locked.
pub fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(|e| e.into_inner())
}

/// The calling thread's state. For the gates alone: others find threads in the registry, while it
/// is locked, and ask of their own what the functions below tell.
#[inline(always)]
pub(crate) fn current() -> &'static Thread {
    let p: *const Thread;
    // SAFETY: the symbol is a thread-local block of size_of::<Thread>() zero bytes with Thread's
    // alignment, which is a valid Thread; it lives as long as the thread, and callers do not hand
    // it to another one.
    unsafe {
        asm!(
            "mov {p}, qword ptr [rip + postern_thread@GOTTPOFF]",
            "add {p}, qword ptr fs:[0]",
            p = out(reg) p,
            options(nostack, readonly, preserves_flags),
        );
        &*p
    }
}

/// A number that no other thread has while this one lives.
pub fn id() -> u64 {
    ptr::from_ref(current()) as u64
}

/// Whether that is the calling thread.
pub fn is_current(thread: &Thread) -> bool {
    ptr::eq(thread, current())
}

/// Where the calling thread is with its innermost call.
pub fn own_phase() -> CallPhase {
    current().call_state.own()
}

/// Whether the calling thread's innermost call is, or was last, one of the domain's, or one of its
/// calls waits there.
pub fn is_inside(control: &Control) -> bool {
    let thread = current();
    let registered = !thread.extra.load(Ordering::Relaxed).is_null();
    registered && control.waits(thread.index())
        || thread.innermost().is_some_and(|c| ptr::eq(c, control))
}

/// Where the words of the calling thread are that tests look at: call state, number, number of
/// nested calls, domain, and a wish's two words.
#[cfg(feature = "testing")]
pub fn addresses() -> [usize; 6] {
    OFFSETS.map(|offset| ptr::from_ref(current()) as usize + offset)
}

/// Where the calling thread's state lies, and its records: first address and bytes of both. And
/// the offsets in the state of the 32-bit words that others write, and of the count of upcalls.
#[cfg(feature = "testing")]
pub fn extents() -> ([(usize, usize); 2], [usize; 6]) {
    use core::mem::offset_of;
    let thread = current();
    let records = thread.records.load(Ordering::Relaxed) as usize;
    let upcalls = offset_of!(Thread, upcalls);
    (
        [
            (ptr::from_ref(thread) as usize, size_of::<Thread>()),
            (records, RECORDS * size_of::<Record>()),
        ],
        [
            offset_of!(Thread, entry_slot),
            offset_of!(Thread, request),
            offset_of!(Thread, request_kind),
            upcalls,
            upcalls + 4,
            offset_of!(Thread, request) + 4,
        ],
    )
}

/// The calling thread's index among those of domains' data stacks. It has called a domain before.
pub fn my_index() -> usize {
    current().index()
}

/// The same, if it has called one.
pub fn my_index_if_known() -> Option<usize> {
    let thread = current();
    let known = !thread.extra.load(Ordering::Relaxed).is_null();
    known.then(|| thread.index())
}

impl Thread {
    /// The thread's heap part. Panics unless registered.
    #[allow(clippy::mut_from_ref)]
    pub(crate) fn extra(&self) -> &mut Extra {
        let p = self.extra.load(Ordering::Relaxed);
        assert!(!p.is_null(), "thread not registered");
        // SAFETY: only the owning thread calls this on its own block, never holding two results at
        // once; signal handlers write `fault` only while the thread is inside an extension, where
        // no Rust code of the thread runs.
        unsafe { &mut *p }
    }

    /// The innermost domain's control block, if the thread was ever inside one.
    pub(crate) fn innermost(&self) -> Option<&'static Control> {
        // SAFETY: control blocks are never unmapped.
        unsafe { self.control.load(Ordering::SeqCst).as_ref() }
    }

    /// Another thread's wish that the innermost call end.
    pub fn end_request(&self) -> EndRequest<'_> {
        EndRequest::new(&self.request, &self.request_kind)
    }

    /// A word as other threads read it.
    pub(crate) fn word(&self, word: CallWord) -> u64 {
        match word {
            // Both only ever grow, so if the sum is the same at two looks, neither has changed
            // between the first of the one and the last of the other.
            CallWord::Nested => {
                let nested = self.nested.load(Ordering::SeqCst);
                nested.wrapping_add(self.upcalls.load(Ordering::SeqCst) << 32)
            }
            CallWord::Sequence => self.sequence.load(Ordering::SeqCst),
            CallWord::State => self.call_state.seen() as u64,
            CallWord::Control => self.control.load(Ordering::SeqCst) as u64,
        }
    }

    /// The innermost call as another thread may see it: its number and its domain's control block.
    /// `None` outside, and while a gate writes the state of a new call, when the number may be the
    /// new call's and the domain still the last one's. (A gate looks at its domain's state itself
    /// after that.)
    pub fn innermost_call(&self) -> Option<(u64, &'static Control)> {
        let (sequence, control) = one_call(|word| self.word(word))?;
        // SAFETY: control blocks are never unmapped.
        let control = unsafe { (control as *const Control).as_ref() }?;
        Some((sequence, control))
    }

    /// Gives the call with this number a limit of time of its own; no other call has one.
    pub(crate) fn set_limit(&self, sequence: u64, nanoseconds: u64) {
        // The number vouches for the time beside it.
        self.limited.store(0, Ordering::SeqCst);
        self.limit.store(nanoseconds, Ordering::SeqCst);
        self.limited.store(sequence, Ordering::SeqCst);
    }

    /// The limit of the call with this number, in nanoseconds; 0 is none. For other threads.
    pub fn limit_of(&self, sequence: u64) -> u64 {
        if self.limited.load(Ordering::SeqCst) != sequence {
            return 0;
        }
        let limit = self.limit.load(Ordering::SeqCst);
        match self.limited.load(Ordering::SeqCst) == sequence {
            true => limit,
            false => 0,
        }
    }

    /// End of the innermost call's control stack: the word below it is the gate's own return
    /// address.
    pub(crate) fn call_base(&self) -> u64 {
        match self.foreign.load(Ordering::Relaxed) {
            0 => self.frame.load(Ordering::Relaxed),
            _ => self.plan_rsp.load(Ordering::Relaxed),
        }
    }

    /// What the thread waits for others to leave. The service is for comparison only.
    pub(crate) fn awaits(&self) -> Option<(&'static Control, *const ServiceEntry)> {
        // SAFETY: null, or a control block, which is never unmapped.
        let control = unsafe { self.awaits.load(Ordering::SeqCst).as_ref() }?;
        Some((control, self.awaits_service.load(Ordering::SeqCst)))
    }

    /// Where the thread is with its innermost call.
    pub fn seen_phase(&self) -> CallPhase {
        self.call_state.seen()
    }

    /// Whether the thread, which is the calling one, is in an upcall.
    pub(crate) fn in_upcall(&self) -> bool {
        self.upcalls.load(Ordering::Relaxed) & 1 == 1
    }

    /// The kernel's thread id.
    pub fn tid(&self) -> u32 {
        self.tid.load(Ordering::Relaxed)
    }

    /// Whether the call with this number ends as soon as its service returns.
    pub fn ends_when_back(&self, sequence: u64) -> bool {
        self.pending.load(Ordering::SeqCst) == sequence
    }

    /// Index in the registry and in every domain's slots.
    pub(crate) fn index(&self) -> usize {
        control::slot_index(self.slot.load(Ordering::Relaxed))
    }
}

impl Control {
    /// Has the calling thread let in while the domain is [`Phase::Exclusive`], or with `false`
    /// nobody.
    pub fn admit_me(&self, me: bool) {
        let owner = match me {
            true => core::ptr::from_ref(current()) as u64,
            false => 0,
        };
        self.owner.store(owner, Ordering::SeqCst);
    }

    /// Takes back the data stack that the calling thread has in the domain: its next call gets one
    /// on the slow path. The thread is not inside.
    pub fn take_my_data_stack(&self) -> Option<u32> {
        let me = current();
        if me.extra.load(Ordering::Relaxed).is_null() {
            return None;
        }
        let stack = self.slot(me.index()).stack.swap(0, Ordering::SeqCst);
        if stack == 0 {
            return None;
        }
        self.stacks_given.fetch_sub(1, Ordering::SeqCst);
        Some(stack)
    }

    /// Calls by all threads so far.
    pub fn calls(&self) -> u64 {
        let threads = registered_ever();
        (0..threads)
            .map(|i| self.slot(i).calls.load(Ordering::Relaxed))
            .sum()
    }
}

/// Sends the next call of every registered thread to the slow path, once; what is to be looked at
/// there, [`super::slow`] looks at whenever it runs. On return every registered thread is in one of
/// two cases: it is seen in a call (which may have begun before), or its next call takes the slow
/// path. So who sets a condition first, calls this then, and looks at the call states last, has
/// missed nobody.
///
/// The gates load `entry_slot` after they have published the call and find there that nobody's slot
/// has no data stack; the barrier in here stands between this function's stores and the caller's
/// look at the call states. So either the look finds the call, or the load finds the store. It
/// costs the gates nothing.
pub(crate) fn divert_all(registry: &Registry) {
    for (_, thread) in registry.iter() {
        divert(thread);
    }
    super::machine::barrier();
}

/// The same for one thread, without the barrier.
pub(crate) fn divert(thread: &Thread) {
    thread.entry_slot.store(control::NOBODYS, Ordering::SeqCst);
}

/// The calling thread's part, on the slow path: its calls take the fast path again. Afterwards it
/// looks at what it may have been diverted for; whoever diverts it from here on does so for its
/// next call.
pub(crate) fn undivert(thread: &Thread) {
    let own = thread.slot.load(Ordering::Relaxed);
    thread.entry_slot.store(own, Ordering::SeqCst);
}

/// Whether no thread is inside, entering or leaving; and the number of calls that all have made,
/// which changes with every call.
pub fn all_outside(registry: &Registry) -> (bool, u64) {
    let (mut outside, mut calls) = (true, 0u64);
    for (_, thread) in registry.iter() {
        outside &= thread.call_state.seen() == CallPhase::Outside;
        calls = calls.wrapping_add(thread.sequence.load(Ordering::SeqCst));
    }
    (outside, calls)
}
