//! The slow path of the entry gate and the way out of ended calls: decisions that `gate.s` leaves
//! to Rust.
//!
//! Invariant: when one of these functions returns to `gate.s`, the thread's call state, frame,
//! control, sequence and the nested records describe the same innermost call.

use super::above::{Ended, above};
use super::bulk;
use super::call_state::CallPhase;
use super::control::Control;
use super::entry::Entry;
use super::gate::{FACT_YMM, FLAG_PAYLOAD, Label, SAVED, STATUS_ENDED, STATUS_PEER};
use super::host;
use super::lifecycle::Phase;
use super::mask;
use super::memory;
use super::nesting::{leave, own_record, push};
use super::outcome::{self, Refusal};
use super::payload::CallPayload;
use super::peer;
use super::register;
use super::stale::{discard_stale, is_stale};
use super::sync::catch;
use super::thread::{self, Thread};
use core::arch::asm;
use core::sync::atomic::Ordering;

const RETRY: u32 = 0;
const FULL: u32 = 1;
const REFUSED: u32 = 2;

/// Bytes between the recorded frame and the caller's stack arguments: six registers and the return
/// address.
const FRAME_TO_ARGUMENTS: u64 = 7 * 8;
/// How often one call may find another way in before it is refused.
const ATTEMPTS: u32 = 64;

/// What `gate.s` does next, in rax, and with which entry, in rdx.
#[repr(C)]
pub(crate) struct Decision {
    step: u64,
    entry: *const Entry,
}

/// Decides how a call that the fast path did not take goes on. `frame` is rsp below the saved
/// registers.
///
/// # Safety
/// Called by `gate.s` only, with the calling thread's state, a live entry and the stack as
/// described there.
pub(crate) unsafe extern "C" fn slow_entry(thread: &Thread, entry: &Entry, frame: u64) -> Decision {
    match from_handler(thread, frame) {
        None => slow(thread, entry, frame),
        Some(refusal) => {
            (above().refused)(refusal);
            let step = u64::from(REFUSED);
            Decision { step, entry }
        }
    }
}

/// The same, of a thread that is in no handler. Apart, because on a signal stack there may be room
/// for little.
#[inline(never)]
fn slow(thread: &Thread, entry: &Entry, frame: u64) -> Decision {
    let (mut entry, mut refused) = (entry, Refusal::Busy);
    for _ in 0..ATTEMPTS {
        // A panic here would cross assembly; there is no panicking path in `decide` but out of
        // memory, which aborts anyway.
        thread.deciding.store(1, Ordering::Relaxed);
        let decision = decide(thread, entry, frame);
        thread.deciding.store(0, Ordering::Relaxed);
        let refusal = match decision {
            Ok(step) => {
                let step = u64::from(step);
                return Decision { step, entry };
            }
            Err(refusal) => refusal,
        };
        // The host's own code runs in there: the constructors' services, destructors of an old
        // version.
        let instead = catch(|| (above().instead)(entry, refusal));
        match instead.unwrap_or(Err(refusal)) {
            Ok(other) if other.takes_the_same(entry) => entry = other,
            Ok(_) => break,
            Err(refusal) => {
                refused = refusal;
                break;
            }
        }
    }
    register::leave(thread);
    (above().refused)(refused);
    let step = u64::from(REFUSED);
    Decision { step, entry }
}

