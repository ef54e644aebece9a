//! Signals: handlers, masks, delivery. Who sends one asks the registry, which sets a bit in the mailbox
//! of who gets it; that one looks whenever a slice of its ends, and wherever it waits. A handler runs on
//! the program's own stack below what was interrupted, whose registers are kept there, vector
//! registers too. Exceptions are signals of the process to itself.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use postern_aegis::entry::{self, Frame, Interrupted};
use postern_aegis::{books, slices, time};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::signal::{self, COUNT};

use crate::memory::Reason;
use crate::net;
use crate::process::cause::{self, code};
use crate::process::{own, registry, stack, trusted};

/// Handlers: [`DEFAULT`], [`IGNORE`], or a function of C.
static HANDLERS: [AtomicUsize; COUNT as usize] =
    [const { AtomicUsize::new(DEFAULT) }; COUNT as usize];
/// What is held back while each one's handler runs.
static HELD: [AtomicU64; COUNT as usize] = [const { AtomicU64::new(0) }; COUNT as usize];
/// Flags of theirs that the library only remembers.
static TOLD: AtomicU64 = AtomicU64::new(0);
/// Handlers that run on the program's other stack.
static ON_STACK: AtomicU64 = AtomicU64::new(0);
/// Handlers that may be interrupted by their own signal.
static NESTS: AtomicU64 = AtomicU64::new(0);
/// SIGCHLD is not wanted of children that are stopped or go on.
static NO_STOPS: AtomicU64 = AtomicU64::new(0);
/// Handlers after which calls go on that were waiting.
static RESTART: AtomicU64 = AtomicU64::new(0);
/// Handlers that are forgotten when they are called.
static ONCE: AtomicU64 = AtomicU64::new(0);
/// Signals that are held back.
static MASK: AtomicU64 = AtomicU64::new(0);
/// Signals that have come and not been acted on.
static PENDING: AtomicU64 = AtomicU64::new(0);
/// When the alarm is due; 0: never.
static ALARM: AtomicU64 = AtomicU64::new(0);
static INTERVAL: AtomicU64 = AtomicU64::new(0);
/// The library is where nothing may interrupt it.
static BUSY: AtomicU32 = AtomicU32::new(0);
/// Registers of what was interrupted are on their way to the stack.
static UNDER_WAY: AtomicBool = AtomicBool::new(false);
/// A function of GATES or others that looks at ends of slices first.
static ENDING: AtomicUsize = AtomicUsize::new(0);

/// Handlers that were called.
static CALLED: AtomicU64 = AtomicU64::new(0);

/// The default action.
pub const DEFAULT: usize = 0;
/// Nothing.
pub const IGNORE: usize = 1;

/// How a signal is handled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Action {
    /// [`DEFAULT`], [`IGNORE`], or a function of C.
    pub handler: usize,
    /// Held back meanwhile.
    pub mask: u64,
    /// The handler takes three arguments. All are given three.
    pub told: bool,
    /// The handler runs on the program's other stack, if there is one.
    pub on_stack: bool,
    /// The signal itself is not held back meanwhile.
    pub nests: bool,
    /// Of SIGCHLD: children that are stopped or go on are none of it.
    pub no_stops: bool,
    /// Calls that wait go on afterwards.
    pub restart: bool,
    /// Once.
    pub once: bool,
}

/// Signals that cannot be handled, held back or ignored.
const ALWAYS: u64 = 1 << signal::KILL | 1 << signal::STOP;

/// What ends the program between two instructions of the library.
#[derive(Debug)]
pub struct Hold(());

/// Nothing interrupts the library until this is dropped.
pub fn hold() -> Hold {
    BUSY.fetch_add(1, Relaxed);
    Hold(())
}

impl Drop for Hold {
    fn drop(&mut self) {
        BUSY.fetch_sub(1, Relaxed);
    }
}

