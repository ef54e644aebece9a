//! Entries: where the kernel comes to a program, as functions of Rust, and the ways to give the
//! processor away, which come back at an entry.
//!
//! A program registers functions for exceptions ([`on_exception`]), requests of other environments
//! ([`on_request`]) and events ([`on_events`]). They interrupt the program between two instructions
//! and run on stacks of their own: what they share with it is atomic. An exception's function
//! changes registers in its [`Frame`], and the program goes on with them, without the kernel.

mod trusted;

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use postern_aegis_abi::context::{EXCEPTIONS, GUARANTEES};
use postern_aegis_abi::{Call, Error, Mapping, PAGE};

use crate::{books, calls, context, image, memory, println, slices, start};

pub use trusted::{Answer, Frame, Interrupted, Procedure, call_procedure, serve_procedure};

/// Words of a message.
pub const WORDS: usize = 5;

/// A message between environments: it goes by registers, in no memory of either.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Who sent it: an environment's number, from the kernel.
    pub caller: u64,
    /// [`Message::SYNCHRONOUS`] and the others.
    pub kind: u64,
    /// What it says.
    pub words: [u64; WORDS],
}

impl Message {
    /// The caller waits for an answer, and gave its slice and its future.
    pub const SYNCHRONOUS: u64 = 0;
    /// An answer.
    pub const ANSWER: u64 = 1;
    /// No answer: the callee has too many requests already.
    pub const BUSY: u64 = 2;
    /// The caller gave the rest of its slice, and waits for nothing.
    pub const ASYNCHRONOUS: u64 = 3;

    /// A call of a procedure, in the lowest byte.
    const CALL: u64 = 16;
    /// Nothing, but that it comes.
    const WAKE: u64 = 19;

    /// A slice that its owner gave, and that is not needed any more.
    const RETURN: u64 = 4;

    /// A message to be sent.
    pub fn new(words: [u64; WORDS]) -> Message {
        Message {
            words,
            ..Message::default()
        }
    }
}

/// Has slices begin and end at the entries, which the kernel is told to keep mapped. Called once, by
/// the start of every program.
pub fn install() {
    // What is in the second segment was mapped by the maker: read where.
    let pages = image::SECOND
        .step_by(PAGE)
        .map_while(|at| Some((at, memory::page_at(at)?)));
    for (entry, (at, page)) in pages.enumerate().take(GUARANTEES) {
        context::guarantee_own(entry, at, Mapping::new(page, memory::flags_at(at)));
    }
    trusted::install();
}

/// Has the kernel come to the functions that are registered already: for a program whose memory is a
/// copy of another environment's, but for what [`initial`] says. After [`install`].
pub fn install_again() {
    for (vector, handler) in HANDLERS.iter().enumerate() {
        trusted::set_exception(vector, handler.load(Relaxed) != 0);
    }
    if REQUESTS.load(Relaxed) != 0 {
        trusted::accept_requests();
    }
    if EVENTS.load(Relaxed) != 0 {
        trusted::accept_events();
    }
    trusted::set_ending(trusted::ending());
}

/// What the writable part of the second segment begins with, behind the page of contexts: zeros, but
/// for one word; its address, and what it is.
pub fn initial() -> (u64, u64) {
    trusted::initial()
}

/// What an exception's function is.
pub type Handler = fn(&mut Frame);

static HANDLERS: [AtomicUsize; EXCEPTIONS] = [const { AtomicUsize::new(0) }; EXCEPTIONS];
static REQUESTS: AtomicUsize = AtomicUsize::new(0);
static EVENTS: AtomicUsize = AtomicUsize::new(0);
static ENDING: AtomicUsize = AtomicUsize::new(0);
static AT_ONCE: AtomicBool = AtomicBool::new(false);

/// Has a function called at an exception of a vector. Without one the environment ends.
pub fn on_exception(vector: usize, handler: Option<Handler>) {
    let word = handler.map_or(0, |handler| handler as usize);
    if let Some(slot) = HANDLERS.get(vector) {
        slot.store(word, Relaxed);
        trusted::set_exception(vector, handler.is_some());
    }
}

