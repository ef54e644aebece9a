//! Calls that take a stack: the kernel's own here, all others by the books.

use postern_aegis_abi::records::end as reason;
use postern_aegis_abi::{Call, Error, Mapping, ROOT, call, status};

use crate::hardware::port;
use crate::machine::{books, current};
use crate::{console, disk, events, filters, handlers, judge, network};

/// A call on this processor's stack: its arguments and its number; the result goes to rax.
type Served = extern "C" fn(&[u64; 6], u64) -> i64;

/// Functions for calls that the kernel does itself. One for each: what one of them needs of the stack
/// costs no other anything.
macro_rules! own {
    ($($call:ident => $name:ident: |$caller:ident, $arguments:ident| $done:expr;)+) => {
        $(extern "C" fn $name($arguments: &[u64; 6], _number: u64) -> i64 {
            let $caller = current();
            word($done)
        })+

        /// What `entry.s` calls for each number. The calls that environments make most have functions
        /// of their own, too.
        #[unsafe(no_mangle)]
        static kernel_calls: [Served; call::TABLE.len()] = {
            let mut calls: [Served; call::TABLE.len()] = [other; _];
            calls[Call::NullStack as usize] = null;
            calls[Call::Yield as usize] = end_slice;
            calls[Call::Map as usize] = map;
            calls[Call::Unmap as usize] = unmap;
            calls[Call::Protect as usize] = protect;
            calls[Call::Drop as usize] = drop_holding;
            $(calls[Call::$call as usize] = $name;)+
            calls
        };
    };
}

own! {
    Write => write: |caller, a| console::write(caller, a[0], a[1], a[2]);
    Read => read: |caller, a| console::read(caller, a[0]);
    Judge => judge: |caller, a| judge::judge(caller, a[0], a[1], a[2]);
    Stop => stop: |caller, a| end(caller, a[0]);
    Blocks => blocks: |caller, a| disk::ask(caller, a[0], a[1]);
    Bind => bind: |caller, a| filters::bind(caller, *a);
    Direct => direct: |caller, a| filters::direct(caller, *a);
    Matches => matches: |caller, a| filters::matches(caller, *a);
    Send => send: |caller, a| network::send(caller, a[0], a[1]);
    Handler => handler: |caller, a| handlers::make(caller, *a);
    Window => window: |caller, a| handlers::window(caller, *a);
}

fn word(result: Result<u64, Error>) -> i64 {
    result.map_or_else(|error| error as i64, |value| value as i64)
}

fn result(result: Result<(), Error>) -> i64 {
    result.map_or_else(|error| error as i64, |()| 0)
}

extern "C" fn null(_arguments: &[u64; 6], _number: u64) -> i64 {
    0
}

extern "C" fn end_slice(_arguments: &[u64; 6], _number: u64) -> i64 {
    events::leave()
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

/// A call as all others, behind which the filters are compiled anew if one is gone. Who ends nothing
/// pays for nobody's end.
extern "C" fn drop_holding(arguments: &[u64; 6], number: u64) -> i64 {
    let dropped = other(arguments, number);
    if dropped == 0 {
        filters::settle(Some(current()));
    }
    dropped
}

extern "C" fn other(arguments: &[u64; 6], number: u64) -> i64 {
    match Call::of(number as u8) {
        Some(call) => word(books().call(current(), call, *arguments)),
        None => Error::NoCall as i64,
    }
}

/// The caller has ended or was handed over, by its own call or another's. `entry.s` calls this
/// after a call.
#[unsafe(no_mangle)]
extern "C" fn kernel_leave() -> ! {
    events::leave()
}

fn end(caller: u16, status: u64) -> Result<u64, Error> {
    if caller != ROOT {
        return Err(Error::Denied);
    }
    port::stop(status::STOPPED | status as u8 & status::GREATEST)
}

/// An exception without a handler: the environment ends. `entry.s` calls this.
#[unsafe(no_mangle)]
extern "C" fn kernel_unhandled(vector: u32, at: u64) -> ! {
    events::end(reason::EXCEPTION + vector, at)
}
