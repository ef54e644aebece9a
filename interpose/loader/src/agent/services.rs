//! What agents can call.

use super::{Asked, domain, places};
use crate::start;
use crate::system::{self, number};
use alloc::vec;
use alloc::vec::Vec;
use core::ffi::c_void;
use postern_gates::bulk::Function;
use postern_gates::callee::Callee;
use postern_gates::{outcome, shim};
use postern_image::Type;

/// Bytes of stack that these need.
pub const STACK: usize = 32 << 10;

/// Bytes that one call copies, at most.
const MOST: u32 = 1 << 20;

extern "C" fn read(from: u64, to: u32, bytes: u32) -> i32 {
    let Some(agent) = domain::agent().filter(|_| bytes <= MOST) else {
        return system::error::EINVAL as i32;
    };
    let mut copy = vec![0; bytes as usize];
    match system::read_program(from, &mut copy) && agent.window().write(to, &copy) {
        true => 0,
        false => system::error::EFAULT as i32,
    }
}

extern "C" fn write(to: u64, from: u32, bytes: u32) -> i32 {
    let Some(agent) = domain::agent().filter(|_| bytes <= MOST) else {
        return system::error::EINVAL as i32;
    };
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
        system::write(start::told().output, &copy);
    }
}

extern "C" fn argument(number: u32, to: u32, room: u32) -> i32 {
    let mut all = places::arguments().split(|byte| *byte == 0);
    let found = all
        .nth(number as usize)
        .filter(|_| number < places::count());
    let (Some(agent), Some(found)) = (domain::agent(), found) else {
        return -1;
    };
    let mut copy = Vec::from(found);
    copy.push(0);
    match copy.len() <= room as usize && agent.window().write(to, &copy) {
        true => found.len() as i32,
        false => -1,
    }
}

/// The agent's own system call; addresses are the process's.
extern "C" fn call(record: u32) -> i64 {
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
    if matches!(
        number,
        number::FORK | number::VFORK | number::CLONE | number::CLONE3
    ) || matches!(
        number,
        number::RT_SIGRETURN | number::EXIT | number::EXIT_GROUP
    ) {
        return system::error::EPERM;
    }
    // SAFETY: agents may make any call that their program may, and a program that makes it does
    // what it does; the ones that would return elsewhere are refused.
    unsafe { system::call(number, [1, 2, 3, 4, 5, 6].map(word)) }
}

extern "C" fn address(of: u32) -> u64 {
    domain::agent().map_or(0, |agent| agent.window().base() + u64::from(of))
}

extern "C" fn thread() -> u32 {
    places::thread()
}

extern "C" fn process() -> u32 {
    // SAFETY: changes nothing.
    unsafe { system::call(number::GETPID, [0; 6]) as u32 }
}

extern "C" fn never() {
    shim::end_when_back(
        outcome::ABORT,
        0,
        Some("the memory gate was not reached".into()),
    );
}

extern "C" fn give_up(_message: u32) {
    shim::end_when_back(outcome::ABORT, 0, None);
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
        "pt_address" => of(address as *const c_void, &[Pointer], Some(U64)),
        "pt_thread" => of(thread as *const c_void, &[], Some(U32)),
        "pt_process" => of(process as *const c_void, &[], Some(U32)),
        "__postern_abort" => of(give_up as *const c_void, &[Pointer], None),
        "__postern_exit" => of(leave as *const c_void, &[I32], None),
        // The gates serve these themselves.
        _ if Function::of(name).is_some() => of(never as *const c_void, &[], None),
        _ => return None,
    })
}
