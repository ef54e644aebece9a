//! The calls of a thread that wait while another one runs: in a service that called an extension,
//! or in the peer gate.
//!
//! Each thread has an array of records, outermost call first. Its own record is `Thread::record`,
//! those below it wait. Both Rust (`nesting.rs`) and the peer gate (`peer.s`) push and pop them.
//! Invariants:
//! - A record that nobody waits in has `sequence`, `service_rsp`, `foreign`, `pending` and
//!   `detail` 0. So the gate, which has none of these to keep, need not write them.
//! - A call's record is shown (`sequence` is not 0) from before it ceases to be the innermost until
//!   after it is that again, and while its domain counts it in `ThreadSlot::waiting`, which is from
//!   before to after, too.
//! - Only the thread itself writes records, save the wishes of other threads, and those look under
//!   the registry's lock.

use super::control::{Control, ServiceEntry};
use super::end_request::EndRequest;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Deepest nesting host → extension → service or peer → extension …
pub const MAX_NESTING: usize = 64;
/// Records of a thread: one for each call that waits, the innermost one's, and one for an upcall
/// that interrupts that.
pub(super) const RECORDS: usize = MAX_NESTING + 2;

/// What is kept of a call.
#[derive(Default)]
#[repr(C, align(128))]
pub struct Record {
    /// Its sequence number while it waits; 0 is nobody.
    pub(crate) sequence: AtomicU64,
    /// Its domain.
    pub(crate) control: AtomicPtr<Control>,
    /// Another thread's wish: end the call with this sequence number …
    pub(crate) request: AtomicU64,
    /// … for this reason.
    pub(crate) request_kind: AtomicU32,
    /// Data stack pointer where it waits.
    pub(crate) service_r15: AtomicU32,
    /// Longest time of the call whose record this is, waiting or not, in nanoseconds, besides its
    /// domain's deadline; 0 is none.
    pub(crate) limit: AtomicU64,
    /// Stack pointer that its entry gate recorded.
    pub(crate) frame: AtomicU64,
    /// The service or peer that it waits for.
    pub(crate) service: AtomicPtr<ServiceEntry>,
    /// Stack pointer at the service gate; 0: it waits in the peer gate, whose frame is the next
    /// call's.
    pub(crate) service_rsp: AtomicU64,
    pub(crate) context: AtomicU64,
    pub(crate) foreign: AtomicU32,
    pub(crate) pending_kind: AtomicU32,
    pub(crate) pending: AtomicU64,
    pub(crate) plan_rsp: AtomicU64,
    pub(crate) detail: AtomicU64,
    /// [`super::control::Entry::recovery`] of the call whose record this is, waiting or not.
    pub(crate) recovery: AtomicU32,
}

impl Record {
    /// Its domain's control block.
    pub fn domain(&self) -> Option<&'static Control> {
        // SAFETY: control blocks are never unmapped.
        unsafe { self.control.load(Ordering::SeqCst).as_ref() }
    }

    /// Whether it is that of a call of this domain's, or was a moment ago.
    pub fn is_of(&self, control: &Control) -> bool {
        core::ptr::eq(self.control.load(Ordering::SeqCst), control)
    }

    /// The longest time of the call with this number in nanoseconds (0 is none), if the record is
    /// still that call's.
    pub fn limit_of(&self, sequence: u64) -> Option<u64> {
        let limit = self.limit.load(Ordering::SeqCst);
        (self.sequence.load(Ordering::SeqCst) == sequence).then_some(limit)
    }

    /// Asks for the end of this call, once it is the innermost again, if it still has the number
    /// `sequence`.
    pub fn end(&self, sequence: u64, kind: u32) {
        self.end_request().put(sequence, kind);
    }

    /// Another thread's wish that this call end.
    pub fn end_request(&self) -> EndRequest<'_> {
        EndRequest::new(&self.request, &self.request_kind)
    }

    /// Stack pointer with which the service gate called the service in which the call waits; 0 in
    /// the peer gate.
    pub(crate) fn host_rsp(&self) -> u64 {
        let service_rsp = self.service_rsp.load(Ordering::Relaxed);
        match self.foreign.load(Ordering::Relaxed) {
            _ if service_rsp == 0 => 0,
            0 => service_rsp & !15,
            _ => self.frame.load(Ordering::Relaxed) & !15,
        }
    }

    /// Becomes what another record is.
    pub(crate) fn copy(&self, from: &Record) {
        let Record {
            sequence,
            control,
            request,
            request_kind,
            service_r15,
            limit,
            frame,
            service,
            service_rsp,
            context,
            foreign,
            pending_kind,
            pending,
            plan_rsp,
            detail,
            recovery,
        } = from;
        let word = |to: &AtomicU64, from: &AtomicU64| {
            to.store(from.load(Ordering::Relaxed), Ordering::SeqCst);
        };
        let half = |to: &AtomicU32, from: &AtomicU32| {
            to.store(from.load(Ordering::Relaxed), Ordering::SeqCst);
        };
        word(&self.sequence, sequence);
        self.control
            .store(control.load(Ordering::Relaxed), Ordering::SeqCst);
        word(&self.request, request);
        half(&self.request_kind, request_kind);
        half(&self.service_r15, service_r15);
        word(&self.limit, limit);
        word(&self.frame, frame);
        self.service
            .store(service.load(Ordering::Relaxed), Ordering::SeqCst);
        word(&self.service_rsp, service_rsp);
        word(&self.context, context);
        half(&self.foreign, foreign);
        half(&self.pending_kind, pending_kind);
        word(&self.pending, pending);
        word(&self.plan_rsp, plan_rsp);
        word(&self.detail, detail);
        half(&self.recovery, recovery);
    }

    /// Whether the call waits in the peer gate.
    pub(crate) fn in_peer_gate(&self) -> bool {
        self.service_rsp.load(Ordering::Relaxed) == 0
    }
}
