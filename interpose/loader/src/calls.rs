//! What becomes of a call: the agent is asked, and calls that would take the program out of its
//! sight are made in another way.

use crate::after;
use crate::agent::{self, Asked, Verdict};
use crate::descriptors;
use crate::exec;
use crate::filters;
use crate::memory;
use crate::place::heap;
use crate::signals;
use crate::sites;
use crate::stubs::{self, Kind};
use crate::system::{self, error, number};
use crate::thread::Block;
use crate::trap::{self, Call};
use core::sync::atomic::Ordering::SeqCst;

/// A call.
pub fn serve(call: &mut Call<'_>) {
    let asked = Asked {
        number: call.number,
        arguments: call.arguments(),
        result: 0,
        note: 0,
    };
    let verdict = agent::ask(Block::mine(), asked);
    decided(call, verdict);
}

/// A call of which the agent has said this.
pub fn decided(call: &mut Call<'_>, verdict: Verdict) {
    match verdict {
        Verdict::Answer(result) => call.answer(result),
        Verdict::Pass(made) => {
            call.number = made.number;
            make(call, made.arguments);
        }
        Verdict::PassAfter(made) => {
            call.number = made.number;
            after::make(call, made);
        }
    }
}

/// Makes it.
pub fn make(call: &mut Call<'_>, words: [u64; 6]) {
    let [a, b, c, d, e, _] = words;
    if let Some(index) = filters::installs(call.number, words) {
        return filters::install(call, words, index);
    }
    match call.number {
        number::CLONE => clone(call, a, b, words),
        number::CLONE3 => clone3(call, words),
        number::FORK => fork(call, words, 0),
        number::VFORK => pass(call, words, Kind::Guest),
        number::EXECVE => exec::exec(call, None, [a, b, c, 0]),
        number::EXECVEAT => exec::exec(call, Some(a as i32), [b, c, d, e]),
        number::EXIT => {
            agent::end(Block::mine());
            pass(call, words, Kind::Plain);
        }
        number::SIGALTSTACK => {
            Block::mine().call.forget_other();
            pass(call, words, Kind::Plain);
        }
        number::BRK => call.answer(heap::brk(a) as i64),
        number::RT_SIGACTION => signals::action(call, a, b, c, d),
        number::RT_SIGPROCMASK => signals::mask(call, a, b, c, d),
        number::RT_SIGSUSPEND => signals::with_mask(call, words, 0),
        number::PPOLL => signals::with_mask(call, words, 3),
        number::EPOLL_PWAIT | number::EPOLL_PWAIT2 => signals::with_mask(call, words, 4),
        number::PSELECT6 => signals::with_mask_of(call, words, 5),
        number::PRCTL if a == trap::DISPATCH => call.answer(error::EINVAL),
        number::ARCH_PRCTL if a == SET_GS => call.answer(error::EPERM),
        // Who traces would be told of the signals that come instead of calls, also while it waits
        // for a child of `vfork`.
        number::PTRACE if matches!(a, TRACE_ME | ATTACH | SEIZE) => call.answer(error::EPERM),
        // Calls made by its rings are seen by nobody.
        number::IO_URING_SETUP => call.answer(error::ENOSYS),
        number::CLOSE => descriptors::closed(call, words, 0),
        number::DUP2 | number::DUP3 => descriptors::closed(call, words, 1),
        number::FCNTL | number::IOCTL => descriptors::flagged(call, words),
        number::CLOSE_RANGE => descriptors::range(call, words),
        number::READLINK => exec::read_link(call, a, b, c, words),
        number::READLINKAT => exec::read_link(call, b, c, d, words),
        number::OPEN => exec::open(call, a, b, words),
        number::OPENAT => exec::open(call, b, c, words),
        _ => pass(call, words, Kind::Plain),
    }
}

/// Whether a call may be one of those that [`make`] does not pass as they are.
pub fn is_special(number: u64, [a, b, _, d, e, f]: [u64; 6]) -> bool {
    match number {
        number::CLONE | number::CLONE3 | number::FORK | number::VFORK => true,
        number::EXECVE | number::EXECVEAT | number::EXIT | number::RT_SIGRETURN => true,
        number::RT_SIGACTION | number::RT_SIGPROCMASK | number::RT_SIGSUSPEND => true,
        number::BRK
        | number::SIGALTSTACK
        | number::PRCTL
        | number::ARCH_PRCTL
        | number::SECCOMP => true,
        number::PTRACE | number::IO_URING_SETUP | number::CLOSE_RANGE => true,
        number::READLINK | number::OPEN => exec::may_be_own_link(a),
        number::READLINKAT | number::OPENAT => exec::may_be_own_link(b),
        number::PPOLL => d != 0,
        number::EPOLL_PWAIT | number::EPOLL_PWAIT2 => e != 0,
        number::PSELECT6 => f != 0,
        number::CLOSE => descriptors::is_own(a),
        number::DUP2 | number::DUP3 => descriptors::is_own(b),
        number::FCNTL | number::IOCTL => descriptors::is_flagged(number, a, b),
        // Of x32, or no call.
        _ => number > LAST,
    }
}

/// Above the kernel's numbers.
const LAST: u64 = 4096;

