//! Memory for what is judged and compiled in the kernel, the only parts that allocate: taken piece
//! by piece while the arena is held, and given back all at once. Pieces have powers of two bytes;
//! one that was given back is used again for its size only. What is compiled runs on a stack of the
//! arena's, which is left for good when the memory runs out: nothing of it is kept.

use core::alloc::{GlobalAlloc, Layout};
use core::arch::global_asm;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::local;

/// Bytes of an image at most.
pub const IMAGE: usize = 64 << 10;
/// Bytes that may be taken: twice what the worst filters need (`filter/tests/bounded.rs`), and more
/// than the judge takes for the greatest image.
const ROOM: usize = 8 << 20;
/// Bytes of the stack, as that test has it, and of the page below, where nothing is mapped.
const STACK: usize = (256 << 10) + 4096;
/// The least piece, to a multiple of which all begin.
const LEAST: usize = 16;

#[repr(C, align(4096))]
struct Memory(UnsafeCell<[u8; IMAGE + ROOM]>);
// SAFETY: the image's part is lent to who holds the arena; of the rest each piece is lent once.
unsafe impl Sync for Memory {}
static MEMORY: Memory = Memory(UnsafeCell::new([0; IMAGE + ROOM]));

#[repr(C, align(4096))]
struct Stack(UnsafeCell<[u8; STACK]>);
// SAFETY: only who holds the arena runs on it.
unsafe impl Sync for Stack {}
static LOWER: Stack = Stack(UnsafeCell::new([0; STACK]));

static HELD: AtomicBool = AtomicBool::new(false);
/// The first byte that is not taken.
static NEXT: AtomicUsize = AtomicUsize::new(IMAGE);
/// By size: the first piece that was given back, which begins with the next one; 0 after the last.
static FREE: [AtomicUsize; usize::BITS as usize] = [const { AtomicUsize::new(0) }; _];
/// Who runs on the arena's stack: a processor's number plus 1.
static RUNS: AtomicU32 = AtomicU32::new(0);
/// Where it goes on when that is left.
static BACK: AtomicU64 = AtomicU64::new(0);

/// The arena, held until dropped. Everything taken from it must be gone by then.
pub struct Held(());

/// Waits for the arena; `poll` is called meanwhile.
pub fn hold(poll: impl Fn()) -> Held {
    loop {
        match try_hold() {
            Some(held) => return held,
            None => poll(),
        }
        core::hint::spin_loop();
    }
}

/// The arena, if nobody holds it.
pub fn try_hold() -> Option<Held> {
    if HELD.swap(true, Ordering::Acquire) {
        return None;
    }
    NEXT.store(IMAGE, Ordering::Relaxed);
    FREE.iter()
        .for_each(|head| head.store(0, Ordering::Relaxed));
    Some(Held(()))
}

/// Whether an address is in the page below the stack.
pub fn is_guard(at: u64) -> bool {
    at & !0xfff == LOWER.0.get() as u64
}

unsafe extern "C" {
    /// Calls `work` with `data` on another stack, and stores at `back` how to leave it early.
    fn arena_run(data: *mut u8, work: extern "C" fn(*mut u8), stack: u64, back: *const AtomicU64);
    /// Leaves it.
    fn arena_leave(back: u64) -> !;
}

global_asm!(
    ".global arena_run",
    "arena_run:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov [rcx], rsp",
    "mov rbx, rsp",
    "mov rsp, rdx",
    "xor ebp, ebp",
    "call rsi",
    "mov rsp, rbx",
    "2:",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    ".global arena_leave",
    "arena_leave:",
    "cld",
    "mov rsp, rdi",
    "jmp 2b",
);

impl Held {
    /// Room for an image of so many bytes; `None` if that is too many.
    pub fn image(&mut self, length: usize) -> Option<&mut [u8]> {
        // SAFETY: the part is this holder's, and `self` is borrowed as long as it is used.
        let image = unsafe { core::slice::from_raw_parts_mut(MEMORY.0.get().cast::<u8>(), IMAGE) };
        image.get_mut(..length)
    }

