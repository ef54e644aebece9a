//! Registers, pages of the registry, functions of C.

use core::arch::{asm, global_asm};
use core::ffi::c_int;
use core::mem::{offset_of, transmute};
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::address::GUARANTEED;
use postern_aegis::context::context;
use postern_aegis::entry::{Frame, Interrupted};
use postern_exos_abi::address::{MAILBOX, SERVICES, START, TABLE};
use postern_exos_abi::mailbox::Mailbox;
use postern_exos_abi::service::Services;
use postern_exos_abi::start::Head;
use postern_exos_abi::table::Table;

use crate::process::cause::Cause;
use crate::process::{fork, signals, stack};

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

/// The page of services.
pub fn services() -> &'static Services {
    // SAFETY: as above.
    unsafe { &*(SERVICES as *const Services) }
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

/// The program goes on with its signals, on another stack if one is given by its end.
pub fn interrupt(interrupted: &mut Interrupted, other: Option<u64>) {
    let to = &raw mut exos_interrupted;
    // SAFETY: nobody else uses the place before the program has taken its registers from there
    // (`UNDER_WAY`); both are what the type says.
    unsafe { ptr::copy_nonoverlapping(interrupted, to, 1) };
    interrupted.rip = exos_signalled as *const () as u64;
    interrupted.rsp = other.unwrap_or(interrupted.rsp);
}

/// The same behind an exception.
pub fn interrupt_exception(frame: &mut Frame, other: Option<u64>) {
    let to = (&raw mut exos_interrupted).cast::<u8>();
    let from = ptr::from_mut(frame).cast::<u8>();
    // SAFETY: as above; a frame begins with the same registers.
    unsafe { ptr::copy_nonoverlapping(from, to, size_of::<Interrupted>()) };
    frame.rip = exos_signalled as *const () as u64;
    frame.rsp = other.unwrap_or(frame.rsp);
    // The direction flag and traps are the interrupted program's affair.
    frame.rflags = 0x202;
}

/// The registers are on the stack.
#[unsafe(no_mangle)]
extern "C" fn exos_arrived(interrupted: &mut Interrupted) {
    signals::arrived(interrupted);
}

/// `siginfo_t` of `<sys/signal.h>`.
#[repr(C)]
struct Information {
    number: c_int,
    code: c_int,
    errno: c_int,
    pid: c_int,
    user: c_int,
    status: c_int,
    address: u64,
    value: u64,
    band: i64,
}

/// `ucontext_t` of `<ucontext.h>`.
#[repr(C)]
struct Context {
    link: u64,
    mask: u64,
    stack: Stack,
    registers: [u64; REGISTERS],
}

/// `stack_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Stack {
    /// Where it begins.
    pub base: u64,
    /// `SS_ONSTACK`, `SS_DISABLE`.
    pub flags: c_int,
    /// Its bytes.
    pub size: u64,
}

const REGISTERS: usize = size_of::<Interrupted>() / 8;

unsafe extern "C" {
    /// Calls a handler with three words, on the stack that ends there, or on this one.
    fn exos_handle(
        handler: usize,
        number: c_int,
        told: *const Information,
        at: *mut Context,
        end: u64,
    );
}

/// Calls a handler of C, and has the registers of what was interrupted be what it leaves of them; the
/// mask of signals for afterwards.
pub fn call(
    handler: usize,
    number: u32,
    cause: &Cause,
    mask: u64,
    interrupted: Option<&mut Interrupted>,
    other: Option<u64>,
) -> u64 {
    let information = Information {
        number: number as c_int,
        code: cause.code,
        errno: 0,
        pid: cause.pid as c_int,
        user: 0,
        status: cause.status as c_int,
        address: cause.address,
        value: 0,
        band: 0,
    };
    let [base, size] = stack::now().unwrap_or_default();
    let mut context = Context {
        link: 0,
        mask,
        stack: Stack {
            base,
            flags: 0,
            size,
        },
        registers: [0; REGISTERS],
    };
    let to = &raw mut context.registers;
    let registers = interrupted.map_or(ptr::null_mut(), ptr::from_mut);
    // SAFETY: a handler is what the program gave as one, which harms itself if it is none. Registers
    // are words, so many of them.
    unsafe {
        if !registers.is_null() {
            to.cast::<Interrupted>()
                .copy_from_nonoverlapping(registers, 1);
        }
        let (told, end) = (&raw const information, other.unwrap_or(0));
        exos_handle(handler, number as c_int, told, &raw mut context, end);
        if !registers.is_null() {
            registers.copy_from_nonoverlapping(to.cast(), 1);
        }
        (&raw const context.mask).read_volatile()
    }
}

/// About where the caller's stack is.
pub fn stack_here() -> u64 {
    let at: u64;
    // SAFETY: it reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) at, options(nomem, nostack, preserves_flags)) };
    at
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
