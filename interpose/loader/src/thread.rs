//! What the loader has of each thread of the program's: a block that the base of gs points to while
//! the program runs, and a stack below it.
//!
//! The block is also where the loader's own thread-local variables end, so the base of fs points to
//! it while the loader runs. Programs that use gs themselves are not served.

use crate::deferred::Kept;
use crate::system;
use core::mem::offset_of;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::SeqCst};

/// Bytes of the stack on which calls are looked at, and agents run.
const STACK: u64 = 512 << 10;
/// Bytes of a block with its stack, guard and thread-local variables.
const WHOLE: u64 = STACK + (64 << 10);

/// The block.
#[repr(C, align(64))]
pub struct Block {
    /// Its own address, as the processor's convention for fs wants it.
    me: u64,
    /// The base of fs that the program has.
    pub program_fs: AtomicU64,
    /// The top of the stack.
    stack: u64,
    /// For a thread that begins: where it goes on, and the register by which it found this.
    pub begin: AtomicU64,
    pub ninth: AtomicU64,
    /// What the kernel reads at each call of the program's: its calls are blocked.
    selector: u64,
    /// The kernel's number of the thread; 0 before it has begun.
    thread: AtomicU32,
    /// The next of all blocks.
    next: AtomicPtr<Block>,
    /// Which data stack of the agent's the thread has, and one more; 0 is none.
    place: AtomicU32,
    /// What the dispatcher ([`crate::fast`]) is doing with a call of the thread's.
    pub call: Dispatched,
    /// What was prepared for the last program that it was to become ([`crate::exec`]), or 0.
    pub prepared: AtomicU64,
    /// The first record of calls whose child has this thread's memory ([`crate::after`]), or 0.
    pub waiting: AtomicU64,
}

/// A call that comes by the dispatcher.
#[repr(C)]
pub struct Dispatched {
    /// 1 while it is looked at, up to where the program goes on or the kernel stops the call:
    /// signals are put off then ([`crate::deferred`]).
    pub inside: AtomicU32,
    /// 1: one was, and all are blocked until the call comes the slow way.
    pub deferred: AtomicU32,
    /// The program's mask of signals then.
    pub mask: AtomicU64,
    /// What the agent has said of the call that comes the slow way now: one of
    /// [`crate::fast::SAID`].
    pub said: AtomicU32,
    /// The program's stack pointer.
    pub stack: AtomicU64,
    /// The program's other stack for signals, where it begins and its bytes: from there calls come
    /// the slow way. The kernel puts signals at its top if the stack pointer is elsewhere, as the
    /// dispatcher's is.
    pub other: [AtomicU64; 2],
    /// The call's number, while there is no stack for it.
    pub number: AtomicU64,
    /// With what was said: the call's number or result, its arguments and the agent's note.
    pub words: [AtomicU64; 8],
    /// 1: a process uses the block whose maker waits, or did.
    pub guest: AtomicU32,
    /// Signals that were put off, and could not be sent again yet.
    pub kept: Kept,
}

impl Dispatched {
    /// No call.
    const fn none() -> Dispatched {
        Dispatched {
            inside: AtomicU32::new(0),
            deferred: AtomicU32::new(0),
            mask: AtomicU64::new(0),
            said: AtomicU32::new(0),
            stack: AtomicU64::new(0),
            other: [AtomicU64::new(0), AtomicU64::new(u64::MAX)],
            number: AtomicU64::new(0),
            words: [const { AtomicU64::new(0) }; 8],
            guest: AtomicU32::new(0),
            kept: Kept::none(),
        }
    }
}

impl Dispatched {
    /// A process is made that has the block while its maker waits.
    pub fn lend(&self) {
        self.guest.store(1, SeqCst);
        self.forget_other();
    }

    /// The other stack is not known until the kernel says so, at the next call.
    pub fn forget_other(&self) {
        self.other[0].store(0, SeqCst);
        self.other[1].store(u64::MAX, SeqCst);
    }

    /// The kernel's word for it (`stack_t`), unless it is that of a process that has the block only
    /// as long as its maker waits: what that one has, its maker has not.
    pub fn know_other(&self, [start, flags, bytes]: [u64; 3], thread: u32) {
        const DISABLED: u64 = 2;
        if self.guest.load(SeqCst) != 0 {
            if system::thread() != thread {
                return;
            }
            self.guest.store(0, SeqCst);
        }
        let is_there = flags & DISABLED == 0;
        self.other[0].store(start, SeqCst);
        self.other[1].store(if is_there { bytes } else { 0 }, SeqCst);
    }
}

/// It has the last page of what is mapped for a thread.
const _: () = assert!(size_of::<Block>() <= 4096);

/// Offsets for assembly.
pub const PROGRAM_FS: usize = offset_of!(Block, program_fs);
pub const STACK_TOP: usize = offset_of!(Block, stack);
pub const BEGIN: usize = offset_of!(Block, begin);
pub const NINTH: usize = offset_of!(Block, ninth);
pub const SELECTOR: usize = offset_of!(Block, selector);
pub const THREAD: usize = offset_of!(Block, thread);
pub const INSIDE: usize = offset_of!(Block, call.inside);
pub const DEFERRED: usize = offset_of!(Block, call.deferred);
pub const SAID: usize = offset_of!(Block, call.said);
pub const PROGRAM_STACK: usize = offset_of!(Block, call.stack);
pub const OTHER_START: usize = offset_of!(Block, call.other);
pub const OTHER_BYTES: usize = OTHER_START + 8;
pub const NUMBER: usize = offset_of!(Block, call.number);
pub const FIRST_WORD: usize = offset_of!(Block, call.words);

