//! How a thread becomes known at its first entry, and how it is forgotten at its end.
//!
//! Invariant: a pointer in the registry is to the state of a thread that lives. What removes it is
//! a destructor of thread-specific data, so it is there only if that destructor will run. libc runs
//! such destructors in a few rounds, and in the last one nobody knows of another: a thread that
//! calls an extension from there (or after its state was removed) is registered for that call alone
//! ([`Extra::ending`]), and takes the slow path each time.

use super::above::above;
use super::bulk;
use super::call_state::CallPhase;
use super::control::{self, Control, MAX_THREADS};
use super::gate::Label;
use super::machine::InChild;
use super::map::{self, Mapping};
use super::mask::SignalStack;
use super::nesting::{self, Records};
use super::outcome::{RawFault, Refusal};
use super::record::MAX_NESTING;
use super::thread::{Extra, NESTED, Registry, Thread, X87, current, registry};
use super::{memory, signal};
use std::arch::global_asm;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Most bytes of a control stack that extensions may use: what [`prepare`] was told.
static MOST: AtomicUsize = AtomicUsize::new(0);
/// Size of a control stack of the runtime's own, for calls from coroutines' stacks.
const CONTROL_STACK: usize = 1 << 20;
/// Stack below the entry gate that the slow path itself may need.
const MARGIN: u64 = 16 << 10;
/// How far above a destructor of thread-specific data libc's frame is looked for.
const REACH: u64 = 256 << 10;

/// Registers the calling thread, or says why it cannot enter extensions.
pub(super) fn register(thread: &Thread, frame: u64) -> Result<(), Refusal> {
    let checked = signal::generation();
    signal::check_thread()?;
    let bounds = own_stack_bounds();
    let ending = runs_last_destructors(frame, bounds);
    let stack = bounds.filter(|b| b.guarded).map(|b| (b.low, b.top));
    let most = MOST.load(Ordering::Relaxed).max(CONTROL_STACK) as u64;
    let admitted = stack.is_some_and(|(low, top)| top - low <= most) && !ending;
    let signal_stack = SignalStack::ensure(signal::adopts())?;
    let mut registry = registry();
    let former = registry.threads.iter().position(|t| t.is_null());
    let index = match former {
        Some(index) => index,
        None if registry.threads.len() < MAX_THREADS => {
            if control::open_slots(registry.threads.len()).is_err() {
                drop(registry);
                if let Some(stack) = signal_stack {
                    stack.remove();
                }
                return Err(Refusal::NoMemory);
            }
            registry.threads.push(std::ptr::null());
            registry.threads.len() - 1
        }
        None => {
            drop(registry);
            if let Some(stack) = signal_stack {
                stack.remove();
            }
            return Err(Refusal::ThreadTable);
        }
    };
    let extra = Box::new(Extra {
        messages: vec![None; MAX_NESTING],
        next_limit: 0,
        fault: RawFault::default(),
        detail: 0,
        message: None,
        panic: None,
        x87: X87::default(),
        stack: stack.unwrap_or((0, 0)),
        own_stack: None,
        index,
        admitted,
        ending,
        checked,
        signal_stack,
    });
    thread
        .service_gate
        .store(Label::postern_service.address() as u64, Ordering::Relaxed);
    bulk::give(thread);
    thread.extra.store(Box::into_raw(extra), Ordering::Relaxed);
    nesting::make(thread);
    thread.nested.store(NESTED, Ordering::Relaxed);
    let at = control::slot_at(index);
    thread.slot.store(at, Ordering::Relaxed);
    let inside_at = (index * size_of::<u32>()) as u32;
    thread.inside_at.store(inside_at, Ordering::Relaxed);
    thread.entry_slot.store(at, Ordering::SeqCst);
    // SAFETY: gettid has no preconditions.
    thread
        .tid
        .store(unsafe { libc::gettid() } as u32, Ordering::Relaxed);
    set_bounds(thread);
    registry.threads[index] = thread;
    drop(registry);
    if !ending && let Some(end) = END.get() {
        // SAFETY: the key was made by `prepare`; the value only has to be neither null nor PROBE.
        unsafe { libc::pthread_setspecific(end.key, std::ptr::from_ref(thread).cast()) };
    }
    if former.is_some() {
        (above().renew_thread)(index);
    }
    Ok(())
}

/// Whether the calling thread is registered.
#[cfg(feature = "testing")]
pub fn is_registered() -> bool {
    !current().extra.load(Ordering::Relaxed).is_null()
}

/// Looks at the thread's signals again if that is due. Comes after [`super::thread::undivert`]: a
/// change from then on diverts the call.
pub(crate) fn look(thread: &Thread) -> Result<(), Refusal> {
    let now = signal::generation();
    if thread.extra().checked != now {
        signal::check_thread()?;
        if let Some(stack) = &thread.extra().signal_stack {
            stack.again();
        }
        thread.extra().checked = now;
    }
    Ok(())
}

