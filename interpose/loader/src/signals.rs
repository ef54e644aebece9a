//! The program's signals: handlers come back by the loader, and none ever blocks the one that
//! comes instead of a call.

use crate::calls::{self, RED_ZONE};
use crate::stubs::{self, Kind};
use crate::system::{self, error, number};
use crate::trap::{self, Call, SIGSYS, SIGSYS_BIT};
use crate::{deferred, faults};
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The call `rt_sigaction`.
pub fn action(call: &mut Call<'_>, signal: u64, new: u64, old: u64, size: u64) {
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
    let was_plain = deferred::is_plain(signal);
    if new != 0 && signal != SIGSYS {
        match instead(signal, words) {
            Some(instead) => words = instead,
            None => return call.answer(error::ENOMEM),
        }
        words[1] = deferred::note(signal, words);
    }
    let mut former = [0u64; 4];
    let result = if signal == SIGSYS {
        for (kept, (former, word)) in KEPT.iter().zip(former.iter_mut().zip(words)) {
            *former = kept.load(SeqCst);
            if new != 0 {
                kept.store(word, SeqCst);
            }
        }
        0
    } else {
        let new = if new == 0 { 0 } else { &raw const words as u64 };
        // SAFETY: the kernel reads and writes these two.
        unsafe {
            let former = &raw mut former as u64;
            system::call(number::RT_SIGACTION, [signal, new, former, 8, 0, 0])
        }
    };
    if signal != SIGSYS {
        former[0] = stubs::handler(former[0]);
        if was_plain {
            former[1] &= !deferred::INFO;
        }
    }
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

/// What the kernel is to be told instead of an action of the program's.
fn instead(signal: u64, action: [u64; 4]) -> Option<[u64; 4]> {
    const NO_HANDLERS: [u64; 2] = [0, 1];
    if faults::ALL.contains(&signal) {
        return faults::instead(action);
    }
    let [handler, flags, restorer, mask] = action;
    match NO_HANDLERS.contains(&handler) {
        true => Some(action),
        false => Some([stubs::stub(handler, Kind::Signal)?, flags, restorer, mask]),
    }
}

/// The call `rt_sigprocmask`: the mask that counts is the one that the program goes on with.
pub fn mask(call: &mut Call<'_>, how: u64, new: u64, old: u64, size: u64) {
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

/// A call that waits with the mask to which one of its words points.
pub fn with_mask(call: &mut Call<'_>, mut words: [u64; 6], index: usize) {
    if let Some(mask) = system::word(words[index]).filter(|mask| mask & SIGSYS_BIT != 0) {
        let Some(at) = below(call, &[mask & !SIGSYS_BIT]) else {
            return call.answer(error::EFAULT);
        };
        words[index] = at;
    }
    calls::pass(call, words, Kind::Plain);
}

/// The same with a pointer to the pointer, and the mask's size.
pub fn with_mask_of(call: &mut Call<'_>, mut words: [u64; 6], index: usize) {
    let at = words[index];
    let (mask, size) = (system::word(at).filter(|_| at != 0), system::word(at + 8));
    if let (Some(mask), Some(size)) = (mask, size)
        && let Some(mask) = system::word(mask).filter(|mask| mask & SIGSYS_BIT != 0)
    {
        let stripped = below(call, &[mask & !SIGSYS_BIT]);
        let pair = stripped.and_then(|at| below(call, &[at, size]));
        let Some(pair) = pair else {
            return call.answer(error::EFAULT);
        };
        words[index] = pair;
    }
    calls::pass(call, words, Kind::Plain);
}

/// Words below what the call's registers will take of the program's stack.
fn below(call: &Call<'_>, words: &[u64]) -> Option<u64> {
    const REGISTERS: u64 = 256;
    let room = 16 * words.len() as u64;
    calls::push(
        call.context.registers.rsp - RED_ZONE - REGISTERS - room,
        words,
    )
}

/// The program's action for the signal that comes instead of calls: its own filters send it, too.
static KEPT: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

/// A filter of the program's refused a call by this signal, which goes on with a mask: its handler.
/// Without one the process ends.
pub fn refused(mask: u64) -> u64 {
    const IGNORED: u64 = 1;
    const SET: u64 = 2;
    let [handler, _, _, more] = [0, 1, 2, 3].map(|at| KEPT[at].load(SeqCst));
    let mask = (mask | more) & !SIGSYS_BIT;
    // SAFETY: the kernel reads the words. Where there is no handler, the process ends.
    unsafe {
        if handler <= IGNORED {
            let (default, bit) = ([0u64; 4], SIGSYS_BIT);
            system::call(
                number::RT_SIGACTION,
                [SIGSYS, &raw const default as u64, 0, 8, 0, 0],
            );
            system::signal(crate::thread::Block::mine().thread(), SIGSYS);
            system::call(
                number::RT_SIGPROCMASK,
                [1, &raw const bit as u64, 0, 8, 0, 0],
            );
        }
        system::call(
            number::RT_SIGPROCMASK,
            [SET, &raw const mask as u64, 0, 8, 0, 0],
        );
    }
    handler
}
