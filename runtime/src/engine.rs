//! What exists once in a process: configuration, handlers.

use crate::at_fork;
use crate::call;
use crate::domain;
use crate::error::StartError;
use crate::placement;
use crate::restart;
use crate::symbols::{self, Perf};
use crate::table;
use crate::watchdog;
use postern_gates::above::{self, Above};
use postern_gates::map::SystemLimit;
use postern_gates::window::{self, HotWindow};
use postern_gates::{machine, map, register, signal};
use std::sync::{Mutex, OnceLock};
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
    /// Whether handlers of the host's that are installed without `SA_ONSTACK` get that flag when a thread enters an extension for the
    /// first time, and at [`crate::rearm`]. Without it such a thread is refused with [`crate::CallError::HandlerStack`]: an extension may
    /// use the control stack up to its end, and a handler that then begins there would end the process. Default: false.
    pub adopt_handlers: bool,
    /// Whether the gs base is the host's again after each call and in services. Windows are addressed through gs, so without it a
    /// thread keeps the base of the last window that it was in, which is of no concern to a host that does not use gs. With it all
    /// calls go through the full gate, which costs some hundred cycles each. Default: false.
    pub restore_gs: bool,
    /// Most bytes of control stack that the calls of a thread may use. A thread whose own stack is larger, or may grow without
    /// limit (`ulimit -s unlimited`), runs extensions on a control stack of this size of the runtime's own, through the full gate. Default: 8 MiB.
    pub control_stack: usize,
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
            adopt_handlers: false,
            restore_gs: false,
            control_stack: 8 << 20,
            perf: Perf::from_environment(),
            debugger: symbols::debugger_from_environment(),
            dump: false,
        }
    }
}

static STARTED: OnceLock<Config> = OnceLock::new();

/// Starts Postern with a configuration. Without it, the first load starts it with the default.
///
/// # Errors
/// The machine or the kernel lacks something, or Postern runs already with another configuration.
pub fn init(config: Config) -> Result<(), StartError> {
    if *running(|| config.clone())? != config {
        return Err(StartError::Configured);
    }
    Ok(())
}

/// The configuration in force, once it is. What failed for a limit that was met can be tried again.
fn running(config: impl FnOnce() -> Config) -> Result<&'static Config, StartError> {
    static STARTING: Mutex<()> = Mutex::new(());
    if let Some(running) = STARTED.get() {
        return Ok(running);
    }
    let _starting = STARTING.lock().unwrap_or_else(|e| e.into_inner());
    match STARTED.get() {
        Some(running) => Ok(running),
        None => {
            let config = begin(config())?;
            Ok(STARTED.get_or_init(|| config))
        }
    }
}

/// Why this machine cannot run extensions, in a sentence; `None` if it can. Starts nothing.
pub fn unsupported() -> Option<String> {
    machine::unsupported()
}

/// Starts Postern if it does not run.
pub(crate) fn start() -> Result<(), StartError> {
    running(Config::default).map(drop)
}

/// The configuration in force.
pub(crate) fn config() -> Config {
    STARTED.get().cloned().unwrap_or_default()
}

/// Makes Postern's signal handlers the first ones again: for a host, or a library in it, that installed handlers of its own after
/// Postern did. They stay in force behind Postern's, as those that were there before it. With [`Config::adopt_handlers`] all other
/// handlers of the host's get `SA_ONSTACK`, too. Threads look at their signals again at their next call.
///
/// # Errors
/// Postern cannot start, or the system's own.
pub fn rearm() -> Result<(), StartError> {
    start()?;
    signal::rearm().map_err(|e| StartError::System {
        what: "install signal handlers",
        reason: e.to_string(),
    })
}

/// What the gates ask of the runtime.
static ABOVE: Above = Above {
    watch: watchdog::ensure,
    wake: watchdog::wake,
    give_data_stack: domain::give_data_stack,
    move_window: placement::at_call,
    instead: restart::instead,
    refused: call::refused,
    hold: domain::hold,
    ended: call::ended,
    failure: call::failure,
    renew_thread: domain::renew_thread,
    forgotten: domain::reclaim::sweep,
    thread_exited: call::thread_exited,
};

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
    above::give(&ABOVE);
    // What is done before an error is found done when it is tried again.
    register::prepare(config.control_stack).map_err(|e| StartError::System {
        what: "make a thread",
        reason: format!("{e}; {}", SystemLimit::Threads),
    })?;
    map::dump(config.dump);
    machine::register_barrier().map_err(system("register for membarrier"))?;
    if window::reserve_hot(config.hot_window) == HotWindow::Occupied {
        tracing::warn!(
            "the low 4 GiB of this process is in use (a host that is not position-independent, or a MAP_32BIT mapping): extensions run in ordinary windows"
        );
    }
    let (abort, adopt) = (config.abort_signal, config.adopt_handlers);
    signal::start(abort, config.install_handlers, adopt)
        .map_err(system("install signal handlers"))?;
    at_fork::prepare();
    table::start();
    Ok(config)
}
