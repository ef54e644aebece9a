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
mod rules;
mod status;
mod stream;
mod taking;

pub use postern_runtime::system::{
    Access, Call, Descriptor, FileTime, GuestPath, Identity, LockAction, Request, SYSTEM_CALLS,
    SystemCall, Target, TimeForm, Verdict, WORKING_DIRECTORY,
};
pub use rules::{GrantError, Rules};
pub use stream::{Input, ReadFunction, Sink, WriteFunction};

use descriptors::DescriptorTable;
use postern_runtime::fork::{self, Held};
use postern_runtime::system::{
    self, Answer, Done, Failure, Granted, SystemPolicy, SystemService, interruption,
};
use postern_runtime::{Caller, call};
use rustix::io::Errno;
use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stream::Stream;

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

    /// Clocks, sleeping until the deadline, random bytes, and the three streams: standard input is
    /// empty, output and error are the process's own until something else is said.
    pub fn compute() -> Policy {
        Policy::new(Base::Compute, Rules::new())
    }

    /// As [`Policy::compute`], and files in the directories that the rules grant.
    pub fn files(rules: Rules) -> Policy {
        Policy::new(Base::Files, rules)
    }

    /// The host's function is asked about every call but the end, before `base` is. It runs on the
    /// extension's thread and sees copies: what it looks at is what is done.
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
    fn table(&self) -> DescriptorTable {
        let streams = [
            Stream::input(&self.input),
            Stream::output(&self.output, false),
            Stream::output(&self.error, true),
        ];
        DescriptorTable::new(self.rules.open_files, streams)
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

impl SystemPolicy for Policy {
    fn service(&self) -> Arc<dyn SystemService> {
        Arc::new(System::new(self.clone()))
    }
}

/// Tries until there is a result, or the runtime says why the call is to give up. What is tried
/// waits no longer than it is told.
fn waiting<T>(mut attempt: impl FnMut(Duration) -> Result<Option<T>, Errno>) -> Result<T, Errno> {
    const SLICE: Duration = Duration::from_millis(10);
    loop {
        if let Some(error) = interruption() {
            return Err(error);
        }
        if let Some(done) = attempt(SLICE)? {
            return Ok(done);
        }
    }
}

/// What the system calls of one domain leave behind: its policy and its open files.
struct System {
    shard: usize,
    state: Mutex<PolicyState>,
    /// Bytes that were written to files, and 4096 for every name that was made.
    written: AtomicU64,
}

struct PolicyState {
    policy: Arc<Policy>,
    table: DescriptorTable,
}

impl System {
    fn new(policy: Policy) -> System {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        System {
            shard: NEXT.fetch_add(1, Ordering::Relaxed),
            state: Mutex::new(PolicyState {
                table: policy.table(),
                policy: Arc::new(policy),
            }),
            written: AtomicU64::new(0),
        }
    }

    fn state(&self) -> Held<'_, PolicyState> {
        fork::lock_one_of_many(self.shard, &self.state)
    }

    fn policy(&self) -> Arc<Policy> {
        self.state().policy.clone()
    }
}

impl SystemService for System {
    fn refuses_all(&self) -> bool {
        let state = self.state();
        state.policy.base == Base::None && state.policy.decide.is_none()
    }

    fn call(&self, caller: &Caller<'_>, request: &Request) -> Answer {
        let policy = self.policy();
        let decide = policy.decide.as_ref();
        let verdict = decide.map_or(Verdict::Allow, |decide| decide(caller, request));
        if let Some(answer) = system::answer(verdict) {
            return answer;
        }
        // Whoever was asked may have ended the call meanwhile.
        if call::ending() {
            return Err(Failure::Error(Errno::INTR));
        }
        apply::apply(self, &policy, caller, &request.call)
    }

    fn set_policy(&self, policy: Box<dyn Any>) {
        let policy = policy.downcast().map_or_else(|_| Policy::none(), |p| *p);
        let table = policy.table();
        let policy = Arc::new(policy);
        let before = std::mem::replace(&mut *self.state(), PolicyState { policy, table });
        drop(before);
    }

    fn reset(&self) {
        let table = self.policy().table();
        let before = std::mem::replace(&mut self.state().table, table);
        drop(before);
    }

    fn granted(&self) -> Granted {
        let policy = self.policy();
        Granted {
            policy: policy.base.name(),
            custom: policy.decide.is_some(),
            directories: policy.rules.directories().collect(),
        }
    }

    fn take_directory(&self, guest: &str) -> Option<bool> {
        self.without_directory(guest)
    }

    fn is_open_below(&self, guest: &str) -> Option<bool> {
        self.uses_directory(guest)
    }

    fn take_descriptor(&self, number: i32) -> bool {
        self.close_all_of(number)
    }

    fn is_open(&self, number: i32) -> bool {
        self.state().table.get(number).is_ok()
    }
}
