//! Which handlers are installed: ours must reach us, and the host's own must do no harm to a thread
//! that is inside an extension.

use super::previous::Previous;
use crate::copies;
use crate::machine::InChild;
use crate::mask::{self, FAULTS};
use crate::outcome::Refusal;
use crate::thread;
use libc::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, Ordering};

/// The signal by which other threads ask a thread to end its call.
static ABORT: AtomicI32 = AtomicI32::new(0);
/// The signal that brings upcalls ([`super::upcall`]), or 0.
static UPCALL: AtomicI32 = AtomicI32::new(0);
/// Whether our handlers are meant to be installed (a host may own the signals).
static INSTALLED: AtomicBool = AtomicBool::new(false);
/// Whether the host's handlers may be given `SA_ONSTACK`.
static ADOPTS: AtomicBool = AtomicBool::new(false);
/// What was there before us, by signal number, latest first.
pub(super) static PREVIOUS: [AtomicPtr<Previous>; 65] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; 65];
/// Changes when what [`check_thread`] found may not be so any more.
static GENERATION: AtomicU64 = AtomicU64::new(1);
/// The signal of which the watchdog has said so.
static NOTICED: AtomicI32 = AtomicI32::new(0);

/// Signals of libc's own whose handlers the host cannot install: that for thread cancellation,
/// which unwinds and so must run on the stack that it unwinds; and that for `setuid` and its kin,
/// which can run anywhere.
const CANCEL: c_int = 32;
const SETXID: c_int = 33;

/// The abort signal's number.
pub fn abort_signal() -> c_int {
    ABORT.load(Ordering::Relaxed)
}

/// The number of the signal that brings upcalls; 0: there are none.
pub fn upcall_signal() -> c_int {
    UPCALL.load(Ordering::Relaxed)
}

/// Chooses it, or with 0 none, before [`start`]: our handlers are not interrupted by it.
pub fn choose_upcall_signal(number: c_int) -> std::io::Result<()> {
    if number != 0 && !(libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(&number) {
        let why = format!("{number} cannot be the signal for upcalls: it is no real-time signal");
        return Err(std::io::Error::other(why));
    }
    UPCALL.store(number, Ordering::Relaxed);
    Ok(())
}

/// Whether the host's handlers may be given `SA_ONSTACK`.
pub(crate) fn adopts() -> bool {
    ADOPTS.load(Ordering::Relaxed)
}

/// Installs the handlers, or without `handlers` only remembers the abort signal's number. With
/// `adopt` the host's own may be given `SA_ONSTACK`.
pub fn start(abort: c_int, handlers: bool, adopt: bool) -> Result<(), std::io::Error> {
    let taken = FAULTS.contains(&abort) || [libc::SIGKILL, libc::SIGSTOP].contains(&abort);
    if taken || abort == upcall_signal() || !(1..=libc::SIGRTMAX()).contains(&abort) {
        return Err(std::io::Error::other(format!(
            "{abort} cannot be the abort signal"
        )));
    }
    ABORT.store(abort, Ordering::Relaxed);
    ADOPTS.store(adopt, Ordering::Relaxed);
    if !handlers {
        return Ok(());
    }
    for signal in ours() {
        install(signal)?;
    }
    INSTALLED.store(true, Ordering::Relaxed);
    Ok(())
}

/// The signals that must reach us.
fn ours() -> impl Iterator<Item = c_int> {
    FAULTS.into_iter().chain([abort_signal()])
}

/// Puts our handler in front of what is there.
fn install(signal: c_int) -> std::io::Result<()> {
    // SAFETY: `on_signal` is an SA_SIGINFO handler that is async-signal-safe (see above); the
    // previous action is kept before ours can run for a signal that needs it.
    unsafe {
        let mut previous: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(signal, std::ptr::null(), &mut previous) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        keep(signal, previous);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = copies::handler();
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        if upcall_signal() != 0 {
            libc::sigaddset(&mut action.sa_mask, upcall_signal());
        }
        if libc::sigaction(signal, &action, &mut previous) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        // Unless another thread of the host's has exchanged it in between.
        keep(signal, previous);
    }
    Ok(())
}

/// Notes what ours takes the place of. A handler that comes back again and again, of a library that
/// chains to what it finds, is there once: with its latest place, in front of the others.
fn keep(signal: c_int, action: libc::sigaction) {
    let place = &PREVIOUS[signal as usize];
    let list = place.load(Ordering::Acquire);
    // SAFETY: null, or a leaked structure that nobody changes.
    let known = unsafe { list.as_ref() }.is_some_and(|first| first.is(&action));
    if known || action.sa_sigaction == copies::handler() {
        return;
    }
    let older = Previous::without(list, &action);
    let previous = Box::new(Previous { action, older });
    place.store(Box::into_raw(previous), Ordering::Release);
}

/// Installs our handlers again where somebody replaced them, in front of what is there now; and
/// makes the host's handlers safe, if it allows that.
pub fn rearm() -> std::io::Result<()> {
    // No lock: who comes second finds the handlers in place, or about to be.
    if !REARMING.swap(true, Ordering::SeqCst) {
        let mut done = Ok(());
        while let (Ok(()), Some(signal)) = (&done, replaced()) {
            done = install(signal);
        }
        REARMING.store(false, Ordering::SeqCst);
        done?;
    }
    if adopts() {
        (1..=LAST).for_each(adopt);
    }
    NOTICED.store(0, Ordering::SeqCst);
    changed();
    Ok(())
}

/// A thread is in [`rearm`].
static REARMING: AtomicBool = AtomicBool::new(false);

/// In the child after fork: the thread that was in [`rearm`] is not there.
pub fn after_fork(_: &InChild) {
    REARMING.store(false, Ordering::SeqCst);
}

/// The number that changes when threads have to look at their signals again.
pub fn generation() -> u64 {
    GENERATION.load(Ordering::SeqCst)
}

/// Makes every thread look at its signals at its next call.
fn changed() {
    look_again(&thread::registry());
}

/// The same, with the registry; as in [`thread::divert_all`], whose promise holds on return.
pub fn look_again(registry: &thread::Registry) {
    GENERATION.fetch_add(1, Ordering::SeqCst);
    thread::divert_all(registry);
}

/// The watchdog's part, while somebody is inside: looks at our own signals, and at some of the
/// others in turn. A host that exchanged a handler is found so within a few ticks, at the cost of
/// some ten system calls a tick.
pub fn inspect(round: u64) {
    const AT_ONCE: u64 = 8;
    let first = (round * AT_ONCE % LAST as u64) as c_int + 1;
    let some = first..=LAST.min(first + AT_ONCE as c_int - 1);
    if adopts() {
        some.clone().for_each(adopt);
    }
    let wrong = replaced().or_else(|| some.into_iter().find(|&signal| unsafe_handler(signal)));
    let noticed = NOTICED.load(Ordering::SeqCst);
    match wrong {
        Some(signal) if signal != noticed => {
            NOTICED.store(signal, Ordering::SeqCst);
            changed();
        }
        // It was mended, so that the next one is told of.
        None if noticed != 0 && replaced().is_none() && !unsafe_handler(noticed) => {
            NOTICED.store(0, Ordering::SeqCst);
        }
        _ => {}
    }
}

/// The highest signal number.
const LAST: c_int = 64;

/// An action as the kernel has it. (libc's call does not show its own signals.)
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Action {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

impl Action {
    fn of(signal: c_int) -> Option<Action> {
        let mut action = Action::default();
        let none = std::ptr::null::<Action>();
        // SAFETY: the kernel's structure has this shape, and the call fills it.
        let done =
            unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, none, &mut action, 8usize) };
        (done == 0).then_some(action)
    }

    /// Whether a handler runs on whatever stack the signal finds.
    fn on_any_stack(&self) -> bool {
        const ONSTACK: u64 = libc::SA_ONSTACK as u64;
        !matches!(self.handler, libc::SIG_DFL | libc::SIG_IGN) && self.flags & ONSTACK == 0
    }
}