/// Lets the gates know the thread's own stack. Without a guard below it every entry takes the slow
/// path, and so it does where the stack is larger than extensions may use.
fn set_bounds(thread: &Thread) {
    let extra = thread.extra();
    let (low, top) = extra.stack;
    let (low, size) = match top > low + 2 * MARGIN {
        true => (low + MARGIN, top - low - MARGIN),
        false => (u64::MAX, 0),
    };
    thread.stack_low.store(low, Ordering::Relaxed);
    thread.stack_size.store(size, Ordering::Relaxed);
    let span = if extra.admitted { size } else { 0 };
    thread.stack_span.store(span, Ordering::Relaxed);
}

/// The calling thread's own stack: lowest usable address, top, and whether what lies below is
/// inaccessible.
#[derive(Clone, Copy)]
struct Bounds {
    low: u64,
    top: u64,
    guarded: bool,
}

fn own_stack_bounds() -> Option<Bounds> {
    // SAFETY: the attribute object is initialised by pthread_getattr_np before it is read, and
    // destroyed once.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
            return None;
        }
        let (mut start, mut size, mut guard) = (std::ptr::null_mut(), 0usize, 0usize);
        let known = libc::pthread_attr_getstack(&attributes, &mut start, &mut size) == 0;
        libc::pthread_attr_getguardsize(&attributes, &mut guard);
        libc::pthread_attr_destroy(&mut attributes);
        // The main thread's stack has the kernel's guard gap, whatever the attribute says. libc
        // counts the guard of other threads to the stack.
        let main = libc::gettid() == libc::getpid();
        let below = if main { 0 } else { guard };
        known.then_some(Bounds {
            low: (start as usize + below) as u64,
            top: (start as usize + size) as u64,
            guarded: main || guard != 0,
        })
    }
}

impl Extra {
    /// The control stack of the runtime's own (lowest usable address, top), made at first use.
    pub(crate) fn own_stack(&mut self) -> Result<(u64, u64), Refusal> {
        // A page without access stands on either side.
        let bounds = |memory: &Mapping| {
            let (start, bytes) = (memory.address() as u64, memory.bytes() as u64);
            (start + 4096, start + bytes - 4096)
        };
        if let Some(stack) = &self.own_stack {
            return Ok(bounds(stack));
        }
        let size = match self.stack {
            // The thread's own is too large: this one is instead of it.
            (low, top) if low != top && !self.admitted && !self.ending => {
                MOST.load(Ordering::Relaxed)
            }
            _ => CONTROL_STACK,
        };
        let size = size.max(CONTROL_STACK).next_multiple_of(4096);
        let all = size + 2 * 4096;
        map::room(3).map_err(|_| Refusal::NoMemory)?;
        let memory = Mapping::reserve(all).map_err(|_| Refusal::NoMemory)?;
        let opened = memory.open(4096..4096 + size);
        opened.map_err(|_| Refusal::NoMemory)?;
        Ok(bounds(self.own_stack.insert(memory)))
    }
}

/// Undoes [`register`]; runs when the thread ends, and after each call of a thread that is ending.
pub(crate) fn unregister(thread: &Thread) {
    // No upcall any more: nobody would see it. Whose attachment it was has the memory.
    thread.upcall.store(std::ptr::null_mut(), Ordering::SeqCst);
    let p = thread.extra.swap(std::ptr::null_mut(), Ordering::Relaxed);
    if p.is_null() {
        return;
    }
    thread.stack_span.store(0, Ordering::Relaxed);
    thread.stack_low.store(0, Ordering::Relaxed);
    thread.stack_size.store(0, Ordering::Relaxed);
    thread.entry_slot.store(control::NOBODYS, Ordering::SeqCst);
    // SAFETY: the pointer came from Box::into_raw in `register` and was just taken out of its only
    // place.
    let extra = unsafe { Box::from_raw(p) };
    let mut registry = registry();
    if let Some(place) = registry.threads.get_mut(extra.index) {
        *place = std::ptr::null();
    }
    let depth = thread.depth();
    for record in &thread.records()[..depth] {
        // The host left these calls behind for good.
        if let Some(control) = record.domain() {
            let slot = control.slot(extra.index);
            slot.waiting.fetch_sub(1, Ordering::SeqCst);
            control.note_left(extra.index);
        }
    }
    if thread.call_state.own() != CallPhase::Outside
        && let Some(control) = thread.innermost()
    {
        control.note_left(extra.index);
    }
    drop(registry);
    drop(Records::take(thread));
    thread.host_rsp.store(0, Ordering::Relaxed);
    thread.call_state.forget();
    drop(extra.own_stack);
    if let Some(stack) = extra.signal_stack {
        stack.remove();
    }
    // The calls that end with it may have been the last ones inside. Nobody could take a panic of
    // what is dropped.
    let _ = std::panic::catch_unwind(above().forgotten);
}

