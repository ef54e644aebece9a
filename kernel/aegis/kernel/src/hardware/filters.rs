//! The code of all endpoints' filters in window 0: two sides of which one is asked and the other
//! one spare.
//!
//! Invariant: a side holds nothing or a code that the verifier accepts; the side in use is not
//! stored to.

use core::arch::{global_asm, x86_64::__cpuid};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use postern_aegis_abi::{PAGE, PROCESSORS};
use postern_filter::Facts;
use postern_filter::set::KernelSet;

use super::switch::Frame;
use super::window::{
    self, BUFFER, BUFFERS, CALLS, DEPTH, STACK, TABLE, TABLES, TEXT, TEXTS, WINDOWS, page,
};
use super::{local, memory};

/// One of the two codes of window 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

impl Side {
    fn text(self) -> u32 {
        TEXTS + self as u32 * TEXT
    }

    fn table(self) -> u32 {
        TABLE + self as u32 * TABLES
    }
}

/// How many codes there have been; the last one is in use. The first is on side B.
static MADE: AtomicU64 = AtomicU64::new(0);
/// Whether the code is being asked or exchanged.
static USED: AtomicBool = AtomicBool::new(false);
/// Whether somebody has the spare side.
static TAKEN_SPARE: AtomicBool = AtomicBool::new(false);

fn side(made: u64) -> Side {
    match made % 2 {
        0 => Side::A,
        _ => Side::B,
    }
}

/// The side that nobody asks now. One at a time has it.
pub struct Spare {
    filled: bool,
}

/// The spare side, if nobody has it.
pub fn spare() -> Option<Spare> {
    (!TAKEN_SPARE.swap(true, Ordering::Acquire)).then_some(Spare { filled: false })
}

impl Spare {
    /// Which it is.
    pub fn side(&self) -> Side {
        side(MADE.load(Ordering::Relaxed) + 1)
    }

    /// Where its tables are in the window.
    pub fn tables(&self) -> u32 {
        self.side().table() * PAGE as u32
    }

    /// Puts a code there that was made for these tables, if there is room and the verifier says that
    /// it may run in the kernel and ends after at most `longest` instructions. Whether it does.
    pub fn fill(&mut self, set: &KernelSet, longest: u32) -> bool {
        const WORDS: usize = PAGE / 8;
        self.filled = false;
        let (text, tables) = (set.code.text(), &set.tables);
        if text.len() > TEXT as usize * PAGE || tables.len() > TABLES as usize * WORDS {
            return false;
        }
        let ends = |facts: &Facts| facts.longest_path.is_some_and(|path| path <= longest);
        if !set
            .code
            .verify()
            .is_ok_and(|facts| ends(&facts) && !facts.gates)
        {
            return false;
        }
        for (index, bytes) in text.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            let words = memory::words(page(self.side().text()) + (index / WORDS) as u32);
            words[index % WORDS].store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
        for (index, word) in tables.iter().enumerate() {
            let words = memory::words(page(self.side().table()) + (index / WORDS) as u32);
            words[index % WORDS].store(*word, Ordering::Relaxed);
        }
        self.filled = true;
        true
    }

    /// From now on it is asked, if there is a code; the other one is spare. `poll` is called while
    /// the other one is being asked.
    pub fn exchange(self, poll: impl Fn()) {
        if self.filled {
            let _used = Used::take(poll);
            MADE.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        TAKEN_SPARE.store(false, Ordering::Release);
    }
}

struct Used;

impl Used {
    fn take(poll: impl Fn()) -> Used {
        while USED.swap(true, Ordering::Acquire) {
            poll();
            core::hint::spin_loop();
        }
        Used
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        USED.store(false, Ordering::Release);
    }
}

/// A frame where the filters' code can read it.
#[derive(Clone, Copy, Debug)]
pub struct Visible {
    offset: u32,
    length: u32,
}

impl Visible {
    /// A frame in one of [`window::buffers`]; nothing if it is not in there.
    pub fn arrived(page: u32, offset: usize, length: usize) -> Option<Visible> {
        let place = page
            .checked_sub(window::buffers().start)
            .filter(|n| *n < BUFFERS)?;
        Visible::new(BUFFER + place, offset, length)
    }

