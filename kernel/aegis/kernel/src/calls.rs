//! Calls that take a stack: the kernel's own here, all others by the books.

use postern_aegis_abi::records::end;
use postern_aegis_abi::{Call, Error, ROOT, call, status};
use postern_aegis_books::Hardware;

use crate::hardware::port;
use crate::hardware::serial::{self, Console};
use crate::machine::{Here, books, current};
use crate::{events, judge};

/// Bytes that a call on bytes moves at a time.
const PIECE: usize = 256;

/// `entry.s` calls this with a call's number and its arguments, on this processor's stack; the
/// result goes to rax.
#[unsafe(no_mangle)]
extern "C" fn kernel_call(number: u8, arguments: &[u64; 6]) -> i64 {
    let Some(call) = Call::of(number) else {
        return Error::NoCall as i64;
    };
    let caller = current();
    let result = match call {
        Call::NullStack => Ok(0),
        Call::Yield => events::leave(),
        Call::Write => write(caller, arguments[0], arguments[1]),
        Call::Read => read(caller),
        Call::Judge => judge::judge(caller, arguments[0], arguments[1], arguments[2]),
        Call::Stop => stop(caller, arguments[0]),
        _ => books().call(caller, call, *arguments),
    };
    // The caller may have ended, or been handed over, by its own call or another's.
    events::leave_if_stopping();
    match result {
        Ok(value) => value as i64,
        Err(error) => error as i64,
    }
}

fn write(caller: u16, address: u64, length: u64) -> Result<u64, Error> {
    let length = length.min(call::MANY * 8) as usize;
    let mut piece = [0; PIECE];
    let mut console = Console::hold(|| Here.poll());
    let mut done = 0;
    while done < length {
        let piece = &mut piece[..PIECE.min(length - done)];
        let at = address.checked_add(done as u64).ok_or(Error::Argument)?;
        books().read_bytes(caller, at, piece)?;
        piece.iter().for_each(|&byte| console.put(byte));
        done += piece.len();
    }
    Ok(done as u64)
}

fn read(caller: u16) -> Result<u64, Error> {
    if caller != ROOT {
        return Err(Error::Denied);
    }
    serial::read().map(u64::from).ok_or(Error::Again)
}

fn stop(caller: u16, status: u64) -> Result<u64, Error> {
    if caller != ROOT {
        return Err(Error::Denied);
    }
    port::stop(status::STOPPED | status as u8 & status::GREATEST)
}

/// An exception without a handler: the environment ends. `entry.s` calls this.
#[unsafe(no_mangle)]
extern "C" fn kernel_unhandled(vector: u32, at: u64) -> ! {
    events::end(end::EXCEPTION + vector, at)
}