/// Puts a function in front of the one that is called at an exception of a vector, and returns that:
/// for [`pass_on`], with what it does not know.
pub fn in_front(vector: usize, handler: Handler) -> Option<Handler> {
    let former = trusted::handler(vector);
    on_exception(vector, Some(handler));
    former
}

/// Calls the function that was there before; without one the environment ends.
pub fn pass_on(former: Option<Handler>, frame: &mut Frame) {
    match former {
        Some(handler) => handler(frame),
        None => unhandled(frame),
    }
}

/// Has a function called when a slice ends that interrupted the program itself (no request that it
/// serves, no events that it is told), while the [`coprocessor`] is on: it may change what the
/// program goes on with. It runs in what is left of the slice, so it is short, and it gives the
/// processor to nobody.
pub fn on_slice_end(told: Option<fn(&mut Interrupted)>) {
    trusted::set_ending(told);
}

/// Has a function called for each request of another environment. What it leaves in the words is
/// the answer, if one is waited for. Until this is called, requests are refused.
pub fn on_request(serve: fn(&mut Message)) {
    REQUESTS.store(serve as usize, Relaxed);
    trusted::accept_requests();
}

/// Lets transfers arrive: calls and answers of procedures, and what [`wake`] sends. Requests are
/// answered by nothing but all ones until [`on_request`] is called.
pub fn accept() {
    trusted::accept_requests();
}

/// Has a function called with the events that were raised ([`crate::Context::events`]), which are
/// cleared before.
pub fn on_events(told: fn(u64)) {
    EVENTS.store(told as usize, Relaxed);
    trusted::accept_events();
}

/// Events that are not to be raised from now on, and end no sleep; all others are.
pub fn ignore(events: u64) {
    crate::context::context().ignored.store(events, Relaxed);
}

/// Has the same function called for events of devices at once, if they come while the program runs,
/// and not only when its next slice begins. Until then they are told as all events are.
pub fn events_at_once() {
    AT_ONCE.store(true, Relaxed);
    trusted::accept_upcalls();
}

/// Ends this slice. Comes back when the next one begins.
///
/// A slice that was given with a request is given back to its owner with its future, if the program
/// itself ends it: it serves no request then. (Who was answered in somebody else's time has got no
/// time back by that.)
pub fn yield_slice() {
    if trusted::in_program()
        && let Some(owner) = slices::giver()
    {
        let back = Message {
            kind: Message::RETURN,
            ..Message::default()
        };
        if trusted::give_away(owner, Some(&back), Call::CallSynchronous).is_ok() {
            return;
        }
    }
    let _ = trusted::give_away(0, None, Call::Yield);
}

/// The alarm has rung since it was set last, and nobody has slept since.
static RANG: AtomicBool = AtomicBool::new(false);

/// Ends this slice and has none until an event is raised or a request comes, unless something is so
/// already. Functions for events are registered ([`on_events`]); without any this is a yield, and so
/// it is as long as this has slices of others to give back.
///
/// It may come back sooner: a slice that ends before this one is given away ends the sleep, and so
/// does an alarm that has rung before, which nobody would hear again.
pub fn sleep_unless(is: impl Fn() -> bool) {
    // A slice of another's that comes to who sleeps comes to nobody: its owner would wait for ever.
    if slices::has_others() {
        return yield_slice();
    }
    trusted::set_asleep(true);
    if !is() && !RANG.load(Relaxed) {
        yield_slice();
    }
    trusted::set_asleep(false);
    RANG.store(false, Relaxed);
}

/// The alarm is set anew.
pub(crate) fn alarm_set() {
    RANG.store(false, Relaxed);
}

/// Gives the rest of the slice to an environment, which begins. Comes back when this one begins.
pub fn yield_to(environment: u16) -> Result<(), Error> {
    trusted::give_away(environment, None, Call::Yield)
}

