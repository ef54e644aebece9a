//! A thread attaches to a domain's handlers, and is attached no more.

use super::clock::Clock;
use super::frame::{Frame, needed};
use super::mailbox::Mailbox;
use super::pool::Pool;
use super::source::Sources;
use super::state::{State, on_upcall, ring_again, suspend};
use super::suspended::Promotion;
use crate::above::above;
use crate::block::Block;
use crate::control::Control;
use crate::entry::Manner;
use crate::gate::FACT_GS;
use crate::host::X87_CONTROL;
use crate::mask::{self, FAULTS};
use crate::outcome::{RawFault, Refusal};
use crate::register;
use crate::signal;
use crate::thread::{self, Extra, X87};
use postern_image::Signature;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::fence;
use std::time::Duration;
use thiserror::Error;

/// Why a thread cannot have upcalls.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AttachError {
    /// It cannot enter extensions at all, or not this domain.
    #[error("the thread cannot enter the domain: {0:?}")]
    Refused(Refusal),
    /// It has upcalls already, or is in one.
    #[error("the thread is attached already: a thread has one attachment; drop that first")]
    Attached,
    /// The function may not be entered.
    #[error("offset {0:#x} is no function of the domain")]
    NoFunction(u32),
    /// The configuration names none.
    #[error("no signal brings upcalls in this process: `Config::upcall_signal` chooses one")]
    NoSignal,
    /// It would never come.
    #[error("the thread blocks signal {0}, which brings upcalls: unblock it before attaching")]
    Blocked(i32),
    /// Somebody else's.
    #[error(
        "signal {0} has a handler of the host's: `Config::upcall_signal` chooses another one for upcalls"
    )]
    HandlerTaken(i32),
    /// The host's own is too small.
    #[error(
        "the thread's signal stack has {present} bytes, and upcalls need {needed}: give it a larger one, or none"
    )]
    SignalStack {
        /// Bytes that it has.
        present: usize,
        /// Bytes that two frames and two handlers need.
        needed: usize,
    },
    /// [`FACT_GS`]
    #[error("upcalls need the gs base: not with `Config::restore_gs`")]
    Gs,
    /// The kernel's.
    #[error("{what}: {reason}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The kernel's reason.
        reason: String,
    },
}

impl From<Refusal> for AttachError {
    fn from(refusal: Refusal) -> AttachError {
        AttachError::Refused(refusal)
    }
}

fn system(what: &'static str) -> AttachError {
    let reason = std::io::Error::last_os_error().to_string();
    AttachError::System { what, reason }
}

/// Installs the handler, once there is somebody to call.
fn install() -> Result<(), AttachError> {
    let number = signal::upcall_signal();
    if number == 0 {
        return Err(AttachError::NoSignal);
    }
    let ours = on_upcall as *const () as usize;
    // SAFETY: zeros are a valid sigaction, which the call fills; the handler is async-signal-safe
    // and runs on an alternate stack.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(number, std::ptr::null(), &mut action) != 0 {
            return Err(system("look at the signal for upcalls"));
        }
        match action.sa_sigaction {
            libc::SIG_DFL | libc::SIG_IGN => {}
            handler if handler == ours => return Ok(()),
            _ => return Err(AttachError::HandlerTaken(number)),
        }
        action.sa_sigaction = ours;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigfillset(&mut action.sa_mask);
        for signal in FAULTS.into_iter().chain([signal::abort_signal()]) {
            libc::sigdelset(&mut action.sa_mask, signal);
        }
        if libc::sigaction(number, &action, std::ptr::null_mut()) != 0 {
            return Err(system("install the handler of the signal for upcalls"));
        }
    }
    Ok(())
}

/// Which functions of a domain are called.
pub enum Handlers {
    /// The one at this offset.
    One(u32),
    /// For each event its own. The mailbox is in nobody's use, and may have been another thread's.
    Of(Box<dyn Sources>, Arc<Mailbox>),
}

/// The calling thread takes upcalls into a domain until this is dropped. It stays on that thread.
pub struct Attached {
    state: *mut State,
    mailbox: Arc<Mailbox>,
    control: &'static Control,
    generation: u32,
    here: PhantomData<*const ()>,
}

