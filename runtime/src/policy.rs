//! The service `sys`: the system calls of an extension, each decided and done by its domain's policy.
//!
//! System calls do not exist for an extension; its C library turns them into calls of one service. Invariant: a call is first
//! decoded ([`decode`]), which copies all that it reads and checks all that it may write, then decided, then done with the copies.
//! What is not granted is refused with an errno, and counted.

mod apply;
mod call;
mod compute;
mod decode;
mod descriptors;
mod file;
mod layout;
mod main;
mod rules;
mod stream;
mod table;
mod taking;

pub use call::{
    Call, Descriptor, FileTime, GuestPath, Identity, LockAction, Target, TimeForm,
    WORKING_DIRECTORY,
};
pub use rules::{Access, GrantError, Rules};
pub use stream::{Input, ReadFunction, Sink, WriteFunction};
pub use table::{SYSTEM_CALLS, SystemCall};

use crate::Domain;
use crate::call::{ending, kill};
use crate::decision::{self, Asked, Deciding, Question};
use crate::domain::Inner;
use crate::fork::{self, Held};
use crate::service::Caller;
use descriptors::Table;
use postern_gates::guard;
use rustix::io::Errno;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;
use stream::Stream;

/// Stack that `sys` needs: the standard library's, and what the host's own functions take.
pub(crate) const STACK: usize = 128 << 10;

/// What the host says to a call of an extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The base policy decides.
    Allow,
    /// The call fails with this errno (of Linux, positive).
    Deny(i32),
    /// The host has answered: the result, and bytes for the extension's output buffer, as many as there is room for.
    Emulate(i64, Vec<u8>),
    /// The extension's whole call ends as a fault of kind [`crate::FaultKind::Killed`] with this message.
    Kill(String),
}

/// A call that the host is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// Linux's number of it.
    pub number: i64,
    /// The words that came with it. Where they are pointers, look at `call`: it has what they pointed to.
    pub words: [u64; 5],
    /// Room for an answer's bytes in the extension's buffers.
    pub room: usize,
    /// The call.
    pub call: Call,
}

type Decide = dyn Fn(&Caller<'_>, &Request) -> Verdict + Send + Sync;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    None,
    Compute,
    Files,
}

impl Base {
    fn name(self) -> &'static str {
        match self {
            Base::None => "none",
            Base::Compute => "compute",
            Base::Files => "files",
        }
    }
}

/// What the system calls of a domain's extension may do. Cloning is cheap.
#[derive(Clone)]
pub struct Policy {
    base: Base,
    input: Input,
    output: Sink,
    error: Sink,
    rules: Arc<Rules>,
    decide: Option<Arc<Decide>>,
}

impl Default for Policy {
    fn default() -> Self {
        Policy::none()
    }
}

impl Policy {
    fn new(base: Base, rules: Rules) -> Policy {
        Policy {
            base,
            input: Input::default(),
            output: Sink::default(),
            error: Sink::default(),
            rules: Arc::new(rules),
            decide: None,
        }
    }

    /// Every call is refused with `EPERM`; only `exit_group` ends the call. The default.
    pub fn none() -> Policy {
        Policy::new(Base::None, Rules::new())
    }

    /// Clocks, sleeping until the deadline, random bytes, and the three streams: standard input is empty, output and error are the
    /// process's own until something else is said.
    pub fn compute() -> Policy {
        Policy::new(Base::Compute, Rules::new())
    }

    /// As [`Policy::compute`], and files in the directories that the rules grant.
    pub fn files(rules: Rules) -> Policy {
        Policy::new(Base::Files, rules)
    }

    /// The host's function is asked about every call but the end, before `base` is. It runs on the extension's thread and sees
    /// copies: what it looks at is what is done.
    pub fn custom(
        base: Policy,
        decide: impl Fn(&Caller<'_>, &Request) -> Verdict + Send + Sync + 'static,
    ) -> Policy {
        Policy {
            decide: Some(Arc::new(decide)),
            ..base
        }
    }

    /// Where standard input comes from. Default: [`Input::Empty`].
    #[must_use]
    pub fn stdin(mut self, input: Input) -> Policy {
        self.input = input;
        self
    }

    /// Where standard output goes. Default: [`Sink::Inherit`].
    #[must_use]
    pub fn stdout(mut self, sink: Sink) -> Policy {
        self.output = sink;
        self
    }

    /// Where standard error goes. Default: [`Sink::Inherit`].
    #[must_use]
    pub fn stderr(mut self, sink: Sink) -> Policy {
        self.error = sink;
        self
    }

    /// A fresh table of descriptors: the three streams.
    fn table(&self) -> Table {
        let streams = [
            Stream::input(&self.input),
            Stream::output(&self.output, false),
            Stream::output(&self.error, true),
        ];
        Table::new(self.rules.open_files, streams)
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("base", &self.base)
            .field("stdin", &self.input)
            .field("stdout", &self.output)
            .field("stderr", &self.error)
            .field("rules", &self.rules)
            .field("custom", &self.decide.is_some())
            .finish()
    }
}

/// What was done: the result, and what goes into the extension's output buffer.
pub(crate) struct Done {
    value: i64,
    bytes: Vec<u8>,
}

impl Done {
    fn value(value: i64) -> Done {
        Done {
            value,
            bytes: Vec::new(),
        }
    }