/// Why a call is refused that a signal handler makes. This takes no lock and allocates nothing, for
/// the handler may have interrupted anything: the extension, a gate, this very file, the allocator.
///
/// Handlers run on the alternate signal stack ([`signal::check_thread`] sees to it), so those that
/// interrupted no call are found, too: where the fast path admits calls there is no handler. What
/// cannot be told from the thread's own call is that of a handler in a thread that has no alternate
/// stack, because it has never entered or because its language has taken the stack away at its end.
/// Handlers of upcalls enter by a gate of their own, and never come here; calls that their services
/// make do, and are refused: `deciding` is set while an upcall runs.
fn from_handler(thread: &Thread, frame: u64) -> Option<Refusal> {
    if thread.deciding.load(Ordering::Relaxed) != 0 {
        return Some(Refusal::InsideExtension);
    }
    match thread.call_state.own() {
        CallPhase::Entering | CallPhase::Leaving => return Some(Refusal::InsideExtension),
        // Unless the handler that interrupted it was left by a jump, and this is not one.
        CallPhase::Inside if !is_stale(thread, frame) => return Some(Refusal::InsideExtension),
        _ => {}
    }
    // The same for a thread that is not registered yet, whose stack we do not know.
    let low = thread.stack_low.load(Ordering::Relaxed);
    let foreign = frame.wrapping_sub(low) >= thread.stack_size.load(Ordering::Relaxed);
    // A fault would be delivered at the top of that very stack, over the frames of the handler that
    // calls.
    (foreign && mask::on_signal_stack()).then_some(Refusal::OnSignalStack)
}

/// Has the calling thread, which is in no call, be known and have a data stack in the domain of
/// `entry`: so that its first call is not refused for want of them. That call takes the slow path
/// all the same, which alone looks whether there is a watchdog, and wakes it.
///
/// # Errors
/// What is wanting, or the domain is gone.
pub fn make_ready(entry: &Entry) -> Result<(), Refusal> {
    let (thread, control) = (thread::current(), entry.control());
    if thread.extra.load(Ordering::Relaxed).is_null() {
        let frame = core::ptr::from_ref(&control) as u64;
        register::register(thread, frame)?;
    }
    thread::divert(thread);
    if entry.expected() >> 32 != u64::from(control.generation()) {
        return Err(Refusal::Closed);
    }
    match control.data_stack(thread.index()) {
        0 => (above().give_data_stack)(control, thread.index()),
        _ => Ok(()),
    }
}

/// Plans a call of an entry that goes through the full gate, and publishes it, where nobody is
/// asked for another way in: for the resume gate.
#[cfg(feature = "linux")]
pub(crate) fn begin_full(thread: &Thread, entry: &Entry, frame: u64) -> Result<(), Refusal> {
    if let Some(refusal) = from_handler(thread, frame) {
        return Err(refusal);
    }
    thread.deciding.store(1, Ordering::Relaxed);
    let decision = decide(thread, entry, frame);
    thread.deciding.store(0, Ordering::Relaxed);
    if decision.is_err() {
        register::leave(thread);
    }
    decision.map(drop)
}

/// Takes back what [`begin_full`] has published, for this reason.
#[cfg(feature = "linux")]
pub(crate) fn take_back(thread: &Thread, refusal: Refusal) -> Refusal {
    bring_back_host(thread);
    leave(thread);
    register::leave(thread);
    refusal
}

fn decide(thread: &Thread, entry: &Entry, frame: u64) -> Result<u32, Refusal> {
    if thread.extra.load(Ordering::Relaxed).is_null() {
        register::register(thread, frame)?;
    }
    thread::undivert(thread);
    let ready =
        register::look(thread).and_then(|()| (above().watch)().map_err(|_| Refusal::NoWatchdog));
    if let Err(refusal) = ready {
        // Nor may the next call take the fast path.
        thread::divert(thread);
        return Err(refusal);
    }
    if thread.call_state.own() != CallPhase::Outside {
        discard_stale(thread, frame);
    }
    let nested = match thread.call_state.own() {
        CallPhase::Outside => false,
        CallPhase::InService => true,
        _ => return Err(Refusal::InsideExtension),
    };
    let control = entry.control();
    loop {
        check_state(thread, control, entry, true)?;
        match admit(thread, entry, control, frame, nested) {
            // It began when the state had been looked at.
            Err(Refusal::Moving) => {}
            admitted => return admitted,
        }
    }
}