/// Has signals come from now on.
pub fn install() {
    let head = own::head();
    MASK.store(head.mask & !ALWAYS, Relaxed);
    for number in 1..COUNT {
        if head.ignored & 1 << number != 0 {
            HANDLERS[number as usize].store(IGNORE, Relaxed);
        }
    }
    for vector in [0, 1, 3, 4, 5, 6, 13, 16, 17, 19] {
        if !trusted::has_handler(vector) {
            entry::on_exception(vector, Some(excepted));
        }
    }
    entry::on_slice_end(Some(ending));
}

/// In a copy of a process.
pub fn begin_copy() {
    PENDING.store(0, Relaxed);
    ALARM.store(0, Relaxed);
    BUSY.store(0, Relaxed);
    UNDER_WAY.store(false, Relaxed);
}

/// Has a function called first at ends of slices.
pub fn before_ends(function: Option<fn(&mut Interrupted)>) {
    ENDING.store(function.map_or(0, |function| function as usize), Relaxed);
}

fn collect() -> u64 {
    let mailbox = registry::mailbox();
    if mailbox.signals.load(Relaxed) != 0 {
        PENDING.fetch_or(mailbox.signals.swap(0, Relaxed), Relaxed);
    }
    let (due, now) = (ALARM.load(Relaxed), slices::clock());
    if due != 0 && now >= due {
        // Those that were missed are one, or handlers would never be done with them.
        let late = (now - due).checked_div(INTERVAL.load(Relaxed));
        let next = late.map_or(0, |late| due + (late + 1) * INTERVAL.load(Relaxed));
        ALARM.store(next, Relaxed);
        cause::rang();
        PENDING.fetch_or(1 << signal::ALRM, Relaxed);
    }
    PENDING.load(Relaxed) & !MASK.load(Relaxed)
}

/// A slice of the program's own ends.
fn ending(interrupted: &mut Interrupted) {
    if let Some(first) = trusted::ending(ENDING.load(Relaxed)) {
        first(interrupted);
    }
    if BUSY.load(Relaxed) != 0
        || UNDER_WAY.load(Relaxed)
        || !trusted::in_program(interrupted.rip, interrupted.rsp)
    {
        return;
    }
    let come = collect();
    if come == 0 && !net::own::is_due() {
        return;
    }
    UNDER_WAY.store(true, Relaxed);
    let other = other_stack(come, interrupted.rsp);
    trusted::interrupt(interrupted, other);
}

/// Where the program's other stack ends, if handlers of some signals run there and it is not in use.
fn other_stack(signals: u64, rsp: u64) -> Option<u64> {
    let wanted = ON_STACK.load(Relaxed) & signals != 0 && !stack::has(rsp);
    stack::end().filter(|_| wanted)
}

/// A fault that nothing has served.
pub fn faulted(frame: &mut Frame, reason: Reason) {
    if !handled(frame, Some(reason)) {
        reason.tell(frame);
        registry::end(signal::killed(signal::SEGV));
    }
}

/// An exception that nothing else handles.
fn excepted(frame: &mut Frame) {
    if !handled(frame, None) {
        let number = signal::of_exception(frame.vector as u32);
        registry::end(signal::killed(number));
    }
}

/// Has the program go on with its handler of an exception's signal, if it has one and can.
fn handled(frame: &mut Frame, reason: Option<Reason>) -> bool {
    let number = signal::of_exception(frame.vector as u32);
    let bit = 1 << number;
    let handler = HANDLERS[number as usize % COUNT as usize].load(Relaxed);
    let program = trusted::in_program(frame.rip, frame.rsp);
    let blocked = MASK.load(Relaxed) & bit != 0 || UNDER_WAY.load(Relaxed);
    if handler == DEFAULT || handler == IGNORE || blocked || !program || BUSY.load(Relaxed) != 0 {
        return false;
    }
    cause::excepted(number, frame, reason);
    PENDING.fetch_or(bit, Relaxed);
    UNDER_WAY.store(true, Relaxed);
    let other = other_stack(bit, frame.rsp);
    trusted::interrupt_exception(frame, other);
    true
}

/// The registers of what was interrupted are on the stack.
pub(super) fn arrived(interrupted: &mut Interrupted) {
    UNDER_WAY.store(false, Relaxed);
    net::own::attend();
    deliver(Some(interrupted));
}

