//! Entries in assembly, and the functions of Rust that they call.
//!
//! What they share is in the program's second segment, which can be too far away for an address in
//! an instruction: [`Entries`] is the table of where. A program runs on one processor at a time, and
//! whatever interrupts it comes back before it goes on, as signals do: words are read and written
//! whole.

use core::arch::global_asm;
use core::mem::{offset_of, transmute};
use core::ptr::{read_volatile, write_volatile};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use postern_aegis_abi::address::{BOOKS, GUARANTEED};
use postern_aegis_abi::records::{Environment, Machine, claim};
use postern_aegis_abi::{Call, Context, Error};

use crate::context::context;
use crate::entry::{
    AT_ONCE, ENDING, EVENTS, HANDLERS, IMPATIENT, Message, RANG, REQUESTS, unhandled,
};

global_asm!(
    ".set CONTEXT, {context}",
    ".set INTERRUPTED, {interrupted}",
    ".set EXCEPTED, {excepted}",
    ".set EMERGED, {emerged}",
    ".set CALL_SYNCHRONOUS, {synchronous}",
    ".set CALL_ASYNCHRONOUS, {asynchronous}",
    ".set BUSY, {busy}",
    ".set YIELD, {yields}",
    ".set NO_ENVIRONMENT, {nobody}",
    ".set ENVIRONMENTS, {environments}",
    ".set LAST_PROCESSOR, {last_processor}",
    ".set RECORD_SHIFT, {record_shift}",
    ".set UPCALLED, {upcalled}",
    ".set GS, {gs}",
    ".set BEGIN, {begin}",
    include_str!("entry.s"),
    include_str!("procedure.s"),
    include_str!("upcall.s"),
    context = const GUARANTEED,
    interrupted = const offset_of!(Context, interrupted),
    excepted = const offset_of!(Context, excepted),
    emerged = const offset_of!(Context, emerged),
    synchronous = const Call::CallSynchronous as u64,
    asynchronous = const Call::CallAsynchronous as u64,
    busy = const -(Error::Busy as i64),
    yields = const Call::Yield as u64,
    nobody = const -(Error::NoEnvironment as i64),
    environments = const BOOKS + offset_of!(Machine, environments) as u64,
    record_shift = const size_of::<Environment>().trailing_zeros(),
    upcalled = const offset_of!(Context, upcalled),
    gs = const offset_of!(Context, gs),
    begin = const offset_of!(Context, begin),
    last_processor = const *claim::RUNNING.end(),
    options(att_syntax)
);

/// What was interrupted by an exception, with all registers: changed here, they are so when the
/// program goes on. The layout is `entry.s`'s.
#[repr(C)]
#[derive(Debug)]
#[allow(missing_docs, reason = "registers")]
pub struct Frame {
    pub rax: u64,
    pub rbx: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub rbp: u64,
    pub rsp: u64,
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
    pub rip: u64,
    pub rflags: u64,
    unused: u64,
    /// The address of a page fault.
    pub address: u64,
    /// The processor's error code.
    pub code: u64,
    /// Which exception.
    pub vector: u64,
}

/// What the program goes on with when its next slice begins: changed here, it goes on so. The layout
/// is `entry.s`'s.
#[repr(C)]
#[derive(Debug)]
#[allow(missing_docs, reason = "registers")]
pub struct Interrupted {
    pub rax: u64,
    pub rbx: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub rbp: u64,
    pub rsp: u64,
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
    pub rip: u64,
    pub rflags: u64,
}

const _: () = assert!(offset_of!(Interrupted, rflags) == offset_of!(Frame, rflags));
const _: () = assert!(offset_of!(Frame, vector) == 168 && size_of::<Frame>() == 176);
const _: () = assert!(size_of::<Environment>().is_power_of_two());
const _: () = assert!(offset_of!(Message, words) == 16 && size_of::<Message>() == 56);

/// The table of `entry.s`.
#[repr(C)]
struct Entries {
    top: *const *const u8,
    activations: *const u8,
    begin: u64,
    end: u64,
    notify: u64,
    synchronous: u64,
    asynchronous: u64,
    exception: u64,
    emergency: u64,
    upcall: u64,
    give_away: extern "C" fn(u64, *const Message, u64) -> i64,
    waiting: *mut u32,
    replied: *mut u32,
    reply: *mut Message,
    vectors: *mut u64,
    ending: *mut usize,
}

unsafe extern "C" {
    #[link_name = "aegis_entries"]
    safe static ENTRIES: Entries;
}

// SAFETY: the table never changes; what it points to is accessed as the module says.
unsafe impl Sync for Entries {}

