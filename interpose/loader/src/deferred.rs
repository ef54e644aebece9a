//! Signals: each handler of the program's is called by way of here. One that comes while the
//! dispatcher ([`crate::fast`]) looks at a call is put off, for the thread's registers, stack and
//! base of fs are the loader's then.
//!
//! It is sent again to the thread itself, and all signals are blocked where the dispatcher goes on;
//! which then has the call come the slow way, behind which the program's mask counts. To the
//! program the signal came just before its call.

use crate::faults;
use crate::stubs::Kind;
use crate::system::{self, number};
use crate::thread::{Block, Dispatched, INSIDE, PROGRAM_FS, STACK_TOP};
use crate::trap::{self, Context, SIGSYS_BIT};
use core::arch::global_asm;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicU32, AtomicU64};

global_asm!(
    // rdi = signal, rsi = info, rdx = context, r11 = the program's handler. While the agent runs,
    // the base of gs is its window's, and that of fs the block's; while the program does, that of
    // gs is the block's.
    ".globl interpose_signal",
    "interpose_signal:",
    "rdgsbase rax",
    "cmp rax, [rip + INTERPOSE_WINDOW]",
    "jne 3f",
    "rdfsbase rax",
    "3:",
    "cmp dword ptr [rax + {INSIDE}], 0",
    "jne 1f",
    "jmp r11",
    // The same for faults, which may be the loader's or the agent's also where no dispatcher is.
    ".globl interpose_fault",
    "interpose_fault:",
    "rdgsbase rax",
    "rdfsbase rcx",
    "cmp rax, rcx",
    "je 1f",
    "cmp rax, [rip + INTERPOSE_WINDOW]",
    "cmove rax, rcx",
    "je 1f",
    "cmp dword ptr [rax + {INSIDE}], 0",
    "jne 1f",
    "cmp r11, 1",
    "ja 2f",
    // No handler: what the kernel does then.
    "mov [rax + {FS}], rcx",
    "wrfsbase rax",
    "mov rbx, rsp",
    "mov rsp, [rax + {STACK}]",
    "mov rdx, r11",
    "call {without}",
    "mov rax, fs:[0]",
    "mov rcx, [rax + {FS}]",
    "wrfsbase rcx",
    "mov rsp, rbx",
    "ret",
    "2:",
    "jmp r11",
    // The loader's turn, or the agent's: rax = the block.
    "1:",
    "push rbp",
    "mov rbp, rsp",
    "push rbx",
    "and rsp, -16",
    "rdfsbase rbx",
    "wrfsbase rax",
    "call {inside}",
    "wrfsbase rbx",
    "mov rbx, [rbp - 8]",
    "leave",
    "ret",
    INSIDE = const INSIDE,
    FS = const PROGRAM_FS,
    STACK = const STACK_TOP,
    without = sym faults::without,
    inside = sym inside,
);

unsafe extern "C" {
    fn interpose_signal();
    fn interpose_fault();
}

/// What stubs for handlers lead to.
pub fn entry(kind: Kind) -> u64 {
    match kind {
        Kind::Fault => interpose_fault as *const () as u64,
        _ => interpose_signal as *const () as u64,
    }
}

/// Actions whose handlers are called once, by signal: the kernel has forgotten one that is put off.
static ONCE: [[AtomicU64; 3]; 65] = [const { [const { AtomicU64::new(0) }; 3] }; 65];
/// `SA_RESETHAND`.
const RESETS: u64 = 0x8000_0000;

/// `SA_SIGINFO`: without it the kernel does not say what is to be sent again.
pub const INFO: u64 = 4;
/// Signals whose handlers did not ask for that.
static PLAIN: AtomicU64 = AtomicU64::new(0);

/// Whether that was put to the flags of a signal's action.
pub fn is_plain(signal: u64) -> bool {
    let bit = 1u64.checked_shl(signal.wrapping_sub(1) as u32).unwrap_or(0);
    PLAIN.load(SeqCst) & bit != 0
}

/// The kernel is about to be told this action, whose handler, if there is one, is a stub's: the
/// flags that it is told.
pub fn note(signal: u64, action: [u64; 4]) -> u64 {
    const NO_HANDLERS: [u64; 2] = [0, 1];
    let Some(kept) = ONCE.get(signal as usize) else {
        return action[1];
    };
    let bit = 1u64.checked_shl(signal.wrapping_sub(1) as u32).unwrap_or(0);
    let plain = action[1] & INFO == 0 && !NO_HANDLERS.contains(&action[0]);
    match plain {
        true => PLAIN.fetch_or(bit, SeqCst),
        false => PLAIN.fetch_and(!bit, SeqCst),
    };
    let flags = if plain { action[1] | INFO } else { action[1] };
    let once = action[1] & RESETS != 0;
    for (kept, word) in kept.iter().zip([action[0], flags, action[3]]) {
        kept.store(if once { word } else { 0 }, SeqCst);
    }
    flags
}

