//! Guarded services: a service whose entry names [`postern_guard`] as its function is decided about before it is called.
//!
//! Invariants: an entry's guard is set before its function becomes the shim, and lives as long as the entry; a decider that a
//! thread inside the domain has found is dropped only once nobody is inside. The service itself gets the registers, the stack and
//! the context that it would have had.

use super::control::ServiceEntry;
use super::peer::PeerError;
use super::thread::{self, IN_SERVICE, Thread};
use super::{outcome, peer, shim};
use crate::Verdict;
use crate::decision::{self, Asked, Decider, DecisionError, Question};
use crate::fork;
use crate::service::{Caller, DEFAULT_STACK};
use std::arch::global_asm;
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Who decides in a domain, and how often that failed.
#[derive(Default)]
pub(crate) struct Deciding {
    current: AtomicPtr<Decider>,
    /// Questions that a decider did not answer as it must.
    failures: AtomicU64,
    /// How the last of them failed, unless by a panic.
    last_failure: Mutex<Option<DecisionError>>,
}

impl Deciding {
    /// Who is to be asked. The proof is that of being inside the domain whose this is: a decider that is found goes no earlier than
    /// its caller.
    #[inline]
    pub(crate) fn current<'a>(&'a self, _inside: &'a Caller<'_>) -> Option<&'a Decider> {
        // SAFETY: the pointer is null or from `replace`. Whoever replaces it while the domain is there keeps what it gets back until
        // nobody is inside (`Services::set_decider`); `drop` replaces it with the domain's parts, which go when nobody is inside
        // (`domain::retired`), the caller's own thread included. The two callers, `decide` and `System::decide`, are services
        // of that very domain, and what they get is not used after they have returned.
        unsafe { self.current.load(Ordering::SeqCst).as_ref() }
    }

    /// Whether somebody is to be asked.
    pub(crate) fn is_set(&self) -> bool {
        !self.current.load(Ordering::SeqCst).is_null()
    }

    /// Who is to be asked. Whoever calls this keeps others from `replace` meanwhile.
    pub(crate) fn name(&self) -> Option<String> {
        // SAFETY: null or from `replace`, which the caller excludes.
        let decider = unsafe { self.current.load(Ordering::SeqCst).as_ref() };
        decider.map(|decider| format!("{decider:?}"))
    }

    /// Counts a question that was not answered.
    pub(crate) fn failed(&self, error: Option<DecisionError>) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        if error.is_some() {
            *fork::lock(&self.last_failure) = error;
        }
    }

    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub(crate) fn last_failure(&self) -> Option<DecisionError> {
        fork::lock(&self.last_failure).clone()
    }

    /// Puts another decider in place. The former one may still be in use by whoever is inside the domain.
    pub(crate) fn replace(&self, decider: Option<Decider>) -> Option<Box<Decider>> {
        let new = decider.map_or(std::ptr::null_mut(), |d| Box::into_raw(Box::new(d)));
        let old = self.current.swap(new, Ordering::SeqCst);
        // SAFETY: every pointer in there came from Box::into_raw, and was just taken out of its only place.
        (!old.is_null()).then(|| unsafe { Box::from_raw(old) })
    }
}

impl Drop for Deciding {
    fn drop(&mut self) {
        drop(self.replace(None));
    }
}

/// What stands between an extension and one service.
pub(crate) struct Guard {
    /// The service itself.
    pub function: usize,
    /// The import's name and number.
    pub name: Box<str>,
    pub number: usize,
    /// Masks of the integer and floating-point parameters.
    pub integers: Vec<u64>,
    pub floats: Vec<u64>,
    /// The caller's name and the service's, each with a NUL.
    pub texts: Box<[u8]>,
    /// Bytes of `texts` that are the caller's name, without the NUL.
    pub domain: usize,
    /// The system calls: their deciders are asked once the call is decoded.
    pub system: bool,
    pub revoked: AtomicBool,
    /// Calls that were not made.
    pub denied: AtomicU64,
    /// What such a call gives.
    pub refusal: u64,
    pub deciding: Arc<Deciding>,
}

