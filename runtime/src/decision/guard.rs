//! What is decided before a service is called, or refused because it was taken from the domain.

use super::{Asked, Decider, Deciding, Question, ends_the_call};
use crate::Verdict;
use crate::service::{Caller, DEFAULT_STACK};
use postern_gates::guard::{Answer, Decide, GuardedCall};
use postern_gates::{outcome, shim};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What is known of one service of a domain where its calls are decided.
pub(crate) struct Guard {
    /// The import's name and number.
    pub name: Box<str>,
    pub number: usize,
    /// Masks of the integer and floating-point parameters.
    pub integers: Vec<u64>,
    pub floats: Vec<u64>,
    /// The caller's name and the service's, each with a NUL.
    pub texts: Box<[u8]>,
    /// Bytes of `texts` that are the caller's name, without the NUL.
    pub domain: usize,
    /// The system calls: their deciders are asked once the call is decoded.
    pub system: bool,
    pub revoked: AtomicBool,
    /// Calls that were not made.
    pub denied: AtomicU64,
    /// What such a call gives.
    pub refusal: u64,
    pub deciding: Arc<Deciding>,
}

impl Guard {
    /// Whether every domain has the service: then nobody is asked, and nobody takes it.
    pub(crate) fn is_always_granted(&self) -> bool {
        self.name.starts_with("__postern_")
    }

    /// Name of the domain that calls.
    fn domain(&self) -> &str {
        std::str::from_utf8(&self.texts[..self.domain]).unwrap_or_default()
    }

    /// A call that is not made.
    fn denied(&self) -> Answer {
        self.denied.fetch_add(1, Ordering::Relaxed);
        Answer::Denied(self.refusal)
    }

    fn ask(&self, decider: &Decider, caller: &Caller<'_>, call: &GuardedCall<'_>) -> Verdict {
        let (mut integers, mut floats) = ([0; 6], [0; 8]);
        let masked = |to: &mut [u64], from: &[u64], masks: &[u64]| {
            for ((to, from), mask) in to.iter_mut().zip(from).zip(masks) {
                *to = from & mask;
            }
        };
        masked(&mut integers, call.integers, &self.integers);
        masked(&mut floats, call.floats, &self.floats);
        let question = Question {
            domain: self.domain(),
            call: Asked::Service {
                name: &self.name,
                number: self.number,
                integers: &integers[..self.integers.len().min(6)],
                floats: &floats[..self.floats.len().min(8)],
            },
        };
        decider.decide(caller, &question, &self.texts, &self.deciding)
    }
}

impl Decide for Guard {
    fn decide(&self, call: &GuardedCall<'_>) -> Answer {
        if self.system && ends_the_call(call.integers[0] as i64) {
            return Answer::GoOn;
        }
        if self.revoked.load(Ordering::SeqCst) {
            return self.denied();
        }
        let caller = Caller::new(call.control);
        let Some(decider) = self.deciding.current(&caller).filter(|_| !self.system) else {
            return Answer::GoOn;
        };
        if call.lacks_stack(DEFAULT_STACK as u64) {
            shim::end_when_back(outcome::SERVICE_STACK, 0, None);
            return Answer::Value(0);
        }
        let asked = catch_unwind(AssertUnwindSafe(|| self.ask(decider, &caller, call)));
        let verdict = asked.unwrap_or_else(|panic| {
            self.deciding.failed(None);
            resume_unwind(panic)
        });
        match verdict {
            // The decider, or the deadline, may have ended the call meanwhile.
            Verdict::Allow if !shim::ending() => return Answer::GoOn,
            Verdict::Emulate(value, _) => return Answer::Value(value as u64),
            Verdict::Kill(message) => {
                shim::end_when_back(outcome::KILL, 0, Some(message));
            }
            Verdict::Allow | Verdict::Deny(_) => {}
        }
        self.denied()
    }

    fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::SeqCst)
    }
}