/// Has slices begin and end here. Called once, by the start of every program.
pub fn install() {
    let context = context();
    // Begin first: if the slice ends in between, nothing is kept, and the program starts anew.
    context.begin.store(ENTRIES.begin, Relaxed);
    context.emergency.store(ENTRIES.emergency, Relaxed);
    context.end.store(ENTRIES.end, Relaxed);
}

pub fn set_exception(vector: usize, on: bool) {
    context().exception[vector].store(if on { ENTRIES.exception } else { 0 }, Relaxed);
}

pub fn accept_requests() {
    context().synchronous.store(ENTRIES.synchronous, Relaxed);
    context().asynchronous.store(ENTRIES.asynchronous, Relaxed);
}

pub fn accept_events() {
    context().notify.store(ENTRIES.notify, Relaxed);
}

/// Whether slices begin only when there are events.
pub fn set_asleep(asleep: bool) {
    let context = context();
    if context.notify.load(Relaxed) != 0 {
        let begin = if asleep { 0 } else { ENTRIES.begin };
        context.begin.store(begin, Relaxed);
    }
}

/// Whether this is the program itself, and not a function that serves a request or hears of events.
pub fn in_program() -> bool {
    // SAFETY: a word of `entry.s`, whole.
    unsafe { read_volatile(ENTRIES.top) == ENTRIES.activations }
}

/// Whether ends of slices save vector registers: only while the coprocessor is on.
pub fn save_vectors(save: bool) {
    // SAFETY: a word of `entry.s`, whole.
    unsafe { write_volatile(ENTRIES.vectors, u64::from(save)) }
}

/// Has a function called at ends of slices.
pub fn set_ending(told: Option<fn(&mut Interrupted)>) {
    let word = told.map_or(0, |_| aegis_ending as *const () as usize);
    ENDING.store(told.map_or(0, |told| told as usize), Relaxed);
    // SAFETY: a word of `entry.s`, whole.
    unsafe { write_volatile(ENTRIES.ending, word) }
}

/// That function.
pub fn ending() -> Option<fn(&mut Interrupted)> {
    let word = ENDING.load(Relaxed);
    // SAFETY: only `set_ending` stores there, functions of this type or zero.
    (word != 0).then(|| unsafe { transmute::<usize, fn(&mut Interrupted)>(word) })
}

/// The address of the word that is not zero at first, and what it is then.
pub fn initial() -> (u64, u64) {
    (ENTRIES.top as u64, ENTRIES.activations as u64)
}

/// A slice ends that was the program's own.
extern "C" fn aegis_ending(interrupted: &mut Interrupted) {
    if let Some(told) = ending() {
        told(interrupted);
    }
}

/// Yields or transfers, and comes back at a begin.
pub fn give_away(environment: u16, message: Option<&Message>, call: Call) -> Result<(), Error> {
    let message = message.map_or(core::ptr::null(), core::ptr::from_ref);
    let result = (ENTRIES.give_away)(u64::from(environment) & 0xff, message, call as u64);
    Error::of(result).map_or(Ok(()), Err)
}

/// Says for whose answer this waits, before it asks.
pub fn begin_waiting(environment: u16) -> Result<(), Error> {
    // Answers come at the synchronous entry.
    context().synchronous.store(ENTRIES.synchronous, Relaxed);
    // SAFETY: words of `entry.s`, whole; only the interrupted program itself waits, or a request
    // that it serves meanwhile, which comes back first.
    unsafe {
        if read_volatile(ENTRIES.waiting) != 0 {
            return Err(Error::Busy);
        }
        write_volatile(ENTRIES.replied, 0);
        write_volatile(ENTRIES.waiting, u32::from(environment));
    }
    Ok(())
}

/// Nobody answers any more.
pub fn end_waiting() {
    // SAFETY: as above.
    unsafe { write_volatile(ENTRIES.waiting, 0) }
}

/// The answer, if it has come.
pub fn reply() -> Option<Message> {
    // SAFETY: as above; the answer is written before `replied`, and not again before the next
    // request.
    unsafe { (read_volatile(ENTRIES.replied) != 0).then(|| read_volatile(ENTRIES.reply)) }
}

unsafe extern "C" {
    #[link_name = "aegis_call"]
    safe fn call_keeping(environment: u64, a: u64, b: u64, c: u64, d: u64) -> Answer;
    #[link_name = "aegis_serve"]
    safe fn serve(procedure: Procedure, until: &AtomicU32) -> i64;
}

/// A procedure for others: its caller, and four words.
pub type Procedure = extern "C" fn(u64, u64, u64, u64, u64) -> u64;

