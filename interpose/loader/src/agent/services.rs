//! What agents can call.

use super::{Asked, domain, places};
use crate::start;
use crate::system::{self, number};
use crate::thread::Block;
use crate::trap::SIGSYS_BIT;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::ffi::c_void;
use core::sync::atomic::Ordering::SeqCst;
use postern_gates::bulk::Function;
use postern_gates::callee::Callee;
use postern_gates::window::Right;
use postern_gates::{jump, outcome, shim};
use postern_image::Type;

/// Bytes of stack that these need.
pub const STACK: usize = 32 << 10;

/// Bytes that one call copies, at most.
const MOST: u32 = 1 << 20;

/// Whether these bytes of the window are ones that the agent may write.
fn is_written(agent: &domain::Agent, offset: u32, bytes: u32) -> bool {
    let last = u64::from(offset) + u64::from(bytes.max(1)) - 1;
    let window = agent.window();
    let pages = u64::from(offset) >> 12..=last >> 12;
    pages.clone().count() as u64 <= u64::from(MOST >> 12) + 1
        && pages
            .map(|page| (page << 12).max(u64::from(offset)))
            .all(|at| u32::try_from(at).is_ok_and(|at| window.right(at) == Right::Write))
}

extern "C" fn read(from: u64, to: u32, bytes: u32) -> i32 {
    let Some(agent) = domain::agent().filter(|_| bytes <= MOST) else {
        return system::error::EINVAL as i32;
    };
    if !is_written(agent, to, bytes) {
        return system::error::EFAULT as i32;
    }
    // SAFETY: pages of the window that the agent writes; no reference is made of windows.
    match unsafe { system::read_program_at(from, address(to), bytes as usize) } {
        true => 0,
        false => system::error::EFAULT as i32,
    }
}

extern "C" fn write(to: u64, from: u32, bytes: u32) -> i32 {
    let Some(agent) = domain::agent().filter(|_| bytes <= MOST) else {
        return system::error::EINVAL as i32;
    };
    if is_written(agent, from, bytes) {
        // SAFETY: as above.
        return match unsafe { system::write_program_at(to, address(from), bytes as usize) } {
            true => 0,
            false => system::error::EFAULT as i32,
        };
    }
    let mut copy = vec![0; bytes as usize];
    match agent.window().read(from, &mut copy) && system::write_program(to, &copy) {
        true => 0,
        false => system::error::EFAULT as i32,
    }
}

extern "C" fn print(from: u32, bytes: u32) {
    let Some(agent) = domain::agent().filter(|_| bytes <= MOST) else {
        return;
    };
    let mut copy = vec![0; bytes as usize];
    if agent.window().read(from, &mut copy) {
        places::outside(|| system::write(start::told().output, &copy));
    }
}

extern "C" fn argument(number: u32, to: u32, room: u32) -> i32 {
    let mut all = places::arguments().split_inclusive(|byte| *byte == 0);
    let (Some(agent), Some(found)) = (domain::agent(), all.nth(number as usize)) else {
        return -1;
    };
    match found.len() <= room as usize && agent.window().write(to, found) {
        true => found.len() as i32 - 1,
        false => -1,
    }
}

/// The agent's own system call; addresses are the process's.
extern "C" fn call(record: u32) -> i64 {
    // Also where the call it is asked about did not come by a signal, whose handler blocks them.
    let quick = Block::mine().call.inside.load(SeqCst) != 0;
    make(record, quick)
}

/// The same, of one that does not wait: signals need not be blocked for it.
extern "C" fn call_now(record: u32) -> i64 {
    make(record, false)
}