    /// Does work on the arena's stack. `None` if it has left that early: for want of memory, or by a
    /// panic. It takes no locks then, and changes nothing that others see but as its last steps.
    pub fn run<T: Copy, F: FnOnce() -> T>(&mut self, work: F) -> Option<T> {
        struct Task<F, T> {
            work: Option<F>,
            result: Option<T>,
        }
        extern "C" fn start<T, F: FnOnce() -> T>(task: *mut u8) {
            // SAFETY: `run` hands over its own, and waits.
            let task = unsafe { &mut *task.cast::<Task<F, T>>() };
            if let Some(work) = task.work.take() {
                task.result = Some(work());
            }
        }
        let mut task = MaybeUninit::new(Task {
            work: Some(work),
            result: None,
        });
        let processor = local::this().processor() as u32;
        RUNS.store(processor + 1, Ordering::Relaxed);
        // SAFETY: the stack is this holder's, and its top is a multiple of 16. If it is left early,
        // what stands on it is as if forgotten: memory of the arena, and borrows that are not used
        // again. The processor's flags and segments are as at a return.
        unsafe {
            let top = LOWER.0.get() as u64 + STACK as u64;
            arena_run(task.as_mut_ptr().cast(), start::<T, F>, top, &BACK);
        }
        RUNS.store(0, Ordering::Relaxed);
        // SAFETY: made above; `result` is set at the end or not at all, and `work` was taken out.
        unsafe { task.assume_init_ref().result }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.store(false, Ordering::Release);
    }
}

/// Whether this processor runs on the arena's stack.
pub fn runs_here() -> bool {
    RUNS.load(Ordering::Relaxed) == local::this().processor() as u32 + 1
}

/// Leaves the arena's stack, if this processor runs on it: [`Held::run`] has no result.
pub fn leave() {
    if runs_here() {
        // SAFETY: `run` is waiting on this processor, and stored how to get back to it.
        unsafe { arena_leave(BACK.load(Ordering::Relaxed)) }
    }
}

/// What vectors and trees ask.
struct Arena;

#[global_allocator]
static ARENA: Arena = Arena;

fn size(layout: Layout) -> Option<usize> {
    let bytes = layout.size().max(LEAST).checked_next_power_of_two()?;
    (layout.align() <= LEAST && bytes <= ROOM).then_some(bytes)
}

/// A word of a piece that nobody has.
fn link(at: usize) -> *mut usize {
    // SAFETY: pieces lie within the arena.
    unsafe { MEMORY.0.get().cast::<u8>().add(at).cast() }
}

/// Where a piece begins; `None` if there is no room.
fn take(bytes: usize) -> Option<usize> {
    let head = &FREE[bytes.ilog2() as usize];
    let first = head.load(Ordering::Relaxed);
    if first != 0 {
        // SAFETY: it was given back, so its first word is the next one's place, stored there then.
        head.store(unsafe { link(first).read() }, Ordering::Relaxed);
        return Some(first);
    }
    let from = NEXT.load(Ordering::Relaxed);
    let end = from.checked_add(bytes).filter(|end| *end <= IMAGE + ROOM)?;
    NEXT.store(end, Ordering::Relaxed);
    Some(from)
}

// SAFETY: a piece lies within the arena, and is nobody else's: behind all that were given since the
// arena was held, or given back since. One processor holds the arena at a time, and what it took is
// gone when it lets go. All pieces begin at a multiple of `LEAST`, and the arena at one of a page.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match size(layout).and_then(take) {
            Some(at) => link(at).cast(),
            None => {
                leave();
                core::ptr::null_mut()
            }
        }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        let at = piece as usize - MEMORY.0.get() as usize;
        if let Some(bytes) = size(layout) {
            let head = &FREE[bytes.ilog2() as usize];
            // SAFETY: the piece is nobody's now, and has room for a word.
            unsafe { link(at).write(head.load(Ordering::Relaxed)) };
            head.store(at, Ordering::Relaxed);
        }
    }
}
