//! The calls of a thread that wait: its records, how a call begins to wait for another one, and how
//! it becomes the innermost again.
//!
//! Invariant: when a function of this file returns, the thread's call state, frame, control,
//! sequence and records describe the same innermost call, or the call state says that a new one is
//! being written.

use super::control::Control;
use super::lifecycle::Phase;
use super::outcome;
use super::record::{MAX_NESTING, RECORDS, Record};
use super::thread::Thread;
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

/// Bytes between the frame of a call through the peer gate and the caller's stack pointer at the
/// service gate: five registers.
const PEER_FRAME: u64 = 5 * 8;

/// Gives a thread that registers its records.
pub(crate) fn make(thread: &Thread) {
    let records: Box<[Record; RECORDS]> = Box::new(core::array::from_fn(|_| Record::default()));
    let first = Box::into_raw(records).cast::<Record>();
    // SAFETY: the last record of the array.
    let last = unsafe { first.add(MAX_NESTING) };
    thread.records.store(first, Ordering::Relaxed);
    thread.record.store(first, Ordering::Relaxed);
    thread.last_record.store(last, Ordering::Relaxed);
}

/// The records of a thread that has left the registry, for [`Records`]' drop to free.
pub(crate) struct Records(*mut [Record; RECORDS]);

impl Records {
    /// Takes them from the thread.
    pub(crate) fn take(thread: &Thread) -> Records {
        let first = thread
            .records
            .swap(core::ptr::null_mut(), Ordering::Relaxed);
        Records(first.cast())
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: from Box::into_raw in `make`, taken out of its only place; other threads read
            // it under the registry only, and no longer find the thread there.
            drop(unsafe { Box::from_raw(self.0) });
        }
    }
}

impl Thread {
    /// All records but the last, outermost call's first; those that wait are shown. Other threads
    /// hold the registry while they look.
    pub(crate) fn records(&self) -> &[Record] {
        let first = self.records.load(Ordering::SeqCst);
        if first.is_null() {
            return &[];
        }
        // SAFETY: `make` made the array of RECORDS, all atomics; it is freed after the thread has
        // left the registry.
        unsafe { core::slice::from_raw_parts(first, RECORDS) }
    }

    /// The records of the calls that wait, outermost first, each with its number. They may change
    /// while another thread looks.
    pub fn waiting(&self) -> impl Iterator<Item = (u64, &Record)> {
        let numbered = self
            .records()
            .iter()
            .map(|r| (r.sequence.load(Ordering::SeqCst), r));
        numbered.take_while(|&(sequence, _)| sequence != 0)
    }

    /// How many calls wait on the calling thread.
    pub(crate) fn depth(&self) -> usize {
        let first = self.records.load(Ordering::Relaxed) as usize;
        (self.record.load(Ordering::Relaxed) as usize - first) / size_of::<Record>()
    }

    /// The limit of the innermost call if it is, still, the one with this number.
    pub fn peer_limit(&self, sequence: u64) -> Option<u64> {
        // A call has the same depth, and its record the same limit, for as long as it is the
        // innermost one. If it is that at both ends of this function but was not in between, its
        // own record was shown in between; and if that was too short for us to see it, we saw its
        // own depth.
        let mut depth = 0;
        for (waiting, _) in self.waiting() {
            if waiting == sequence {
                return None;
            }
            depth += 1;
        }
        let limit = self.records().get(depth)?.limit.load(Ordering::SeqCst);
        (self.sequence.load(Ordering::SeqCst) == sequence).then_some(limit)
    }
}

/// Adds to a counter that only its own thread writes.
fn add(counter: &AtomicU32, n: u32) {
    let sum = counter.load(Ordering::Relaxed).wrapping_add(n);
    counter.store(sum, Ordering::Release);
}

// What a thread writes about itself, the processor shows to others in the order of the stores
// (total store order), and a signal handler of the thread sees all that was before: so stores are
// `Release`. Where a thread must look at others' wishes after its own stores are seen, there is a
// fence; where others look, they have sent a barrier to all threads (`machine::barrier`), as for
// the entry gates, which do the same with plain instructions.

/// Makes a record of the innermost call, which waits in a service, and begins to write the state of
/// a new one.
pub(super) fn push(thread: &Thread) {
    let (depth, extra) = (thread.depth(), thread.extra());
    let record = &thread.records()[depth];
    let copy = |to: &AtomicU64, from: &AtomicU64| {
        to.store(from.load(Ordering::Relaxed), Ordering::Release);
    };
    let narrow = |to: &AtomicU32, from: &AtomicU32| {
        to.store(from.load(Ordering::Relaxed), Ordering::Release);
    };
    let control = thread.control.load(Ordering::Relaxed);
    record.control.store(control, Ordering::Release);
    copy(&record.frame, &thread.frame);
    copy(&record.service_rsp, &thread.service_rsp);
    narrow(&record.service_r15, &thread.service_r15);
    let service = thread.service.load(Ordering::Relaxed);
    record.service.store(service, Ordering::Relaxed);
    copy(&record.context, &thread.context);
    narrow(&record.foreign, &thread.foreign);
    copy(&record.plan_rsp, &thread.plan_rsp);
    let detail = core::mem::take(&mut extra.detail);
    record.detail.store(detail, Ordering::Relaxed);
    extra.messages[depth] = extra.message.take();
    copy(&record.sequence, &thread.sequence);
    add(waiting(thread, record), 1);
    let number = thread.nested.load(Ordering::Relaxed) + 1;
    thread.nested.store(number, Ordering::Release);
    thread.call_state.begin_entering();
    let next = &thread.records()[depth + 1];
    next.limit.store(extra.next_limit, Ordering::Release);
    thread
        .record
        .store(core::ptr::from_ref(next).cast_mut(), Ordering::Release);
    thread.sequence.store(number, Ordering::Release);
    compiler_fence(Ordering::SeqCst);
    // From here on no abort signal for the waiting call changes these; one that came before is in
    // them.
    copy(&record.pending, &thread.pending);
    narrow(&record.pending_kind, &thread.abort_kind);
}

