//! What the gates ask of the code that is built on them: one table of functions, given before the
//! first call.
//!
//! Gates know threads, control blocks and entries, and nothing of what stands behind these: images,
//! domains, faults, deadlines. Where a decision needs that, they call a function of this table, and
//! tell it raw facts.
//!
//! Invariant: the table is given before any control block is taken, and never changes.

use super::control::Control;
use super::entry::Entry;
use super::outcome::{RawFault, Refusal};
use super::peer::PeerError;
use super::sync::{OnceLock, Watched};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;

/// The functions. All are called on the thread whose call it is about, on the host's stack, outside
/// extensions, with none of the gates' locks held. Only where it says so may one panic: a gate is
/// around the others, and cannot be unwound.
pub struct Above {
    /// Sees to it that somebody looks at deadlines, and resumes if it rested. Called by the slow
    /// path of the entry gate, before the call is published; it is refused if it fails. Threads are
    /// looked at from then on: no later than at the next [`Above::wake`].
    pub watch: fn() -> Watched,
    /// Whoever looks at deadlines does so from now on, if it rested. Called by the slow path with
    /// the call published, so it takes no lock.
    pub wake: fn(),
    /// Gives the thread with this index its data stack in a domain, and notes it in the thread's
    /// slot of the control block. Called by the slow path at the first call of the thread into the
    /// domain, before the call is published.
    pub give_data_stack: fn(&Control, usize) -> Result<(), Refusal>,
    /// The state is that of a domain whose window is to be moved: moves it if nobody is inside, or
    /// opens the domain without. Called by the slow path, before the call is published.
    pub move_window: fn(&Control),
    /// The entry did not let a call in, for this reason: another entry to try, perhaps the same
    /// one, or the reason that stays. Called by the slow path, before the call is published. Code
    /// of the host's may run in there, and a panic of it is dropped.
    pub instead: for<'a> fn(&'a Entry, Refusal) -> Result<&'a Entry, Refusal>,
    /// A call was refused. Called last on the slow path, also in signal handlers that interrupted
    /// anything: so it takes no lock, allocates nothing and frees nothing.
    pub refused: fn(Refusal),
    /// What keeps the domain of a control block, if it is still there. Called when a call is being
    /// ended, while it is still inside.
    pub hold: fn(&Control) -> Option<Held>,
    /// A call was ended, and has left. Called on the way out of ended calls, and by the service
    /// gate when a service came back out of turn: then other calls of the thread are inside. It
    /// catches panics of the host's code that it runs.
    pub ended: fn(Option<Held>, Ended),
    /// Why the last call of this thread failed that did not return. Called after a call of a peer,
    /// for the calling extension.
    pub failure: fn() -> Failure,
    /// A thread got the index of one that has ended. Called when it registers, before its first
    /// call.
    pub renew_thread: fn(usize),
    /// A thread that ended had calls inside, which are forgotten now. A panic is dropped.
    pub forgotten: fn(),
    /// The thread ends: the destructors of thread-specific data run, and this is called in one of
    /// them.
    pub thread_exited: fn(),
}

/// A domain that a call is leaving, as [`Above::hold`] gave it: it stays until this is dropped.
pub struct Held {
    /// The domain.
    pub domain: Arc<dyn Any + Send + Sync>,
    /// Which of its lives the call was in.
    pub life: u64,
}

/// How a call was ended.
pub struct Ended {
    /// What the handler or the gate saw.
    pub fault: RawFault,
    /// An exit's status.
    pub detail: u64,
    /// Words of whoever ended it.
    pub message: Option<String>,
    /// The panic of a service, if that ended it.
    pub panic: Option<Box<dyn Any + Send>>,
    /// `Entry::recovery` of the call.
    pub recovery: u32,
}

/// Why a call of a peer failed.
pub enum Failure {
    /// What the calling extension is told.
    Error(PeerError),
    /// A panic of the host's, which goes around both extensions.
    Panic(Box<dyn Any + Send>),
}

static ABOVE: OnceLock<&'static Above> = OnceLock::new();

/// Gives the table. Only the first one counts.
pub fn give(above: &'static Above) {
    ABOVE.get_or_init(|| above);
}

/// The table.
pub(super) fn above() -> &'static Above {
    ABOVE.get().expect("given before there are entries")
}