/// How a call goes on that may enter.
fn admit(
    thread: &Thread,
    entry: &Entry,
    control: &Control,
    frame: u64,
    nested: bool,
) -> Result<u32, Refusal> {
    let slot = control.slot(thread.index());
    if slot.stack.load(Ordering::Relaxed) == 0 {
        (above().give_data_stack)(control, thread.index())?;
    }
    let low = thread.stack_low.load(Ordering::Relaxed);
    // A stack that is larger than extensions may use counts as foreign.
    let size = match thread.extra() {
        extra if extra.admitted || extra.ending => thread.stack_size.load(Ordering::Relaxed),
        _ => 0,
    };
    let foreign = frame.wrapping_sub(low) >= size;
    let full = entry.body == Label::postern_body_full.address();
    if !nested && !foreign && !full && thread.extra().admitted && !owns(thread, control) {
        return Ok(RETRY);
    }
    plan(thread, entry, control, frame, nested, foreign)?;
    Ok(FULL)
}

/// Whether the call may enter. With `wait`, moves of the window are waited for, and one that is
/// wanted is done if it can be.
fn check_state(
    thread: &Thread,
    control: &Control,
    entry: &Entry,
    wait: bool,
) -> Result<(), Refusal> {
    let generation = control.generation.load(Ordering::SeqCst);
    let expected = entry.expected();
    let starts = expected == Control::word(Phase::Exclusive, generation);
    if expected != Control::word(Phase::Open, generation) && !starts {
        // A C function pointer whose domain is gone; the block may serve another one.
        return Err(Refusal::Closed);
    }
    let mut phase = control.lifecycle.now();
    if wait && phase == Phase::MovePending {
        (above().move_window)(control);
    }
    if wait {
        phase = control.lifecycle.settled();
    }
    match phase {
        // Who finds a move wanted may enter all the same: nobody moves a domain that somebody is
        // in.
        Phase::Open | Phase::MovePending if !starts => Ok(()),
        Phase::Moving => Err(Refusal::Moving),
        // The static constructors, and what their services call; and who has the domain for itself.
        Phase::Exclusive if starts || owns(thread, control) || waits_in(thread, control) => Ok(()),
        Phase::Retiring if waits_in(thread, control) => Ok(()),
        Phase::Poisoned => Err(Refusal::Poisoned),
        Phase::Open | Phase::MovePending | Phase::Exclusive | Phase::Retiring => Err(Refusal::Busy),
        Phase::Closed => Err(Refusal::Closed),
    }
}

/// Whether only this thread may enter the domain now.
fn owns(thread: &Thread, control: &Control) -> bool {
    control.owner.load(Ordering::SeqCst) == core::ptr::from_ref(thread) as u64
}

/// Whether a call of this thread is inside the domain. If it is closed for a moment all the same,
/// then by the thread itself, which runs its constructors, or by one that will find it occupied.
fn waits_in(thread: &Thread, control: &Control) -> bool {
    let here = |c: *const Control| core::ptr::eq(c, control);
    let innermost = thread.call_state.own() == CallPhase::InService
        && here(thread.control.load(Ordering::Relaxed));
    let mut waiting = thread.waiting();
    innermost || waiting.any(|(_, call)| here(call.control.load(Ordering::Relaxed)))
}