    fn new(place: u32, offset: usize, length: usize) -> Option<Visible> {
        let fits = offset.checked_add(length)? <= PAGE;
        fits.then_some(Visible {
            offset: place * PAGE as u32 + offset as u32,
            length: length as u32,
        })
    }
}

unsafe extern "C" {
    /// Calls code in a window: `(packet, captured, wire)` are its arguments, `window` the base of
    /// fs, `stack` the window's. At `back` is stored how to leave it early.
    fn window_ask(
        packet: u64,
        captured: u64,
        wire: u64,
        window: u64,
        entry: u64,
        stack: u64,
        back: *const AtomicU64,
    ) -> u64;
    static window_left: u8;
}

global_asm!(
    ".global window_ask",
    "window_ask:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "rdfsbase rax",
    "push rax",
    "mov rax, [rsp + 64]", // the seventh argument
    "mov [rax], rsp",
    "wrfsbase rcx",
    "mov r15, r9",
    "mov rax, r8",
    "xor ecx, ecx",
    "call rax",
    // Whoever leaves it early comes here with 0 and the stack as above.
    ".global window_left",
    "window_left:",
    "cld",
    "pop rcx",
    "wrfsbase rcx", // the environment's
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
);

/// The stack of who asks now.
static BACK: AtomicU64 = AtomicU64::new(0);
/// By processor: the code that it asked last, by the how many-th it was.
static SEEN: [AtomicU64; PROCESSORS] = [const { AtomicU64::new(0) }; PROCESSORS];

/// What the code says of a frame, for `then`: its side and the number that it returns; nothing if
/// there is none. `poll` is called while another processor asks.
pub fn ask<T>(
    frame: Visible,
    poll: impl Fn(),
    then: impl FnOnce(Side, u64) -> Option<T>,
) -> Option<T> {
    let _used = Used::take(poll);
    let (side, number) = ask_code(frame)?;
    then(side, number)
}

/// The same of a frame of at most a page that is shown to it first.
pub fn ask_of<T>(
    frame: &[u8],
    poll: impl Fn(),
    then: impl FnOnce(Side, u64) -> Option<T>,
) -> Option<T> {
    let visible = Visible::new(CALLS, 0, frame.len())?;
    let _used = Used::take(poll);
    let words = memory::words(page(CALLS));
    for (word, bytes) in words.iter().zip(frame.chunks(8)) {
        let mut value = [0; 8];
        value[..bytes.len()].copy_from_slice(bytes);
        word.store(u64::from_le_bytes(value), Ordering::Relaxed);
    }
    let (side, number) = ask_code(visible)?;
    then(side, number)
}

/// The code is used by who calls.
fn ask_code(frame: Visible) -> Option<(Side, u64)> {
    let made = MADE.load(Ordering::Relaxed);
    if made == 0 {
        return None;
    }
    // Another processor may have stored the code: this one must not have fetched it before.
    let seen = &SEEN[local::this().processor() % PROCESSORS];
    if seen.swap(made, Ordering::Relaxed) != made {
        __cpuid(0);
    }
    let entry = WINDOWS + u64::from(side(made).text()) * PAGE as u64;
    let stack = u64::from(STACK + DEPTH) * PAGE as u64;
    let (packet, length) = (u64::from(frame.offset), u64::from(frame.length));
    // SAFETY: `fill` put a code there that the verifier accepts for kernels and without loops. It
    // stays while it is used. Such code returns, reaches nothing but what is behind fs, where only
    // the stack can be written to, and calls nothing but itself. Interrupts are off, and the
    // environment's fs base is given back.
    let number = unsafe { window_ask(packet, length, length, WINDOWS, entry, stack, &BACK) };
    Some((side(made), number))
}

/// An exception of the kernel's: if it is one of a code in window 0, which the verifier does not
/// promise not to raise, its answer is 0. Whether it was.
pub fn escape(frame: &mut Frame) -> bool {
    let ours = frame
        .rip
        .checked_sub(WINDOWS)
        .is_some_and(|at| at < 1 << 32);
    if ours {
        frame.rax = 0;
        frame.rsp = BACK.load(Ordering::Relaxed);
        // SAFETY: the address of a label; nothing is read.
        frame.rip = unsafe { &window_left } as *const u8 as u64;
    }
    ours
}