/// Has calls of others come to a procedure, one after the other, until a word is not 0. The program
/// itself does nothing else meanwhile. Not done where events are told or requests served.
pub fn serve_procedure(procedure: Procedure, until: &AtomicU32) -> bool {
    serve(procedure, until) == 0
}

/// What a procedure answered: an error's number or 0, and a word.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// 0, or what [`Error::of`] takes.
    pub error: i64,
    /// The word.
    pub word: u64,
}

/// Calls the procedure of an environment that serves. The coprocessor is on, and transfers are accepted ([`crate::entry::accept`]).
pub fn call_procedure(environment: u16, [a, b, c, d]: [u64; 4]) -> Answer {
    call_keeping(environment.into(), a, b, c, d)
}

/// Who is asked when the patience with a procedure is over.
pub fn impatient() -> Option<fn(u16) -> bool> {
    let word = IMPATIENT.load(Relaxed);
    // SAFETY: only `on_impatience` stores there, functions of this type; otherwise it is zero.
    (word != 0).then(|| unsafe { transmute::<usize, fn(u16) -> bool>(word) })
}

/// A slice begins, the `looks`-th since the procedure was called: 0, or the error to go on with.
#[unsafe(no_mangle)]
extern "C" fn aegis_call_looks(environment: u32, looks: u32) -> i64 {
    crate::entry::look_at(environment as u16, looks).map_or_else(|error| error as i64, |()| 0)
}

/// An exception: `frame` is the lowest thing on the handlers' stack.
#[unsafe(no_mangle)]
extern "C" fn aegis_excepted(frame: &mut Frame) {
    match handler(frame.vector as usize) {
        Some(handler) => handler(frame),
        None => unhandled(frame),
    }
}

/// A slice begins for a server that is parked. One of another's goes back: the server itself never
/// yields.
#[unsafe(no_mangle)]
extern "C" fn aegis_serve_begins() {
    if crate::slices::giver().is_some() {
        crate::entry::yield_slice();
    }
}

/// The function that is called at an exception of a vector.
pub fn handler(vector: usize) -> Option<fn(&mut Frame)> {
    let word = HANDLERS.get(vector)?.load(Relaxed);
    // SAFETY: only `on_exception` stores there, functions of this type or zero.
    (word != 0).then(|| unsafe { transmute::<usize, fn(&mut Frame)>(word) })
}

/// Slices in which who called is told that this one was busy.
const REFUSALS: u32 = 1 << 16;

/// A request: the words become the answer.
#[unsafe(no_mangle)]
extern "C" fn aegis_requested(message: &mut Message) {
    if message.kind & 0xff == Message::CALL {
        // A call that came when a slice ended: it is refused now, and nothing else is answered.
        let refusal = Message {
            kind: message.kind + 1,
            words: [0, 0, 0, Error::Busy as i64 as u64, 0],
            ..Message::default()
        };
        let caller = message.caller as u16;
        for _ in 0..REFUSALS {
            match give_away(caller, Some(&refusal), Call::CallAsynchronous) {
                // It runs on another processor.
                Err(Error::Busy) => _ = give_away(0, None, Call::Yield),
                _ => break,
            }
        }
        message.kind = Message::ASYNCHRONOUS;
        return;
    }
    let word = REQUESTS.load(Relaxed);
    if word == 0 {
        // Only answers were expected.
        message.words = [u64::MAX; crate::entry::WORDS];
        return;
    }
    // SAFETY: only `on_request` stores there, functions of this type.
    let serve = unsafe { transmute::<usize, fn(&mut Message)>(word) };
    serve(message);
}

/// Events were raised.
#[unsafe(no_mangle)]
extern "C" fn aegis_notified() {
    // Before the events are taken: whoever slept and is interrupted from here on has nothing else
    // that would have it go on.
    set_asleep(false);
    loop {
        if AT_ONCE.load(Relaxed) {
            // Before the events are looked at: what comes later is told by it.
            context().upcall.store(ENTRIES.upcall, Relaxed);
        }
        let events = context().events.swap(0, Relaxed);
        if events == 0 {
            return;
        }
        if events & Context::EVENT_ALARM != 0 {
            RANG.store(true, Relaxed);
        }
        let word = EVENTS.load(Relaxed);
        if word != 0 {
            // SAFETY: only `on_events` stores there, functions of this type.
            let told = unsafe { transmute::<usize, fn(u64)>(word) };
            told(events);
        }
    }
}

/// Has events of devices told while the program runs.
pub fn accept_upcalls() {
    context().upcall.store(ENTRIES.upcall, Relaxed);
}