/// Acts on signals that have come, where the program waits: whether a call that waits is to end now.
pub fn poll() -> bool {
    collect() != 0 && deliver(None)
}

/// Acts on all that have come and are not held back: whether there was a handler after which calls
/// that wait do not go on.
fn deliver(mut interrupted: Option<&mut Interrupted>) -> bool {
    let mut ends = false;
    loop {
        let come = collect();
        if come == 0 {
            return ends;
        }
        let number = come.trailing_zeros();
        PENDING.fetch_and(!(1 << number), Relaxed);
        ends |= act(number, interrupted.as_deref_mut());
    }
}

/// Signals that do nothing by default, or only stop the process.
const HARMLESS: u64 = 1 << signal::CHLD
    | 1 << signal::URG
    | 1 << signal::WINCH
    | 1 << signal::CONT
    | 1 << signal::TSTP
    | 1 << signal::TTIN
    | 1 << signal::TTOU;

/// Whether an action is taken for a signal that has come: by default, and by a handler after which
/// calls that wait do not go on. Nothing is done about it.
pub fn interrupts() -> bool {
    let come = collect();
    come != 0 && (1..COUNT).any(|number| come & 1 << number != 0 && (kills(number) || ends(number)))
}

fn kills(number: u32) -> bool {
    let handler = HANDLERS[number as usize % COUNT as usize].load(Relaxed);
    handler == DEFAULT && HARMLESS & 1 << number == 0
}

fn ends(number: u32) -> bool {
    let handler = HANDLERS[number as usize % COUNT as usize].load(Relaxed);
    handler != DEFAULT && handler != IGNORE && RESTART.load(Relaxed) & 1 << number == 0
}

/// Ends the process by a signal that has come and does so by default; others wait.
pub fn end_if_killed() {
    let come = collect();
    if let Some(number) = (1..COUNT).find(|number| come & 1 << number != 0 && kills(*number)) {
        registry::end(signal::killed(number));
    }
}

fn act(number: u32, interrupted: Option<&mut Interrupted>) -> bool {
    let index = number as usize % COUNT as usize;
    let handler = HANDLERS[index].load(Relaxed);
    let bit = 1 << number;
    let cause = cause::take(number);
    match handler {
        IGNORE => return false,
        DEFAULT => {
            let stops = [signal::TSTP, signal::TTIN, signal::TTOU];
            if stops.contains(&number) {
                let _ = registry::stop_by(own::pid(), number);
            } else if HARMLESS & bit == 0 {
                registry::end(signal::killed(number));
            }
            return false;
        }
        _ => {}
    }
    let of_stop = matches!(cause.code, code::CLD_STOPPED | code::CLD_CONTINUED);
    if number == signal::CHLD && of_stop && NO_STOPS.load(Relaxed) & bit != 0 {
        return false;
    }
    if ONCE.load(Relaxed) & bit != 0 {
        HANDLERS[index].store(DEFAULT, Relaxed);
    }
    let before = MASK.load(Relaxed);
    let own = if NESTS.load(Relaxed) & bit != 0 {
        0
    } else {
        bit
    };
    MASK.store(before | own | HELD[index].load(Relaxed), Relaxed);
    let other = other_stack(bit, trusted::stack_here());
    let errno = trusted::errno();
    let after = trusted::call(handler, number, &cause, before, interrupted, other);
    trusted::set_errno(errno);
    CALLED.fetch_add(1, Relaxed);
    MASK.store(after & !ALWAYS, Relaxed);
    RESTART.load(Relaxed) & bit == 0
}

/// A signal of this process to itself, acted on at once if it is not held back.
pub fn raise(number: u32) -> Result<(), Errno> {
    if number == 0 || number >= COUNT {
        return Err(errno::INVAL);
    }
    if ALWAYS & 1 << number != 0 {
        return registry::kill(own::pid(), number);
    }
    cause::raised(number);
    PENDING.fetch_or(1 << number, Relaxed);
    deliver(None);
    Ok(())
}