fn make(record: u32, blocks: bool) -> i64 {
    let Some(agent) = domain::agent() else {
        return system::error::EINVAL;
    };
    let mut bytes = [0; size_of::<Asked>()];
    if !agent.window().read(record, &mut bytes) {
        return system::error::EFAULT;
    }
    let word = |at: usize| {
        bytes[8 * at..8 * at + 8]
            .try_into()
            .map_or(0, u64::from_le_bytes)
    };
    let number = word(0);
    let makes = [number::FORK, number::VFORK, number::CLONE, number::CLONE3];
    let ends = [number::RT_SIGRETURN, number::EXIT, number::EXIT_GROUP];
    if makes.contains(&number) || ends.contains(&number) {
        return system::error::EPERM;
    }
    let (all, mut mask) = (!SIGSYS_BIT, 0u64);
    // SAFETY: agents may make any call that their program may, and a program that makes it does
    // what it does; the ones that would return elsewhere are refused.
    unsafe {
        let set = |new: u64, old: u64| {
            if blocks {
                system::call(number::RT_SIGPROCMASK, [2, new, old, 8, 0, 0]);
            }
        };
        set(&raw const all as u64, &raw mut mask as u64);
        let words = [1, 2, 3, 4, 5, 6].map(word);
        let result = places::outside(|| system::call(number, words));
        set(&raw const mask as u64, 0);
        result
    }
}

extern "C" fn address(of: u32) -> u64 {
    domain::agent().map_or(0, |agent| agent.window().base() + u64::from(of))
}

/// The tree's end of what it has in common with its keeper.
extern "C" fn keeper() -> i32 {
    start::told().keeper
}

extern "C" fn keep(file: u32) -> i32 {
    match file < i32::MAX as u32 && places::keep(file) {
        true => 0,
        false => system::error::EINVAL as i32,
    }
}

extern "C" fn thread() -> u32 {
    system::thread()
}

extern "C" fn process() -> u32 {
    system::process() as u32
}

/// The address of a word of the agent's data.
fn word(offset: u32) -> Option<u64> {
    let window = domain::agent()?.window();
    let is = offset.is_multiple_of(4) && window.right(offset) == Right::Write;
    is.then(|| window.base() + u64::from(offset))
}

const FUTEX: u64 = 202;

/// Sleeps for a word, which threads of all processes have.
extern "C" fn wait(offset: u32, value: u32, nanoseconds: i64) -> i32 {
    const WAIT: u64 = 0;
    const SECOND: i64 = 1_000_000_000;
    let Some(at) = word(offset) else {
        return system::error::EFAULT as i32;
    };
    let time = [nanoseconds / SECOND, nanoseconds % SECOND];
    let limit = if nanoseconds < 0 {
        0
    } else {
        &raw const time as u64
    };
    // SAFETY: the kernel reads the word, and the time.
    places::outside(|| unsafe { system::call(FUTEX, [at, WAIT, value.into(), limit, 0, 0]) as i32 })
}

/// Whether a thread that had a lock still is there. One whose process has ended has a number until
/// its parent has asked for it, which may be who waits for the lock.
extern "C" fn lives(thread: u32) -> i32 {
    const PIDFD_OPEN: u64 = 434;
    const POLL: u64 = 7;
    const IN: u64 = 1;
    if places::has_ended(thread) {
        return 0;
    }
    // SAFETY: the kernel reads and writes the word: a descriptor, and the events that are waited
    // for.
    let ended = unsafe {
        let process = system::call(PIDFD_OPEN, [thread.into(), 0, 0, 0, 0, 0]);
        if process < 0 {
            // It is not its process's first one: such threads leave no number.
            return 1;
        }
        let mut file = process as u64 | IN << 32;
        let ended = system::call(POLL, [&raw mut file as u64, 1, 0, 0, 0, 0]) > 0;
        system::close(process as i32);
        ended
    };
    i32::from(!ended)
}

extern "C" fn wake(offset: u32, most: u32) -> i32 {
    const WAKE: u64 = 1;
    let Some(at) = word(offset) else {
        return system::error::EFAULT as i32;
    };
    let most = u64::from(most.min(i32::MAX as u32));
    // SAFETY: nothing is read or written.
    unsafe { system::call(FUTEX, [at, WAKE, most, 0, 0, 0]) as i32 }
}

extern "C" fn mark() -> u64 {
    jump::mark().unwrap_or_else(|error| {
        shim::end_when_back(outcome::ABORT, 0, Some(error.to_string()));
        0
    })
}

