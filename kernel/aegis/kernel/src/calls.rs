//! Calls that take a stack: the kernel's own here, all others by the books.

use postern_aegis_abi::records::end;
use postern_aegis_abi::{Call, Error, Mapping, ROOT, call, status};

use crate::hardware::port;
use crate::machine::{books, current};
use crate::{console, disk, events, filters, handlers, judge, network};

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
        Call::Write => console::write(caller, arguments[0], arguments[1], arguments[2]),
        Call::Read => console::read(caller, arguments[0]),
        Call::Blocks => disk::ask(caller, arguments[0], arguments[1]),
        Call::Bind => filters::bind(caller, *arguments),
        Call::Direct => filters::direct(caller, *arguments),
        Call::Matches => filters::matches(caller, *arguments),
        Call::Send => network::send(caller, arguments[0], arguments[1]),
        Call::Handler => handlers::make(caller, *arguments),
        Call::Window => handlers::window(caller, *arguments),
        Call::Drop => {
            let dropped = books().call(caller, call, *arguments);
            filters::settle(Some(caller));
            dropped
        }
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