/// Whether a handler of the host's for this signal would run on the control stack, of which an
/// extension may have left nothing.
fn unsafe_handler(signal: c_int) -> bool {
    let of_libc = matches!(signal, CANCEL | SETXID);
    !of_libc && Action::of(signal).is_some_and(|action| action.on_any_stack())
}

/// Makes such a handler run on the alternate stack.
fn adopt(signal: c_int) {
    if signal == CANCEL {
        return;
    }
    let Some(mut known) = Action::of(signal).filter(Action::on_any_stack) else {
        return;
    };
    let mut wanted = known;
    loop {
        let mut action = wanted;
        if wanted.on_any_stack() {
            action.flags |= libc::SA_ONSTACK as u64;
        }
        let mut former = Action::default();
        // SAFETY: what was in force, with another flag; the restorer is libc's, as before. Every
        // thread that is inside an extension has an alternate stack, and in others the flag has no
        // effect.
        let done =
            unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, &action, &mut former, 8usize) };
        if done != 0 || former == known {
            return;
        }
        // Another thread of the host's has exchanged it in between: what it wants comes back.
        (known, wanted) = (action, former);
    }
}

/// The first of our signals whose handler somebody replaced, if we installed handlers.
pub fn replaced() -> Option<c_int> {
    if !INSTALLED.load(Ordering::Relaxed) {
        return None;
    }
    ours().find(|&signal| {
        // SAFETY: what the system names as installed.
        let known = |handler| unsafe { copies::is_handler(handler) };
        Action::of(signal).is_some_and(|action| !known(action.handler))
    })
}

/// Checks that the calling thread can take faults and aborts, and that the host's own handlers do
/// no harm meanwhile.
pub(crate) fn check_thread() -> Result<(), Refusal> {
    if let Some(signal) = replaced() {
        return Err(Refusal::HandlerReplaced(signal));
    }
    // SAFETY: querying the mask fills the set.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut set);
        if let Some(signal) = ours().find(|&signal| libc::sigismember(&set, signal) == 1) {
            return Err(Refusal::SignalBlocked(signal));
        }
    }
    adopt(SETXID);
    if adopts() {
        (1..=LAST).for_each(adopt);
    }
    match (1..=LAST).find(|&signal| unsafe_handler(signal)) {
        Some(signal) => Err(Refusal::HandlerStack(signal)),
        None => Ok(()),
    }
}

/// Blocks all signals in the calling thread but those by which extensions end: for threads that the
/// host did not start, and on which its handlers do not expect to run.
pub fn take_only_ours() {
    mask::block_all_but(ours());
}