impl Guard {
    /// Whether every domain has the service: then nobody is asked, and nobody takes it.
    pub(crate) fn is_always_granted(&self) -> bool {
        self.name.starts_with("__postern_")
    }

    /// Name of the domain that calls.
    pub(crate) fn domain(&self) -> &str {
        std::str::from_utf8(&self.texts[..self.domain]).unwrap_or_default()
    }
}

impl ServiceEntry {
    /// Puts `guard` in front of the service, or takes it away. A call that has begun goes on as it began.
    ///
    /// `guard` stands before this very service, and lives as long as the entry is in use: both belong to one `Services`.
    pub(crate) fn guarded(&self, guard: &Guard, on: bool) {
        self.guard
            .store(guard as *const Guard as *mut Guard, Ordering::SeqCst);
        let function = match on {
            true => &raw const postern_guard as usize,
            false => guard.function,
        };
        self.function.store(function, Ordering::SeqCst);
        if guard.function == peer::function() {
            // The peer gate calls no functions; so it is not to take the call on.
            let stack = match on {
                true => DEFAULT_STACK as u64,
                false => peer::PEER,
            };
            self.stack.store(stack, Ordering::SeqCst);
        }
    }
}

/// The arguments as the service gate left them.
#[repr(C)]
struct Saved {
    integers: [u64; 6],
    floats: [u64; 8],
}

/// How a call goes on: with `function`, `word` being its context; or with 0 and the result.
#[repr(C)]
struct Way {
    function: usize,
    word: u64,
}

// On entry rsp is 8 modulo 16, and everything else as the service expects it. The result goes into both result registers; the
// service gate masks what the type does not have.
global_asm!(
    ".p2align 4",
    ".globl postern_guard",
    ".hidden postern_guard",
    "postern_guard:",
    "sub rsp, {frame}",
    "mov [rsp], rdi",
    "mov [rsp + 8], rsi",
    "mov [rsp + 16], rdx",
    "mov [rsp + 24], rcx",
    "mov [rsp + 32], r8",
    "mov [rsp + 40], r9",
    "movlps [rsp + {floats}], xmm0",
    "movlps [rsp + {floats} + 8], xmm1",
    "movlps [rsp + {floats} + 16], xmm2",
    "movlps [rsp + {floats} + 24], xmm3",
    "movlps [rsp + {floats} + 32], xmm4",
    "movlps [rsp + {floats} + 40], xmm5",
    "movlps [rsp + {floats} + 48], xmm6",
    "movlps [rsp + {floats} + 56], xmm7",
    "mov rdi, rsp",
    "call {decide}",
    "mov r11, rax",
    "mov rax, rdx",
    "test r11, r11",
    "jz 2f",
    "mov rdi, [rsp]",
    "mov rsi, [rsp + 8]",
    "mov rdx, [rsp + 16]",
    "mov rcx, [rsp + 24]",
    "mov r8, [rsp + 32]",
    "mov r9, [rsp + 40]",
    "movsd xmm0, [rsp + {floats}]",
    "movsd xmm1, [rsp + {floats} + 8]",
    "movsd xmm2, [rsp + {floats} + 16]",
    "movsd xmm3, [rsp + {floats} + 24]",
    "movsd xmm4, [rsp + {floats} + 32]",
    "movsd xmm5, [rsp + {floats} + 40]",
    "movsd xmm6, [rsp + {floats} + 48]",
    "movsd xmm7, [rsp + {floats} + 56]",
    "add rsp, {frame}",
    "jmp r11",
    "2:",
    "movq xmm0, rax",
    "add rsp, {frame}",
    "ret",
    frame = const size_of::<Saved>() + 8,
    floats = const offset_of!(Saved, floats),
    decide = sym decide,
);

// The frame keeps rsp a multiple of 16 at the call.
const _: () = assert!((size_of::<Saved>() + 8 + 8) % 16 == 0);

unsafe extern "C" {
    static postern_guard: u8;
}

