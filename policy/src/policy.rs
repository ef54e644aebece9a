//! A policy: what the system calls of an extension may do, as a host puts it together.

use crate::descriptors::DescriptorTable;
use crate::rules::Rules;
use crate::stream::{Input, Sink, Stream};
use postern_runtime::Caller;
use postern_runtime::system::{Request, Verdict};
use std::fmt;
use std::sync::Arc;

pub(crate) type Decide = dyn Fn(&Caller<'_>, &Request) -> Verdict + Send + Sync;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    None,
    Compute,
    Files,
}

impl Base {
    pub(crate) fn name(self) -> &'static str {
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
    pub(crate) base: Base,
    input: Input,
    output: Sink,
    error: Sink,
    pub(crate) rules: Arc<Rules>,
    pub(crate) decide: Option<Arc<Decide>>,
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

    /// The same policy with other rules.
    pub(crate) fn with_rules(&self, rules: Rules) -> Policy {
        Policy {
            rules: Arc::new(rules),
            ..self.clone()
        }
    }

    /// A fresh table of descriptors: the three streams.
    pub(crate) fn table(&self) -> DescriptorTable {
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