/// Prepares a call through the full gate and publishes it.
fn plan(
    thread: &Thread,
    entry: &Entry,
    control: &Control,
    frame: u64,
    nested: bool,
    foreign: bool,
) -> Result<(), Refusal> {
    if core::ptr::eq(
        thread.record.load(Ordering::Relaxed),
        thread.last_record.load(Ordering::Relaxed),
    ) {
        return Err(Refusal::TooDeep);
    }
    let slot = control.slot(thread.index());
    let mut r15 = slot.stack.load(Ordering::Relaxed);
    if nested {
        r15 = below_live_frames(thread, control, r15)?;
    }
    let words = entry.stack_words;
    r15 = r15
        .checked_sub((words * 8).next_multiple_of(16))
        .ok_or(Refusal::NoDataStack)?;
    let payload = payload(thread, entry);
    if let Some(payload) = &payload {
        r15 = payload.place(control, r15).ok_or(Refusal::NoDataStack)?;
    }
    let depth = control.call_depth.load(Ordering::Relaxed);
    let own = foreign || depth != 0 || (nested && thread.foreign.load(Ordering::Relaxed) != 0);
    let mut rsp = frame;
    if own {
        let (low, top) = thread.extra().own_stack()?;
        // Below the calls that wait on it already.
        let top = core::iter::once((&thread.foreign, &thread.service_rsp))
            .filter(|_| nested)
            .chain(thread.waiting().map(|(_, r)| (&r.foreign, &r.service_rsp)))
            .filter(|(foreign, _)| foreign.load(Ordering::Relaxed) != 0)
            .map(|(_, rsp)| rsp.load(Ordering::Relaxed) & !15)
            .min()
            .unwrap_or(top);
        rsp = match depth {
            0 => top,
            n => top.min(low.saturating_add(n.saturating_mul(8))),
        };
        if rsp < low + 8 {
            return Err(Refusal::TooDeep);
        }
    }
    if nested {
        push(thread);
    } else {
        thread.call_state.begin_entering();
        let number = thread.sequence.load(Ordering::Relaxed) + 1;
        thread.sequence.store(number, Ordering::Release);
    }
    let record = own_record(thread);
    if entry.limit != 0 {
        record.limit.store(entry.limit, Ordering::Release);
    }
    record.recovery.store(entry.recovery, Ordering::Relaxed);
    thread.plan_r15.store(r15, Ordering::Relaxed);
    thread.plan_rsp.store(rsp, Ordering::Relaxed);
    thread.foreign.store(u32::from(own), Ordering::Relaxed);
    thread.frame.store(frame, Ordering::Relaxed);
    thread
        .control
        .store(control as *const Control as *mut Control, Ordering::Relaxed);
    host::keep(thread, control.facts.load(Ordering::Relaxed));
    thread.call_state.publish();
    // It may have gone to rest since `decide` looked, if it did not see this call.
    (above().wake)();
    if let Err(refusal) = check_state(thread, control, entry, false) {
        bring_back_host(thread);
        leave(thread);
        if let Some(payload) = payload {
            // For the next attempt, if there is one.
            thread.payload.store(payload, Ordering::Relaxed);
        }
        return Err(refusal);
    }
    // Only now, when neither the window nor these words can go.
    control.note_inside(thread.index(), entry.offset());
    let narrow = if entry.inner != 0 { 16 } else { 0 };
    for i in 0..words {
        let from = frame + FRAME_TO_ARGUMENTS + narrow + u64::from(i) * 8;
        // SAFETY: an argument of the caller's, above the return address of its call of the gate.
        let word = unsafe { memory::host_word(from) } & entry.stack_masks[i as usize];
        // A data stack is private memory that stays as long as the domain, so this does not fail;
        // and what it holds is the extension's own affair. SAFETY: r15 was lowered by that much on
        // the thread's data stack, above whose bottom it still is.
        let _ = unsafe { control.write(r15 + i * 8, &word.to_ne_bytes()) };
    }
    if let Some(payload) = payload {
        payload.unload(control, r15);
        // SAFETY: the gate's own frame, where it saved rdi and will restore it.
        unsafe { memory::set_host_word(frame - SAVED, r15.into()) };
        if payload.limit != 0 {
            let sequence = thread.sequence.load(Ordering::Relaxed);
            thread.set_limit(sequence, payload.limit);
        }
    }
    thread.extra().next_limit = 0;
    let calls = slot.calls.load(Ordering::Relaxed);
    slot.calls.store(calls + 1, Ordering::Relaxed);
    Ok(())
}

/// What a call of this entry brings, if it is one for it. No other call finds it.
fn payload<'a>(thread: &Thread, entry: &Entry) -> Option<&'a mut CallPayload<'static>> {
    if entry.flags & FLAG_PAYLOAD == 0 {
        return None;
    }
    // SAFETY: null, or stored by `enter::with`, which waits for the call that this is.
    let payload = unsafe { thread.payload.load(Ordering::Relaxed).as_mut() };
    thread
        .payload
        .store(core::ptr::null_mut(), Ordering::Relaxed);
    payload
}

