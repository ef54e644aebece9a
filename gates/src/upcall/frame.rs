//! What is kept of the thread that an upcall interrupts besides its words: the kernel's frame,
//! which `rt_sigreturn` reads again, errno, and the gs base; and the memory for it, with the stacks
//! that the upcall needs.

use crate::map::{self, Mapping};
use crate::mask::{self, FAULTS};
use crate::outcome::Refusal;
use crate::signal::{self, frame};
use libc::{c_int, ucontext_t};
use std::arch::asm;

/// Bytes of the control stack, for the handler's return addresses and for services.
const STACK: usize = 256 << 10;
/// Of these, what services leave to the gates' own code.
const MARGIN: u64 = 16 << 10;
/// What a handler needs of a signal stack besides the system's frame.
const HANDLER: usize = 12 << 10;
const PAGE: usize = 4096;

/// Memory, with pages without access between.
struct Places {
    /// Another signal stack: lowest address and bytes.
    signal_stack: (usize, usize),
    /// The control stack.
    control_stack: (usize, usize),
    /// Copies of frames.
    frame: (usize, usize),
    _memory: Mapping,
}

impl Places {
    fn new() -> Result<Places, Refusal> {
        let refused = |_| Refusal::NoMemory;
        let pages = |bytes: usize| bytes.next_multiple_of(PAGE);
        let frame = frame_bytes();
        let (signal_stack, save) = (pages(needed().max(64 << 10)), pages(frame + 2 * PAGE));
        let all = 4 * PAGE + signal_stack + STACK + save;
        map::room(7).map_err(refused)?;
        let memory = Mapping::reserve(all).map_err(refused)?;
        let mut at = 0;
        let mut place = |bytes: usize| -> Result<(usize, usize), Refusal> {
            let start = at + PAGE;
            at = start + bytes;
            memory.open(start..at).map_err(refused)?;
            Ok((memory.address() + start, bytes))
        };
        Ok(Places {
            signal_stack: place(signal_stack)?,
            control_stack: place(STACK)?,
            frame: place(save)?,
            _memory: memory,
        })
    }

    /// Where the copy of the kernel's context is; the vector state is at the beginning.
    fn context(&self) -> usize {
        self.frame.0 + self.frame.1 - frame::CONTEXT.next_multiple_of(frame::ALIGNMENT)
    }

    /// Room for the vector state.
    fn room(&self) -> usize {
        self.context() - self.frame.0
    }
}

/// Of one thread, which alone uses it.
pub(super) struct Frame {
    places: Places,
    errno: c_int,
    gs: u64,
    /// The signal stack is of no use during the upcall: this is the mask for it, which waits for
    /// another stack.
    mask: Option<u64>,
    /// The interrupted thread has no free signal stack.
    moves: bool,
}

impl Frame {
    /// Room for one.
    ///
    /// # Errors
    /// [`Refusal::NoMemory`]
    pub(super) fn new() -> Result<Frame, Refusal> {
        Ok(Frame {
            places: Places::new()?,
            errno: 0,
            gs: 0,
            mask: None,
            moves: false,
        })
    }

    /// The top of the upcalls' control stack.
    pub(super) fn top(&self) -> u64 {
        let (low, bytes) = self.places.control_stack;
        (low + bytes) as u64
    }

    /// The lowest address of it that services may use.
    pub(super) fn low(&self) -> u64 {
        self.places.control_stack.0 as u64 + MARGIN
    }

    /// Copies what `rt_sigreturn` reads. False if there is no room, which the kernel's own measure
    /// excludes.
    ///
    /// # Safety
    /// The address is that of the kernel's context.
    pub(super) unsafe fn keep(&mut self, context: *const u8) -> bool {
        let (to, room) = (self.places.context() as *mut u8, self.places.room());
        let vectors = self.places.frame.0 as *mut u8;
        // SAFETY: the caller's promise; the copy is this state's own memory, with `room` for it.
        unsafe {
            if frame::vectors(context).1 > room {
                return false;
            }
            frame::copy(context, to, vectors);
        }
        true
    }

    /// Notes what is not in the frame, and what kind of stack and mask the upcall needs.
    pub(super) fn keep_rest(&mut self, context: &ucontext_t) {
        const AUTODISARM: u32 = 1 << 31;
        let stack = &context.uc_stack;
        let rsp = context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize;
        let low = stack.ss_sp as usize;
        let flags = stack.ss_flags as u32;
        let moves = flags & (libc::SS_DISABLE as u32 | AUTODISARM) != 0
            || (low..=low + stack.ss_size).contains(&rsp);
        // SAFETY: the kernel's mask is the first word of libc's.
        let before = unsafe { (&raw const context.uc_sigmask).cast::<u64>().read() };
        let mut gs;
        // SAFETY: reads the gs base; the processor has the instruction (`machine::unsupported`).
        unsafe { asm!("rdgsbase {}", out(reg) gs, options(nomem, nostack, preserves_flags)) };
        let mut mask = None;
        if moves || before & taken() != 0 {
            mask = Some(!taken());
            // Not even the abort signal comes between this stack and the next one.
            mask::change(libc::SIG_SETMASK, u64::MAX);
        }
        // SAFETY: errno's location is thread-local and always valid.
        self.errno = unsafe { *libc::__errno_location() };
        (self.gs, self.mask, self.moves) = (gs, mask, moves);
    }

    /// On the upcalls' control stack: from here on the signals come that an upcall takes.
    pub(super) fn take_signals(&self) {
        let Some(mask) = self.mask else {
            return;
        };
        if self.moves {
            let (start, bytes) = self.places.signal_stack;
            let stack = libc::stack_t {
                ss_sp: start as *mut _,
                ss_flags: 0,
                ss_size: bytes,
            };
            // SAFETY: the range is this state's own. `rt_sigreturn` brings back the one before.
            unsafe { libc::sigaltstack(&stack, std::ptr::null_mut()) };
        }
        mask::change(libc::SIG_SETMASK, mask);
    }

    /// To the instruction that was interrupted.
    pub(super) fn go_back(&self) -> ! {
        // SAFETY: `keep` has made the copy of this thread's context; nothing of the upcalls' own
        // stack is needed any more.
        unsafe { frame::go_on(self.places.context() as *const u8, self.gs, self.errno) }
    }
}

/// Most bytes that the kernel puts on a signal stack.
pub(crate) fn frame_bytes() -> usize {
    // SAFETY: getauxval has no preconditions; a missing entry reads 0.
    (unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize).max(PAGE)
}

/// Bytes of a signal stack on which an upcall's signal may come on top of a handler's frame.
pub(super) fn needed() -> usize {
    2 * (frame_bytes() + HANDLER)
}

/// A mask of signals as the kernel has it.
pub(super) fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

/// The signals that an upcall takes.
fn taken() -> u64 {
    FAULTS.into_iter().map(bit).sum::<u64>() | bit(signal::abort_signal())
}