/// For the slow path, when it leaves: a thread that runs its last destructors is not known any
/// more.
pub(super) fn leave(thread: &Thread) {
    if thread.call_state.own() == CallPhase::Outside
        && !thread.extra.load(Ordering::Relaxed).is_null()
        && thread.extra().ending
    {
        unregister(thread);
    }
}

/// How we learn of the ends of threads.
struct End {
    /// Whoever registers has a value for this key, whose destructor is `postern_thread_end`.
    key: libc::pthread_key_t,
    /// The address in libc behind the call of destructors.
    called_from: AtomicU64,
}

static END: OnceLock<End> = OnceLock::new();

/// A value of the key: only tell where destructors are called from.
const PROBE: usize = 1;

// The destructor finds where it was called from, which no other code can know.
global_asm!(
    ".p2align 4",
    ".globl postern_thread_end",
    ".hidden postern_thread_end",
    "postern_thread_end:",
    "endbr64",
    "mov rsi, [rsp]",
    "jmp {end}",
    end = sym at_end,
);

unsafe extern "C" {
    fn postern_thread_end(value: *mut libc::c_void);
}

extern "C" fn at_end(value: *mut libc::c_void, from: u64) {
    if value as usize == PROBE {
        if let Some(end) = END.get() {
            end.called_from.store(from, Ordering::SeqCst);
        }
        return;
    }
    unregister(current());
    (above().thread_exited)();
}

/// Makes the key, and a thread that ends at once and tells where destructors are called from.
/// Called at start, by one thread at a time, until it succeeds. Threads whose own stack is larger
/// than `control_stack` bytes run extensions on another one.
pub fn prepare(control_stack: usize) -> std::io::Result<()> {
    MOST.store(control_stack, Ordering::Relaxed);
    let key = match END.get() {
        Some(end) => end.key,
        None => {
            let mut key = 0;
            // SAFETY: `postern_thread_end` takes what pthread passes and does not unwind.
            let failed = unsafe { libc::pthread_key_create(&mut key, Some(postern_thread_end)) };
            if failed != 0 {
                return Err(std::io::Error::from_raw_os_error(failed));
            }
            let called_from = AtomicU64::new(0);
            END.get_or_init(|| End { key, called_from }).key
        }
    };
    let probe = std::thread::Builder::new().spawn(move || {
        super::mask::block_all_signals();
        // SAFETY: the key exists; its destructor only compares the value.
        unsafe { libc::pthread_setspecific(key, PROBE as *const _) };
    })?;
    // When it is joined its destructors have run.
    let _ = probe.join();
    Ok(())
}

/// Whether the calling thread, whose stack pointer is `frame`, is in a destructor of
/// thread-specific data: then libc's frame that calls those is on its stack. A word of a frame that
/// is gone may look like it; that costs time and nothing else.
fn runs_last_destructors(frame: u64, bounds: Option<Bounds>) -> bool {
    let from = END.get().map(|e| e.called_from.load(Ordering::SeqCst));
    let (Some(from), Some(Bounds { low, top, .. })) = (from.filter(|&f| f != 0), bounds) else {
        return false;
    };
    let range = match (low..top).contains(&frame) {
        true => frame..top.min(frame + REACH),
        // On a coroutine's stack; that frame is at the other one's top.
        false => low.max(top.saturating_sub(REACH))..top,
    };
    // All of a stack's words above one that was in use are mapped.
    // SAFETY: so these are.
    range
        .step_by(8)
        .any(|at| unsafe { memory::host_word(at) } == from)
}

/// In the child after fork: only the calling thread is left. Domains that other threads were inside
/// are reported to `inside`.
///
/// The caller holds the registry since before the fork.
pub fn after_fork(registry: &mut Registry, _: &InChild, mut inside: impl FnMut(&Control)) {
    let me: *const Thread = current();
    for place in registry.threads.iter_mut() {
        if place.is_null() || std::ptr::eq(*place, me) {
            continue;
        }
        // SAFETY: fork copied the other threads' blocks; nobody frees them in the child.
        let other = unsafe { &**place };
        if other.call_state.own() != CallPhase::Outside {
            // SAFETY: control blocks are never unmapped; the pointer of a thread in a call is set.
            if let Some(control) = unsafe { other.control.load(Ordering::Relaxed).as_ref() } {
                inside(control);
            }
            for (_, record) in other.waiting() {
                if let Some(control) = record.domain() {
                    inside(control);
                    // Nobody waits there any more, whoever gets the index next.
                    let slot = control.slot(other.index());
                    slot.waiting.store(0, Ordering::SeqCst);
                }
            }
        }
        *place = std::ptr::null();
    }
    // SAFETY: `me` is the calling thread's block.
    let me = unsafe { &*me };
    // There is nobody to look at deadlines, and the timers were the parent's.
    me.upcall.store(std::ptr::null_mut(), Ordering::SeqCst);
    // SAFETY: gettid has no preconditions.
    me.tid
        .store(unsafe { libc::gettid() } as u32, Ordering::Relaxed);
    // The next call finds that there is no watchdog, and looks at its signals.
    signal::look_again(registry);
}
