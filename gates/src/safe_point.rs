//! The safe point of a host that has one: a flag, and a function that looks at what it is for.
//! While the flag is set, the function runs on threads that are in the text of extensions, between
//! two of its instructions, as if a service had been called there; then the thread goes on exactly
//! as it was, or its call ends.
//!
//! The abort signal finds the thread in text, with no wish of anybody's that a call end. Its
//! handler copies the kernel's frame to the host's stack, below what the interrupted call has
//! there, and edits the frame itself: the thread comes back from the signal in [`run`], on the
//! host's stack, with the host's floating-point control and the mask of signals that it had. So
//! the function is no signal handler's: it may allocate, lock, wait, call extensions, and leave by
//! `longjmp`, which leaves a call as one out of a service does ([`super::stale`]). At its end all
//! signals are blocked, and `rt_sigreturn` reads the copy.
//!
//! The call state says *InService* from the handler on until all signals are blocked, so wishes
//! that the call end meanwhile wait as for a service. What the service gate would have written is
//! written, and comes back: of the service that the thread called last, which is nobody's.

use super::control::Control;
use super::gate::{FACT_FLOAT, FACT_X87};
use super::host;
use super::mask;
use super::outcome;
use super::signal::{end, frame};
use super::sync::catch;
use super::thread::{self, Thread};
use core::arch::asm;
use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicI32, AtomicPtr};
use libc::ucontext_t;

/// What a host has run.
pub struct SafePoint {
    /// Not 0: somebody wants something of the host, which its function looks at.
    pub flag: &'static AtomicI32,
    /// Looks.
    pub look: Look,
    /// Bytes of the host's stack that it may need.
    pub stack: usize,
}

/// The host's function, which says whether the call goes on.
pub struct Look(Function);

enum Function {
    Closure(Box<dyn Fn() -> bool + Send + Sync>),
    C(unsafe extern "C" fn(*mut c_void) -> c_int, usize),
}

impl Look {
    /// A closure. True: the call goes on.
    pub fn closure(look: impl Fn() -> bool + Send + Sync + 'static) -> Look {
        Look(Function::Closure(Box::new(look)))
    }

    /// A C function, which may leave by `longjmp`. 0: the call goes on.
    ///
    /// # Safety
    /// It may be called with this context on any thread that calls extensions, and does not unwind.
    pub unsafe fn function(
        look: unsafe extern "C" fn(*mut c_void) -> c_int,
        context: *mut c_void,
    ) -> Look {
        Look(Function::C(look, context as usize))
    }
}

/// The host's.
static POINT: AtomicPtr<SafePoint> = AtomicPtr::new(ptr::null_mut());

/// From now on, this is the host's. One that was there before stays in memory: a thread may be in
/// it.
pub fn set(point: SafePoint) {
    POINT.store(Box::into_raw(Box::new(point)), Release);
}

/// From now on, there is none.
pub fn clear() {
    POINT.store(ptr::null_mut(), Release);
}

/// The host's, if its flag is set.
fn wanted() -> Option<&'static SafePoint> {
    // SAFETY: null, or what `set` has leaked.
    let point = unsafe { POINT.load(Acquire).as_ref() }?;
    (point.flag.load(Relaxed) != 0).then_some(point)
}

/// Whether the host's flag is set.
pub fn is_wanted() -> bool {
    wanted().is_some()
}

/// Bytes below an interrupted stack pointer that stay as they are.
const APART: u64 = 256;

/// What [`run`] needs, on the host's stack.
struct Saved {
    thread: &'static Thread,
    point: &'static SafePoint,
    facts: u32,
    /// The base of the gs segment, which is the window's.
    gs: u64,
    errno: i32,
    /// The copy of the kernel's frame.
    context: *mut ucontext_t,
    /// What the service gate had left in the thread's state.
    service: *mut super::control::ServiceEntry,
    service_context: u64,
    service_rsp: u64,
    service_r15: u32,
}