/// Makes the call of a record the innermost again, as one that is in a service: also one that
/// waited in the peer gate. True if it did.
fn pop(thread: &Thread, depth: usize) -> (&Record, bool) {
    let record = &thread.records()[depth];
    let copy = |to: &AtomicU64, from: &AtomicU64| {
        to.store(from.load(Ordering::Relaxed), Ordering::Release);
        from.store(0, Ordering::Release);
    };
    let narrow = |to: &AtomicU32, from: &AtomicU32| {
        to.store(from.load(Ordering::Relaxed), Ordering::Release);
        from.store(0, Ordering::Release);
    };
    thread.call_state.begin_entering();
    let number = thread.nested.load(Ordering::Relaxed) + 1;
    thread.nested.store(number, Ordering::Release);
    let peer = record.in_peer_gate();
    thread.host_rsp.store(record.host_rsp(), Ordering::Release);
    if peer {
        let frame = thread.frame.load(Ordering::Relaxed);
        record
            .service_rsp
            .store(frame + PEER_FRAME, Ordering::Relaxed);
    }
    let control = record.control.load(Ordering::Relaxed);
    thread.control.store(control, Ordering::Release);
    copy(&thread.frame, &record.frame);
    let sequence = record.sequence.load(Ordering::Relaxed);
    thread.sequence.store(sequence, Ordering::Release);
    copy(&thread.service_rsp, &record.service_rsp);
    narrow(&thread.service_r15, &record.service_r15);
    let service = record.service.load(Ordering::Relaxed);
    thread.service.store(service, Ordering::Relaxed);
    copy(&thread.context, &record.context);
    narrow(&thread.foreign, &record.foreign);
    copy(&thread.plan_rsp, &record.plan_rsp);
    copy(&thread.pending, &record.pending);
    narrow(&thread.abort_kind, &record.pending_kind);
    let extra = thread.extra();
    extra.detail = record.detail.load(Ordering::Relaxed);
    record.detail.store(0, Ordering::Relaxed);
    extra.message = extra.messages[depth].take();
    thread
        .record
        .store(core::ptr::from_ref(record).cast_mut(), Ordering::Release);
    (record, peer)
}

/// The counter of `record`'s domain that says how many of its calls wait on this thread.
fn waiting<'a>(thread: &Thread, record: &Record) -> &'a AtomicU32 {
    // SAFETY: control blocks are never unmapped, and a recorded call has one.
    unsafe {
        &(*record.control.load(Ordering::Relaxed))
            .slot(thread.index())
            .waiting
    }
}

/// The record of the innermost call of a registered thread.
pub(super) fn own_record(thread: &Thread) -> &Record {
    &thread.records()[thread.depth()]
}

/// Makes the waiting call, if there is one, the innermost again. True if that one waited in the
/// peer gate.
pub(super) fn leave(thread: &Thread) -> bool {
    // Calls by the fast path have neither.
    let record = own_record(thread);
    record.limit.store(0, Ordering::Release);
    record.recovery.store(0, Ordering::Relaxed);
    let left = thread.innermost();
    let Some(depth) = thread.depth().checked_sub(1) else {
        if let Some(left) = left {
            left.note_left(thread.index());
        }
        thread.foreign.store(0, Ordering::Relaxed);
        thread.host_rsp.store(0, Ordering::Relaxed);
        thread.call_state.leave();
        return false;
    };
    let (record, peer) = pop(thread, depth);
    thread.call_state.back_in_service();
    add(waiting(thread, record), u32::MAX);
    if let Some(left) = left
        && !thread
            .innermost()
            .is_some_and(|own| core::ptr::eq(own, left))
    {
        left.note_left(thread.index());
    }
    let sequence = record.sequence.load(Ordering::Relaxed);
    record.sequence.store(0, Ordering::Release);
    // Whoever wishes the end of this call from here on sees that it is the innermost; whoever did
    // before is seen.
    fence(Ordering::SeqCst);
    let wish = record.end_request();
    let requested = wish.is_for(sequence);
    wish.done(sequence);
    let settled = |control: &Control| control.lifecycle.settled();
    let reason = match record.domain().map_or(Phase::Closed, settled) {
        Phase::Poisoned | Phase::Closed => outcome::ANOTHER,
        _ if requested => wish.kind(),
        _ => return peer,
    };
    if thread.pending.load(Ordering::SeqCst) != sequence {
        thread.pending.store(sequence, Ordering::SeqCst);
        thread.abort_kind.store(reason, Ordering::SeqCst);
    }
    peer
}
