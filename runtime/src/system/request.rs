//! What is asked about a system call, and what may be said to it.

use super::call::Call;

/// What the host says to a call of an extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The base policy decides.
    Allow,
    /// The call fails with this errno (of Linux, positive).
    Deny(i32),
    /// The host has answered: the result, and bytes for the extension's output buffer, as many as
    /// there is room for.
    Emulate(i64, Vec<u8>),
    /// The extension's whole call ends as a fault of kind [`crate::FaultKind::Killed`] with this
    /// message.
    Kill(String),
}

/// A call that the host is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// Linux's number of it.
    pub number: i64,
    /// The words that came with it. Where they are pointers, look at `call`: it has what they
    /// pointed to.
    pub words: [u64; 5],
    /// Room for an answer's bytes in the extension's buffers.
    pub room: usize,
    /// The call.
    pub call: Call,
}
