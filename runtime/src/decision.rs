//! Decisions: whether a domain may make a call of a service or of the system, asked before each.
//!
//! A closure of the host decides, or another domain ([`module`]). Invariant: an extension gets what
//! its decider answered, or a refusal; a decider that does not answer is counted and denies.

mod ask;
mod guard;
mod module;
#[expect(unsafe_code, reason = "its name says so")]
mod trusted;

pub(crate) use guard::Guard;
pub(crate) use trusted::Deciding;

use crate::error::CallError;
use crate::service::Caller;
use crate::system::Request;
use crate::system::Verdict;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// What a decider is asked.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Question<'a> {
    /// Name of the domain that makes the call.
    pub domain: &'a str,
    /// The call.
    pub call: Asked<'a>,
}

/// The call that is to be decided.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Asked<'a> {
    /// Of a service.
    Service {
        /// Its name.
        name: &'a str,
        /// Which of the image's imports it is.
        number: usize,
        /// Bits of the arguments that are no floats, in their order, zero-extended from the width
        /// of their types. Pointers are offsets of the domain's window: what they point to may
        /// change before the service looks at it.
        integers: &'a [u64],
        /// Bits of the others.
        floats: &'a [u64],
    },
    /// Of the system: with copies of all that is read, which are what is done if it is allowed.
    SystemCall(&'a Request),
}

/// A decider did not answer as it must: the call that was asked about is denied and counted.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum DecisionError {
    /// The module faulted, took longer than its own deadline, exited, or is closed by an earlier
    /// fault.
    #[error("the policy module `{module}` did not answer: {error}")]
    Unanswered {
        /// Name of the module's domain.
        module: String,
        /// How its call ended.
        error: CallError,
    },
    /// The answer is none.
    #[error(
        "the policy module `{module}` answered {answer}, which is no verdict; see postern/policy.h"
    )]
    Nonsense {
        /// Name of the module's domain.
        module: String,
        /// What it returned.
        answer: i64,
    },
    /// The module is deciding already, or waits, on this thread.
    #[error(
        "the policy module `{module}` was asked about a call on which its own answer depends; let another decider decide about its calls"
    )]
    Circular {
        /// Name of the module's domain.
        module: String,
    },
}

/// Puts a question, and the names in it, to a module.
type Ask = dyn Fn(&Question<'_>, &[u8]) -> Result<Verdict, DecisionError> + Send + Sync;

type Closure = dyn Fn(&Caller<'_>, &Question<'_>) -> Verdict + Send + Sync;

enum DeciderKind {
    Closure(Box<Closure>),
    /// A domain, by its name, and how it is asked.
    Module {
        name: String,
        ask: Box<Ask>,
    },
}

/// Who decides about a domain's calls. Cloning shares it; one decider may serve any number of
/// domains.
#[derive(Clone)]
pub struct Decider(Arc<DeciderKind>);

impl Decider {
    /// A closure of the host. It runs on the extension's thread, and gets 64 KiB of stack at least.
    /// If it panics, the call that it was asked about is not made, and the panic goes on in the
    /// host's own call, as that of a service does.
    pub fn closure(
        decide: impl Fn(&Caller<'_>, &Question<'_>) -> Verdict + Send + Sync + 'static,
    ) -> Decider {
        Decider(Arc::new(DeciderKind::Closure(Box::new(decide))))
    }
}

/// Whether this system call ends the extension's call: it is allowed whatever anybody says.
pub(crate) fn ends_the_call(number: i64) -> bool {
    matches!(number, libc::SYS_exit_group | libc::SYS_exit)
}

impl fmt::Debug for Decider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            DeciderKind::Closure(_) => f.write_str("closure"),
            DeciderKind::Module { name, .. } => write!(f, "module {name}"),
        }
    }
}
