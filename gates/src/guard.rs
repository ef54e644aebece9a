//! Guarded services: a service whose entry names [`postern_guard`] as its function is decided about
//! before it is called.
//!
//! Invariants: an entry's guard is set before its function becomes the shim, and stays for as long
//! as the entry. The service itself gets the registers, the stack and the context that it would
//! have had.

use super::call_state::CallPhase;
pub use super::control::{Answer, Decide, GuardedCall};
use super::control::{Guard, PEER, ServiceEntry};
use super::outcome;
use super::peer::PeerError;
use super::thread::{self, Thread};
use super::{peer, shim};
use std::arch::global_asm;
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl GuardedCall<'_> {
    /// Whether the thread is on its own stack with less than `need` bytes of it left. (Of
    /// coroutines' stacks only the host knows.)
    pub fn lacks_stack(&self, need: u64) -> bool {
        let here = ptr::from_ref(self.integers) as u64;
        shim::lacks_stack(thread::current(), here, need)
    }
}

impl ServiceEntry {
    /// Has `by` decide about the service, or nobody. A call that has begun goes on as it began. Who
    /// decides is the same for as long as the entry is there.
    pub fn guarded<D: Decide + 'static>(&self, by: &Arc<D>, on: bool) {
        let guard = self.guard_of(by);
        debug_assert!(ptr::addr_eq(Arc::as_ptr(&guard.by), Arc::as_ptr(by)));
        let function = match on {
            true => &raw const postern_guard as usize,
            false => guard.function,
        };
        self.function.store(function, Ordering::SeqCst);
        if guard.function == peer::function() {
            // The peer gate calls no functions; so it is not to take the call on.
            let stack = match on {
                true => shim::DEFAULT_STACK as u64,
                false => PEER,
            };
            self.stack.store(stack, Ordering::SeqCst);
        }
    }

    /// The guard, made at the first time, when the function is the service's own yet.
    fn guard_of<D: Decide + 'static>(&self, by: &Arc<D>) -> &Guard {
        let (order, none) = (Ordering::SeqCst, ptr::null_mut());
        let mut guard = self.guard.load(order);
        if guard.is_null() {
            let (function, by) = (self.function.load(order), by.clone());
            let new = Box::into_raw(Box::new(Guard { function, by }));
            guard = match self.guard.compare_exchange(none, new, order, order) {
                Ok(_) => new,
                Err(other) => {
                    // SAFETY: made above, and nobody has seen it.
                    drop(unsafe { Box::from_raw(new) });
                    other
                }
            };
        }
        // SAFETY: it is set once, and freed with the entry.
        unsafe { &*guard }
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

// On entry rsp is 8 modulo 16, and everything else as the service expects it. The result goes into
// both result registers; the service gate masks what the type does not have.
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
const _: () = assert!((size_of::<Saved>() + 8 + 8).is_multiple_of(16));

unsafe extern "C" {
    static postern_guard: u8;
}

/// # Safety
/// Called by the shim only: `saved` is its frame.
unsafe extern "C" fn decide(saved: &Saved) -> Way {
    let thread = thread::current();
    if thread.in_upcall() {
        // Who decides may lock and allocate, and this thread may have been interrupted at either.
        shim::end_when_back_of(thread, outcome::NOT_IN_UPCALLS, 0, None);
        return Way {
            function: 0,
            word: 0,
        };
    }
    // SAFETY: the service gate stored the entry of the service that it calls, whose guard was set
    // before its function was, and the domain's control block. Both are used until this function
    // returns, and so long the call is inside: the table of services goes with its domain, which
    // stays until nobody is inside, whoever drops the last handle, and be it whoever decides here.
    let (guard, control) = unsafe {
        let entry = &*thread.service.load(Ordering::Relaxed);
        (
            &*entry.guard.load(Ordering::SeqCst),
            &*thread.control.load(Ordering::Relaxed),
        )
    };
    let call = GuardedCall {
        control,
        integers: &saved.integers,
        floats: &saved.floats,
    };
    let answer = match catch_unwind(AssertUnwindSafe(|| guard.by.decide(&call))) {
        Ok(answer) => answer,
        Err(panic) => {
            shim::panicked(thread, panic);
            Answer::Value(0)
        }
    };
    match answer {
        Answer::GoOn => Way {
            function: guard.function,
            word: thread.context.load(Ordering::Relaxed),
        },
        Answer::Value(word) => Way { function: 0, word },
        Answer::Denied(word) => {
            denied(thread, guard);
            Way { function: 0, word }
        }
    }
}

/// A call that is not made.
fn denied(thread: &Thread, guard: &Guard) {
    if guard.function == peer::function() {
        peer::say(thread, PeerError::Denied);
    }
}

/// Whether the service that runs on this thread was revoked since it began.
pub fn is_revoked() -> bool {
    let thread = thread::current();
    if thread.call_state.own() != CallPhase::InService {
        return false;
    }
    // SAFETY: the thread is in a service, whose entry the gate stored; entry and guard stay while a
    // call is inside.
    unsafe {
        let entry = &*thread.service.load(Ordering::Relaxed);
        let guard = entry.guard.load(Ordering::SeqCst).as_ref();
        guard.is_some_and(|guard| guard.by.is_revoked())
    }
}
