//! Calls of the program's: the kernel stops each, and sends a signal instead. Its handler is here.

use crate::agent::places;
use crate::signals;
use crate::stubs::{OWN, OWN_BYTES};
use crate::system::{self, number};
use crate::thread::{BEGIN, Block, NINTH, PROGRAM_FS, SELECTOR, STACK_TOP};
use crate::{after, calls, deferred, fast, faults, near, sites};
use core::arch::{asm, global_asm};
use core::sync::atomic::Ordering::SeqCst;

/// What was interrupted, as the kernel puts it on the stack (`struct ucontext`).
#[repr(C)]
pub struct Context {
    flags: u64,
    link: u64,
    stack: [u64; 3],
    pub registers: Registers,
    /// Signals that are blocked when the program goes on.
    pub mask: u64,
}

/// The registers (`struct sigcontext_64`).
#[allow(missing_docs, reason = "the processor's names")]
#[repr(C)]
pub struct Registers {
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
    pub rdi: u64,
    pub rsi: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub rdx: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rsp: u64,
    pub rip: u64,
    pub flags: u64,
    segments: u64,
    /// What a fault was: the processor's error code, the exception, and the address.
    pub error: u64,
    pub vector: u64,
    old_mask: u64,
    pub address: u64,
    rest: [u64; 9],
}

/// Why the signal came (`struct siginfo` of SIGSYS).
#[repr(C)]
pub struct Info {
    signal: i32,
    error: i32,
    code: i32,
    pad: i32,
    address: u64,
    call: i32,
    machine: u32,
}

/// The signal that comes instead of a call.
pub const SIGSYS: u64 = 31;
/// Its bit in masks.
pub const SIGSYS_BIT: u64 = 1 << (SIGSYS - 1);

global_asm!(
    // The handler: rdi = signal, rsi = info, rdx = context. Of registers nothing is to be kept.
    ".globl interpose_trap",
    "interpose_trap:",
    "rdgsbase rax",
    "rdfsbase rcx",
    "mov [rax + {FS}], rcx",
    "wrfsbase rax",
    "mov rbx, rsp",
    "mov rsp, [rax + {STACK}]",
    "mov rdi, rdx",
    "xor ebp, ebp",
    "mov r12, rsi",
    "mov r13, rdx",
    "call {trapped}",
    "mov r14, rax",
    // An agent leaves the base of its window.
    "mov rax, fs:[0]",
    "wrgsbase rax",
    "mov rcx, [rax + {FS}]",
    "wrfsbase rcx",
    // A handler of the program's for this signal is called as if by the kernel.
    "test r14, r14",
    "je 3f",
    "mov edi, {SIGSYS}",
    "mov rsi, r12",
    "mov rdx, r13",
    "xor eax, eax",
    "mov rsp, rbx",
    "jmp r14",
    "3:",
    "lea rsp, [rbx + 8]",
    // What handlers of the program's return to.
    ".globl interpose_restore",
    "interpose_restore:",
    "mov eax, 15",
    "syscall",
    // A thread begins here, with the block in r9. The one that made it goes back.
    ".globl interpose_thread",
    "interpose_thread:",
    "syscall",
    ".globl interpose_thread_made",
    "interpose_thread_made:",
    "test rax, rax",
    "je 1f",
    "pop r9",
    "pop r11",
    "lea rsp, [rsp + 128]",
    "jmp r11",
    "1:",
    "wrgsbase r9",
    "mov eax, {GETTID}",
    "syscall",
    "mov gs:[{THREAD}], eax",
    "mov r11, gs:[{BEGIN}]",
    "mov r9, gs:[{NINTH}]",
    // It goes on at r11 when its calls are blocked. So does a process whose maker waits.
    ".globl interpose_guest",
    "interpose_guest:",
    "lea rsp, [rsp - 128]",
    "push r11",
    "push rdi",
    "push rsi",
    "push rdx",
    "push r10",
    "push r8",
    "mov edi, {DISPATCH}",
    "mov esi, 1",
    "mov rdx, {OWN}",
    "mov r10d, {OWN_BYTES}",
    "rdgsbase r8",
    "lea r8, [r8 + {SELECTOR}]",
    "mov eax, 157",
    "syscall",
    "pop r8",
    "pop r10",
    "pop rdx",
    "pop rsi",
    "pop rdi",
    "pop r11",
    "lea rsp, [rsp + 128]",
    "xor eax, eax",
    "jmp r11",
    // A call with other words than it had, which are on the stack, with the way back.
    ".globl interpose_altered",
    "interpose_altered:",
    "syscall",
    ".globl interpose_altered_made",
    "interpose_altered_made:",
    "pop rdi",
    "pop rsi",
    "pop rdx",
    "pop r10",
    "pop r8",
    "pop r9",
    "pop r11",
    "lea rsp, [rsp + 128]",
    "jmp r11",
    // A process is made, for the loader: rdi = number, rsi = two arguments. The child's result in
    // rdx is the base of fs that it was given.
    ".globl interpose_fork",
    "interpose_fork:",
    "push rbx",
    "push rbp",
    "mov rbx, fs:[0]",
    "mov rax, rdi",
    "mov rdi, [rsi]",
    "mov rdx, [rsi + 16]",
    "mov r10, [rsi + 24]",
    "mov r8, [rsi + 32]",
    "mov rsi, [rsi + 8]",
    "syscall",
    ".globl interpose_fork_made",
    "interpose_fork_made:",
    "rdfsbase rdx",
    "wrfsbase rbx",
    "pop rbp",
    "pop rbx",
    "ret",
    SIGSYS = const SIGSYS,
    FS = const PROGRAM_FS,
    STACK = const STACK_TOP,
    BEGIN = const BEGIN,
    NINTH = const NINTH,
    SELECTOR = const SELECTOR,
    GETTID = const number::GETTID,
    THREAD = const crate::thread::THREAD,
    DISPATCH = const DISPATCH,
    OWN = const OWN,
    OWN_BYTES = const OWN_BYTES,
    trapped = sym trapped,
);

