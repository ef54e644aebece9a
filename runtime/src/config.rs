//! How the runtime behaves in this process: what the host says of it, at most once, before the
//! first use.

use std::sync::OnceLock;
use std::time::Duration;

/// How Postern behaves in this process. Give it to [`init`] before the first use, or do without.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Whether the low 4 GiB may become a window. It is the fastest one; but then an extension
    /// decides what lies at low addresses, which a host with null-pointer bugs may read. Default:
    /// true.
    pub hot_window: bool,
    /// How often the watchdog looks while extensions run. Default: 1 ms.
    pub tick: Duration,
    /// The signal by which calls are ended. Default: `SIGRTMAX - 3`.
    pub abort_signal: i32,
    /// The real-time signal that brings upcalls ([`crate::Domain::upcall`]); 0: there are none. Its
    /// handler is installed when a thread attaches for the first time. Default: `SIGRTMAX - 4`.
    pub upcall_signal: i32,
    /// Whether Postern installs handlers for SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP and the abort
    /// signal. A host that owns them says no and calls [`crate::handle_signal`] from its own.
    /// Default: true.
    pub install_handlers: bool,
    /// Whether handlers of the host's that are installed without `SA_ONSTACK` get that flag when a
    /// thread enters an extension for the first time, and at [`crate::rearm`]. Without it such a
    /// thread is refused with [`crate::CallError::HandlerStack`]: an extension may use the control
    /// stack up to its end, and a handler that then begins there would end the process. Default:
    /// false.
    pub adopt_handlers: bool,
    /// Whether the gs base is the host's again after each call and in services. Windows are
    /// addressed through gs, so without it a thread keeps the base of the last window that it was
    /// in, which is of no concern to a host that does not use gs. With it all calls go through the
    /// full gate, which costs some hundred cycles each. Default: false.
    pub restore_gs: bool,
    /// Most bytes of control stack that the calls of a thread may use. A thread whose own stack is
    /// larger, or may grow without limit (`ulimit -s unlimited`), runs extensions on a control
    /// stack of this size of the runtime's own, through the full gate. Default: 8 MiB.
    pub control_stack: usize,
    /// How `perf` learns the names of functions in extensions. Default: what the environment
    /// variable `POSTERN_PERF` says.
    pub perf: Perf,
    /// Whether GDB is told of the functions and lines of every domain. Default: whether the
    /// environment variable `POSTERN_GDB` is set.
    pub debugger: bool,
    /// Whether core dumps of the process have the memory of extensions, with shared areas and the
    /// text of namespaces; the host's own is there either way. Default: false, for a hundred
    /// namespaces would be gigabytes.
    pub dump: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            hot_window: true,
            tick: Duration::from_millis(1),
            abort_signal: libc::SIGRTMAX() - 3,
            upcall_signal: libc::SIGRTMAX() - 4,
            install_handlers: true,
            adopt_handlers: false,
            restore_gs: false,
            control_stack: 8 << 20,
            perf: Perf::from_environment(),
            debugger: debugger_from_environment(),
            dump: false,
        }
    }
}

/// What is in force, once the runtime has started.
pub(crate) static STARTED: OnceLock<Config> = OnceLock::new();

/// The configuration in force.
pub(crate) fn current() -> Config {
    STARTED.get().cloned().unwrap_or_default()
}

/// How `perf` learns the names of functions in extensions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Perf {
    /// Not at all.
    #[default]
    Off,
    /// `/tmp/perf-PID.map`: names by address, for the last domain that lay there.
    Map,
    /// `jit-PID.dump` in the current directory: names, lines and code by time and address, for
    /// `perf inject --jit`.
    Jitdump,
}

impl Perf {
    /// What the environment variable `POSTERN_PERF` says: `map` or `jitdump`.
    fn from_environment() -> Perf {
        match std::env::var("POSTERN_PERF").as_deref() {
            Ok("map") => Perf::Map,
            Ok("jitdump") => Perf::Jitdump,
            _ => Perf::Off,
        }
    }
}

/// Whether the environment variable `POSTERN_GDB` is set to something else than 0.
fn debugger_from_environment() -> bool {
    std::env::var_os("POSTERN_GDB").is_some_and(|value| !value.is_empty() && value != "0")
}
