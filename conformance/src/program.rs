//! What is built and run, and how a run ended: the words that the native and the confined side
//! share.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Sources and options of one program.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq, Hash)]
pub struct Program {
    /// The sources.
    pub sources: Vec<PathBuf>,
    /// Options for both compilers.
    pub flags: Vec<String>,
    /// Options and sources for the confined build only.
    pub confined: Vec<String>,
    /// Seconds that a run may take.
    pub seconds: u64,
}

impl Program {
    /// Whether it is C++.
    pub fn is_cxx(&self) -> bool {
        let cxx = |source: &PathBuf| source.extension().is_some_and(|e| e == "C" || e == "cc");
        self.sources.iter().any(cxx)
    }
}

/// How it ended.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub enum Outcome {
    /// It ran to its end: the exit status as a parent process would see it, and what it wrote to
    /// standard output.
    Exited {
        /// 0 to 255.
        status: u8,
        /// BLAKE3 of standard output.
        output: String,
    },
    /// A signal or a fault ended it.
    Crashed(String),
    /// It took too long.
    TimedOut,
    /// It could not be built.
    NotBuilt(String),
    /// It was built, but something that it calls is not there.
    Unresolved(String),
    /// The whole process that ran it died: on the confined side always a bug.
    HostDied(String),
}

impl Outcome {
    /// Whether it ended as a program that succeeded does.
    pub fn succeeded(&self) -> bool {
        matches!(self, Self::Exited { status: 0, .. })
    }

    /// The end of a run that wrote `output`.
    pub fn exited(status: i32, output: &[u8]) -> Self {
        Self::Exited {
            status: status as u8,
            output: blake3::hash(output).to_hex()[..16].to_owned(),
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited { status, output } => {
                write!(f, "exit status {status}, output {output}")
            }
            Self::Crashed(why) => write!(f, "{why}"),
            Self::TimedOut => f.write_str("took too long"),
            Self::NotBuilt(why) => write!(f, "not built: {why}"),
            Self::Unresolved(what) => write!(f, "not linked: {what}"),
            Self::HostDied(how) => write!(f, "THE HOST DIED: {how}"),
        }
    }
}