/// Requests of `ptrace` by which one process begins to trace another.
const TRACE_ME: u64 = 0;
const ATTACH: u64 = 16;
const SEIZE: u64 = 0x4206;
/// `ARCH_SET_GS`.
const SET_GS: u64 = 0x1001;

/// The call is made with these words when the program goes on.
pub fn pass(call: &mut Call<'_>, words: [u64; 6], kind: Kind) {
    if words != call.arguments() && kind == Kind::Plain {
        return alter(call, words);
    }
    if kind == Kind::Guest {
        Block::mine().call.lend();
    }
    let stub = match (call.context.registers.rip, kind) {
        (stubs::BEHIND, Kind::Guest) => after::shared(call),
        (back, kind) => stubs::stub(back, kind),
    };
    match stub {
        Some(stub) => call.pass(stub),
        None => call.answer(error::ENOMEM),
    }
}

/// The program finds its own words in the registers afterwards, as after any call: they are kept
/// below its red zone.
pub fn alter(call: &mut Call<'_>, words: [u64; 6]) {
    let mut kept = [0; 7];
    kept[..6].copy_from_slice(&call.arguments());
    kept[6] = call.context.registers.rip;
    let registers = &mut call.context.registers;
    let Some(at) = push(registers.rsp - RED_ZONE, &kept) else {
        return call.answer(error::EFAULT);
    };
    registers.rsp = at;
    [registers.rdi, registers.rsi, registers.rdx] = [words[0], words[1], words[2]];
    [registers.r10, registers.r8, registers.r9] = [words[3], words[4], words[5]];
    call.pass(trap::altered());
}

/// Bytes below the stack pointer that are the program's.
pub const RED_ZONE: u64 = 128;

/// Puts words on the program's stack: where they are.
pub fn push(below: u64, words: &[u64]) -> Option<u64> {
    let at = below - 8 * words.len() as u64;
    for (index, word) in words.iter().enumerate() {
        if !system::write_program(at + 8 * index as u64, &word.to_le_bytes()) {
            return None;
        }
    }
    Some(at)
}

const SAME_MEMORY: u64 = 0x100;
const MAKER_WAITS: u64 = 0x4000;

fn clone(call: &mut Call<'_>, flags: u64, stack: u64, words: [u64; 6]) {
    if flags & SAME_MEMORY == 0 {
        return fork(call, [flags, 0, words[2], words[3], words[4], 0], stack);
    }
    thread(call, flags, stack != 0, words);
}

/// Makes a thread, or a process that has the same memory.
fn thread(call: &mut Call<'_>, flags: u64, has_stack: bool, words: [u64; 6]) {
    if flags & MAKER_WAITS != 0 {
        return pass(call, words, Kind::Guest);
    }
    if !has_stack || words != call.arguments() {
        // Two threads on one stack; or an agent's words, for which there is no register.
        return call.answer(error::EINVAL);
    }
    let Some(block) = Block::take() else {
        return call.answer(error::ENOMEM);
    };
    sites::threads();
    let registers = &mut call.context.registers;
    block.begin.store(call.back, SeqCst);
    block.ninth.store(registers.r9, SeqCst);
    let kept = [registers.r9, registers.rip];
    let Some(at) = push(registers.rsp - RED_ZONE, &kept) else {
        block.give_back();
        return call.answer(error::EFAULT);
    };
    registers.rsp = at;
    registers.r9 = block.address();
    call.pass(trap::thread());
}

fn clone3(call: &mut Call<'_>, words: [u64; 6]) {
    /// `struct clone_args`: flags, and the stack with its size.
    const LARGEST: usize = 88;
    const STACK: usize = 40;
    let size = words[1] as usize;
    let mut given = [0u8; LARGEST];
    if !(64..=LARGEST).contains(&size) {
        // No such call is known; the program takes the older one.
        return call.answer(error::ENOSYS);
    }
    if !system::read_program(words[0], &mut given[..size]) {
        return call.answer(error::EFAULT);
    }
    let word = |at: usize| given[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
    let (flags, stack) = (word(0), word(STACK));
    let top = stack.wrapping_add(word(STACK + 8));
    if flags & SAME_MEMORY != 0 {
        return thread(call, flags, stack != 0, words);
    }
    given[STACK..STACK + 16].fill(0);
    let words = [given.as_ptr() as u64, words[1], 0, 0, 0, 0];
    fork(call, words, if stack == 0 { 0 } else { top });
}

/// Makes a process here: what the loader has is whole in the child, too.
fn fork(call: &mut Call<'_>, words: [u64; 6], stack: u64) {
    let block = Block::mine();
    memory::hold();
    sites::hold();
    // SAFETY: the words name no stack.
    let (result, base) = unsafe { trap::fork(call.number, words) };
    sites::release();
    memory::release();
    if result == 0 {
        if base != block.address() {
            block.program_fs.store(base, SeqCst);
        }
        after::in_child(call);
        if stack != 0 {
            call.context.registers.rsp = stack;
        }
        block.is_mine();
        block.call.kept.clear();
        agent::in_child(block);
        trap::block_calls(block);
    }
    call.answer(result);
}
