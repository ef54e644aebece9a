//! Why a call has no result, and why a domain, whose making may call it, was not made.

use super::{CommonError, MemoryError};
use crate::fault::{Fault, signal_name};
use postern_gates::control::MAX_THREADS;
use postern_gates::map::MapError;
use postern_gates::outcome::Refusal;
use postern_image::Signature;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// Why a call has no result.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum CallError {
    /// The extension broke a rule, crashed or took too long. The domain is poisoned.
    #[error("{0}")]
    Fault(Arc<Fault>),
    /// The extension ended itself with a status.
    #[error("the extension exited with status {0}")]
    Exited(i32),
    /// An earlier fault closed the domain.
    #[error("an earlier fault closed the domain; reset() it")]
    Poisoned,
    /// An earlier fault closed the domain, and its restart policy lets it rest.
    #[error(
        "the domain faulted and rests for another {0:?}, as its restart policy says; reset() starts it at once"
    )]
    Resting(Duration),
    /// The domain is being reset by another thread.
    #[error("the domain is being reset; try again")]
    Busy,
    /// The domain was closed for good.
    #[error("the domain is closed")]
    Closed,
    /// A signal that must reach Postern is blocked in this thread.
    #[error("signal {} is blocked in this thread, so a fault would kill the process; unblock it with pthread_sigmask", signal_name(*.0))]
    SignalBlocked(i32),
    /// Somebody replaced a handler.
    #[error("the handler of {} was replaced after Postern started; chain to the former one, or start Postern with install_handlers = false and call handle_signal from yours", signal_name(*.0))]
    HandlerReplaced(i32),
    /// A handler of the host's would run on the control stack.
    #[error("the handler of {} was installed without SA_ONSTACK, so it would end the process if it came when an extension has used up the stack; install it with that flag, or start Postern with adopt_handlers = true (PT_ADOPT_HANDLERS in C)", signal_name(*.0))]
    HandlerStack(i32),
    /// The call came from a signal handler that interrupted an extension.
    #[error(
        "this thread is inside an extension already (a signal handler must not call extensions)"
    )]
    InsideExtension,
    /// The call came from a signal handler that runs on the alternate signal stack.
    #[error(
        "this thread is on its alternate signal stack, where a fault could not be handled; call from outside the signal handler"
    )]
    OnSignalStack,
    /// The watchdog's thread could not be made.
    #[error(
        "the watchdog cannot start, so no deadline would be kept; raise the limit of threads (`ulimit -u`)"
    )]
    NoWatchdog,
    /// Calls nest too deeply.
    #[error(
        "calls between host and extensions nest too deeply (the limit is {})",
        postern_gates::record::MAX_NESTING
    )]
    TooDeep,
    /// The domain's limit of threads.
    #[error("more threads have entered the domain than its limit allows; raise Limits::threads")]
    TooManyThreads,
    /// The process's limit of threads.
    #[error(
        "{} threads that live have entered extensions, which is the limit of a process; let some of them end",
        MAX_THREADS
    )]
    ThreadTable,
    /// There is no program to run.
    #[error("the image exports no `__postern_main`; link it from objects that define main()")]
    NoMain,
    /// The program's arguments found no place.
    #[error("the program's arguments: {0}")]
    Arguments(MemoryError),
    /// No memory for stacks.
    #[error("no memory for the thread's stacks")]
    NoMemory,
    /// The window has no room for a data stack, or the extension left its stack pointer outside its
    /// stack.
    #[error("no room on the extension's data stack")]
    NoDataStack,
}