/// Called by the abort signal's handler, where the calling thread is in text: has it go on with the
/// host's function. False if that is not wanted, or has no room.
pub(crate) fn divert(control: &Control, context: &mut ucontext_t) -> bool {
    let thread = thread::current();
    let Some(point) = wanted().filter(|_| !thread.in_upcall()) else {
        return false;
    };
    let registers = &context.uc_mcontext.gregs;
    let rsp = registers[libc::REG_RSP as usize] as u64;
    let r15 = registers[libc::REG_R15 as usize] as u32;
    // As the service gate: below the extension's own return addresses, or where the host has left
    // its stack.
    let foreign = thread.foreign.load(Relaxed) != 0;
    let below = if foreign {
        thread.frame.load(Relaxed)
    } else {
        rsp
    };
    let low = thread.stack_low.load(Relaxed);
    let room = below.wrapping_sub(low);
    // How large a coroutine's stack is, only the host knows.
    if room >= thread.stack_size.load(Relaxed) {
        return false;
    }
    let from = ptr::from_mut(context).cast::<u8>();
    // SAFETY: the kernel's own context.
    let (vectors, bytes) = unsafe { frame::vectors(from) };
    let parts = bytes + size_of::<ucontext_t>() + size_of::<Saved>();
    let needed = APART as usize + parts + 3 * frame::ALIGNMENT;
    if room < (needed + point.stack) as u64 || vectors.is_null() {
        return false;
    }
    let place = |top: u64, bytes: usize| (top - bytes as u64) & !(frame::ALIGNMENT as u64 - 1);
    let vectors_at = place(below - APART, bytes);
    let context_at = place(vectors_at, size_of::<ucontext_t>());
    let saved_at = place(context_at, size_of::<Saved>());
    let facts = control.facts();
    let gs: u64;
    // SAFETY: reads the gs base; the processor has the instruction (`machine::unsupported`).
    unsafe { asm!("rdgsbase {}", out(reg) gs, options(nomem, nostack, preserves_flags)) };
    let saved = Saved {
        thread,
        point,
        facts,
        gs,
        // SAFETY: errno's location is thread-local and always valid.
        errno: unsafe { *libc::__errno_location() },
        context: context_at as *mut ucontext_t,
        service: thread.service.load(Relaxed),
        service_context: thread.context.load(Relaxed),
        service_rsp: thread.service_rsp.load(Relaxed),
        service_r15: thread.service_r15.load(Relaxed),
    };
    // SAFETY: the places lie in the calling thread's own stack, below all that is in use there, for
    // which `room` was enough.
    unsafe {
        (context_at as *mut ucontext_t).write(core::mem::zeroed());
        frame::copy(from, context_at as *mut u8, vectors_at as *mut u8);
        (saved_at as *mut Saved).write(saved);
    }
    thread.service.store(ptr::null_mut(), Relaxed);
    thread.service_rsp.store(rsp, Relaxed);
    // Below what a leaf function may have of the data stack.
    thread
        .service_r15
        .store((r15 & !15).wrapping_sub(APART as u32), Relaxed);
    thread.host_rsp.store(saved_at, Relaxed);
    // SAFETY: the kernel's own frame, from which the thread goes on.
    unsafe { host_control(vectors, thread, facts) };
    let registers = &mut context.uc_mcontext.gregs;
    let mut set = |register: libc::c_int, value: u64| registers[register as usize] = value as i64;
    set(libc::REG_RIP, postern_safe_point_switch as *const () as u64);
    set(libc::REG_RSP, saved_at);
    set(libc::REG_RDI, saved_at);
    set(libc::REG_RSI, run as *const () as u64);
    end::clear_flags(context);
    thread.call_state.begin_service();
    true
}

