//! A bare signal: a handler on an alternate stack that edits the interrupted context and returns,
//! as a fault's must.

use std::arch::asm;
use std::ffi::c_void;
use std::ptr;

/// The instruction after which the handler goes on is this many bytes behind the faulting one: `mov
/// eax, [0]` in 64-bit form.
const LOAD_BYTES: i64 = 7;

extern "C" fn skip(_signal: i32, _info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes the context of the interrupted code, which is `load_null` and
    // nothing else: the handler is installed only while that runs.
    unsafe {
        let context = context.cast::<libc::ucontext_t>();
        (*context).uc_mcontext.gregs[libc::REG_RIP as usize] += LOAD_BYTES;
    }
}

/// Our SIGSEGV handler in place of whatever was there; restored when dropped.
pub struct BareHandler {
    old: libc::sigaction,
    old_stack: libc::stack_t,
    _stack: Vec<u8>,
}

impl BareHandler {
    /// Installs the handler and an alternate signal stack.
    pub fn install() -> BareHandler {
        let mut stack = vec![0u8; 64 << 10];
        // SAFETY: plain data is zeroed; the stack lives as long as the handler, and the old state
        // comes back before it goes.
        unsafe {
            let mut old_stack: libc::stack_t = std::mem::zeroed();
            let new_stack = libc::stack_t {
                ss_sp: stack.as_mut_ptr().cast(),
                ss_flags: 0,
                ss_size: stack.len(),
            };
            libc::sigaltstack(&new_stack, &mut old_stack);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction =
                skip as extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void) as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGSEGV, &action, &mut old);
            BareHandler {
                old,
                old_stack,
                _stack: stack,
            }
        }
    }

    /// Loads from address 0, which the handler skips.
    pub fn fault(&self) {
        // SAFETY: page 0 is never mapped; the handler, installed while self lives, continues behind
        // the seven bytes.
        unsafe {
            asm!(
                ".byte 0x8b, 0x04, 0x25, 0, 0, 0, 0",
                out("eax") _,
                options(nostack, readonly),
            );
        }
    }
}

impl Drop for BareHandler {
    fn drop(&mut self) {
        // SAFETY: puts back what was there before.
        unsafe {
            libc::sigaction(libc::SIGSEGV, &self.old, ptr::null_mut());
            libc::sigaltstack(&self.old_stack, ptr::null_mut());
        }
    }
}