/// # Safety
/// Called by the shim only: `saved` is its frame.
unsafe extern "C" fn decide(saved: &Saved) -> Way {
    let thread = thread::current();
    // SAFETY: the service gate stored the entry of the service that it calls, whose guard was set before its function was, and
    // the domain's control block. Both are used until this function returns, and so long the call is inside: table, guards and
    // deciders are parts of its domain, which are dropped when nobody is inside, whoever drops the last handle, and be it
    // the decider that is asked here (`domain::retired`).
    let (guard, control) = unsafe {
        let entry = &*thread.service.load(Ordering::Relaxed);
        (
            &*entry.guard.load(Ordering::SeqCst),
            &*thread.control.load(Ordering::Relaxed),
        )
    };
    let context = thread.context.load(Ordering::Relaxed);
    let go_on = Way {
        function: guard.function,
        word: context,
    };
    let answered = |word| Way { function: 0, word };
    if guard.system && decision::ends_the_call(saved.integers[0] as i64) {
        return go_on;
    }
    if guard.revoked.load(Ordering::SeqCst) {
        return denied(thread, guard);
    }
    let caller = Caller::new(control);
    let Some(decider) = guard.deciding.current(&caller).filter(|_| !guard.system) else {
        return go_on;
    };
    if too_little_stack(thread, saved) {
        shim::end_when_back(thread, outcome::SERVICE_STACK, 0, None);
        return answered(0);
    }
    let asked = catch_unwind(AssertUnwindSafe(|| ask(guard, decider, &caller, saved)));
    let verdict = match asked {
        Ok(verdict) => verdict,
        Err(panic) => {
            guard.deciding.failed(None);
            shim::panicked(thread, panic);
            return answered(0);
        }
    };
    match verdict {
        // The decider, or the deadline, may have ended the call meanwhile.
        Verdict::Allow if !shim::ending(thread) => return go_on,
        Verdict::Emulate(value, _) => return answered(value as u64),
        Verdict::Kill(message) => shim::end_when_back(thread, outcome::KILL, 0, Some(message)),
        Verdict::Allow | Verdict::Deny(_) => {}
    }
    denied(thread, guard)
}

/// Whether the service that runs on this thread was revoked since it began.
pub(crate) fn is_revoked() -> bool {
    let thread = thread::current();
    if thread.mark.load(Ordering::Relaxed) != IN_SERVICE {
        return false;
    }
    // SAFETY: the thread is in a service, whose entry the gate stored; entry and guard stay while a call is inside.
    unsafe {
        let entry = &*thread.service.load(Ordering::Relaxed);
        let guard = entry.guard.load(Ordering::SeqCst).as_ref();
        guard.is_some_and(|guard| guard.revoked.load(Ordering::SeqCst))
    }
}

/// A call that is not made.
fn denied(thread: &Thread, guard: &Guard) -> Way {
    guard.denied.fetch_add(1, Ordering::Relaxed);
    if guard.function == peer::function() {
        peer::say(thread, PeerError::Denied);
    }
    Way {
        function: 0,
        word: guard.refusal,
    }
}

/// Whether the thread is on its own stack with less of it left than a decider may expect. (Of coroutines' stacks only the host knows.)
fn too_little_stack(thread: &Thread, here: &Saved) -> bool {
    let left = (here as *const Saved as u64).wrapping_sub(thread.stack_low.load(Ordering::Relaxed));
    left < DEFAULT_STACK as u64 && left < thread.stack_size.load(Ordering::Relaxed)
}

fn ask(guard: &Guard, decider: &Decider, caller: &Caller<'_>, saved: &Saved) -> Verdict {
    let (mut integers, mut floats) = ([0; 6], [0; 8]);
    let masked = |to: &mut [u64], from: &[u64], masks: &[u64]| {
        for ((to, from), mask) in to.iter_mut().zip(from).zip(masks) {
            *to = from & mask;
        }
    };
    masked(&mut integers, &saved.integers, &guard.integers);
    masked(&mut floats, &saved.floats, &guard.floats);
    let question = Question {
        domain: guard.domain(),
        call: Asked::Service {
            name: &guard.name,
            number: guard.number,
            integers: &integers[..guard.integers.len().min(6)],
            floats: &floats[..guard.floats.len().min(8)],
        },
    };
    decider.decide(caller, &question, &guard.texts, &guard.deciding)
}