extern "C" fn jump_to(depth: u32) {
    if let Err(error) = jump::jump(depth) {
        shim::end_when_back(outcome::ABORT, 0, Some(error.to_string()));
    }
}

extern "C" fn no_error() -> u32 {
    0
}

/// The C library's own calls: what it writes is printed, and where it exits the agent fails.
extern "C" fn library(number: u64, file: u64, from: u64, bytes: u64) -> i64 {
    match (number, file) {
        (number::WRITE, 1 | 2) => {
            print(from as u32, (bytes as u32).min(MOST));
            bytes.min(u64::from(MOST)) as i64
        }
        (number::EXIT | number::EXIT_GROUP, status) => {
            leave(status as i32);
            0
        }
        _ => system::error::ENOSYS,
    }
}

extern "C" fn none_started() -> i32 {
    system::error::ENOSYS as i32
}

extern "C" fn never() {
    shim::end_when_back(
        outcome::ABORT,
        0,
        Some("the memory gate was not reached".into()),
    );
}

extern "C" fn give_up(message: u32) {
    let mut words = Vec::new();
    let mut byte = [0];
    if let Some(agent) = domain::agent() {
        while words.len() < 256
            && agent.window().read(message + words.len() as u32, &mut byte)
            && byte != [0]
        {
            words.extend(byte);
        }
    }
    let words = String::from_utf8_lossy(&words).into_owned();
    shim::end_when_back(outcome::ABORT, 0, Some(words));
}

extern "C" fn leave(status: i32) {
    shim::end_when_back(outcome::EXIT, u64::from(status as u32), None);
}

/// The one with this name, with the type of its result.
pub fn find(name: &str) -> Option<(Callee, Option<Type>)> {
    use Type::{I32, Pointer, U32, U64};
    let of = |function: *const c_void, parameters: &[Type], result| {
        // SAFETY: functions of this file, which take any words, return, and end the process where
        // they panic.
        (
            unsafe { Callee::function(function as usize, parameters) },
            result,
        )
    };
    Some(match name {
        "pt_program_read" => of(read as *const c_void, &[U64, Pointer, U32], Some(I32)),
        "pt_program_write" => of(write as *const c_void, &[U64, Pointer, U32], Some(I32)),
        "pt_print" => of(print as *const c_void, &[Pointer, U32], None),
        "pt_argument" => of(argument as *const c_void, &[U32, Pointer, U32], Some(I32)),
        "pt_syscall" => of(call as *const c_void, &[Pointer], Some(Type::I64)),
        "pt_syscall_now" => of(call_now as *const c_void, &[Pointer], Some(Type::I64)),
        "pt_keeper" => of(keeper as *const c_void, &[], Some(I32)),
        "pt_keep" => of(keep as *const c_void, &[U32], Some(I32)),
        "pt_address" => of(address as *const c_void, &[Pointer], Some(U64)),
        "pt_thread" => of(thread as *const c_void, &[], Some(U32)),
        "pt_thread_lives" => of(lives as *const c_void, &[U32], Some(I32)),
        "pt_process" => of(process as *const c_void, &[], Some(U32)),
        "__postern_abort" => of(give_up as *const c_void, &[Pointer], None),
        "__postern_exit" => of(leave as *const c_void, &[I32], None),
        "__postern_wait" => of(wait as *const c_void, &[Pointer, U32, Type::I64], Some(I32)),
        "__postern_wake" => of(wake as *const c_void, &[Pointer, U32], Some(I32)),
        "__postern_setjmp" => of(mark as *const c_void, &[], Some(U64)),
        "__postern_longjmp" => of(jump_to as *const c_void, &[U32], None),
        "__postern_peer_error" => of(no_error as *const c_void, &[], Some(U32)),
        "__postern_thread_start" | "__postern_spawn" => of(
            none_started as *const c_void,
            &[Pointer, Pointer],
            Some(I32),
        ),
        "sys" => of(
            library as *const c_void,
            &[U64, U64, U64, U64],
            Some(Type::I64),
        ),
        // The gates serve these themselves.
        _ if Function::of(name).is_some() => of(never as *const c_void, &[], None),
        _ => return None,
    })
}