/// Where the data stack of a nested call into `control` begins: below every frame of that domain on
/// this thread.
fn below_live_frames(thread: &Thread, control: &Control, top: u32) -> Result<u32, Refusal> {
    let current = (
        thread.control.load(Ordering::Relaxed),
        thread.service_r15.load(Ordering::Relaxed),
    );
    let lowest = thread
        .waiting()
        .map(|(_, r)| {
            (
                r.control.load(Ordering::Relaxed),
                r.service_r15.load(Ordering::Relaxed),
            )
        })
        .chain(core::iter::once(current))
        .filter(|&(c, _)| core::ptr::eq(c, control))
        .map(|(_, r15)| r15)
        .min();
    let Some(r15) = lowest else { return Ok(top) };
    // The extension's r15 is untrusted: it must lie in the thread's own data stack.
    let r15 = r15 & !15;
    if r15 > top || r15 < control.stack_bottom(top) {
        return Err(Refusal::NoDataStack);
    }
    Ok(r15)
}

/// After the extension of the innermost call has run for the last time: the processor's state is
/// the host's again.
fn bring_back_host(thread: &Thread) {
    // SAFETY: control blocks are never unmapped; the pointer of a thread in a call is set.
    let facts = unsafe {
        (*thread.control.load(Ordering::Relaxed))
            .facts
            .load(Ordering::Relaxed)
    };
    host::bring_back(thread, facts);
    if facts & FACT_YMM != 0 {
        // SAFETY: the image was admitted because the processor has AVX; upper halves are dead
        // between functions.
        unsafe { asm!("vzeroupper", options(nostack, nomem)) };
    }
}

/// After a call through the full gate returned.
///
/// # Safety
/// Called by `gate.s` only.
pub(crate) unsafe extern "C" fn slow_exit(thread: &Thread) {
    thread.deciding.store(1, Ordering::Relaxed);
    bring_back_host(thread);
    // Who waited for it is in a service: the peer gate's calls do not come this way.
    leave(thread);
    register::leave(thread);
    thread.deciding.store(0, Ordering::Relaxed);
}

/// After a call was ended: leaves what happened for the caller to collect, and returns the gate's
/// status.
///
/// # Safety
/// Called by `gate.s` only, at `postern_aborted`.
pub(crate) unsafe extern "C" fn abort_exit(thread: &Thread) -> u32 {
    #[cfg(feature = "linux")]
    if thread.in_upcall() {
        super::upcall::ended(thread);
    }
    bring_back_host(thread);
    bulk::zero_upper_halves();
    let kind = thread.abort_kind.swap(0, Ordering::Relaxed);
    // SAFETY: control blocks are never unmapped; the pointer of a thread in a call is set.
    let control = unsafe { &*thread.control.load(Ordering::Relaxed) };
    let extra = thread.extra();
    if extra.fault.kind != kind {
        // Ended at a gate or in a service: no signal context belongs to it.
        extra.fault = outcome::RawFault {
            kind,
            ..Default::default()
        };
    }
    if thread.pending.load(Ordering::Relaxed) == thread.sequence.load(Ordering::Relaxed) {
        thread.pending.store(0, Ordering::Relaxed);
    }
    let fault = extra.fault;
    extra.fault.kind = 0;
    let detail = core::mem::take(&mut extra.detail);
    let message = extra
        .message
        .take()
        .filter(|_| matches!(kind, outcome::ABORT | outcome::KILL));
    let panic = extra.panic.take();
    // While the thread is in the call: afterwards the domain may be gone, and its control block
    // another's. Nor does another life of the domain begin before.
    let domain = (above().hold)(control);
    let recovery = own_record(thread).recovery.load(Ordering::Relaxed);
    thread.deciding.store(1, Ordering::Relaxed);
    let peer = leave(thread);
    thread.deciding.store(0, Ordering::Relaxed);
    let ended = Ended {
        fault,
        detail,
        message,
        panic,
        recovery,
    };
    (above().ended)(domain, ended);
    if peer {
        peer::failed(thread);
        return STATUS_PEER;
    }
    register::leave(thread);
    STATUS_ENDED
}
