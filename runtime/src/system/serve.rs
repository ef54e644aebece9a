//! The service `sys` of one domain: a call is decoded, decided about, and given to the policy.

use super::policy::{Answer, Done, Failure, SystemPolicy};
use super::state::System;
use super::{Request, Verdict, decode};
use crate::decision::{self, Asked, Question};
use crate::domain::{Domain, DomainInner, let_go};
use crate::own_threads;
use crate::own_threads::mine::{self, Holding};
use crate::service::{Caller, Services, ending, kill};
use postern_gates::{guard, outcome};
use rustix::io::Errno;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};

/// Stack that `sys` needs: the standard library's, and what the host's own functions take.
const STACK: usize = 128 << 10;

/// Why whoever waits in a system call gives up: `EINTR` when the extension's call shall end,
/// because its deadline is over or somebody interrupts it; `ECANCELED` when system calls are taken
/// from it, for whoever does that waits. A thread of the domain's own that finds that the host has
/// left the domain closes it.
pub fn interruption() -> Option<Errno> {
    if let Some(inner) = mine::orphaned() {
        inner.control.lifecycle().close();
        inner.end_all(outcome::ANOTHER);
        let_go(inner);
        return Some(Errno::INTR);
    }
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

/// The service of one domain.
pub(crate) struct SystemCalls {
    /// Set once the domain is there, so that no call has to look for it among all.
    domain: OnceLock<Weak<DomainInner>>,
    system: Arc<System>,
}

impl SystemCalls {
    /// Says whose calls these are.
    pub(crate) fn belongs_to(&self, domain: &Arc<DomainInner>) {
        let _ = self.domain.set(Arc::downgrade(domain));
    }

    /// Offers the service `sys`.
    pub(crate) fn offer(system: &Arc<System>, services: &mut Services) -> Arc<SystemCalls> {
        let calls = Arc::new(SystemCalls {
            domain: OnceLock::new(),
            system: system.clone(),
        });
        let serving = calls.clone();
        services.add(
            "sys",
            move |caller: &Caller<'_>,
                  number: i64,
                  a: u64,
                  b: u64,
                  c: u64,
                  d: u64,
                  e: u64|
                  -> i64 { serving.call(caller, number, [a, b, c, d, e]) },
        );
        services.needs_stack("sys", STACK);
        calls
    }

    /// The service.
    fn call(&self, caller: &Caller<'_>, number: i64, words: [u64; 5]) -> i64 {
        if decision::ends_the_call(number) {
            self.system.allowed.fetch_add(1, Ordering::Relaxed);
            caller.exit(words[0] as i32);
            if let Some(domain) = self.domain.get().and_then(Weak::upgrade) {
                own_threads::exit_all(&domain.threads, caller, words[0] as i32);
            }
            return 0;
        }
        match self.decide(caller, number, words) {
            Ok(value) => {
                self.system.allowed.fetch_add(1, Ordering::Relaxed);
                value
            }
            Err(Failure::Error(error)) => {
                self.system.allowed.fetch_add(1, Ordering::Relaxed);
                -i64::from(error.raw_os_error())
            }
            Err(Failure::Refused(error)) => {
                self.system.refused.fetch_add(1, Ordering::Relaxed);
                let wanted = (number as u64).wrapping_add(1);
                self.system.last_refused.store(wanted, Ordering::Relaxed);
                -i64::from(error.raw_os_error())
            }
        }
    }

    fn decide(&self, caller: &Caller<'_>, number: i64, words: [u64; 5]) -> Result<i64, Failure> {
        let decider = self.system.deciding.current(caller);
        let granting = self
            .system
            .service()
            .filter(|service| !service.refuses_all());
        if granting.is_none() && decider.is_none() {
            return Err(Failure::Refused(Errno::PERM));
        }
        // A domain that is being closed does nothing more.
        let domain = self.domain.get().and_then(Weak::upgrade).map(Domain);
        let domain = domain.ok_or(Failure::Refused(Errno::PERM))?;
        let _held = Holding::begin(&domain.0);
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
            verdict = decider.decide(caller, &question, &[], &self.system.deciding);
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
    /// Another policy from now on, for calls that begin after this one. Open files of the extension
    /// are closed; a call that is being done is finished as it began.
    pub fn set_policy(&self, policy: impl SystemPolicy) {
        self.0.system.set_policy(policy);
    }
}
