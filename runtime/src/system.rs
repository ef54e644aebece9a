//! The service `sys`: the system calls of an extension, each decoded and decided about here, and
//! done by its domain's policy.
//!
//! System calls do not exist for an extension; its C library turns them into calls of one service.
//! Invariant: a call is first decoded ([`decode`]), which copies all that it reads and checks all
//! that it may write, then decided about, then done with the copies. What is not granted is refused
//! with an errno, and counted.
//!
//! What grants calls and does them stands above, in `postern-policy`, and is known here by two
//! traits ([`policy`]). A call as a value belongs here, because a decider is shown each call,
//! whatever the domain's policy, and if it has none.

mod call;
mod decode;
pub(crate) mod policy;
mod request;
mod serve;
mod state;
mod table;

pub use call::{
    Call, Descriptor, FileTime, GuestPath, Identity, LockAction, Target, TimeForm,
    WORKING_DIRECTORY,
};
pub use policy::{Access, Answer, Done, Failure, Granted, SystemPolicy, SystemService};
pub use request::{Request, Verdict};
pub(crate) use serve::SystemCalls;
pub use serve::{answer, interruption};
pub(crate) use state::System;
pub use table::{SYSTEM_CALLS, SystemCall};