/// Asks another environment, and waits for its answer: protected control transfer, there and back.
///
/// # Errors
/// [`Error::NoEnvironment`] if there is none, or it ended before it answered; [`Error::Busy`] if it
/// runs elsewhere, accepts no requests, or has too many, or if this one waits for another answer.
pub fn request(environment: u16, words: [u64; WORDS]) -> Result<[u64; WORDS], Error> {
    let birth = books::environment(environment).birth.load(Relaxed);
    trusted::begin_waiting(environment)?;
    let asked = trusted::give_away(
        environment,
        Some(&Message::new(words)),
        Call::CallSynchronous,
    );
    if let Err(error) = asked {
        trusted::end_waiting();
        return Err(error);
    }
    loop {
        if let Some(reply) = trusted::reply() {
            return match reply.kind {
                Message::ANSWER => Ok(reply.words),
                _ => Err(Error::Busy),
            };
        }
        let record = books::environment(environment);
        if !books::lives(environment) || record.birth.load(Relaxed) != birth {
            trusted::end_waiting();
            return Err(Error::NoEnvironment);
        }
        yield_slice();
    }
}

/// Sends words to another environment with the rest of the slice. Comes back when this one begins.
pub fn send(environment: u16, words: [u64; WORDS]) -> Result<(), Error> {
    let message = Message::new(words);
    trusted::give_away(environment, Some(&message), Call::CallAsynchronous)
}

/// Wakes an environment that sleeps, and gives it the rest of the slice.
pub fn wake(environment: u16) -> Result<(), Error> {
    let message = Message {
        kind: Message::WAKE,
        ..Message::default()
    };
    trusted::give_away(environment, Some(&message), Call::CallAsynchronous)
}

/// Slices that begin, and in which a called procedure has not answered, before its caller goes on with
/// [`Error::Again`]; how many they were before.
pub fn set_patience(slices: u32) -> u32 {
    PATIENCE.swap(slices, Relaxed)
}

/// Cycles of the clock that must have passed besides. 0 at the start: slices alone count, which are
/// short where all who have some yield.
pub fn set_patience_cycles(cycles: u64) {
    CYCLES.store(cycles, Relaxed);
}

static PATIENCE: AtomicU32 = AtomicU32::new(4096);
static CYCLES: AtomicU64 = AtomicU64::new(0);
static IMPATIENT: AtomicUsize = AtomicUsize::new(0);

/// Has a function asked when that patience is over, at each slice that begins from then on: whether
/// the call of an environment's procedure is waited for nevertheless. A clock and the caller's own
/// affairs may be reasons; it calls nobody.
pub fn on_impatience(goes_on: fn(u16) -> bool) {
    IMPATIENT.store(goes_on as usize, Relaxed);
}

fn look_at(environment: u16, looks: u32) -> Result<(), Error> {
    static BIRTH: AtomicU32 = AtomicU32::new(0);
    static SINCE: AtomicU64 = AtomicU64::new(0);
    let birth = books::environment(environment).birth.load(Relaxed);
    if looks == 1 {
        BIRTH.store(birth, Relaxed);
        SINCE.store(slices::clock(), Relaxed);
    }
    if !books::lives(environment) || BIRTH.load(Relaxed) != birth {
        return Err(Error::NoEnvironment);
    }
    let waited = slices::clock().saturating_sub(SINCE.load(Relaxed));
    if looks <= PATIENCE.load(Relaxed) || waited < CYCLES.load(Relaxed) {
        return Ok(());
    }
    match trusted::impatient().is_some_and(|goes_on| goes_on(environment)) {
        true => Ok(()),
        false => Err(Error::Again),
    }
}

/// Switches the coprocessor on or off for good: its state is kept over slices if it is on, and so is
/// the base of gs, if the program sets it.
pub fn coprocessor(on: bool) {
    // A slice can end between any two of these: the state is saved only while it is on for sure.
    if on {
        context::set_coprocessor(true);
        let _ = calls::fpu(true);
        trusted::save_vectors(true);
    } else {
        trusted::save_vectors(false);
        context::set_coprocessor(false);
        let _ = calls::fpu(false);
    }
}

/// What an exception does that has no function: the environment says so and ends.
fn unhandled(frame: &Frame) -> ! {
    println!(
        "environment {}: exception {} at {:#x}, address {:#x}, code {:#x}",
        books::own_number(),
        frame.vector,
        frame.rip,
        frame.address,
        frame.code
    );
    start::exit()
}
