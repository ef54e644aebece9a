//! Upcalls: a real-time signal interrupts a thread at any instruction (the host's, a gate's, a
//! service's, another extension's, the slow path's, the allocator's), runs the handler of a domain
//! there, and the thread goes on exactly as it was.
//!
//! A thread attaches ahead of time: all that an upcall needs is made then, and on the signal's way
//! nothing is allocated, locked or waited for. The signal's handler copies the kernel's frame of
//! the interrupted thread away from the signal stack, which faults of the upcall need, goes on on a
//! control stack of the upcalls' own, and ends by `rt_sigreturn` from the copy: so all registers,
//! the vector state, the mask and the signal stack come back as the kernel has saved them. What it
//! has not saved are the gs base and errno, which are kept beside ([`frame`]), and the words of
//! [`super::thread::Thread`].
//!
//! **What is kept of the thread's state** ([`interrupted`]): every word that a call writes, but for
//! those that other threads write. Extra is exchanged as a whole, so an upcall's fault, messages
//! and x87 environment are apart from the interrupted call's, whatever half of it is written.
//!
//! **What others see** ([`super::call_state`]): an upcall is a call like a nested one. If the
//! interrupted call could be seen (its phase is settled), it waits meanwhile: its record is shown
//! and its domain counts it, by the order of stores of `nesting::push`, also where a gate was just
//! writing that record; what the gate had written there comes back. If it could not (Outside,
//! Entering), there is nothing to show. Behind that, and before the upcall's number and domain are
//! written, `upcalls` changes, and again before the interrupted call's come back; readers take it
//! as a part of `nested`. That word itself stays as it is, for the thread may have been interrupted
//! between reading and writing it. Numbers of upcalls are made of `upcalls`, with a bit that no
//! nested call's has: none comes twice.
//!
//! **Wishes** that the interrupted call end, which come meanwhile, are in its record or in the
//! thread's own words. At the end the abort signal is sent once more, blocked until the thread is
//! where it was: so it finds the interrupted instruction, and decides there.
//!
//! An upcall takes no lock, but it may have interrupted who holds one. So it must end by itself
//! ([`clock`]), and its end is told later, by an ordinary thread ([`mailbox`]): in the handler the
//! domain is poisoned by one word. Upcalls do not nest: the signal is blocked. Calls of domains by
//! an upcall's services are refused (`Thread::deciding`), and only services may be called that the
//! host has named (`upcall.s`).
//!
//! A handler that calls another one is ended; or if its domain has threads for that, it is
//! suspended where it calls ([`suspended`]), waits for one of them ([`pool`]), and goes on there as
//! an ordinary call ([`super::resume`]). For the interrupted thread it has returned.

mod attach;
pub(crate) mod clock;
mod frame;
pub(crate) mod gate;
mod interrupted;
mod mailbox;
pub(crate) mod pool;
mod source;
mod state;
pub(crate) mod suspended;

pub use attach::{AttachError, Attached, Handlers};
#[cfg(feature = "testing")]
pub use gate::bounds;
pub use mailbox::{EndedUpcall, Mailbox, Posted, UpcallCounters};
pub use pool::{Job, Pool, PoolCounters};
pub use source::{Claimed, Handled, Sources};
pub(crate) use state::ended;
pub use state::{OTHER, strays};
