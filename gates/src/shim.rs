//! Closures behind the service gate: C functions that find their closure in the thread's state.
//!
//! A panic of the closure is caught here, carried around the extension, and goes on in the host's
//! own call.

use super::call_state::CallPhase;
use super::control::Control;
use super::registers::integer_mask;
#[cfg(feature = "linux")]
use super::sync::catch;
use super::thread::{self, Thread};
use alloc::boxed::Box;
use alloc::string::String;
use core::arch::global_asm;
use core::sync::atomic::Ordering;
use postern_image::Type;

/// Stack that a service gets when it declares nothing.
pub const DEFAULT_STACK: usize = 64 << 10;

/// What runs behind the service gate, as the registers have it.
pub trait Body: Send + Sync + 'static {
    /// Does the service for the domain of this control block, on the thread of the extension that
    /// called. The registers are as the extension left them; the result goes into rax or xmm0. A
    /// panic ends the call, and goes on in whoever called the extension.
    fn invoke(&self, control: &Control, integers: &[u64; 6], floats: &[u64; 8]) -> u64;
}

/// The C function for bodies of type `B`: one for results in rax, one for results in xmm0.
#[cfg(feature = "linux")]
pub(crate) fn address<B: Body>(result: Option<Type>) -> usize {
    match result {
        Some(Type::F32 | Type::F64) => float::<B> as *const () as usize,
        _ => integer::<B> as *const () as usize,
    }
}

#[cfg(feature = "linux")]
#[inline(always)]
fn run<B: Body>(integers: [u64; 6], floats: [f64; 8]) -> u64 {
    let thread = thread::current();
    // SAFETY: the service gate stored the context of the very entry whose function this is, which
    // is the address of a B that the entry's table owns (`callee.rs`); and the control block of the
    // domain, which is never unmapped. The block owns the table and lets it go when nobody is
    // inside, and this call is inside until it has returned to the gate, even if the closure, or
    // another thread meanwhile, drops the last handle of the domain.
    let (body, control) = unsafe {
        (
            &*(thread.context.load(Ordering::Relaxed) as *const B),
            &*thread.control.load(Ordering::Relaxed),
        )
    };
    let floats = floats.map(f64::to_bits);
    match catch(|| body.invoke(control, &integers, &floats)) {
        Ok(bits) => bits,
        Err(panic) => {
            panicked(thread, panic);
            0
        }
    }
}

/// What a service unwinds with when it finds that its caller's domain is being dropped: that is no
/// panic of the host's.
pub struct Gone;

/// Ends the innermost call with a panic of the host's, which goes on in whoever made the call.
#[cold]
pub(crate) fn panicked(thread: &Thread, panic: Box<dyn core::any::Any + Send>) {
    if panic.is::<Gone>() {
        return end_when_back_of(thread, super::outcome::ANOTHER, 0, None);
    }
    thread.extra().panic = Some(panic);
    end(thread, super::outcome::PANIC);
}

/// Makes the service gate end the call when the running service returns, unless it is to end
/// already. Outside services it does nothing.
pub fn end_when_back(kind: u32, detail: u64, message: Option<String>) {
    let thread = thread::current();
    if thread.call_state.own() == CallPhase::InService {
        end_when_back_of(thread, kind, detail, message);
    }
}

/// The same; `thread` is the calling one, and in a service.
pub(crate) fn end_when_back_of(thread: &Thread, kind: u32, detail: u64, message: Option<String>) {
    if thread.pending.load(Ordering::Relaxed) != thread.sequence.load(Ordering::Relaxed) {
        let extra = thread.extra();
        (extra.detail, extra.message) = (detail, message);
        end(thread, kind);
    }
}

/// Whether the thread is on its own stack with less than `need` bytes of it left below `here`. Of a
/// coroutine's only the host knows how large it is.
pub(super) fn lacks_stack(thread: &Thread, here: u64, need: u64) -> bool {
    let left = here.wrapping_sub(thread.stack_low.load(Ordering::Relaxed));
    left < need && left < thread.stack_size.load(Ordering::Relaxed)
}

/// Whether the running service's call ends when the service returns.
#[inline]
pub fn ending() -> bool {
    ending_of(thread::current())
}

