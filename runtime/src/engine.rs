//! What exists once in a process: configuration, handlers.

use crate::error::StartError;
use crate::fork;
use crate::symbols::{self, Perf};
use crate::table;
use crate::trusted::{machine, map, signal};
use crate::window::{self, HotWindow};
use std::sync::OnceLock;
use std::time::Duration;

/// How Postern behaves in this process. Give it to [`init`] before the first use, or do without.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Whether the low 4 GiB may become a window. It is the fastest one; but then an extension decides what lies at low
    /// addresses, which a host with null-pointer bugs may read. Default: true.
    pub hot_window: bool,
    /// How often the watchdog looks while extensions run. Default: 1 ms.
    pub tick: Duration,
    /// The signal by which calls are ended. Default: `SIGRTMAX - 3`.
    pub abort_signal: i32,
    /// Whether Postern installs handlers for SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP and the abort signal. A host that
    /// owns them says no and calls [`crate::handle_signal`] from its own. Default: true.
    pub install_handlers: bool,
    /// How `perf` learns the names of functions in extensions. Default: what the environment variable `POSTERN_PERF` says.
    pub perf: Perf,
    /// Whether GDB is told of the functions and lines of every domain. Default: whether the environment variable `POSTERN_GDB` is
    /// set.
    pub debugger: bool,
    /// Whether core dumps of the process have the memory of extensions, with shared areas and the text of namespaces; the host's own is
    /// there either way. Default: false, for a hundred namespaces would be gigabytes.
    pub dump: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            hot_window: true,
            tick: Duration::from_millis(1),
            abort_signal: libc::SIGRTMAX() - 3,
            install_handlers: true,
            perf: Perf::from_environment(),
            debugger: symbols::debugger_from_environment(),
            dump: false,
        }
    }
}

static STARTED: OnceLock<Result<Config, StartError>> = OnceLock::new();

/// Starts Postern with a configuration. Without it, the first load starts it with the default.
///
/// # Errors
/// The machine or the kernel lacks something, or Postern runs already with another configuration.
pub fn init(config: Config) -> Result<(), StartError> {
    let running = STARTED.get_or_init(|| begin(config.clone())).clone()?;
    if running != config {
        return Err(StartError::Configured);
    }
    Ok(())
}

/// Why this machine cannot run extensions, in a sentence; `None` if it can. Starts nothing.
pub fn unsupported() -> Option<String> {
    machine::unsupported()
}

/// Starts Postern if it does not run.
pub(crate) fn start() -> Result<(), StartError> {
    match STARTED.get_or_init(|| begin(Config::default())) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.clone()),
    }
}

/// The configuration in force.
pub(crate) fn config() -> Config {
    match STARTED.get() {
        Some(Ok(config)) => config.clone(),
        _ => Config::default(),
    }
}

fn begin(config: Config) -> Result<Config, StartError> {
    if let Some(reason) = machine::unsupported() {
        return Err(StartError::Machine(reason));
    }
    let system = |what| {
        move |e: std::io::Error| StartError::System {
            what,
            reason: e.to_string(),
        }
    };
    map::dump(config.dump);
    machine::register_barrier().map_err(system("register for membarrier"))?;
    if window::reserve_hot(config.hot_window) == HotWindow::Occupied {
        tracing::warn!(
            "the low 4 GiB of this process is in use (a host that is not position-independent, or a MAP_32BIT mapping): extensions run in ordinary windows"
        );
    }
    signal::start(config.abort_signal, config.install_handlers)
        .map_err(system("install signal handlers"))?;
    fork::prepare();
    table::start();
    Ok(config)
}
