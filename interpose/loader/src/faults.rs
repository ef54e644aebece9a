//! Faults: an agent's end its call; the program's are its own.
//!
//! The kernel has one handler for both. The bases of fs and gs say whose turn it was: a program has
//! its own base of fs, and its thread's block as that of gs.

use crate::stubs::{self, Kind};
use crate::system::{self, number};
use crate::trap::{self, Context};
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};
use postern_gates::fault::{self, Exception, Registers};

/// The signals: SIGILL, SIGTRAP, SIGBUS, SIGFPE and SIGSEGV.
pub const ALL: [u64; 5] = [4, 5, 7, 8, 11];
/// Their bits in masks.
pub const BITS: u64 = 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 10;

/// Where the agent's window is.
#[unsafe(no_mangle)]
static INTERPOSE_WINDOW: AtomicU64 = AtomicU64::new(u64::MAX);

/// The agent's window is there.
pub fn window_is(base: u64) {
    INTERPOSE_WINDOW.store(base, SeqCst);
}

const SIGNAL_INFO: u64 = 4;
const RESTORER: u64 = 0x0400_0000;
const ON_STACK: u64 = 0x0800_0000;
const AGAIN: u64 = 0x4000_0000;

/// What the kernel is to be told instead of an action of the program's, whose handler may be 0 or 1
/// (the default, ignored).
pub fn instead(action: [u64; 4]) -> Option<[u64; 4]> {
    let stub = stubs::stub(action[0], Kind::Fault)?;
    Some(match action[0] {
        0 | 1 => [
            stub,
            RESTORER | SIGNAL_INFO | ON_STACK | AGAIN,
            trap::restore(),
            0,
        ],
        _ => [stub, action[1] | RESTORER, trap::restore(), action[3]],
    })
}

/// Before the agent's first call. What was ignored stays so.
pub fn begin() -> bool {
    ALL.iter().all(|&signal| {
        let mut former = [0u64; 4];
        // SAFETY: the kernel reads and writes these.
        unsafe {
            let at = &raw mut former as u64;
            system::call(number::RT_SIGACTION, [signal, 0, at, 8, 0, 0]);
            instead(former).is_some_and(|action| {
                let at = &raw const action as u64;
                system::call(number::RT_SIGACTION, [signal, at, 0, 8, 0, 0]) == 0
            })
        }
    })
}

/// The program has no handler: 0 is the default, 1 that it is ignored.
pub extern "C" fn without(signal: u64, info: *const [i32; 4], handler: u64) {
    // SAFETY: the kernel's, until the handler returns.
    let sent = unsafe { (*info)[2] <= 0 };
    if sent && handler == 1 {
        return;
    }
    let default = [0u64; 4];
    // SAFETY: the process ends here, or where it goes on, by the same fault.
    unsafe {
        let at = &raw const default as u64;
        system::call(number::RT_SIGACTION, [signal, at, 0, 8, 0, 0]);
        if sent {
            system::signal(system::thread(), signal);
        }
    }
}

/// The loader's turn, or the agent's.
pub fn own(signal: u64, context: &mut Context) {
    let r = &mut context.registers;
    let mut registers = Registers {
        words: [
            r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.r8, r.r9, r.r10, r.r11, r.r12,
            r.r13, r.r14, r.r15, r.rip, r.rsp,
        ],
        flags: r.flags,
    };
    let exception = Exception {
        vector: r.vector,
        code: r.error,
        address: r.address,
    };
    if fault::ends_copy(&mut registers)
        || fault::excepted(exception, &mut registers, |_, _, _| false)
    {
        r.rip = registers.words[15];
        r.rsp = registers.words[16];
        r.flags = registers.flags;
        return;
    }
    let number = [b'0' + (signal / 10) as u8, b'0' + (signal % 10) as u8];
    system::give_up(125, &[b"the loader failed, by signal ", &number]);
}