/// How a signal is handled, and another way from now on.
pub fn act_on(number: u32, action: Option<Action>) -> Result<Action, Errno> {
    let bit = 1u64.checked_shl(number).unwrap_or(0);
    if number == 0 || number >= COUNT || action.is_some() && ALWAYS & bit != 0 {
        return Err(errno::INVAL);
    }
    let index = number as usize % COUNT as usize;
    let is = |set: &AtomicU64| set.load(Relaxed) & bit != 0;
    let former = Action {
        handler: HANDLERS[index].load(Relaxed),
        mask: HELD[index].load(Relaxed),
        told: is(&TOLD),
        on_stack: is(&ON_STACK),
        nests: is(&NESTS),
        no_stops: is(&NO_STOPS),
        restart: is(&RESTART),
        once: is(&ONCE),
    };
    if let Some(action) = action {
        // What has come before is acted on as it was to be then: a new handler would otherwise be
        // called for a child that has been waited for.
        poll();
        let set = |set: &AtomicU64, on: bool| match on {
            true => set.fetch_or(bit, Relaxed),
            false => set.fetch_and(!bit, Relaxed),
        };
        HELD[index].store(action.mask & !ALWAYS, Relaxed);
        set(&TOLD, action.told);
        set(&ON_STACK, action.on_stack);
        set(&NESTS, action.nests);
        set(&NO_STOPS, action.no_stops);
        set(&RESTART, action.restart);
        set(&ONCE, action.once);
        HANDLERS[index].store(action.handler, Relaxed);
        if action.handler == IGNORE {
            PENDING.fetch_and(!bit, Relaxed);
        }
    }
    Ok(former)
}

/// Signals that are held back.
pub fn mask() -> u64 {
    MASK.load(Relaxed)
}

/// Holds others back, and acts on those that are not any more.
pub fn set_mask(mask: u64) {
    MASK.store(mask & !ALWAYS, Relaxed);
    deliver(None);
}

/// Signals that have come and are held back.
pub fn pending() -> u64 {
    collect();
    PENDING.load(Relaxed)
}

/// Signals that are ignored, as bits.
pub fn ignored() -> u64 {
    (1..COUNT)
        .filter(|number| HANDLERS[*number as usize].load(Relaxed) == IGNORE)
        .fold(0, |bits, number| bits | 1 << number)
}

/// Waits until a handler was called.
pub fn pause() {
    let called = CALLED.load(Relaxed);
    poll();
    while CALLED.load(Relaxed) == called {
        entry::yield_slice();
        poll();
    }
}

/// Waits with another mask until a handler was called.
pub fn suspend(mask: u64) {
    let before = MASK.swap(mask & !ALWAYS, Relaxed);
    pause();
    set_mask(before);
}

/// Has SIGALRM come in so many microseconds, and then always after so many (0: no more); what was
/// left of the last, and its interval.
pub fn alarm(microseconds: u64, interval: u64) -> [u64; 2] {
    let now = slices::clock();
    let frequency = time::frequency();
    let micro = |cycles: u64| (u128::from(cycles) * 1_000_000 / u128::from(frequency)) as u64;
    let due = match microseconds {
        0 => 0,
        _ => now.saturating_add(time::cycles(microseconds)).max(1),
    };
    let before = INTERVAL.swap(time::cycles(interval), Relaxed);
    let left = match ALARM.swap(due, Relaxed) {
        0 => 0,
        due => micro(due.saturating_sub(now)).max(1),
    };
    [left, micro(before)]
}

/// Waits so many microseconds; how many are left, if a handler was called meanwhile.
pub fn sleep(microseconds: u64) -> u64 {
    let due = slices::clock().saturating_add(time::cycles(microseconds));
    let called = CALLED.load(Relaxed);
    loop {
        let left = due.saturating_sub(slices::clock());
        if left == 0 {
            return 0;
        }
        entry::yield_slice();
        poll();
        if CALLED.load(Relaxed) != called {
            let left = due.saturating_sub(slices::clock());
            return (u128::from(left) * 1_000_000 / u128::from(time::frequency())) as u64;
        }
    }
}

/// Whether the environment of a process lives.
pub fn lives(environment: u16) -> bool {
    books::lives(environment)
}