/// Gives a frame the host's floating-point control, as far as it is kept apart from the
/// extension's. (What is left is done by `host::bring_back`, which needs exceptions masked.)
///
/// # Safety
/// The vector state of a frame.
unsafe fn host_control(vectors: *mut u8, thread: &Thread, facts: u32) {
    // In the layout of `fxsave`: control word, status word and tags of the x87, MXCSR.
    // SAFETY: the first 512 bytes are there.
    unsafe {
        if facts & FACT_X87 != 0 {
            vectors
                .cast::<u16>()
                .write_unaligned(host::X87_CONTROL as u16);
            vectors.add(2).cast::<u16>().write_unaligned(0);
            vectors.add(4).write(0);
        }
        if facts & FACT_FLOAT != 0 {
            let mxcsr = thread.mxcsr.load(Relaxed);
            vectors.add(24).cast::<u32>().write_unaligned(mxcsr);
        }
    }
}

/// Gives a frame what the host's function has left of the floating-point control, as far as that is
/// the extension's, too.
///
/// # Safety
/// The vector state of a frame that the caller owns.
unsafe fn left_control(vectors: *mut u8, facts: u32) {
    // SAFETY: the first 512 bytes are there.
    unsafe {
        if facts & FACT_X87 == 0 {
            asm!("fnstcw word ptr [{}]", in(reg) vectors, options(nostack, preserves_flags));
        }
        if facts & FACT_FLOAT == 0 {
            asm!("stmxcsr dword ptr [{}]", in(reg) vectors.add(24), options(nostack, preserves_flags));
        }
    }
}

core::arch::global_asm!(
    // rdi = what was saved, rsp = the same, rsi = where to go on.
    ".p2align 4",
    ".hidden postern_safe_point_switch",
    ".globl postern_safe_point_switch",
    "postern_safe_point_switch:",
    "endbr64",
    "xor ebp, ebp",
    "call rsi",
    "ud2",
);

unsafe extern "C" {
    fn postern_safe_point_switch();
}

/// Runs the host's function, and goes back.
///
/// # Safety
/// Called from a frame that [`divert`] has edited, with what it has saved.
unsafe extern "C" fn run(saved: *mut c_void) -> ! {
    // SAFETY: the caller's promise; it lies above this function's own frame.
    let saved = unsafe { &mut *saved.cast::<Saved>() };
    let (thread, facts) = (saved.thread, saved.facts);
    host::bring_back(thread, facts);
    let goes_on = match &saved.point.look.0 {
        Function::Closure(look) => catch(look),
        // SAFETY: whoever made it has promised that; no frame between it and what it may jump to
        // has anything to drop.
        Function::C(look, context) => Ok(unsafe { look(*context as *mut c_void) } == 0),
    };
    // Nothing comes between the end of the service that this was, and the instruction.
    let mask = mask::change(libc::SIG_SETMASK, u64::MAX);
    host::keep(thread, facts);
    // SAFETY: the copy of the frame, and what it names, are this thread's own; its mask is the
    // kernel's eight bytes.
    let context = unsafe {
        let (vectors, _) = frame::vectors(saved.context.cast());
        left_control(vectors, facts);
        let context = &mut *saved.context;
        (&raw mut context.uc_sigmask).cast::<u64>().write(mask);
        context
    };
    thread.service.store(saved.service, Relaxed);
    thread.context.store(saved.service_context, Relaxed);
    thread.service_rsp.store(saved.service_rsp, Relaxed);
    thread.service_r15.store(saved.service_r15, Relaxed);
    thread.host_rsp.store(0, Relaxed);
    let sequence = thread.sequence.load(Relaxed);
    let pending = thread.pending.load(SeqCst) == sequence;
    let kind = match goes_on {
        Err(panic) => {
            thread.extra().panic = Some(panic);
            Some(outcome::PANIC)
        }
        Ok(false) => Some(outcome::INTERRUPT),
        Ok(true) if pending => Some(thread.abort_kind.load(Relaxed)),
        Ok(true) => None,
    };
    thread.call_state.end_service();
    if let Some(kind) = kind
        && let Some(control) = thread.innermost()
    {
        end::at(thread, control, context, kind);
    }
    // SAFETY: the copy is this thread's own, and all that lies below it is over.
    unsafe { frame::go_on(saved.context.cast(), saved.gs, saved.errno) }
}
