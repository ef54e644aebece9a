//! The start of the runtime, once in a process: handlers, locks at a fork, and what the gates ask
//! of it.

use crate::at_fork;
use crate::call;
use crate::config::{Config, STARTED};
use crate::domain;
use crate::error::StartError;
use crate::placement;
use crate::restart;
use crate::table;
use crate::watchdog;
use postern_gates::above::{self, Above};
use postern_gates::map::SystemLimit;
use postern_gates::window::{self, HotWindow};
use postern_gates::{machine, map, register, signal};
use std::sync::Mutex;

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

/// Makes Postern's signal handlers the first ones again: for a host, or a library in it, that
/// installed handlers of its own after Postern did. They stay in force behind Postern's, as those
/// that were there before it. With [`Config::adopt_handlers`] all other handlers of the host's get
/// `SA_ONSTACK`, too. Threads look at their signals again at their next call.
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
    signal::choose_upcall_signal(config.upcall_signal)
        .map_err(system("choose the signal for upcalls"))?;
    let (abort, adopt) = (config.abort_signal, config.adopt_handlers);
    signal::start(abort, config.install_handlers, adopt)
        .map_err(system("install signal handlers"))?;
    at_fork::prepare();
    table::start();
    Ok(config)
}