/// The same; `thread` is the calling one.
#[inline]
pub(crate) fn ending_of(thread: &Thread) -> bool {
    thread.pending.load(Ordering::SeqCst) == thread.sequence.load(Ordering::Relaxed)
}

fn end(thread: &Thread, kind: u32) {
    // In this order: the abort signal's handler gives no other reason once a call is pending.
    let sequence = thread.sequence.load(Ordering::Relaxed);
    thread.pending.store(sequence, Ordering::SeqCst);
    thread.abort_kind.store(kind, Ordering::SeqCst);
}

/// A C function with parameters narrower than 32 bits, as `postern_narrow` finds it in rax.
/// Compilers differ in who extends such parameters: the psABI says nobody, clang and rustc trust
/// the caller. An extension is not to be trusted, so the host does it, and makes a `_Bool` 0 or 1.
#[repr(C)]
pub(crate) struct Narrow {
    function: usize,
    masks: [u64; 6],
    /// Each the highest bit of a signed parameter, or 0.
    signs: [u64; 6],
}

impl Narrow {
    /// The function with what to do to its integer parameters, if any is narrow.
    ///
    /// # Safety
    /// `function` is what [`super::callee::Callee::function`] asks of one, for these parameters.
    pub(crate) unsafe fn new(function: usize, parameters: &[Type]) -> Option<Narrow> {
        let integers = || parameters.iter().filter(|t| !t.is_float()).take(6);
        if !integers().any(|t| t.size() < 4) {
            return None;
        }
        let (mut masks, mut signs) = ([u64::MAX; 6], [0; 6]);
        for (i, t) in integers().enumerate().filter(|(_, t)| t.size() < 4) {
            masks[i] = integer_mask(*t);
            if matches!(t, Type::I8 | Type::I16) {
                signs[i] = 1 << (8 * t.size() - 1);
            }
        }
        Some(Narrow {
            function,
            masks,
            signs,
        })
    }

    /// What the service gate calls instead, with this as its context.
    pub(crate) fn shim() -> usize {
        &raw const postern_narrow as usize
    }
}

// For each register: cut it to its width, then (x ^ sign) - sign extends the sign. The gate has
// left the context in rax.
global_asm!(
    ".macro POSTERN_NARROW register, at",
    "and \\register, [rax + {masks} + \\at]",
    "xor \\register, [rax + {signs} + \\at]",
    "sub \\register, [rax + {signs} + \\at]",
    ".endm",
    ".p2align 4",
    ".globl postern_narrow",
    ".hidden postern_narrow",
    "postern_narrow:",
    "POSTERN_NARROW rdi, 0",
    "POSTERN_NARROW rsi, 8",
    "POSTERN_NARROW rdx, 16",
    "POSTERN_NARROW rcx, 24",
    "POSTERN_NARROW r8, 32",
    "POSTERN_NARROW r9, 40",
    "jmp [rax + {function}]",
    masks = const core::mem::offset_of!(Narrow, masks),
    signs = const core::mem::offset_of!(Narrow, signs),
    function = const core::mem::offset_of!(Narrow, function),
);

unsafe extern "C" {
    static postern_narrow: u8;
}

#[cfg(feature = "linux")]
extern "C" fn integer<B: Body>(
    i0: u64,
    i1: u64,
    i2: u64,
    i3: u64,
    i4: u64,
    i5: u64,
    f0: f64,
    f1: f64,
    f2: f64,
    f3: f64,
    f4: f64,
    f5: f64,
    f6: f64,
    f7: f64,
) -> u64 {
    run::<B>([i0, i1, i2, i3, i4, i5], [f0, f1, f2, f3, f4, f5, f6, f7])
}

#[cfg(feature = "linux")]
extern "C" fn float<B: Body>(
    i0: u64,
    i1: u64,
    i2: u64,
    i3: u64,
    i4: u64,
    i5: u64,
    f0: f64,
    f1: f64,
    f2: f64,
    f3: f64,
    f4: f64,
    f5: f64,
    f6: f64,
    f7: f64,
) -> f64 {
    f64::from_bits(run::<B>(
        [i0, i1, i2, i3, i4, i5],
        [f0, f1, f2, f3, f4, f5, f6, f7],
    ))
}
