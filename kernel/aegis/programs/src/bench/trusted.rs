//! What is measured, in assembly.

use core::arch::global_asm;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use postern_aegis::abi::context::Saved;
use postern_aegis::abi::{Call, Context};
use postern_aegis::{address, context};

global_asm!(
    ".set CONTEXT, {context}",
    ".set X_RAX, {excepted} + {rax}",
    ".set X_RCX, {excepted} + {rcx}",
    ".set X_R11, {excepted} + {r11}",
    ".set X_RIP, {excepted} + {rip}",
    ".set X_FLAGS, {excepted} + {rflags}",
    ".set X_ADDRESS, {excepted} + {address}",
    ".set MAP, {map}",
    include_str!("bench.s"),
    context = const address::GUARANTEED,
    excepted = const offset_of!(Context, excepted),
    rax = const offset_of!(Saved, rax),
    rcx = const offset_of!(Saved, rcx),
    r11 = const offset_of!(Saved, r11),
    rip = const offset_of!(Saved, rip),
    rflags = const offset_of!(Saved, rflags),
    address = const offset_of!(Saved, address),
    map = const Call::Map as u64,
    options(att_syntax)
);

unsafe extern "C" {
    safe fn bench_row();
    safe fn bench_begin();
    safe fn bench_end();
    safe fn bench_nothing() -> u64;
    safe fn bench_procedure() -> u64;
    fn bench_call(number: u64, arguments: &[u64; 6]) -> u64;
    safe fn bench_call_frame(number: u64, arguments: &[u64; 6]) -> u64;
    safe fn bench_divides(address: u64) -> u64;
    safe fn bench_moves_unaligned(address: u64) -> u64;
    safe fn bench_uses_coprocessor(address: u64) -> u64;
    fn bench_stores(address: u64) -> u64;
    fn bench_loads(address: u64) -> u64;
    fn bench_transfer(word: u64) -> u64;
    fn bench_touch(address: u64, pages: u64) -> u64;
    static bench_arrives: u8;
    static bench_returns: u8;
    static bench_maps: u8;
    static bench_back: u8;
    safe static bench_arrived: AtomicU64;
    safe static bench_result: AtomicU64;
    safe static bench_skip: AtomicU64;
    safe static bench_mapping: AtomicU64;
}

/// Ends a row for the emulator's plugin.
pub fn end_row() {
    bench_row();
}

/// Begins a measurement for the emulator's plugin.
pub fn begin() {
    bench_begin();
}

/// Ends it.
pub fn end() {
    bench_end();
}

/// What the clock itself takes.
pub fn clock() -> u64 {
    bench_nothing()
}

/// A procedure that does nothing.
pub fn procedure() -> u64 {
    bench_procedure() - clock()
}

/// A call and its result.
pub fn call(call: Call, arguments: [u64; 6]) -> (u64, i64) {
    let number = call as u64;
    // SAFETY: rows name pages and addresses that they took for themselves (`memory::reserve`).
    let took = unsafe { bench_call(number, &arguments) };
    let result = bench_result.load(Relaxed) as i64;
    (took - bench_call_frame(number, &arguments), result)
}

/// An instruction that raises an exception.
#[derive(Clone, Copy, Debug)]
pub enum Raise {
    Division,
    Unaligned,
    Coprocessor,
    Store,
    Load,
}

impl Raise {
    /// Bytes of the instruction.
    pub fn length(self) -> u64 {
        match self {
            Raise::Division | Raise::Store | Raise::Load => 2,
            Raise::Unaligned => 3,
            Raise::Coprocessor => 4,
        }
    }

    /// Raises it at an address that `memory::reserve` gave.
    fn raise(self, at: u64) -> u64 {
        match self {
            Raise::Division => bench_divides(at),
            Raise::Unaligned => bench_moves_unaligned(at),
            Raise::Coprocessor => bench_uses_coprocessor(at),
            // SAFETY: what is at the address is nothing of Rust's.
            Raise::Store => unsafe { bench_stores(at) },
            // SAFETY: as above.
            Raise::Load => unsafe { bench_loads(at) },
        }
    }
}

/// What is done with an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
    /// The handler was reached, and nothing else counts.
    Arrives,
    /// It goes on behind the instruction.
    Returns,
    /// It binds a page, and goes on at the instruction.
    Maps(u64),
}

/// From an instruction to its handler, or until the program goes on.
pub fn exception(raise: Raise, vector: usize, at: u64, handler: Handler) -> u64 {
    let entry = match handler {
        Handler::Arrives => (&raw const bench_arrives) as u64,
        Handler::Returns => (&raw const bench_returns) as u64,
        Handler::Maps(_) => (&raw const bench_maps) as u64,
    };
    match handler {
        Handler::Maps(mapping) => {
            bench_skip.store(0, Relaxed);
            bench_mapping.store(mapping, Relaxed);
        }
        _ => bench_skip.store(raise.length(), Relaxed),
    }
    let slot = offset_of!(Context, exception) / 8 + vector;
    let whole = with_entry(slot, entry, || raise.raise(at));
    match handler {
        Handler::Arrives => bench_arrived.load(Relaxed) - clock(),
        _ => whole - clock(),
    }
}

/// There and back by a transfer or a yield; none: it was refused.
pub fn transfer(call: Call, callee: u16) -> Option<u64> {
    let slot = match call {
        Call::CallSynchronous => offset_of!(Context, synchronous),
        Call::CallAsynchronous => offset_of!(Context, asynchronous),
        _ => offset_of!(Context, begin),
    };
    let back = (&raw const bench_back) as u64;
    let word = u64::from(callee) << 8 | call as u64;
    // SAFETY: the callee comes back to the label with the stack and the registers that the function
    // has left there, as the kernel promises.
    let took = with_entry(slot / 8, back, || unsafe { bench_transfer(word) });
    (took != u64::MAX).then(|| took - clock())
}

/// Does something while a word of the page of contexts has another value.
fn with_entry<T>(word: usize, value: u64, run: impl FnOnce() -> T) -> T {
    let before = stored(word);
    // SAFETY: the entry is used in between only for what is measured, a slice is longer than that,
    // and it is put back.
    unsafe { context::store_word(word, value) };
    let result = run();
    // SAFETY: as it was.
    unsafe { context::store_word(word, before) };
    result
}

/// A word of the page of contexts.
fn stored(word: usize) -> u64 {
    // SAFETY: the page is there as long as the program, and its words are atomic.
    let words = unsafe { &*(address::GUARANTEED as *const [AtomicU64; 512]) };
    words[word].load(Relaxed)
}

/// A byte of each of so many pages, from an address on where they are mapped.
pub fn touch(from: u64, pages: u64) -> u64 {
    // SAFETY: they are read only, and nothing of Rust's.
    let took = unsafe { bench_touch(from, pages) };
    took - clock()
}
