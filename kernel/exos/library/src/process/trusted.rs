//! Registers, pages of the registry, functions of C.

use core::arch::{asm, global_asm};
use core::ffi::c_int;
use core::mem::{offset_of, transmute};
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::address::GUARANTEED;
use postern_aegis::context::context;
use postern_aegis::entry::{Frame, Interrupted};
use postern_exos_abi::address::{MAILBOX, START, TABLE};
use postern_exos_abi::mailbox::Mailbox;
use postern_exos_abi::start::Head;
use postern_exos_abi::table::Table;

use crate::process::{fork, signals};

global_asm!(include_str!("process.s"), options(att_syntax));

unsafe extern "C" {
    fn exos_go_on() -> !;
    fn exos_signalled();
    fn _start();
    safe fn __errno() -> *mut c_int;
    static mut exos_interrupted: Interrupted;
    static fork_pointer: u64;
}

/// Where the process's number stands on its start page; its parent's follows.
pub const PID: usize = offset_of!(Head, pid);

/// What it was started with.
pub fn head() -> &'static Head {
    // SAFETY: its maker has bound the page there, for as long as it lives, and nobody changes it.
    unsafe { &*(START as *const Head) }
}

/// The page that is shared with the registry.
pub fn mailbox() -> &'static Mailbox {
    // SAFETY: the registry has bound the page there, for as long as the process lives; its words are
    // atomics.
    unsafe { &*(MAILBOX as *const Mailbox) }
}

/// The table of processes.
pub fn table() -> &'static Table {
    // SAFETY: as above.
    unsafe { &*(TABLE as *const Table) }
}

/// The stack pointer with which `fork` goes on.
pub fn stack_pointer() -> u64 {
    // SAFETY: a word that `fork` has stored.
    unsafe { fork_pointer }
}

/// Where programs begin.
pub fn first_instruction() -> u64 {
    _start as *const () as u64
}

/// Has the base of fs be this, in this slice and in those to come.
pub fn set_fs(base: u64) {
    context().fs.store(base, Relaxed);
    // SAFETY: what the base was where this memory is a copy of; Aegis lets programs set it.
    unsafe { asm!("wrfsbase {}", in(reg) base, options(nostack, preserves_flags)) };
}

/// Goes on where `fork` was called.
pub fn go_on() -> ! {
    // SAFETY: the registers were saved before this memory was copied, and the frames above the one
    // that called `fork` are as they were.
    unsafe { exos_go_on() }
}

/// fork, behind the assembly that saves registers.
#[unsafe(no_mangle)]
extern "C" fn exos_fork() -> c_int {
    match fork::copy() {
        Ok(pid) => pid as c_int,
        Err(error) => {
            set_errno(error.0);
            -1
        }
    }
}

/// Whether registers are the program's own: not of entries, and with a stack that is none of theirs.
pub fn in_program(rip: u64, rsp: u64) -> bool {
    rip < GUARANTEED && rsp < GUARANTEED
}

/// The program goes on with its signals.
pub fn interrupt(interrupted: &mut Interrupted) {
    let to = &raw mut exos_interrupted;
    // SAFETY: nobody else uses the place before the program has taken its registers from there
    // (`UNDER_WAY`); both are what the type says.
    unsafe { ptr::copy_nonoverlapping(interrupted, to, 1) };
    interrupted.rip = exos_signalled as *const () as u64;
}

/// The same behind an exception.
pub fn interrupt_exception(frame: &mut Frame) {
    let to = (&raw mut exos_interrupted).cast::<u8>();
    let from = ptr::from_mut(frame).cast::<u8>();
    // SAFETY: as above; a frame begins with the same registers.
    unsafe { ptr::copy_nonoverlapping(from, to, size_of::<Interrupted>()) };
    frame.rip = exos_signalled as *const () as u64;
    // The direction flag and traps are the interrupted program's affair.
    frame.rflags = 0x202;
}

/// The registers are on the stack.
#[unsafe(no_mangle)]
extern "C" fn exos_arrived() {
    signals::arrived();
}

/// As newlib's `siginfo_t` begins; behind that the address of a fault.
#[repr(C)]
struct Information {
    number: c_int,
    code: c_int,
    value: u64,
    address: u64,
    sender: c_int,
}

/// Calls a handler of C.
pub fn call(handler: usize, number: u32, told: bool, address: u64, sender: i32) {
    let information = Information {
        number: number as c_int,
        code: 1,
        value: address,
        address,
        sender,
    };
    // SAFETY: what the program gave as a handler of this kind; it is the program's own fault if it is none.
    unsafe {
        if told {
            let handler =
                transmute::<usize, extern "C" fn(c_int, *const Information, *const u8)>(handler);
            handler(number as c_int, &raw const information, ptr::null());
        } else {
            transmute::<usize, extern "C" fn(c_int)>(handler)(number as c_int);
        }
    }
}

/// The function of a word that `before_ends` stored.
pub fn ending(word: usize) -> Option<fn(&mut Interrupted)> {
    // SAFETY: only such functions are stored there, or zero.
    (word != 0).then(|| unsafe { transmute::<usize, fn(&mut Interrupted)>(word) })
}

/// Whether something handles an exception already.
pub fn has_handler(vector: usize) -> bool {
    let at = GUARANTEED + 8 * vector as u64;
    // SAFETY: a word of the page of contexts, which is always there.
    unsafe { (at as *const u64).read_volatile() != 0 }
}

/// C's error number.
pub fn errno() -> i32 {
    // SAFETY: newlib's own variable, of a process with one thread.
    unsafe { *__errno() }
}

/// Sets C's error number.
pub fn set_errno(error: i32) {
    // SAFETY: as above.
    unsafe { *__errno() = error }
}