/// A signal that came while the loader had the thread.
extern "C" fn inside(signal: u64, info: *const [i32; 4], context: *mut Context) {
    // SAFETY: the kernel's, until the handler returns.
    let (sent, context) = unsafe { ((*info)[2] <= 0, &mut *context) };
    let call = &Block::mine().call;
    let of_fault = faults::ALL.contains(&signal);
    if of_fault && (!sent || call.inside.load(SeqCst) == 0) {
        return faults::own(signal, context);
    }
    // Before anything else: others that come are put off before this one, or after it.
    const SET: u64 = 2;
    let all = !SIGSYS_BIT;
    // SAFETY: the kernel reads the word.
    unsafe {
        system::call(
            number::RT_SIGPROCMASK,
            [SET, &raw const all as u64, 0, 8, 0, 0],
        )
    };
    call.mask.store(context.mask, SeqCst);
    call.deferred.store(1, SeqCst);
    context.mask = all;
    let once = ONCE.get(signal as usize);
    if let Some([handler, flags, mask]) = once.map(|kept| kept.each_ref().map(|k| k.load(SeqCst)))
        && handler != 0
    {
        let action = [handler, flags, trap::restore(), mask];
        // SAFETY: the kernel reads the words.
        unsafe {
            let action = &raw const action as u64;
            system::call(number::RT_SIGACTION, [signal, action, 0, 8, 0, 0]);
        }
    }
    // SAFETY: the kernel's, until the handler returns.
    let info = unsafe { info.cast::<Info>().read() };
    if !queue(signal, &info) {
        keep(call, signal, info);
    }
}

/// What the kernel says of a signal (`siginfo_t`).
pub type Info = [u64; 16];

/// Sends a signal again, to the calling thread: false if the queue of its user is full.
fn queue(signal: u64, info: &Info) -> bool {
    const QUEUE: u64 = 297;
    let (process, thread) = (system::process(), system::thread().into());
    let words = [process, thread, signal, info.as_ptr() as u64, 0, 0];
    // SAFETY: the kernel reads what it wrote.
    unsafe { system::call(QUEUE, words) != FULL }
}

/// `EAGAIN`.
const FULL: i64 = -11;

/// Real-time signals that found no room, of one thread. While there are any, all its calls come the
/// slow way, at each of which they are tried again.
pub struct Kept {
    count: AtomicU32,
    signals: [AtomicU32; MOST],
    infos: [[AtomicU64; 16]; MOST],
}

/// As many as can come one after the other before the first has blocked the others.
const MOST: usize = 24;

impl Kept {
    /// None.
    pub const fn none() -> Kept {
        Kept {
            count: AtomicU32::new(0),
            signals: [const { AtomicU32::new(0) }; MOST],
            infos: [const { [const { AtomicU64::new(0) }; 16] }; MOST],
        }
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.count.load(Relaxed) == 0
    }

    /// There are none: they were another thread's, or the parent's.
    pub fn clear(&self) {
        self.count.store(0, Relaxed);
        self.signals
            .iter()
            .for_each(|signal| signal.store(0, Relaxed));
    }
}

fn keep(call: &Dispatched, signal: u64, info: Info) {
    let free = |place: &&AtomicU32| place.load(Relaxed) == 0;
    let Some(index) = call.kept.signals.iter().position(|place| free(&place)) else {
        return;
    };
    for (kept, word) in call.kept.infos[index].iter().zip(info) {
        kept.store(word, Relaxed);
    }
    call.kept.signals[index].store(signal as u32, Relaxed);
    call.kept.count.fetch_add(1, Relaxed);
}

/// Tries those again that found no room; all signals are blocked.
pub fn again(call: &Dispatched) {
    for (place, kept) in call.kept.signals.iter().zip(&call.kept.infos) {
        let signal = place.load(Relaxed);
        if signal != 0 {
            let info = kept.each_ref().map(|word| word.load(Relaxed));
            if queue(signal.into(), &info) {
                place.store(0, Relaxed);
                call.kept.count.fetch_sub(1, Relaxed);
            }
        }
    }
}
