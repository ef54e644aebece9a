//! The service `sys`: the system calls of an extension, each decoded and decided about here, and done by its domain's policy.
//!
//! System calls do not exist for an extension; its C library turns them into calls of one service. Invariant: a call is first
//! decoded ([`decode`]), which copies all that it reads and checks all that it may write, then decided about, then done with the copies.
//! What is not granted is refused with an errno, and counted.
//!
//! What grants calls and does them stands above, in `postern-policy`, and is known here by two traits ([`policy`]). A call as a value
//! belongs here, because a decider is shown each call, whatever the domain's policy, and if it has none.

mod call;
mod decode;
pub(crate) mod policy;
mod request;
mod table;

pub use call::{
    Call, Descriptor, FileTime, GuestPath, Identity, LockAction, Target, TimeForm,
    WORKING_DIRECTORY,
};
pub use policy::{Access, Answer, Done, Failure, Granted, SystemPolicy, SystemService};
pub use request::{Request, Verdict};
pub use table::{SYSTEM_CALLS, SystemCall};

use crate::Domain;
use crate::call::{ending, kill};
use crate::decision::{self, Asked, Deciding, Question};
use crate::domain::DomainInner;
use crate::service::{Caller, Services};
use postern_gates::guard;
use rustix::io::Errno;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// Stack that `sys` needs: the standard library's, and what the host's own functions take.
const STACK: usize = 128 << 10;

/// Why whoever waits in a system call gives up: `EINTR` when the extension's call shall end, because its deadline is over or somebody
/// interrupts it; `ECANCELED` when system calls are taken from it, for whoever does that waits.
pub fn interruption() -> Option<Errno> {
    match () {
        () if ending() => Some(Errno::INTR),
        () if guard::is_revoked() => Some(Errno::CANCELED),
        () => None,
    }
}

/// The answer that a verdict is; `None` if the call is allowed, and is to be done.
pub fn answer(verdict: Verdict) -> Option<Answer> {
    Some(match verdict {
        Verdict::Allow => return None,
        Verdict::Deny(errno) => {
            // Whatever the host says, the extension sees an error.
            let errno = if (1..4096).contains(&errno) {
                errno
            } else {
                libc::EPERM
            };
            Err(Failure::Refused(Errno::from_raw_os_error(errno)))
        }
        Verdict::Emulate(value, bytes) => Ok(Done { value, bytes }),
        Verdict::Kill(message) => {
            kill(message);
            Err(Failure::Refused(Errno::PERM))
        }
    })
}

/// The system calls of one domain: who grants them, and how many were.
pub(crate) struct System {
    /// Set once the domain is there, so that no call has to look for it among all.
    domain: OnceLock<Weak<DomainInner>>,
    /// Who is asked before the policy is.
    deciding: Arc<Deciding>,
    /// What the domain's policy made. Without one nothing is granted.
    service: OnceLock<Arc<dyn SystemService>>,
    allowed: AtomicU64,
    refused: AtomicU64,
    /// Number of the last refused call, plus one.
    last_refused: AtomicU64,
}

impl System {
    pub(crate) fn new(service: Option<Arc<dyn SystemService>>, deciding: Arc<Deciding>) -> System {
        System {
            domain: OnceLock::new(),
            deciding,
            service: service.map_or_else(OnceLock::new, OnceLock::from),
            allowed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            last_refused: AtomicU64::new(0),
        }
    }

    /// Says whose calls these are.
    pub(crate) fn belongs_to(&self, domain: &Arc<DomainInner>) {
        let _ = self.domain.set(Arc::downgrade(domain));
    }

    /// Offers the service `sys`.
    pub(crate) fn offer(self: &Arc<Self>, services: &mut Services) {
        let system = self.clone();
        services.add(
            "sys",
            move |caller: &Caller<'_>,
                  number: i64,
                  a: u64,
                  b: u64,
                  c: u64,
                  d: u64,
                  e: u64|
                  -> i64 { system.call(caller, number, [a, b, c, d, e]) },
        );
        services.needs_stack("sys", STACK);
    }

    /// Who grants the calls, if anybody does.
    pub(crate) fn service(&self) -> Option<&dyn SystemService> {
        self.service.get().map(|service| &**service)
    }

    /// Another policy from now on. Calls that are being done end as they began; open files are closed.
    fn set_policy(&self, policy: impl SystemPolicy) {
        let known = self.service.get();
        if known.is_none() && self.service.set(policy.service()).is_ok() {
            return;
        }
        if let Some(service) = self.service() {
            service.set_policy(Box::new(policy));
        }
    }

    /// Closes all files; the policy stays.
    pub(crate) fn reset(&self) {
        if let Some(service) = self.service() {
            service.reset();
        }
    }

    /// Calls that were allowed, and that were refused.
    pub(crate) fn counters(&self) -> (u64, u64) {
        (
            self.allowed.load(Ordering::Relaxed),
            self.refused.load(Ordering::Relaxed),
        )
    }

    /// The number of the last call that was refused.
    pub(crate) fn last_refused(&self) -> Option<u64> {
        self.last_refused.load(Ordering::Relaxed).checked_sub(1)
    }

    /// The service.
    fn call(&self, caller: &Caller<'_>, number: i64, words: [u64; 5]) -> i64 {
        if decision::ends_the_call(number) {
            self.allowed.fetch_add(1, Ordering::Relaxed);
            caller.exit(words[0] as i32);
            return 0;
        }
        match self.decide(caller, number, words) {
            Ok(value) => {
                self.allowed.fetch_add(1, Ordering::Relaxed);
                value
            }
            Err(Failure::Error(error)) => {
                self.allowed.fetch_add(1, Ordering::Relaxed);
                -i64::from(error.raw_os_error())
            }
            Err(Failure::Refused(error)) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                let wanted = (number as u64).wrapping_add(1);
                self.last_refused.store(wanted, Ordering::Relaxed);
                -i64::from(error.raw_os_error())
            }
        }
    }

    fn decide(&self, caller: &Caller<'_>, number: i64, words: [u64; 5]) -> Result<i64, Failure> {
        let decider = self.deciding.current(caller);
        let granting = self.service().filter(|service| !service.refuses_all());
        if granting.is_none() && decider.is_none() {
            return Err(Failure::Refused(Errno::PERM));
        }
        // A domain that is being closed does nothing more.
        let domain = self.domain.get().and_then(Weak::upgrade).map(Domain);
        let domain = domain.ok_or(Failure::Refused(Errno::PERM))?;
        let (call, out) = decode::decode(&domain, number, words)?;
        let request = Request {
            number,
            words,
            room: out.room(),
            call,
        };
        let mut verdict = Verdict::Allow;
        if let Some(decider) = decider {
            let question = Question {
                domain: domain.name(),
                call: Asked::SystemCall(&request),
            };
            verdict = decider.decide(caller, &question, &[], &self.deciding);
        }
        let done = match (answer(verdict), granting) {
            (Some(answer), _) => answer?,
            (None, Some(service)) => service.call(caller, &request)?,
            // Whoever was asked may have ended the call meanwhile.
            (None, None) if ending() => return Err(Failure::Error(Errno::INTR)),
            (None, None) => return Err(Failure::Refused(Errno::PERM)),
        };
        out.put(&domain, &done.bytes)?;
        Ok(done.value)
    }
}

impl Domain {
    /// Another policy from now on, for calls that begin after this one. Open files of the extension are closed; a call that is
    /// being done is finished as it began.
    pub fn set_policy(&self, policy: impl SystemPolicy) {
        self.0.system.set_policy(policy);
    }
}
