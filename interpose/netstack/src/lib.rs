//! TCP and UDP sockets of unmodified programs, served beside them: an agent of `postern interpose`
//! in whose window all processes of a tree have one network stack, with an address of its own.
//!
//! | module | what |
//! |---|---|
//! | `host` | what the agent calls |
//! | `heap` | memory, by the C library's functions |
//! | `lock` | who is in the stack, and that none who died there left it half changed |
//! | `ring` | frames, out of the kernel's rings and into them |
//! | `checksum` | sums of frames that nobody else has checked |
//! | `packets` | the socket of these rings: interface, filter, mappings |
//! | `chosen` | which packets are the stack's, by the crate `postern-filter` |
//! | `options` | the agent's arguments |
//! | `stack` | smoltcp's interface and sockets, and their turns |
//! | `socket` | what a program's socket is, and whether it has something to tell |
//! | `stream`, `datagram` | what is done with one |
//! | `program` | addresses and lists of pieces in the program's memory |
//! | `descriptor` | sockets by the program's descriptors, which are ends of pairs |
//! | `transfer`, `setting`, `wait` | the program's calls: data; names and options; waiting |
//! | `calls` | which call is which |
//! | `keeper` | what goes on without calls |
#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod calls;
mod checksum;
mod chosen;
mod datagram;
mod descriptor;
#[cfg(not(test))]
mod heap;
mod host;
mod keeper;
mod lock;
mod options;
mod packets;
mod program;
mod ring;
mod setting;
mod socket;
mod stack;
mod stream;
mod transfer;
mod wait;
#[cfg(test)]
mod wire;

#[cfg(not(test))]
#[panic_handler]
fn panicked(why: &core::panic::PanicInfo<'_>) -> ! {
    let line = why.location().map_or(0, core::panic::Location::line);
    let file = why.location().map_or("", core::panic::Location::file);
    host::fail(&alloc::format!("the network stack failed at {file}:{line}"))
}

/// `alloc` was compiled for panics that unwind; here none does.
#[cfg(not(test))]
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// As above: called by nobody.
#[cfg(not(test))]
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    host::fail("the network stack unwinds")
}
