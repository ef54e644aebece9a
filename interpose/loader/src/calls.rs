//! What becomes of a call: the agent is asked, and calls that would take the program out of its
//! sight are made in another way.

use crate::agent::{self, Verdict};
use crate::exec;
use crate::place::heap;
use crate::stubs::{self, Kind};
use crate::system::{self, error, number};
use crate::thread::Block;
use crate::trap::{self, Call, SIGSYS, SIGSYS_BIT};
use core::sync::atomic::Ordering::SeqCst;

/// A call.
pub fn serve(call: &mut Call<'_>) {
    let arguments = call.arguments();
    match agent::ask(call.number, arguments) {
        Verdict::Answer(result) => call.answer(result),
        Verdict::Pass => make(call, arguments),
    }
}

fn make(call: &mut Call<'_>, [a, b, c, d, ..]: [u64; 6]) {
    match call.number {
        number::CLONE => clone(call, a, b != 0),
        number::CLONE3 => match system::word(a) {
            // Its third word but one is the stack.
            Some(flags) => clone(call, flags, true),
            None => call.answer(error::EFAULT),
        },
        number::FORK => pass(call, Kind::Process),
        number::VFORK => pass(call, Kind::Guest),
        number::EXECVE => exec::exec(call, None, a, b, c, 0),
        number::EXECVEAT => exec::exec(call, Some(a as i32), b, c, d, call.arguments()[4]),
        number::BRK => call.answer(heap::brk(a) as i64),
        number::RT_SIGACTION => signal_action(call, a, b, c, d),
        number::RT_SIGPROCMASK => signal_mask(call, a, b, c, d),
        number::PRCTL if a == trap::DISPATCH => call.answer(error::EINVAL),
        number::ARCH_PRCTL if a == SET_GS => call.answer(error::EPERM),
        // Calls made by its rings are seen by nobody.
        number::IO_URING_SETUP => call.answer(error::ENOSYS),
        number::READLINK => exec::read_link(call, None, a, b, c),
        number::READLINKAT => exec::read_link(call, Some(a as i32), b, c, d),
        number::OPEN => exec::open(call, a, b),
        number::OPENAT => exec::open(call, b, c),
        _ => pass(call, Kind::Plain),
    }
}

/// `ARCH_SET_GS`.
const SET_GS: u64 = 0x1001;

/// The call is made as it stands when the program goes on.
pub fn pass(call: &mut Call<'_>, kind: Kind) {
    match stubs::stub(call.context.registers.rip, kind) {
        Some(stub) => call.pass(stub),
        None => call.answer(error::ENOMEM),
    }
}

fn clone(call: &mut Call<'_>, flags: u64, has_stack: bool) {
    const SAME_MEMORY: u64 = 0x100;
    const WAITS: u64 = 0x4000;
    if flags & SAME_MEMORY == 0 {
        return pass(call, Kind::Process);
    }
    if flags & WAITS != 0 {
        return pass(call, Kind::Guest);
    }
    if !has_stack {
        // Two threads on one stack.
        return call.answer(error::EINVAL);
    }
    let Some(block) = Block::take() else {
        return call.answer(error::ENOMEM);
    };
    let registers = &mut call.context.registers;
    block.begin.store(registers.rip, SeqCst);
    block.ninth.store(registers.r9, SeqCst);
    // Below the red zone, the maker's ninth register and its way back.
    let at = registers.rsp - 128 - 16;
    let mut kept = [0; 16];
    kept[..8].copy_from_slice(&registers.r9.to_le_bytes());
    kept[8..].copy_from_slice(&registers.rip.to_le_bytes());
    if !system::write_program(at, &kept) {
        block.give_back();
        return call.answer(error::EFAULT);
    }
    registers.rsp = at;
    registers.r9 = block.address();
    call.pass(trap::thread());
}

/// Handlers come back by the loader, and never keep a call from being seen.
fn signal_action(call: &mut Call<'_>, signal: u64, new: u64, old: u64, size: u64) {
    const RESTORER: u64 = 0x0400_0000;
    if size != 8 {
        return call.answer(error::EINVAL);
    }
    let mut action = [0u8; 32];
    if new != 0 && !system::read_program(new, &mut action) {
        return call.answer(error::EFAULT);
    }
    let mut words = [0u64; 4];
    for (word, bytes) in words.iter_mut().zip(action.chunks_exact(8)) {
        *word = bytes.try_into().map_or(0, u64::from_le_bytes);
    }
    words[1] |= RESTORER;
    words[2] = trap::restore();
    words[3] &= !SIGSYS_BIT;
    let mut former = [0u64; 4];
    let result = if signal == SIGSYS {
        0
    } else {
        let new = if new == 0 { 0 } else { &raw const words as u64 };
        // SAFETY: the kernel reads and writes these two.
        unsafe {
            let former = &raw mut former as u64;
            system::call(number::RT_SIGACTION, [signal, new, former, 8, 0, 0])
        }
    };
    if result == 0 && old != 0 {
        for (word, bytes) in former.iter().zip(action.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        if !system::write_program(old, &action) {
            return call.answer(error::EFAULT);
        }
    }
    call.answer(result);
}

/// The mask that counts is the one that the program goes on with.
fn signal_mask(call: &mut Call<'_>, how: u64, new: u64, old: u64, size: u64) {
    if size != 8 {
        return call.answer(error::EINVAL);
    }
    let before = call.context.mask;
    if new != 0 {
        let Some(mask) = system::word(new) else {
            return call.answer(error::EFAULT);
        };
        // Nobody blocks these two.
        const NEVER: u64 = 1 << 8 | 1 << 18 | SIGSYS_BIT;
        let mask = match how {
            0 => before | mask,
            1 => before & !mask,
            2 => mask,
            _ => return call.answer(error::EINVAL),
        };
        call.context.mask = mask & !NEVER;
    }
    if old != 0 && !system::write_program(old, &before.to_le_bytes()) {
        return call.answer(error::EFAULT);
    }
    call.answer(0);
}