/// The kernel blocks calls that come from elsewhere than the loader's text.
const BLOCKED: u64 = 1;

static ALL: AtomicPtr<Block> = AtomicPtr::new(core::ptr::null_mut());

unsafe extern "C" {
    /// The loader's thread-local variables, as the linker places them: the file's header.
    static __ehdr_start: [u8; 64];
}

/// First values of thread-local variables, and how many bytes they are, with their alignment.
fn variables() -> (u64, u64, u64, u64) {
    const THREAD_LOCALS: u32 = 7;
    let header = (&raw const __ehdr_start).cast::<u8>();
    let word = |at: usize| {
        // SAFETY: the loader's own headers, which are in its first page.
        unsafe { header.add(at).cast::<u64>().read_unaligned() }
    };
    let (table, count) = (word(32) as usize, (word(56) & 0xffff) as usize);
    for index in 0..count {
        let at = table + index * 56;
        if word(at) as u32 == THREAD_LOCALS {
            return (word(at + 16), word(at + 32), word(at + 40), word(at + 48));
        }
    }
    (0, 0, 0, 1)
}

impl Block {
    /// A block for a thread that begins: one whose thread has ended, or a new one.
    pub fn take() -> Option<&'static Block> {
        let mut at = ALL.load(SeqCst);
        // SAFETY: blocks stay for good.
        while let Some(block) = unsafe { at.as_ref() } {
            let thread = block.thread.load(SeqCst);
            if thread != 0
                && thread != STARTING
                && !is_alive(thread)
                && block
                    .thread
                    .compare_exchange(thread, STARTING, SeqCst, SeqCst)
                    .is_ok()
            {
                block.fill();
                return Some(block);
            }
            at = block.next.load(SeqCst);
        }
        let start = system::fresh(WHOLE)?;
        // SAFETY: pages that were just made; the lowest one becomes the guard.
        unsafe { system::call(system::number::MPROTECT, [start, 4096, 0, 0, 0, 0]) };
        let at = (start + WHOLE - 4096) as *mut Block;
        let (_, _, bytes, alignment) = variables();
        let below = bytes.next_multiple_of(alignment.max(64));
        // SAFETY: pages that nobody else has.
        unsafe {
            at.write(Block {
                me: at as u64,
                program_fs: AtomicU64::new(0),
                stack: (at as u64 - below) & !63,
                begin: AtomicU64::new(0),
                ninth: AtomicU64::new(0),
                selector: BLOCKED,
                thread: AtomicU32::new(STARTING),
                next: AtomicPtr::new(core::ptr::null_mut()),
                place: AtomicU32::new(0),
                call: Dispatched::none(),
                prepared: AtomicU64::new(0),
                waiting: AtomicU64::new(0),
            });
        }
        // SAFETY: it was just written.
        let block: &'static Block = unsafe { &*at };
        block.fill();
        let mut first = ALL.load(SeqCst);
        loop {
            block.next.store(first, SeqCst);
            match ALL.compare_exchange(first, at, SeqCst, SeqCst) {
                Ok(_) => return Some(block),
                Err(other) => first = other,
            }
        }
    }

    /// Thread-local variables have their first values.
    fn fill(&self) {
        self.call.forget_other();
        self.call.kept.clear();
        self.call.guest.store(0, SeqCst);
        let (from, filled, bytes, alignment) = variables();
        let to = self.address() - bytes.next_multiple_of(alignment.max(1));
        // SAFETY: memory below the block that its thread alone reads, which has not begun.
        unsafe {
            core::ptr::write_bytes(to as *mut u8, 0, bytes as usize);
            core::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, filled as usize);
        }
    }

    /// The calling thread's, while the loader runs.
    pub fn mine() -> &'static Block {
        let at: u64;
        // SAFETY: the base of fs is a block's then, whose first word is its address.
        unsafe {
            core::arch::asm!("mov {}, fs:[0]", out(reg) at, options(nostack, readonly, preserves_flags));
            &*(at as *const Block)
        }
    }

    /// The thread has this data stack of the agent's.
    pub fn sit(&self, place: usize) {
        self.place.store(place as u32 + 1, SeqCst);
    }

    /// Which one it has.
    pub fn place(&self) -> usize {
        self.place.load(SeqCst).wrapping_sub(1) as usize
    }

    /// Whether it has one.
    pub fn sits(&self) -> bool {
        self.place.load(SeqCst) != 0
    }

    /// It has none.
    pub fn stands(&self) {
        self.place.store(0, SeqCst);
    }

    /// Where it is.
    pub fn address(&self) -> u64 {
        core::ptr::from_ref(self) as u64
    }

    /// The top of its stack.
    pub fn stack(&self) -> u64 {
        self.stack
    }

    /// The lowest address of its stack.
    pub fn stack_low(&self) -> u64 {
        self.address() + 4096 - WHOLE + 4096
    }

    /// What the kernel reads at each call.
    pub fn selector(&self) -> u64 {
        self.address() + SELECTOR as u64
    }

    /// Its thread is the calling one.
    pub fn is_mine(&self) {
        self.thread.store(system::thread(), SeqCst);
    }

    /// The thread's number.
    pub fn thread(&self) -> u32 {
        self.thread.load(SeqCst)
    }

    /// No thread came of it.
    pub fn give_back(&self) {
        self.thread.store(u32::MAX - 1, SeqCst);
    }
}

/// No number of a thread: it is about to begin.
const STARTING: u32 = u32::MAX;

/// Whether the process still has a thread of this number.
fn is_alive(thread: u32) -> bool {
    const NO_SUCH: i64 = -3;
    // SAFETY: no signal is sent.
    unsafe { system::signal(thread, 0) != NO_SUCH }
}
