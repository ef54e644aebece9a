//! What the system calls of an extension may do, and their doing: the policies `none`, `compute`
//! and `files`, with what they leave open.
//!
//! The runtime decodes a call and asks whoever decides about the domain; what comes here is a
//! [`Request`], whose strings and buffers are copies. Invariant: nothing is done that the policy
//! does not grant, and what is done is done with the copies. What a domain leaves open (files,
//! positions, locks) is its own [`System`], and is closed when its policy changes and when it is
//! reset.
//!
//! The line to the runtime: a call as a value ([`Call`], [`Request`], [`Verdict`]) is there, since
//! deciders are shown it whatever the policy; rules, files, streams and clocks are here, and the
//! runtime knows of them what [`SystemPolicy`] and [`SystemService`] say.

#![forbid(unsafe_code)]

mod apply;
mod compute;
mod descriptors;
mod file;
mod layout;
mod policy;
mod rules;
mod serve;
mod state;
mod status;
mod stream;
mod taking;
mod waiting;

pub use policy::Policy;
pub use postern_runtime::system::{
    Access, Call, Descriptor, FileTime, GuestPath, Identity, LockAction, Request, SYSTEM_CALLS,
    SystemCall, Target, TimeForm, Verdict, WORKING_DIRECTORY,
};
pub use rules::{GrantError, Rules};
pub use stream::{Input, ReadFunction, Sink, WriteFunction};