/// Memory of a domain's heap was not had.
#[derive(Debug, Clone, Error)]
pub enum AllocError {
    /// The heap has no room, or what `malloc` gave is not memory of the domain.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The extension's own `malloc` did not return.
    #[error("the extension's malloc: {0}")]
    Call(#[from] CallError),
}

impl CallError {
    /// The fault, if it is one.
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            CallError::Fault(fault) => Some(fault),
            _ => None,
        }
    }

    /// The error that a gate's refusal is.
    pub(crate) fn from_refusal(refusal: Refusal) -> CallError {
        match refusal {
            Refusal::Poisoned => CallError::Poisoned,
            Refusal::Resting(left) => CallError::Resting(left),
            Refusal::Busy | Refusal::Moving => CallError::Busy,
            Refusal::Closed => CallError::Closed,
            Refusal::SignalBlocked(signal) => CallError::SignalBlocked(signal),
            Refusal::HandlerReplaced(signal) => CallError::HandlerReplaced(signal),
            Refusal::HandlerStack(signal) => CallError::HandlerStack(signal),
            Refusal::InsideExtension => CallError::InsideExtension,
            Refusal::OnSignalStack => CallError::OnSignalStack,
            Refusal::NoWatchdog => CallError::NoWatchdog,
            Refusal::TooDeep => CallError::TooDeep,
            Refusal::TooManyThreads => CallError::TooManyThreads,
            Refusal::ThreadTable => CallError::ThreadTable,
            Refusal::NoMemory => CallError::NoMemory,
            Refusal::NoDataStack => CallError::NoDataStack,
        }
    }
}

/// A domain was not made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InstantiateError {
    /// Which image could not have a domain: what [`crate::DomainBuilder::build`] returns.
    #[error("{image}: {source}")]
    Image {
        /// The image's name.
        image: String,
        /// Why.
        source: Box<InstantiateError>,
    },
    /// The image wants a service that the domain is not given.
    #[error(
        "the extension imports `{0}`, which is not among the domain's services; register it with `service(\"{0}\", …)`"
    )]
    Unresolved(String),
    /// A service or peer was granted that the image does not import, and that was to be refused:
    /// [`crate::DomainBuilder::refuse_unused`].
    #[error(
        "`{name}` was granted, which the extension does not import{}; take it out, or do not ask for refuse_unused()", super::suggestion(.nearest)
    )]
    NotImported {
        /// What was granted.
        name: String,
        /// The import that is spelt most like it.
        nearest: Option<String>,
    },
    /// A service's type differs from what the extension was compiled against.
    #[error("service `{name}`: the extension expects `{expected}`, the host offers `{offered}`")]
    Signature {
        /// Its name.
        name: String,
        /// The import's signature.
        expected: Signature,
        /// The host's.
        offered: Signature,
    },
    /// An import that a peer is to serve has no type.
    #[error(
        "the image does not say the types of its import `{0}` (no debug information, variadic, or a structure by value), so no peer can serve it"
    )]
    Untyped(String),
    /// Limits do not fit.
    #[error("{0}")]
    Limits(String),
    /// The image wishes for more memory than the host gives to wishes:
    /// [`crate::Limits::heap_ceiling`].
    #[error(
        "the image wishes for {wish} bytes of {what}, and images get at most {ceiling} by their own wish; `heap_ceiling` (in C pt_options_heap_ceiling) allows more, and `heap` says how large the heap is whatever the image wishes (`--heap-ceiling` and `--heap` of `postern run`)"
    )]
    Wish {
        /// Heap, or variables that begin as zero.
        what: &'static str,
        /// Bytes.
        wish: u64,
        /// The host's limit.
        ceiling: u64,
    },
    /// The kernel refused memory.
    #[error(transparent)]
    Map(#[from] MapError),
    /// Its memory cannot be that of other processes, too.
    #[error(transparent)]
    Common(#[from] CommonError),
    /// The extension's own initialisation failed.
    #[error("the extension's initialisation failed: {0}")]
    Initialisation(#[source] CallError),
}

impl InstantiateError {
    /// The error without the name of the image.
    pub fn cause(&self) -> &InstantiateError {
        match self {
            InstantiateError::Image { source, .. } => source.cause(),
            other => other,
        }
    }
}
