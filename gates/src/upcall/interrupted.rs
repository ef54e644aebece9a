//! The call that an upcall has interrupted: it waits meanwhile, and what others see of the thread
//! is as with a nested call ([`super`]).

use super::gate;
use crate::call_state::CallPhase;
use crate::control::{Control, ServiceEntry};
use crate::entry::Entry;
use crate::host::MXCSR_DEFAULT;
use crate::record::Record;
use crate::thread::{Extra, NESTED, Thread};
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::fence;

/// Numbers of upcalls have this bit besides that of nested calls.
const UPCALL: u64 = 1 << 62;

macro_rules! words {
    ($($name:ident: $value:ty),* $(,)?) => {
        /// The words of [`Thread`] that calls write and no other thread does, but for those that
        /// say where the thread is.
        struct Words { $($name: $value),* }

        impl Words {
            fn of(thread: &Thread) -> Words {
                Words { $($name: thread.$name.load(Relaxed)),* }
            }

            /// In this order: the number is the last of what others read.
            fn give_back(&self, thread: &Thread) {
                $( thread.$name.store(self.$name, Release); )*
            }
        }
    };
}

words! {
    stack_low: u64,
    stack_span: u64,
    stack_size: u64,
    pending: u64,
    abort_kind: u32,
    service_r15: u32,
    service_rsp: u64,
    service: *mut ServiceEntry,
    context: u64,
    foreign: u32,
    mxcsr: u32,
    mxcsr_now: u32,
    plan_r15: u32,
    plan_rsp: u64,
    service_gate: u64,
    extra: *mut Extra,
    record: *mut Record,
    peer_failed: u64,
    peer_error: u32,
    deciding: u32,
    chained: u32,
    host_gs: u64,
    awaits: *mut Control,
    host_rsp: u64,
    frame: u64,
    control: *mut Control,
    sequence: u64,
}

/// The call that an upcall has interrupted.
pub(super) struct Interrupted {
    phase: CallPhase,
    words: Words,
    /// The record of the interrupted call, and what stood there, if it was not shown before.
    shown: Option<(*const Record, *mut Control, *mut ServiceEntry)>,
    /// The first record that is not shown, and its limit: others look for the upcall's there.
    own: (*const Record, u64),
    /// What other processes saw the thread inside, of the upcall's domain if that is a common one.
    inside: u32,
}

impl Interrupted {
    /// A call of `entry`'s domain begins, with this extra, on a control stack that ends at `low`;
    /// the interrupted one waits, if it was to be seen.
    pub(super) fn push(thread: &Thread, entry: &Entry, extra: *mut Extra, low: u64) -> Interrupted {
        let phase = thread.call_state.own();
        let mut shown = None;
        if phase.is_settled() {
            // SAFETY: a registered thread has its own record.
            let record = unsafe { &*thread.record.load(Relaxed) };
            if record.sequence.load(Relaxed) == 0 {
                let control = record.control.load(Relaxed);
                let service = record.service.load(Relaxed);
                shown = Some((&raw const *record, control, service));
                let service = match phase {
                    CallPhase::InService => thread.service.load(Relaxed),
                    _ => std::ptr::null_mut(),
                };
                record.control.store(thread.control.load(Relaxed), Release);
                record.service.store(service, Release);
                let sequence = thread.sequence.load(Relaxed);
                record.sequence.store(sequence, Release);
            }
            count(thread, thread.control.load(Relaxed), 1);
        }
        let number = thread.upcalls.load(Relaxed) + 1;
        thread.upcalls.store(number, Release);
        thread.call_state.begin_entering();
        // From here on no abort signal for the interrupted call changes these.
        let words = Words::of(thread);
        let own = thread.waiting().count();
        let own = &thread.records()[own];
        let limit = own.limit.load(Relaxed);
        own.limit.store(0, Release);
        let interrupted = Interrupted {
            phase,
            words,
            shown,
            own: (own, limit),
            inside: entry.control().noted_inside(thread.index()),
        };
        thread.stack_low.store(low, Relaxed);
        thread.stack_span.store(0, Relaxed);
        thread.stack_size.store(0, Relaxed);
        thread.foreign.store(0, Relaxed);
        thread.pending.store(0, Relaxed);
        thread.abort_kind.store(0, Relaxed);
        thread.mxcsr.store(MXCSR_DEFAULT, Relaxed);
        thread.service_gate.store(gate::service(), Relaxed);
        thread.extra.store(extra, Relaxed);
        thread
            .record
            .store(std::ptr::from_ref(own).cast_mut(), Relaxed);
        thread.deciding.store(1, Relaxed);
        thread.chained.store(0, Relaxed);
        // It does not wait while it does this.
        thread.awaits.store(std::ptr::null_mut(), SeqCst);
        thread.host_rsp.store(0, Relaxed);
        thread.sequence.store(NESTED | UPCALL | number, Release);
        let control = std::ptr::from_ref(entry.control()).cast_mut();
        thread.control.store(control, Release);
        interrupted
    }

    /// It is the innermost again, where it was, behind a call of the domain with this control
    /// block.
    pub(super) fn pop(self, thread: &Thread, upcalls: &Control) {
        let Interrupted {
            phase,
            words,
            shown,
            own,
            inside,
        } = self;
        // The upcall is not over before this: the word is there still.
        upcalls.note_inside(thread.index(), inside);
        thread.call_state.begin_entering();
        thread
            .upcalls
            .store(thread.upcalls.load(Relaxed) + 1, Release);
        // SAFETY: records of this thread, which it has until it is unregistered.
        unsafe { (*own.0).limit.store(own.1, Release) };
        words.give_back(thread);
        thread.call_state.back_to(phase);
        if !phase.is_settled() {
            return;
        }
        count(thread, words.control, u32::MAX);
        if let Some((record, control, service)) = shown {
            // SAFETY: as above.
            let record = unsafe { &*record };
            record.sequence.store(0, Release);
            // Whoever wishes the end of this call from here on sees that it is the innermost;
            // whoever did before is seen.
            fence(SeqCst);
            record.control.store(control, Release);
            record.service.store(service, Release);
            let wish = record.end_request();
            if wish.is_for(words.sequence) {
                let kind = wish.kind();
                wish.done(words.sequence);
                thread.end_request().put(words.sequence, kind);
            }
        }
    }
}

/// Counts that a call of this domain's waits on the thread, or does not any more.
fn count(thread: &Thread, control: *mut Control, n: u32) {
    // SAFETY: control blocks are never unmapped, and a call that can be seen has one.
    let waiting = unsafe { &(*control).slot(thread.index()).waiting };
    waiting.store(waiting.load(Relaxed).wrapping_add(n), Release);
}
