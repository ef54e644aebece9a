//! A suspended handler goes on: the resume gate's assembly, with what it reads, and the decision
//! whether it may.

use crate::above::above;
use crate::block::Block;
use crate::control::Control;
use crate::enter::Returned;
use crate::entry::{Entry, Manner};
use crate::gate::{Label, STATUS_OK, STATUS_REFUSED};
use crate::outcome::Refusal;
use crate::slow;
use crate::thread::{self, Thread};
use crate::upcall::pool::Job;
use crate::upcall::suspended::{Registers, Suspended};
use core::arch::{asm, global_asm};
use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;
use postern_image::Signature;

global_asm!(
    include_str!("resume.s"),
    R_SUSPENDED = const offset_of!(Resume<'static, 'static>, suspended),
    W_CALLS = const offset_of!(Suspended, calls),
    W_RETURNS = const offset_of!(Suspended, returns),
    W_FLOATS = const offset_of!(Suspended, registers) + offset_of!(Registers, floats),
    W_INTEGERS = const offset_of!(Suspended, registers) + offset_of!(Registers, integers),
    W_SERVICE = const offset_of!(Suspended, registers) + offset_of!(Registers, service),
    T_CONTROL = const offset_of!(Thread, control),
    T_PLAN_RSP = const offset_of!(Thread, plan_rsp),
    C_BASE = const offset_of!(Control, base),
    resume_entry = sym resume_entry,
);

unsafe extern "C" {
    static postern_resume: u8;
    #[cfg(feature = "testing")]
    static postern_resume_end: u8;
}

/// The gate from its first instruction to its last, for tests.
#[cfg(feature = "testing")]
pub fn bounds() -> (usize, usize) {
    (
        &raw const postern_resume as usize,
        &raw const postern_resume_end as usize,
    )
}

/// A handler that goes on on the calling thread.
pub struct Resume<'j, 'p> {
    suspended: *const Suspended,
    entry: Entry,
    job: &'j Job<'p>,
}

impl<'j, 'p> Resume<'j, 'p> {
    /// The handler of a job. Whoever calls this keeps the domain meanwhile. `None` if this is no
    /// handler, or the thread cannot have a data stack in the domain.
    pub fn of(block: &Block, job: &'j Job<'p>) -> Option<Resume<'j, 'p>> {
        let suspended = job.handler()?;
        let signature: Signature = "v(il)".parse().expect("a signature");
        let mut entry = block.entry(job.function(), &signature, Manner::default());
        // So that the slow path plans a call, always.
        entry.body = Label::postern_body_full.address();
        slow::make_ready(&entry).ok()?;
        Some(Resume {
            suspended,
            entry,
            job,
        })
    }

    /// Gives the calling thread the handler's data stack, whose own one becomes that of the
    /// handler's place. Whoever calls this keeps the domain meanwhile, and no fork comes between.
    pub fn exchange_stacks(&self) {
        let slot = self.entry.control().slot(thread::my_index());
        self.job.exchange_stack(&slot.stack);
    }

    /// Goes on: returns when the handler has ended, as an ordinary call does.
    pub fn call(&self) -> Returned {
        let status: u32;
        // SAFETY: the gate keeps the System V convention. What it reads of the handler is what the
        // upcall gate has written, of a handler of this entry's domain; `resume_entry` lets it go
        // on only in the life of the domain in which it was suspended.
        unsafe {
            asm!(
                "call {gate}",
                gate = sym postern_resume,
                inout("rdi") self => _,
                lateout("r11") status,
                clobber_abi("C"),
            );
        }
        Returned {
            integer: 0,
            float: 0,
            status,
        }
    }
}

/// Publishes the call, unless the handler may not go on: then the gate's status.
///
/// # Safety
/// Called by the resume gate only, with the calling thread's state and rsp below the registers that
/// it has saved.
unsafe extern "C" fn resume_entry(thread: &Thread, resume: &Resume<'_, '_>, frame: u64) -> u32 {
    let refusal = match slow::begin_full(thread, &resume.entry, frame) {
        Err(refusal) => refusal,
        // The domain cannot begin anew from here on.
        Ok(()) if resume.job.is_over() => slow::take_back(thread, Refusal::Closed),
        // SAFETY: the job is the calling thread's.
        Ok(()) if !has_room(thread, unsafe { (*resume.suspended).calls }) => {
            slow::take_back(thread, Refusal::TooDeep)
        }
        Ok(()) => return STATUS_OK,
    };
    (above().refused)(refusal);
    STATUS_REFUSED
}

/// Whether the planned control stack has room for so many return addresses and the gate's own.
fn has_room(thread: &Thread, calls: u32) -> bool {
    let low = match thread.foreign.load(Relaxed) {
        0 => thread.stack_low.load(Relaxed),
        _ => thread.extra().own_stack().map_or(u64::MAX, |stack| stack.0),
    };
    let needed = (u64::from(calls) + 1) * 8;
    thread.plan_rsp.load(Relaxed) >= low.saturating_add(needed)
}
