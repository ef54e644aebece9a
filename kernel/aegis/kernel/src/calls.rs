//! Calls that take a stack: the kernel's own here, all others by the books.

use postern_aegis_abi::records::end;
use postern_aegis_abi::{Call, Error, Mapping, ROOT, call, status};
use postern_aegis_books::Hardware;

use crate::hardware::port;
use crate::hardware::serial::{self, Console};
use crate::machine::{Here, books, current};
use crate::{disk, events, filters, handlers, judge, network};

/// Bytes that a call on bytes moves at a time.
const PIECE: usize = 256;

/// A call on this processor's stack: its arguments and its number; the result goes to rax.
type Served = extern "C" fn(&[u64; 6], u64) -> i64;

/// What `entry.s` calls for each number. The calls that environments make most have functions of
/// their own.
#[unsafe(no_mangle)]
static kernel_calls: [Served; call::TABLE.len()] = {
    let mut calls: [Served; call::TABLE.len()] = [other; _];
    calls[Call::NullStack as usize] = null;
    calls[Call::Map as usize] = map;
    calls[Call::Unmap as usize] = unmap;
    calls[Call::Protect as usize] = protect;
    calls
};

fn result(result: Result<(), Error>) -> i64 {
    result.map_or_else(|error| error as i64, |()| 0)
}

extern "C" fn null(_arguments: &[u64; 6], _number: u64) -> i64 {
    0
}

/// In the caller's own space; in others' it is a call as all others.
extern "C" fn map(arguments: &[u64; 6], number: u64) -> i64 {
    let [address, mapping, capability, 0, _, _] = *arguments else {
        return other(arguments, number);
    };
    let caller = current();
    result(books().map_page(caller, caller, address, Mapping(mapping), capability))
}

extern "C" fn unmap(arguments: &[u64; 6], number: u64) -> i64 {
    let [address, 0, ..] = *arguments else {
        return other(arguments, number);
    };
    result(books().unmap_page(current(), address))
}

extern "C" fn protect(arguments: &[u64; 6], _number: u64) -> i64 {
    result(books().protect_page(current(), arguments[0], arguments[1]))
}

extern "C" fn other(arguments: &[u64; 6], number: u64) -> i64 {
    let Some(call) = Call::of(number as u8) else {
        return Error::NoCall as i64;
    };
    let caller = current();
    let result = match call {
        Call::Yield => events::leave(),
        Call::Write => write(caller, arguments[0], arguments[1]),
        Call::Read => read(caller),
        Call::Blocks => disk::ask(caller, arguments[0], arguments[1]),
        Call::Bind => filters::bind(caller, *arguments),
        Call::Direct => filters::direct(caller, *arguments),
        Call::Matches => filters::matches(caller, *arguments),
        Call::Send => network::send(caller, arguments[0], arguments[1]),
        Call::Handler => handlers::make(caller, *arguments),
        Call::Window => handlers::window(caller, *arguments),
        Call::Judge => judge::judge(caller, arguments[0], arguments[1], arguments[2]),
        Call::Stop => stop(caller, arguments[0]),
        _ => books().call(caller, call, *arguments),
    };
    result.map_or_else(|error| error as i64, |value| value as i64)
}

/// The caller has ended or was handed over, by its own call or another's. `entry.s` calls this
/// after a call.
#[unsafe(no_mangle)]
extern "C" fn kernel_leave() -> ! {
    events::leave()
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
