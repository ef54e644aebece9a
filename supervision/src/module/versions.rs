//! What a module is: its versions, the functions that somebody holds, and what is told of them.

use postern_gates::switch::Switch;
use postern_image::Signature;
use postern_runtime::{Domain, DomainBuilder, Fault, fork};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

pub(super) type Configure = Box<dyn Fn(DomainBuilder) -> DomainBuilder + Send + Sync>;
pub(super) type OnEvent = Box<dyn Fn(&ModuleEvent) + Send + Sync>;

/// What happened to a module.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ModuleEvent {
    /// Calls go to a new version.
    Replaced {
        /// Its number.
        version: u64,
    },
    /// A new version has done its first calls without a fault: it stays.
    Confirmed {
        /// Its number.
        version: u64,
    },
    /// Calls go to the version before again.
    RolledBack {
        /// The version that was left.
        from: u64,
        /// The version that came back.
        to: u64,
        /// The fault that did it; `None` if the host asked, or a fork interrupted the new version's
        /// call.
        fault: Option<Arc<Fault>>,
    },
    /// Nobody is inside a version that was left, and it is closed.
    Drained {
        /// Its number.
        version: u64,
    },
}

/// A line for a log.
impl std::fmt::Display for ModuleEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ModuleEvent::Replaced { version } => write!(f, "version {version} takes the calls"),
            ModuleEvent::Confirmed { version } => write!(f, "version {version} stays"),
            ModuleEvent::RolledBack { from, to, fault } => {
                write!(f, "version {from} was left for version {to}")?;
                match fault {
                    Some(fault) => write!(f, ": {fault}"),
                    None => Ok(()),
                }
            }
            ModuleEvent::Drained { version } => {
                write!(f, "version {version} is closed, with nobody inside")
            }
        }
    }
}

/// One domain of the module.
#[derive(Clone)]
pub(super) struct Version {
    pub(super) number: u64,
    pub(super) domain: Domain,
}

/// A function that somebody holds.
#[derive(Clone)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) signature: Signature,
    /// Whether C calls it.
    pub(super) c: bool,
    pub(super) switch: Arc<Switch>,
}

pub(super) struct Versions {
    /// For its share of the locks.
    pub(super) number: usize,
    pub(super) configure: Configure,
    pub(super) on_event: Option<OnEvent>,
    pub(super) state: Mutex<ModuleState>,
    pub(super) replaced: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) rolled_back: AtomicU64,
    pub(super) held: AtomicU64,
}

pub(super) struct ModuleState {
    pub(super) current: Version,
    /// The version to come back if the current one faults, and the calls after which it will not.
    pub(super) previous: Option<(Version, u32)>,
    pub(super) draining: Vec<Version>,
    pub(super) functions: Vec<Function>,
    /// Who replaces the current version.
    pub(super) replacing: Option<fork::ThreadId>,
    /// Who hands over the state, while calls wait.
    pub(super) holding: Option<fork::ThreadId>,
    pub(super) last_version: u64,
}
