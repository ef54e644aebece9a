//! Which signals the calling thread takes, and the stack on which it handles them.

use super::map::{self, Mapping};
use super::outcome::Refusal;
use std::marker::PhantomData;

/// Signals that mean a fault when the processor raises them.
pub(super) const FAULTS: [libc::c_int; 5] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
];

/// Size of the alternate signal stack that a thread gets when it has none that is large enough.
const SIGNAL_STACK: usize = 64 << 10;
/// The same where handlers of the host's that expect the thread's own stack run there (the argument
/// `adopt` of [`super::signal::start`]).
const ROOMY: usize = 256 << 10;
/// What our own handler needs besides the system's frame.
const HANDLER: usize = 12 << 10;

fn present() -> libc::stack_t {
    // SAFETY: querying fills the structure.
    unsafe {
        let mut now: libc::stack_t = std::mem::zeroed();
        libc::sigaltstack(std::ptr::null(), &mut now);
        now
    }
}

/// An alternate signal stack that we installed, above a page without access, and what was there
/// before.
pub(crate) struct SignalStack {
    memory: Mapping,
    former: libc::stack_t,
}

impl SignalStack {
    /// Makes sure that the calling thread can handle a signal when its control stack is exhausted:
    /// gives it a stack if it has none that is large enough.
    pub(crate) fn ensure(roomy: bool) -> Result<Option<SignalStack>, Refusal> {
        // SAFETY: getauxval has no preconditions; a missing entry reads 0.
        let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
        let (size, least) = match roomy {
            true => (ROOMY + frame, SIGNAL_STACK + frame),
            false => (SIGNAL_STACK.max(frame + HANDLER), frame + HANDLER),
        };
        let former = present();
        if former.ss_flags & libc::SS_DISABLE == 0 && former.ss_size >= least {
            return Ok(None);
        }
        let size = size.next_multiple_of(4096);
        map::room(2).map_err(|_| Refusal::NoMemory)?;
        let memory = Mapping::reserve(4096 + size).map_err(|_| Refusal::NoMemory)?;
        let opened = memory.open(4096..4096 + size);
        opened.map_err(|_| Refusal::NoMemory)?;
        let stack = SignalStack { memory, former };
        if !stack.install() {
            // We run on the old one now.
            return Err(Refusal::OnSignalStack);
        }
        Ok(Some(stack))
    }

    fn start(&self) -> usize {
        self.memory.address() + 4096
    }

    fn installed(&self) -> bool {
        present().ss_sp as usize == self.start()
    }

    fn install(&self) -> bool {
        let new = libc::stack_t {
            ss_sp: self.start() as *mut _,
            ss_flags: 0,
            ss_size: self.memory.bytes() - 4096,
        };
        // SAFETY: the range is mapped, ours, and stays so until `remove` puts the former stack
        // back.
        unsafe { libc::sigaltstack(&new, std::ptr::null_mut()) == 0 }
    }

    /// Puts it in force again if somebody took it away and left none.
    pub(crate) fn again(&self) {
        if present().ss_flags & libc::SS_DISABLE != 0 {
            self.install();
        }
    }

    /// Puts back what was there before, if ours is still in force. (Rust's own threads disable
    /// theirs at their end, and with it ours.) Either way nobody uses our memory from here on. We
    /// are not on it: no handler calls this.
    pub(crate) fn remove(self) {
        if self.installed() {
            // SAFETY: what was in force before.
            unsafe { libc::sigaltstack(&self.former, std::ptr::null_mut()) };
        }
        drop(self.memory);
    }
}

/// Whether the calling thread runs on its alternate signal stack.
pub(crate) fn on_signal_stack() -> bool {
    present().ss_flags & libc::SS_ONSTACK != 0
}

/// Bytes of the calling thread's alternate signal stack; 0: it has none.
pub(crate) fn signal_stack_bytes() -> usize {
    let now = present();
    match now.ss_flags & libc::SS_DISABLE {
        0 => now.ss_size,
        _ => 0,
    }
}

/// Whether the calling thread blocks a signal.
pub(crate) fn is_blocked(signal: libc::c_int) -> bool {
    // SAFETY: querying the mask fills the set.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut set);
        libc::sigismember(&set, signal) == 1
    }
}

/// Blocks all signals in the calling thread.
pub fn block_all_signals() {
    // SAFETY: fills a set and installs it as the calling thread's mask.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut set);
        libc::pthread_sigmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
    }
}

/// Changes the calling thread's mask, as the kernel has it; in signal handlers, too. The mask
/// before.
pub(crate) fn change(how: libc::c_int, mask: u64) -> u64 {
    let mut before = 0u64;
    // SAFETY: the kernel reads eight bytes and writes eight.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            how,
            &raw const mask,
            &raw mut before,
            8usize,
        )
    };
    before
}

/// Blocks all signals but these in the calling thread.
pub(crate) fn block_all_but(taken: impl Iterator<Item = libc::c_int>) {
    // SAFETY: fills a set and installs it as the calling thread's mask.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut set);
        for signal in taken {
            libc::sigdelset(&mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
    }
}

/// All signals but faults are blocked in the thread that made it, until it is dropped there: the
/// marker keeps it from others.
pub struct SignalsBlocked(libc::sigset_t, PhantomData<*const ()>);

impl SignalsBlocked {
    /// Blocks them.
    #[expect(clippy::new_without_default, reason = "it does something")]
    pub fn new() -> SignalsBlocked {
        // SAFETY: fills a set and installs it as the calling thread's mask; the call writes the
        // former mask.
        unsafe {
            let (mut all, mut old): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
            libc::sigfillset(&mut all);
            // A debugger's breakpoint, say, while SIGTRAP is blocked would make the kernel drop the
            // handler.
            for fault in FAULTS {
                libc::sigdelset(&mut all, fault);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
            SignalsBlocked(old, PhantomData)
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: installs a mask that was in force before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}
