//! Functions of C that extensions call, and addresses of the process's own.

use alloc::string::{String, ToString};
use core::arch::asm;
use core::ffi::c_void;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::context::context;
use postern_aegis::entry::Handler;
use postern_exos_abi::address;
use postern_gates::callee::Callee;
use postern_gates::{jump, outcome, peer, shim};
use postern_image::Type;

/// A callee of a C function with these parameters.
///
/// # Safety
/// `function` is one of the C calling convention that any words in the argument registers of these
/// parameters may be given to, and that neither unwinds nor jumps over the gates.
pub unsafe fn service(function: *const c_void, parameters: &[Type]) -> Callee {
    // SAFETY: the caller's promise.
    unsafe { Callee::function(function as usize, parameters) }
}

fn of(function: *const (), parameters: &[Type]) -> Callee {
    // SAFETY: functions of this file, which take any words, return, and panic into the end of the
    // process.
    unsafe { service(function.cast(), parameters) }
}

extern "C" fn never() {
    let words = Some(String::from("the memory gate was not reached"));
    shim::end_when_back(outcome::ABORT, 0, words);
}

extern "C" fn give_up(message: u32) {
    let words = super::engine::caller().and_then(|inner| inner.string(message));
    shim::end_when_back(outcome::ABORT, 0, words);
}

extern "C" fn leave(status: i32) {
    shim::end_when_back(outcome::EXIT, u64::from(status as u32), None);
}

extern "C" fn peer_error() -> u32 {
    peer::error()
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

/// What stands behind a slot that leads to the memory gate.
pub(super) fn unreached() -> Callee {
    of(never as *const (), &[])
}

/// A service that every domain has, with the type of its result.
pub(super) fn builtin(name: &str) -> Option<(Callee, Option<Type>)> {
    Some(match name {
        "__postern_abort" => (of(give_up as *const (), &[Type::Pointer]), None),
        "__postern_exit" => (of(leave as *const (), &[Type::I32]), None),
        "__postern_setjmp" => (of(mark as *const (), &[]), Some(Type::U32)),
        "__postern_longjmp" => (of(jump_to as *const (), &[Type::U32]), None),
        "__postern_peer_error" => (of(peer_error as *const (), &[]), Some(Type::U32)),
        _ => return None,
    })
}

/// The function that was in front of a vector before.
pub(super) fn handler(word: usize) -> Option<Handler> {
    // SAFETY: 0, or what `entry::in_front` gave.
    (word != 0).then(|| unsafe { core::mem::transmute::<usize, Handler>(word) })
}

/// The kernel brings back the present base of gs when this gives the processor away.
pub(super) fn keep_base() {
    let base: u64;
    // SAFETY: reads a base; Aegis lets programs do that.
    unsafe { asm!("rdgsbase {}", out(reg) base, options(nomem, nostack, preserves_flags)) };
    context().gs.store(base, Relaxed);
}

/// Zeros for a page that was just mapped.
pub(super) fn zero(page: u64) {
    // SAFETY: the page is the caller's, mapped to be written, and no reference is into it.
    unsafe { core::ptr::write_bytes(page as *mut u8, 0, postern_aegis::PAGE) };
}

/// A word that nobody knows before.
pub(super) fn random() -> u64 {
    let mut word = postern_aegis::slices::clock();
    for _ in 0..16 {
        let (drawn, got): (u64, u8);
        // SAFETY: reads the processor's random numbers, where it has them (Aegis asks for them).
        unsafe {
            asm!("rdrand {}", "setc {}", out(reg) drawn, out(reg_byte) got, options(nomem, nostack))
        };
        if got != 0 {
            return word ^ drawn;
        }
        word = word.rotate_left(7) ^ 0x9e37_79b9_7f4a_7c15;
    }
    word
}

/// The process's own stack: lowest address that it may ever have, top.
pub(super) fn stack() -> (u64, u64) {
    let here: u64;
    // SAFETY: copies the stack pointer.
    unsafe { asm!("mov {}, rsp", out(reg) here, options(nomem, nostack, preserves_flags)) };
    let process = address::STACK - address::STACK_LIMIT..address::STACK;
    match process.contains(&here) {
        true => (process.start, process.end),
        // A root program's, in its own memory.
        false => (here - (40 << 10), (here | 0xffff) + 1),
    }
}