impl Attached {
    /// Attaches the calling thread to one function of two integers, or to those of `handlers`, with
    /// a data stack that begins at `stack` and is nobody else's. The services for whose number
    /// `allows` says so are those that handlers may call: they neither allocate nor take locks. A
    /// handler that calls another one goes on in the domain's `pool`, if there is one. `life` says
    /// which of its lives the domain is in, and is as careful. Handlers run for at most once to
    /// twice `longest`.
    ///
    /// # Errors
    /// [`AttachError`]
    pub fn new(
        block: &Block,
        (handlers, stack): (Handlers, u32),
        allows: impl Fn(usize) -> bool,
        longest: Duration,
        pool: Option<Arc<Pool>>,
        life: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Result<Attached, AttachError> {
        let thread = thread::current();
        if thread.in_upcall() || !thread.upcall.load(Relaxed).is_null() {
            return Err(AttachError::Attached);
        }
        let (offset, mailbox, sources) = match handlers {
            Handlers::One(offset) if !block.is_start(offset) => {
                return Err(AttachError::NoFunction(offset));
            }
            Handlers::One(offset) => (offset, Arc::new(Mailbox::default()), None),
            Handlers::Of(sources, mailbox) => {
                let text = block.text().ok_or(AttachError::NoFunction(0))?;
                (0, mailbox, Some((sources, text)))
            }
        };
        if block.facts() & FACT_GS != 0 {
            return Err(AttachError::Gs);
        }
        if thread.extra.load(Relaxed).is_null() {
            let here = 0u8;
            register::register(thread, &raw const here as u64)?;
        }
        if thread.extra().ending {
            return Err(AttachError::Refused(Refusal::ThreadTable));
        }
        register::look(thread)?;
        let (present, needed) = (mask::signal_stack_bytes(), needed());
        if present < needed {
            return Err(AttachError::SignalStack { present, needed });
        }
        install()?;
        if mask::is_blocked(signal::upcall_signal()) {
            return Err(AttachError::Blocked(signal::upcall_signal()));
        }
        (above().watch)().map_err(|_| Refusal::NoWatchdog)?;
        let services = block.services().map_or(0, |services| services.len());
        let allowed: Box<[u8]> = (0..services).map(|k| u8::from(allows(k))).collect();
        let limit = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
        let clock = Clock::new(limit, signal::abort_signal(), allowed.as_ptr(), ring_again);
        let clock = clock.map_err(|error| AttachError::System {
            what: "make a timer for upcalls",
            reason: error.to_string(),
        })?;
        let frame = Frame::new()?;
        let mut x87 = X87::default();
        x87[0] = X87_CONTROL;
        let extra = Box::new(Extra {
            messages: Vec::new(),
            next_limit: 0,
            fault: RawFault::default(),
            detail: 0,
            message: None,
            panic: None,
            x87,
            stack: (0, 0),
            own_stack: None,
            index: thread.index(),
            admitted: false,
            ending: false,
            checked: 0,
            signal_stack: None,
        });
        let entry = match sources {
            None => block.entry(offset, &signature(), Manner::default()),
            Some(_) => block.later_entry(&signature()),
        };
        let control = entry.control();
        let state = Box::new(State {
            clock,
            promotion: Promotion {
                suspend: pool.as_ref().map(|_| suspend as _),
                ..Promotion::default()
            },
            entry,
            stack,
            mailbox: mailbox.clone(),
            pool,
            life: Box::new(life),
            extra: Box::into_raw(extra),
            checked: signal::generation(),
            frame,
            interrupted: None,
            direct: None,
            sources,
            look: false,
            handlers: 0,
            begun: 0,
            running: None,
            _allowed: allowed,
        });
        // As for a data stack of the thread's calls: `inside::anybody` has the other half.
        control.stacks_given.fetch_add(1, SeqCst);
        fence(SeqCst);
        let state = Box::into_raw(state);
        thread.upcall.store(state.cast(), SeqCst);
        mailbox.open(thread.tid());
        Ok(Attached {
            state,
            mailbox,
            control,
            generation: control.generation(),
            here: PhantomData,
        })
    }

    /// What other threads put events into.
    pub fn mailbox(&self) -> &Arc<Mailbox> {
        &self.mailbox
    }
}

/// What handlers are called by.
fn signature() -> Signature {
    "v(il)".parse().expect("a signature")
}

impl Attached {
    /// The thread takes no upcalls any more: where the data stack begins that handlers had last.
    pub fn detach(mut self) -> u32 {
        self.end()
    }

    fn end(&mut self) -> u32 {
        let state = std::mem::replace(&mut self.state, std::ptr::null_mut());
        if state.is_null() {
            return 0;
        }
        let upcall = &thread::current().upcall;
        // A thread that was unregistered, or forked, has it taken away already.
        let _ = upcall.compare_exchange(state.cast(), std::ptr::null_mut(), SeqCst, SeqCst);
        self.mailbox.close();
        if self.control.generation() == self.generation {
            self.control.stacks_given.fetch_sub(1, SeqCst);
        }
        // SAFETY: made by `new`, and from here on no signal finds it: only this thread's handler
        // looked there. With it goes what its extra holds.
        unsafe {
            let state = Box::from_raw(state);
            drop(Box::from_raw(state.extra));
            state.stack
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.end();
    }
}