    fn bytes(bytes: Vec<u8>) -> Done {
        Done { value: 0, bytes }
    }

    /// The result is how many bytes there are.
    fn counted(bytes: Vec<u8>) -> Done {
        Done {
            value: bytes.len() as i64,
            bytes,
        }
    }
}

/// Why a call was not done.
enum Failure {
    /// It went wrong, as calls do.
    Error(Errno),
    /// The policy does not grant it.
    Refused(Errno),
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Failure {
        Failure::Error(error)
    }
}

type Answer = Result<Done, Failure>;

/// Tries until there is a result. `EINTR` when the extension's call shall end: its deadline is over, or somebody interrupts it;
/// `ECANCELED` when system calls are taken from it, for whoever does that waits. What is tried waits no longer than it is told.
fn waiting<T>(mut attempt: impl FnMut(Duration) -> Result<Option<T>, Errno>) -> Result<T, Errno> {
    const SLICE: Duration = Duration::from_millis(10);
    loop {
        if ending() {
            return Err(Errno::INTR);
        }
        if guard::is_revoked() {
            return Err(Errno::CANCELED);
        }
        if let Some(done) = attempt(SLICE)? {
            return Ok(done);
        }
    }
}

/// What the system calls of one domain leave behind: its policy, its open files, its counters.
pub(crate) struct System {
    /// Set once the domain is there, so that no call has to look for it among all.
    domain: OnceLock<Weak<Inner>>,
    /// Who is asked before the policy is.
    deciding: Arc<Deciding>,
    shard: usize,
    state: Mutex<State>,
    allowed: AtomicU64,
    refused: AtomicU64,
    /// Number of the last refused call, plus one.
    last_refused: AtomicU64,
    /// Bytes that were written to files, and 4096 for every name that was made.
    written: AtomicU64,
}

struct State {
    policy: Arc<Policy>,
    table: Table,
}

impl System {
    pub(crate) fn new(policy: Policy, deciding: Arc<Deciding>) -> System {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        System {
            domain: OnceLock::new(),
            deciding,
            shard: NEXT.fetch_add(1, Ordering::Relaxed),
            state: Mutex::new(State {
                table: policy.table(),
                policy: Arc::new(policy),
            }),
            allowed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            last_refused: AtomicU64::new(0),
            written: AtomicU64::new(0),
        }
    }

    /// Says whose calls these are.
    pub(crate) fn belongs_to(&self, domain: &Arc<Inner>) {
        let _ = self.domain.set(Arc::downgrade(domain));
    }

    fn state(&self) -> Held<'_, State> {
        fork::lock_one_of_many(self.shard, &self.state)
    }

    fn policy(&self) -> Arc<Policy> {
        self.state().policy.clone()
    }

    /// Another policy from now on. Calls that are being done end as they began; open files are closed.
    pub(crate) fn set_policy(&self, policy: Policy) {
        let table = policy.table();
        let policy = Arc::new(policy);
        let before = std::mem::replace(&mut *self.state(), State { policy, table });
        drop(before);
    }

    /// Closes all files; the policy stays.
    pub(crate) fn reset(&self) {
        let table = self.policy().table();
        let before = std::mem::replace(&mut self.state().table, table);
        drop(before);
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
    pub(crate) fn call(&self, caller: &Caller<'_>, number: i64, words: [u64; 5]) -> i64 {
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
        let policy = self.policy();
        let decider = self.deciding.current(caller);
        if policy.base == Base::None && policy.decide.is_none() && decider.is_none() {
            return Err(Failure::Refused(Errno::PERM));
        }
        // A domain that is being closed does nothing more.
        let domain = self.domain.get().and_then(Weak::upgrade).map(Domain);
        let domain = domain.ok_or(Failure::Refused(Errno::PERM))?;
        let (call, out) = decode::decode(&domain, number, words)?;
        let mut verdict = Verdict::Allow;
        let mut call = call;
        if decider.is_some() || policy.decide.is_some() {
            let request = Request {
                number,
                words,
                room: out.room(),
                call,
            };
            if let Some(decider) = decider {
                let question = Question {
                    domain: domain.name(),
                    call: Asked::SystemCall(&request),
                };
                verdict = decider.decide(caller, &question, &[], &self.deciding);
            }
            if let (Verdict::Allow, Some(decide)) = (&verdict, &policy.decide) {
                verdict = decide(caller, &request);
            }
            call = request.call;
        }
        let done = match verdict {
            // Whoever was asked may have ended the call meanwhile.
            Verdict::Allow if ending() => return Err(Failure::Error(Errno::INTR)),
            Verdict::Allow => apply::apply(self, &policy, caller, &call)?,
            Verdict::Deny(errno) => {
                // Whatever the host says, the extension sees an error.
                let errno = if (1..4096).contains(&errno) {
                    errno
                } else {
                    libc::EPERM
                };
                return Err(Failure::Refused(Errno::from_raw_os_error(errno)));
            }
            Verdict::Emulate(value, bytes) => Done { value, bytes },
            Verdict::Kill(message) => {
                kill(message);
                return Err(Failure::Refused(Errno::PERM));
            }
        };
        out.put(&domain, &done.bytes)?;
        Ok(done.value)
    }
}