unsafe extern "C" {
    fn interpose_trap();
    fn interpose_restore();
    fn interpose_thread();
    fn interpose_guest();
    fn interpose_altered();
    fn interpose_fork();
    fn interpose_thread_made();
    fn interpose_altered_made();
    fn interpose_fork_made();
}

/// `PR_SET_SYSCALL_USER_DISPATCH`.
pub const DISPATCH: u64 = 59;

/// Where handlers return to.
pub fn restore() -> u64 {
    interpose_restore as *const () as u64
}

/// Where a thread is made.
pub fn thread() -> u64 {
    interpose_thread as *const () as u64
}

/// Where a process begins whose maker waits for it.
pub fn guest() -> u64 {
    interpose_guest as *const () as u64
}

/// Where calls are made that have other words than they had.
pub fn altered() -> u64 {
    interpose_altered as *const () as u64
}

/// Behind which instructions of the loader's text it makes calls of the program's.
pub fn places() -> [u64; 3] {
    [
        interpose_thread_made as *const () as u64,
        interpose_altered_made as *const () as u64,
        interpose_fork_made as *const () as u64,
    ]
}

/// Makes a process that has a copy of this one's memory, by this call. The result, and the base of
/// fs that a child was given.
///
/// # Safety
/// The child has no other stack.
pub unsafe fn fork(number: u64, arguments: [u64; 6]) -> (i64, u64) {
    let (result, base): (i64, u64);
    // SAFETY: the caller's promise; the function keeps what C's convention has it keep.
    unsafe {
        asm!(
            "call {fork}",
            fork = sym interpose_fork,
            in("rdi") number,
            in("rsi") arguments.as_ptr(),
            lateout("rax") result,
            lateout("rdx") base,
            clobber_abi("C"),
        );
    }
    (result, base)
}

/// The calling thread has this block: the loader's own variables, and the program's.
pub fn sit(block: &Block) {
    // SAFETY: the block stays for good.
    unsafe {
        asm!(
            "wrfsbase {0}", "wrgsbase {0}", in(reg) block.address(),
            options(nomem, nostack, preserves_flags)
        );
    }
}

