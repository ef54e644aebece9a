//! What stands between the gates and domains: the table of functions that the gates call, and the
//! exceptions and ends of slices that they are told of.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use postern_aegis::entry::{self, Frame, Interrupted};
use postern_gates::above::{self, Above, Ended, Held};
use postern_gates::below;
use postern_gates::control::Control;
use postern_gates::fault::{self, Exception, Registers};
use postern_gates::outcome::{self, Refusal};
use postern_gates::peer::PeerError;
use postern_gates::stale;
use postern_gates::sync::{Mutex, MutexGuard};
use postern_gates::window::Right;

use super::domain::Inner;
use super::fault::{Fault, FaultKind};
use super::{pages, trusted};

/// How the last call ended that did not return.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The extension faulted, or was ended.
    Fault(Box<Fault>),
    /// It ended the call with a status.
    Exited(i32),
    /// The call was not made.
    Refused(Refusal),
}

static LAST: Mutex<Option<Failure>> = Mutex::new(None);
static DOMAINS: Mutex<Vec<Arc<Inner>>> = Mutex::new(Vec::new());
static FORMER: [AtomicUsize; VECTORS.len()] = [const { AtomicUsize::new(0) }; VECTORS.len()];
static STARTED: AtomicBool = AtomicBool::new(false);

/// Exceptions that extensions can raise.
const VECTORS: [usize; 11] = [0, 1, 3, 4, 6, 7, 13, 14, 16, 17, 19];

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|never| never.into_inner())
}

/// Looks at why the last call that did not return did not.
pub fn with_failure<R>(look: impl FnOnce(Option<&Failure>) -> R) -> R {
    look(lock(&LAST).as_ref())
}

/// Forgets it.
pub fn clear_failure() {
    *lock(&LAST) = None;
}

/// Once: exceptions and ends of slices come here first.
pub(super) fn start() {
    if STARTED.swap(true, Relaxed) {
        return;
    }
    below::give(&pages::BELOW);
    above::give(&ABOVE);
    for (former, vector) in FORMER.iter().zip(VECTORS) {
        let handler = entry::in_front(vector, excepted);
        former.store(handler.map_or(0, |handler| handler as usize), Relaxed);
    }
    crate::process::signals::before_ends(Some(slice_ends));
}

/// A domain that lives.
pub(super) fn add(domain: &Arc<Inner>) {
    lock(&DOMAINS).push(domain.clone());
}

/// One that closes.
pub(super) fn remove(control: &Control) {
    lock(&DOMAINS).retain(|inner| !core::ptr::eq::<Control>(&*inner.block, control));
}

fn find(control: &Control) -> Option<Arc<Inner>> {
    let domains = lock(&DOMAINS);
    let found = domains
        .iter()
        .find(|inner| core::ptr::eq::<Control>(&*inner.block, control));
    found.cloned()
}

/// The domain that called the service in which the process is.
pub(super) fn caller() -> Option<Arc<Inner>> {
    find(stale::serving()?)
}

/// Copies out of the domain that called the service in which the process is.
pub fn read_caller(offset: u32, to: &mut [u8]) -> bool {
    caller().is_some_and(|inner| inner.window.read(offset, to))
}

/// Whether the process is in a service that an extension called.
pub fn in_service() -> bool {
    stale::serving().is_some()
}

/// In the order of [`Registers`]: of a frame or of an area.
macro_rules! registers {
    ($of:expr) => {
        Registers {
            words: [
                $of.rax, $of.rbx, $of.rcx, $of.rdx, $of.rsi, $of.rdi, $of.rbp, $of.r8, $of.r9,
                $of.r10, $of.r11, $of.r12, $of.r13, $of.r14, $of.r15, $of.rip, $of.rsp,
            ],
            flags: $of.rflags,
        }
    };
}

const PAGE_FAULT: u64 = 14;
/// In a page fault's code: the page is there.
const PRESENT: u64 = 1;

