//! Calls behind which the agent is called again.
//!
//! While such a call is made, the program seems to have made it from a place outside the loader's
//! text, where the next instruction is another `syscall`. The kernel stops that one as any other:
//! so the loader is called behind the call, however long that waited, and whatever handlers ran
//! meanwhile. What is to be known then lies below the program's red zone, where the kernel has put
//! what it interrupted before. So handlers that interrupt the call nest, and those that jump out of
//! it leave nothing.

use crate::agent::{self, Asked};
use crate::calls::{self, RED_ZONE};
use crate::stubs::{self, Kind};
use crate::system::{self, error};
use crate::thread::Block;
use crate::trap::Call;
use alloc::boxed::Box;
use core::sync::atomic::Ordering::SeqCst;

/// The call as the agent left it, and where the program goes on.
#[derive(Clone, Copy)]
#[repr(C)]
struct Record {
    asked: Asked,
    back: u64,
    stack: u64,
}

const WORDS: usize = size_of::<Record>() / 8;

/// A record of a call whose child has the caller's stack, and may have written over it: in a list
/// of the thread's. Those of calls that have not come back are dropped by the next that does.
pub struct Waiting {
    record: Record,
    next: u64,
}

/// Makes the call, with the agent's words.
pub fn make(call: &mut Call<'_>, asked: Asked) {
    let record = Record {
        asked,
        back: call.back,
        stack: call.stack,
    };
    let at = (call.stack - RED_ZONE - size_of::<Record>() as u64) & !15;
    // SAFETY: a record is words.
    let bytes = unsafe {
        core::slice::from_raw_parts((&raw const record).cast::<u8>(), size_of::<Record>())
    };
    if is_there(call, at) {
        // SAFETY: the kernel has written there, and whatever was below the red zone is nobody's.
        unsafe { (at as *mut Record).write(record) };
    } else if !system::write_program(at, bytes) {
        return call.answer(error::EFAULT);
    }
    call.context.registers.rsp = at;
    call.context.registers.rip = stubs::BEHIND;
    calls::make(call, asked.arguments);
    if call.context.registers.rip == stubs::BEHIND {
        // It was answered, and not passed.
        finish(call, record);
    }
}

/// The child of this call begins where the program goes on, and is not asked about.
pub fn in_child(call: &mut Call<'_>) {
    call.context.registers.rip = call.back;
    call.context.registers.rsp = call.stack;
}

/// The call makes a process that has the caller's memory, and perhaps its stack: where it is made
/// from.
pub fn shared(call: &mut Call<'_>) -> Option<u64> {
    let record = get(call.context.registers.rsp)?;
    in_child(call);
    let block = Block::mine();
    let waiting = Box::new(Waiting {
        record,
        next: block.waiting.load(SeqCst),
    });
    block.waiting.store(Box::into_raw(waiting) as u64, SeqCst);
    stubs::stub(call.back, Kind::GuestBehind)
}

/// Whether the call is none of the program's, but one that was passed has come back.
pub fn came_back(call: &mut Call<'_>) -> bool {
    let from = call.context.registers.rip;
    let stack = call.context.registers.rsp;
    let record = match from.wrapping_sub(2) {
        // SAFETY: it is there, and any words are a record.
        stubs::BEHIND if is_there(call, stack) => Some(unsafe { (stack as *const Record).read() }),
        stubs::BEHIND => get(stack),
        stubs::BEHIND_SHARED => take(stack),
        _ => return false,
    };
    match record {
        Some(record) => finish(call, record),
        None => system::give_up(127, &[b"the program's stack was taken from it in a call"]),
    }
    true
}

/// The agent sees the result, and the program goes on.
fn finish(call: &mut Call<'_>, mut record: Record) {
    record.asked.result = call.context.registers.rax as i64;
    let result = agent::after(Block::mine(), record.asked);
    call.context.registers.rip = record.back;
    call.context.registers.rsp = record.stack;
    call.answer(result);
}

/// Whether a record just above or below where the kernel has put what it interrupted is memory
/// without doubt: the frame is on the program's stack, and has bytes in the record's page.
fn is_there(call: &Call<'_>, at: u64) -> bool {
    /// Bytes of a frame at most, with the registers of vectors.
    const FRAME: u64 = 16 << 10;
    let frame = core::ptr::from_ref(&*call.context) as u64;
    let end = at + size_of::<Record>() as u64 - 1;
    // The frame ends within this many bytes below the stack pointer.
    let near = call.stack - RED_ZONE - 128;
    frame < near && near - frame < FRAME && near >> 12 == at >> 12 && at >> 12 == end >> 12
}

/// The record on the program's stack.
fn get(at: u64) -> Option<Record> {
    let mut words = [0u64; WORDS];
    // SAFETY: words are bytes.
    let bytes = unsafe {
        core::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), size_of::<Record>())
    };
    // SAFETY: as many words are a record, whatever they are.
    system::read_program(at, bytes).then(|| unsafe { core::mem::transmute(words) })
}

/// The record of the thread's that belongs to a stack pointer.
fn take(stack: u64) -> Option<Record> {
    let list = &Block::mine().waiting;
    loop {
        let first = list.load(SeqCst) as *mut Waiting;
        if first.is_null() {
            return None;
        }
        // SAFETY: made by `shared`, and only this thread takes from the list.
        let waiting = unsafe { Box::from_raw(first) };
        list.store(waiting.next, SeqCst);
        if waiting.record.stack == stack {
            return Some(waiting.record);
        }
    }
}