/// The program begins with no base of fs.
pub fn rise(block: &Block) {
    // SAFETY: nothing of the loader's follows.
    unsafe {
        asm!(
            "wrgsbase {0}", "wrfsbase {1}", in(reg) block.address(), in(reg) 0u64,
            options(nomem, nostack, preserves_flags)
        );
    }
}

/// The process's first thread begins.
pub fn begin(block: &Block) -> i64 {
    const RESTORER: u64 = 0x0400_0000;
    const INFO: u64 = 4;
    const ON_STACK: u64 = 0x0800_0000;
    let flags = RESTORER | INFO | ON_STACK;
    // All other signals but those of faults wait until the program goes on.
    let action = [
        interpose_trap as *const () as u64,
        flags,
        restore(),
        !faults::BITS,
    ];
    let unblocked = SIGSYS_BIT;
    // SAFETY: the handler is above; the block stays for good.
    unsafe {
        let actions = &raw const action as u64;
        system::call(number::RT_SIGACTION, [SIGSYS, actions, 0, 8, 0, 0]);
        let mask = &raw const unblocked as u64;
        system::call(number::RT_SIGPROCMASK, [1, mask, 0, 8, 0, 0]);
    }
    block_calls(block)
}

/// The kernel stops the calling thread's calls from now on.
pub fn block_calls(block: &Block) -> i64 {
    // SAFETY: the block stays for good.
    unsafe {
        system::call(
            number::PRCTL,
            [DISPATCH, 1, OWN, OWN_BYTES, block.selector(), 0],
        )
    }
}

/// A call of the program's, that the kernel did not make.
pub struct Call<'a> {
    /// Linux's number.
    pub number: u64,
    /// What was interrupted; the call's result goes to rax.
    pub context: &'a mut Context,
    /// Where the program goes on.
    pub back: u64,
    /// Its stack pointer then.
    pub stack: u64,
}

impl Call<'_> {
    /// Its arguments.
    pub fn arguments(&self) -> [u64; 6] {
        let r = &self.context.registers;
        [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9]
    }

    /// It has this result, and was not made.
    pub fn answer(&mut self, result: i64) {
        self.context.registers.rax = result as u64;
    }

    /// It is made when the program goes on, at a place from where it passes.
    pub fn pass(&mut self, from: u64) {
        self.context.registers.rax = self.number;
        self.context.registers.rip = from;
    }
}

/// What came of a call: 0, or a handler of the program's for a signal that its own filter sends.
extern "C" fn trapped(context: *mut Context, info: *const Info) -> u64 {
    const X86_64: u32 = 0xc000_003e;
    const BY_DISPATCH: i32 = 2;
    // SAFETY: the kernel's, on the stack of the interrupted thread, until the handler returns.
    let (context, info) = unsafe { (&mut *context, &*info) };
    let block = Block::mine();
    if block.call.deferred.swap(0, SeqCst) != 0 {
        context.mask = block.call.mask.load(SeqCst);
    }
    context.mask &= !SIGSYS_BIT;
    block.call.know_other(context.stack, block.thread());
    if !block.call.kept.is_empty() {
        deferred::again(&block.call);
    }
    if info.code != BY_DISPATCH {
        return signals::refused(context.mask);
    }
    context.registers.rip = near::origin(context.registers.rip);
    let mut call = Call {
        number: info.call as u32 as u64,
        back: context.registers.rip,
        stack: context.registers.rsp,
        context,
    };
    if let Some(said) = fast::said(block, call.arguments()) {
        calls::decided(&mut call, said);
        return 0;
    }
    if after::came_back(&mut call) {
        return 0;
    }
    if info.machine != X86_64 || call.number & 0x4000_0000 != 0 {
        // Of 32 bits: nobody sees what it means, so there is none.
        call.answer(system::error::ENOSYS);
        return 0;
    }
    places::note(places::STOPPED);
    sites::came(call.back, call.number);
    calls::serve(&mut call);
    0
}