fn excepted(frame: &mut Frame) {
    let mut registers = registers!(frame);
    let missing = frame.vector == PAGE_FAULT && frame.code & PRESENT == 0;
    let window = missing && pages::in_windows(frame.address);
    if window {
        // Who waits for a page may give the processor away: the base of gs comes back then.
        trusted::keep_base();
        if pages::touched(frame.address) {
            return;
        }
        if fault::ends_copy(&mut registers) {
            frame.rip = registers.words[15];
            return;
        }
    }
    let exception = Exception {
        vector: frame.vector,
        code: frame.code,
        address: frame.address,
    };
    let others = |control: &Control, offset, code| !window && mapped(control, offset, code);
    if fault::excepted(exception, &mut registers, others) {
        (frame.rip, frame.rsp) = (registers.words[15], registers.words[16]);
        frame.rflags = registers.flags;
        return;
    }
    // Who was there before may give the processor away: the base of gs comes back from the context.
    trusted::keep_base();
    let place = VECTORS
        .iter()
        .position(|vector| *vector as u64 == frame.vector);
    let former = place.map_or(0, |place| FORMER[place].load(Relaxed));
    entry::pass_on(trusted::handler(former), frame);
}

/// Whether a domain may do at an offset what a page fault's code says.
fn mapped(control: &Control, offset: u32, code: u64) -> bool {
    const WRITE: u64 = 2;
    const FETCH: u64 = 16;
    // The extension's own instruction was interrupted, so nothing of the host's has the lock.
    let right = find(control).map_or(Right::None, |inner| inner.window.right(offset));
    match right {
        Right::None => false,
        Right::Read => code & (WRITE | FETCH) == 0,
        Right::Run => code & WRITE == 0,
        Right::Write => code & FETCH == 0,
    }
}

fn slice_ends(interrupted: &mut Interrupted) {
    let mut registers = registers!(interrupted);
    if fault::slice_ends(&mut registers) {
        (interrupted.rip, interrupted.rsp) = (registers.words[15], registers.words[16]);
        interrupted.rflags = registers.flags;
    }
}

static ABOVE: Above = Above {
    watch: || Ok(()),
    wake: || {},
    give_data_stack,
    move_window: |_| {},
    instead: |_, refusal| Err(refusal),
    refused: |refusal| *lock(&LAST) = Some(Failure::Refused(refusal)),
    hold: |control| {
        let inner = find(control)?;
        Some(Held {
            domain: inner,
            life: 0,
        })
    },
    ended,
    failure,
    renew_thread: |_| {},
    forgotten: || {},
    thread_exited: || {},
};

fn give_data_stack(control: &Control, thread: usize) -> Result<(), Refusal> {
    let inner = find(control).ok_or(Refusal::Closed)?;
    control.give_data_stack(thread, inner.data_stack());
    Ok(())
}

fn ended(held: Option<Held>, ended: Ended) {
    let inner = held.and_then(|held| held.domain.downcast::<Inner>().ok());
    let failure = match (inner, ended.fault.kind) {
        (_, outcome::EXIT) => Failure::Exited(ended.detail as i32),
        (None, _) => Failure::Refused(Refusal::Closed),
        (Some(inner), _) => {
            let fault = inner.fault(&ended.fault, ended.message);
            if fault.kind != FaultKind::Interrupted {
                inner.block.lifecycle().poison();
            }
            Failure::Fault(Box::new(fault))
        }
    };
    *lock(&LAST) = Some(failure);
}

/// What the calling extension is told of its peer.
fn failure() -> above::Failure {
    let error = match &*lock(&LAST) {
        Some(Failure::Fault(fault)) => match fault.kind {
            FaultKind::Deadline => PeerError::Time,
            FaultKind::Interrupted => PeerError::Interrupted,
            FaultKind::AnotherThread => PeerError::Poisoned,
            _ => PeerError::Fault,
        },
        Some(Failure::Exited(_)) => PeerError::Exited,
        Some(Failure::Refused(refusal)) => match refusal {
            Refusal::Poisoned | Refusal::Resting(_) => PeerError::Poisoned,
            Refusal::Busy | Refusal::Moving => PeerError::Busy,
            Refusal::Closed => PeerError::Closed,
            Refusal::TooDeep => PeerError::TooDeep,
            Refusal::NoMemory | Refusal::NoDataStack | Refusal::TooManyThreads => PeerError::NoRoom,
            _ => PeerError::Thread,
        },
        None => PeerError::Closed,
    };
    above::Failure::Error(error)
}
